"""Likely secrets, taken out of what is shown to a language model or kept in a transcript.

Equal secrets get equal marks (`<masked 3>`), so that a call id that happens to look like a key still joins its result.
All expressions are RE2, so no text can make one slow. A mask is a safety net and no proof: what must not leave the
machine should not be sent to an endpoint outside it.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import re2

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False

#: Shapes that are secrets wherever they stand. A group named `keep` stays; without one, all that matches goes.
_SHAPES = (
    # A key block, whole or cut off at either end.
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\z)",
    r"\A[A-Za-z0-9+/=\s]{16,}-----END [A-Z ]{0,40}PRIVATE KEY-----",
    r"\beyJ[A-Za-z0-9_-]{10,}(?:\.[A-Za-z0-9_-]*){0,2}",  # JSON web tokens
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}",
    r"\b(?:sk|pk|rk|whsec)_(?:live|test)?_?[A-Za-z0-9]{16,}",
    r"\b(?:AKIA|ASIA|AGPA|AIDA|AROA|ANPA)[0-9A-Z]{16}\b",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\bxox[a-z]-[A-Za-z0-9-]{10,}",
    r"\bxapp-[A-Za-z0-9-]{10,}",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\b(?:hf|npm|dop_v1|pypi|nvapi|tvly|gsk)[_-][A-Za-z0-9_-]{20,}",
    r"(?i)(?P<keep>\b(?:proxy-)?authorization\b[\"']?\s*[:=]\s*[\"']?(?:(?:bearer|basic|token|digest)\s+)?)"
    r"[^\s\"',;<>]{4,}",
    r"(?i)(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{16,}",
    r"(?i)(?P<keep>\b(?:set-)?cookie\b[\"']?\s*[:=]\s*[\"']?)[^\n\"'<>]{6,}",
    r"(?i)(?P<keep>\b[a-z0-9_.-]{0,40}(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key"
    r"|access[_-]?token|auth[_-]?token|refresh[_-]?token|session[_-]?token|client[_-]?secret|private[_-]?key)"
    r"[a-z0-9_.-]{0,20}\\?[\"']?\s*[:=]\s*\\?[\"']?)[^\s\"',;&<>\\]{4,}",
    r"(?P<keep>\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{1,80}:)[^\s/@\"'<>]{1,200}(?:@)",
)
_EMAIL = r"\b[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}\b"
_TOKEN = re2.compile(rb"[A-Za-z0-9+/_=-]{24,512}", _OPTIONS)
#: Keys of an object whose text is a secret whatever it looks like.
_SECRET_KEY = re2.compile(
    rb"(?i)^(?:.*[_.-])?(?:password|passwd|passphrase|pwd|secret|api[_-]?key|apikey|access[_-]?key|access[_-]?token"
    rb"|auth[_-]?token|refresh[_-]?token|session[_-]?token|id[_-]?token|client[_-]?secret|private[_-]?key"
    rb"|authorization|proxy-authorization|cookie|set-cookie|credentials?)$",
    _OPTIONS,
)
#: Keys whose text is a name of something: it may look random and joins things, and is shown.
_NAME_KEY = re2.compile(rb"(?i:(?:^|[_.-])(?:ids?|uuid|guid|hash|sha|sha1|sha256|commit|digest)$)|Ids?$", _OPTIONS)
_NAME = re2.compile(
    rb"^(?:call|toolu|tooluse|chatcmpl|msg|fc|run|resp|rs|step|span|trace|thread|asst|evt)[_-]", _OPTIONS
)
#: Bits a character, above which a long token of mixed letters and digits is no word, path or number.
_ENTROPY = 4.2
#: What is looked at of one text; the rest is not shown (see `mask`).
MAX_TEXT = 200_000


class Masker:
    """Masks texts; the same secret has the same mark everywhere. `masked` counts distinct secrets.

    >>> Masker().mask("key sk-abcdefghijklmnopqrstuv and again sk-abcdefghijklmnopqrstuv")
    'key <masked 1> and again <masked 1>'
    """

    def __init__(self, emails: bool = False, known: tuple[str, ...] = ()) -> None:
        """emails: mask addresses too. known: secrets that are known to be secret, such as the key of the endpoint."""
        shapes = _SHAPES + ((_EMAIL,) if emails else ())
        self._shapes = tuple(re2.compile(_loose(shape).encode(), _OPTIONS) for shape in shapes)
        self._known = tuple(secret for secret in known if len(secret) >= 6)
        self._marks: dict[bytes, int] = {}

    @property
    def masked(self) -> int:
        """Number of different secrets met."""
        return len(self._marks)

    def mask(self, text: str, names: bool = False) -> str:
        """The text with likely secrets as marks. What goes beyond MAX_TEXT is left out, and said. names: the
        text is a name (an id, a hash), which is random and no secret."""
        for secret in self._known:
            text = text.replace(secret, "<masked key>")
        if len(text) < 6:
            return text
        rest = len(text) - MAX_TEXT
        if rest > 0:
            text = text[:MAX_TEXT]
        data = text.encode("utf-8", "replace")
        for shape in self._shapes:
            data = self._replaced(shape, data)
        data = data if names else self._random(data)
        return data.decode("utf-8", "replace") + (f" <{rest:,} more characters>" if rest > 0 else "")

    def mask_field(self, key: str, text: str) -> str:
        """As `mask`, for the text under a key: what `password` holds is a secret whatever it looks like."""
        name = key.encode("utf-8", "replace")[:200]
        if text and _SECRET_KEY.search(name) is not None:
            return self._mark(text.encode("utf-8", "replace")).decode()
        return self.mask(text, _NAME_KEY.search(name) is not None)

    def mask_all(self, value: Any, key: str = "") -> Any:
        """JSON with every text masked; keys stay as they are."""
        if isinstance(value, str):
            return self.mask_field(key, value)
        if isinstance(value, dict):
            return {name: self.mask_all(inner, str(name)) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.mask_all(inner, key) for inner in value]
        return value

    def _mark(self, secret: bytes) -> bytes:
        return b"<masked %d>" % self._marks.setdefault(secret, len(self._marks) + 1)

    def _replaced(self, shape: Any, data: bytes) -> bytes:
        pieces: list[bytes] = []
        end = 0
        has_keep = b"keep" in shape.groupindex or "keep" in shape.groupindex
        for match in shape.finditer(data):
            kept = match.group(1) if has_keep else b""
            secret = match.group(0)[len(kept) :]
            if secret.startswith(b"<masked"):
                continue
            pieces += (data[end : match.start()], kept, self._mark(secret))
            end = match.end()
        return b"".join((*pieces, data[end:])) if pieces else data

    def _random(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        end = 0
        for match in _TOKEN.finditer(data):
            if _NAME.search(match.group(0)) is None and _looks_random(match.group(0)):
                pieces += (data[end : match.start()], self._mark(match.group(0)))
                end = match.end()
        return b"".join((*pieces, data[end:])) if pieces else data


def _loose(shape: str) -> str:
    """The shape, begun also after an escape: in JSON inside JSON a secret may follow the two characters of `\\n`."""
    return rf"(?P<keep>\\[nrt]|\b){shape[2:]}" if shape.startswith(r"\b") and "?P<keep>" not in shape else shape


def _looks_random(token: bytes) -> bool:
    """Letters of both cases and digits, evenly spread: a key. Hex, UUIDs, words, paths and names in CamelCase are not.

    >>> _looks_random(b"q8Zr2LmX0vTn5KdYb7WcJ4hP"), _looks_random(b"550e8400-e29b-41d4-a716-446655440000")
    (True, False)
    >>> _looks_random(b"AbstractSingletonProxyFactoryBean2"), _looks_random(b"/usr/lib/python3/dist-packages/Xlib")
    (False, False)
    """
    if not (any(65 <= c <= 90 for c in token) and any(97 <= c <= 122 for c in token)):
        return False
    digits = sum(48 <= c <= 57 for c in token)
    if digits < 3 or token.count(b"/") > 2 or token.count(b"_") + token.count(b"-") > 4:
        return False
    n = len(token)
    entropy = -sum(k / n * math.log2(k / n) for k in Counter(token).values())
    return entropy >= min(_ENTROPY, math.log2(n) - 0.45)
