"""Heads of lines: what lines of a log begin with, told by shape.

The start of a line is cut into tokens: times and numbers are masked, words and signs stay. A head ends at a sign that
ends labels (`Thought 1:`, `AGENT >`, `[tool]`, `agent | `), or is a whole short line (`### Observation`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

#: A head is no longer than this, in code points and in words.
LONGEST_HEAD = 72
MOST_WORDS = 6

_TIME = (
    r"\d{4}[-/]\d\d[-/]\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d|\d\d?:\d\d:\d\d(?:[.,]\d+)?"
)
#: The same, and numbers, as a spec says them: shorter, and no stricter than the head around them needs.
_TIME_RE2 = r"\d[\d:.,/TZ+-]*(?: \d\d?:[\d:.,Z+-]+)?"
_MONTH_RE2 = r"[A-Z][a-z][a-z] [ \d]\d [\d:]+"
NUMBER_RE2 = r"-?\d[\d.]*"
_NUMBER = r"-?\d+(?:\.\d+)*(?:[eE][-+]?\d+)?"
_TOKEN = re.compile(
    rf"(?P<time>{_TIME})|(?P<num>{_NUMBER})|(?P<word>[A-Za-z_À-ɏ][\w'’]*(?:[.-][A-Za-z_]\w*)*)|(?P<space>[ \t]+)"
    r"|(?P<sign>[-=]>|<[-=]|(?P<one>[^\w\s])(?P=one)*)"
)
#: Signs that alone may be the head of an event: prompts and arrows.
PROMPTS = (">", ">>", ">>>", "$", "#", "%", "→", "»", "=>", "->", "<", "<<", "<<<", "←", "«", "<=", "<-")
_CLOSERS = (":", ">", "]", "|", ")", "→", "»", "=>", "->", "*", "$", "#", "%", "=", "<<", "←", "«", "<-")
_LEVELS = frozenset("debug info warning warn error critical fatal trace notice".split())  # noqa: SIM905


@dataclass(frozen=True, slots=True)
class Token:
    """kind: time, num, word, space or sign; id, where a word that holds digits may be another in every run."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Head:
    """A head as it is over many lines: its tokens, times and numbers masked.

    key: identifies it. whole: the head is all of its line.
    """

    tokens: tuple[Token, ...]
    whole: bool

    @property
    def key(self) -> str:
        return mask(self.tokens) + ("$" if self.whole else "")

    @property
    def words(self) -> tuple[str, ...]:
        """The words that name it: levels of loggers left out where others are left."""
        found = tuple(token.text for token in self.tokens if token.kind == "word")
        rest = tuple(word for word in found if word.lower() not in _LEVELS)
        return rest or found

    @property
    def name(self) -> str:
        """For people and for vocabularies: the words, or the signs where there are none."""
        return " ".join(self.words) or "".join(t.text for t in self.tokens if t.kind == "sign")

    @property
    def numbers(self) -> int:
        return sum(token.kind == "num" for token in self.tokens)

    @property
    def skeleton(self) -> str:
        """The head with its words masked: heads of one logger share it."""
        found = "".join(
            "W" if token.kind == "word" else " " if token.kind == "space" else _masked(token) for token in self.tokens
        )
        return re.sub(r"W(?: W)+", "W", found) + ("$" if self.whole else "")

    @property
    def strong(self) -> bool:
        """Is it more than `word:`? A time, a counter, brackets, a heading."""
        signs = {token.text for token in self.tokens if token.kind == "sign"}
        kinds = {token.kind for token in self.tokens}
        return bool(kinds & {"time", "num"}) or bool(signs - {":", "-", ".", ",", "'", '"', "=", "/"})


def _masked(token: Token) -> str:
    return {"time": "@", "num": "#", "id": "%"}.get(token.kind, token.text)


def mask(tokens: tuple[Token, ...]) -> str:
    """The tokens as text, times as @, numbers as #, blanks as one."""
    return "".join(" " if token.kind == "space" else _masked(token) for token in tokens)


@lru_cache(maxsize=65536)
def tokens_of(start: str) -> tuple[Token, ...]:
    """Tokens of the first code points of a line."""
    found = []
    for match in _TOKEN.finditer(start):
        kind = match.lastgroup or "sign"
        found.append(Token("sign" if kind == "one" else kind, match.group(0)))
        if len(found) >= 28:
            break
    return tuple(found)


def heads_of(line: str) -> Iterator[Head]:
    """The heads that a line may have, shortest first."""
    line = line.rstrip()
    if line[:1] in (" ", "\t"):
        return
    start = line[:LONGEST_HEAD]
    tokens = tokens_of(start)
    words = 0
    for i, token in enumerate(tokens):
        if token.kind == "word":
            words += 1
            if words > MOST_WORDS:
                return
        if token.kind != "sign" or not (token.text.endswith(_CLOSERS) or (i == 0 and token.text in PROMPTS)):
            continue
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        if following is not None and following.kind == "sign":
            continue
        if (
            token.text.endswith((")", "*", "#", "%", "=", "-", "$"))
            and following is not None
            and following.kind != "space"
        ):
            continue
        if token.text == "=" or (token.text == ":" and following is not None and following.kind == "num"):
            continue
        head = tokens[: i + 1]
        if not _balanced(head):
            continue
        yield Head(head, False)
        if following is None and len(line) <= LONGEST_HEAD:
            yield Head(head, True)
            return
    if (
        len(line) <= LONGEST_HEAD
        and tokens
        and len(tokens) < 28
        and not tokens[-1].text.endswith((*_CLOSERS, ",", ";", "(", "{", "["))
    ):
        yield Head(tokens, True)


def _balanced(tokens: tuple[Token, ...]) -> bool:
    text = "".join(token.text for token in tokens if token.kind == "sign")
    return (
        text.count("(") == text.count(")") and text.count("[") == text.count("]") and text.count("{") == text.count("}")
    )


def whole_line(line: str) -> Head | None:
    """The line as a head, if it is short enough to be one."""
    line = line.rstrip()
    tokens = tokens_of(line[:LONGEST_HEAD])
    return Head(tokens, True) if len(line) <= LONGEST_HEAD and tokens and len(tokens) < 28 else None


def literal(text: str) -> str:
    """RE2 for exactly this text, no more escaped than needs be."""
    return re.sub(r"([\\.^$*+?()\[\]{}|])", r"\\\1", text)


def regex_of(tokens: tuple[Token, ...], number: str = "", capture: bool = False) -> str:
    """RE2 for tokens. number: name of a group for the first number. capture: numbers become unnamed groups."""
    parts = []
    named = False
    for token in tokens:
        if token.kind == "time":
            parts.append(_TIME_RE2 if token.text[:1].isdigit() else _MONTH_RE2)
        elif token.kind == "num":
            if number and not named:
                parts.append(rf"(?P<{number}>{NUMBER_RE2})")
                named = True
            else:
                parts.append(f"({NUMBER_RE2})" if capture else NUMBER_RE2)
        elif token.kind == "id":
            parts.append(r"[\w.'’-]+")
        elif token.kind == "space":
            parts.append(" " if token.text == " " else r"[ \t]+")
        elif token.kind == "sign" and len(token.text) > 3:
            parts.append(f"{literal(token.text[0])}{{{len(token.text)}}}")
        else:
            parts.append(literal(token.text))
    return "".join(parts)
