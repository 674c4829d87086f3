"""What secrets look like: the shapes of `secret_shapes.toml`, and rules that tell one from what only looks like one.

Shapes are RE2, so no text can make one slow. Rules look at one word of a bounded length.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Any

import re2

_DATA: dict[str, Any] = tomllib.loads(
    (resources.files("prefixguard.escalate") / "secret_shapes.toml").read_text(encoding="utf-8")
)
#: Grouping of the digits of a card, where they stand in groups: Visa and most others, American Express, Diners Club.
_GROUPS = ((4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (6, 13))
_ISSUERS = [(re.compile(digits.encode()), tuple(lengths)) for digits, lengths in _DATA["issuers"].items()]
_IBAN_LENGTHS = {country: int(n) for n, countries in _DATA["iban"].items() for country in countries.split()}
_NO_VALUE, _FILES = (frozenset(word.encode() for word in _DATA["looks"][name]) for name in ("no_value", "files"))
_NAMES, _FILE_DATA, _CODE = (
    re.compile("|".join(_DATA["looks"][name]).join(around).encode())
    for name, around in (("names", ("(?:", ")[_-]")), ("data", ("", "")), ("code", ("", "")))
)
#: What stands before a token or a number that is a hash, a part of a file or the id of something.
BEFORE_NAME = re.compile(
    rb"(?:(?i:sha-?[0-9]{1,3}|md5|h1|base64,|fingerprint|checksum|integrity|\b[iu]?u?id|_ids?|\bids|guid|hash|commit|digest"
    rb"|etag|order|tracking|shipment|parcel|invoice|isbn|imei|serial|sku|upc|ean)|[a-z]Ids?)"
    rb"[\s\"'\\]{0,3}(?i:number|num|no\.?|nr\.?|code|id|is|of)?[\s\"'\\]{0,3}[:=#@]{0,2}[\s\"'\\]{0,3}\Z"
)
_ATTRIBUTE = re.compile(rb"(?i)path|domain|expires|max-age|samesite|priority|version")
_ACCESS = re.compile(rb"(?i)sess|sid|token|auth|csrf|xsrf|jwt|login|remember|secret|key|user|ident")
#: A word between slashes, of letters alone: the token is a path.
_PATH = re.compile(rb"^/|(?:^|/)(?:[a-z]{3,}|[A-Z][a-z]{2,}|[a-z]+_[a-z_]+)(?:/|$)")
_FILE_END = re.compile(rb"\.[a-z]{1,4}[.:;!?)]*\Z")
#: Of a longer token nobody makes a key: it is data.
_LONGEST_KEY = 256


def card_numbers(data: bytes, begin: int, run: bytes) -> Iterator[tuple[int, int]]:
    """Where numbers of cards stand in a run of digits, as (from, to) in `data`; the run begins there at `begin`.

    A number of 13 to 19 digits, in one group or in groups as they stand on cards, that begins like an issuer's and
    whose last digit checks (Luhn, ISO/IEC 7812-1). Digits that go on from a letter, a point or a hyphen belong to
    something else.

    >>> text = b"card 4111 1111 1111 1111, order 4111111111111112"
    >>> [text[a:b] for a, b in card_numbers(text, 5, text[5:24])], list(card_numbers(text, 32, text[32:]))
    ([b'4111 1111 1111 1111'], [])
    """
    before = data[max(begin - 1, 0) : begin]
    after = data[begin + len(run) : begin + len(run) + 1]
    groups = list(re.finditer(rb"[0-9]+", run))
    place = int(before.isalnum() or (before != b"" and before in b"_.-#/+"))
    while place < len(groups):
        for n in (1, 5, 4, 3, 2):
            part = groups[place : place + n]
            ends_run = part[-1] is groups[-1]
            if len(part) < n or (ends_run and (after.isalnum() or after in (b"_", b"/"))):
                continue
            if n > 1 and tuple(len(one[0]) for one in part) not in _GROUPS:
                continue
            span = begin + part[0].start(), begin + part[-1].end()
            if b"-" in (data[max(span[0] - 1, 0) : span[0]], data[span[1] : span[1] + 1]):
                continue
            if _is_card(b"".join(one[0] for one in part)):
                yield span
                place += n
                break
        else:
            place += 1


def _is_card(digits: bytes) -> bool:
    n = len(digits)
    if not 13 <= n <= 19 or len(set(digits)) == 1:
        return False
    if not any(issuer.match(digits) and n in lengths for issuer, lengths in _ISSUERS):
        return False
    doubled = [2 * (c - 48) for c in digits[-2::-2]]
    return (sum(c - 48 for c in digits[::-2]) + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def iban_end(run: bytes) -> int | None:
    """Where the number of a bank account ends with which a run of letters and digits begins; None: with none.

    It has as many characters as its country gives it, and its check digits are right (ISO 13616, ISO/IEC 7064 MOD
    97-10).

    >>> iban_end(b"GB82 WEST 1234 5698 7654 32 AND"), iban_end(b"GB83WEST12345698765432")
    (27, None)
    """
    length = _IBAN_LENGTHS.get(run[:2].decode("ascii", "replace"))
    places = [i for i, c in enumerate(run) if c not in b" -"]
    if length is None or len(places) < length:
        return None
    end = places[length - 1] + 1
    if run[end : end + 1].isalnum():
        return None
    number = run[:end].translate(None, b" -")
    digits = "".join(str(int(chr(c), 36)) for c in number[4:] + number[:4])
    return end if int(digits) % 97 == 1 else None


def is_random(token: bytes, *, beside_id: bool = False) -> bool:
    """Whether a token of 24 characters or more is a key: letters of both cases that change as they do by chance. Hex,
    UUIDs, words, paths, names in CamelCase and parts of files are not. beside_id: the id of an access key stands near,
    so that 40 characters are its secret.

    >>> is_random(b"q8Zr2LmX0vTn5KdYb7WcJ4hP"), is_random(b"550e8400-e29b-41d4-a716-446655440000")
    (True, False)
    >>> is_random(b"wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"), is_random(b"/usr/lib/python3/dist-packages/Xlib")
    (True, False)
    """
    n = len(token)
    classes = [1 if 97 <= c <= 122 else 2 if 65 <= c <= 90 else 3 if 48 <= c <= 57 else 4 for c in token]
    lower, upper, digits = (classes.count(kind) for kind in (1, 2, 3))
    if not 24 <= n <= _LONGEST_KEY or not lower or not upper:
        return False
    if beside_id and n == 40:
        return True
    if _NAMES.match(token) is not None or _FILE_DATA.match(token) is not None:
        return False
    if b"/" in token and n != 40 and _PATH.search(token) is not None:
        return any(is_random(part) for part in token.split(b"/"))
    signs = len(token.rstrip(b"=")) - lower - upper - digits
    if not digits or (digits < 2 and n != 40) or signs > 2 + n // 12 or lower + upper < n // 3:
        return False
    changes = sum(a != b for a, b in pairwise(classes))
    # By chance three in five neighbours differ in class; in names of programs one in three, in some of them one in two,
    # which have their digits in one place.
    spread = sum(b == 3 != a for a, b in pairwise([0, *classes])) > 1
    return changes >= (0.4 if n == 40 and signs + digits >= 2 else 0.45 if spread else 0.58) * (n - 1)


def may_be_half(word: bytes) -> bool:
    """Whether a word at a cut may be half of a secret: it is no mark, and no plain word."""
    mixed = word.lower() != word != word.upper() and not word[1:].islower()
    return (mixed or any(48 <= c <= 57 or c == 64 for c in word)) and not word.startswith(b"<masked")


def has_changes(key: bytes) -> bool:
    """Whether a token with a key's prefix is one: it has three digits, or letters that change case as none of words
    do."""
    small = sum(97 <= a <= 122 and 65 <= b <= 90 for a, b in pairwise(key))
    return small > len(key) // 5 or sum(48 <= c <= 57 for c in key) >= 3


def is_password(value: bytes) -> bool:
    """Whether a value could be a secret: it is no code, no path, no address of a page, and no word that says that there
    is none.

    >>> [is_password(v) for v in (b"hunter22", b"os.environ[X]", b"get_password()", b"None", b"****", b"settings.KEY")]
    [True, False, False, False, False, False]
    """
    bare = value.strip(b" \t\"'`.,;:!?")
    return len(set(bare)) > 1 and bare.lower() not in _NO_VALUE and _CODE.match(bare) is None


def is_token(value: bytes) -> bool:
    """Whether a value is no word and no number: it has a digit or a sign, and a letter."""
    return (
        is_password(value)
        and any(48 <= c <= 57 or c in b"!@#$%^&*+/~" for c in value)
        and any(chr(c).isalpha() for c in value)
    )


def is_told(value: bytes) -> bool:
    """Whether a value that is said to be a password is one: no word, or six digits and more."""
    bare = value.strip(b".,;:!?)")
    return is_token(bare) or (len(bare) >= 6 and bare.isdigit())


def is_mixed(value: bytes) -> bool:
    """Whether a value that stands behind the name of a secret is one: no word, with a digit, and no file.

    >>> [is_mixed(v) for v in (b"hunter22", b"required", b"notes2.txt", b"2024", b"read/write")]
    [True, False, False, False, False]
    """
    return is_token(value) and any(48 <= c <= 57 for c in value) and _FILE_END.search(value) is None


def is_cookie(name: bytes, value: bytes) -> bool:
    """Whether a cookie's value gives access: its name says so, or it is no word. Attributes of cookies are none.

    >>> is_cookie(b"sid", b"abc"), is_cookie(b"lang", b"en-GB"), is_cookie(b"Max-Age", b"31536000")
    (True, False, False)
    """
    if _ATTRIBUTE.fullmatch(name) is not None or value.startswith(b"<masked"):
        return False
    return _ACCESS.search(name) is not None or (len(value) >= 8 and any(48 <= c <= 57 for c in value))


def is_login(value: bytes) -> bool:
    """Whether a value is a name and a password as basic authentication sends them."""
    try:
        told = base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    name, colon, _ = told.partition(b":")
    return bool(colon) and all(32 <= c < 127 for c in told) and bool(name or told[1:])


def is_address(value: bytes) -> bool:
    """Whether name@place is an address of mail: no place of a repository, no file and no unit of a system.

    >>> [is_address(v) for v in (b"ann@example.org", b"git@github.com", b"icon@2x.png", b"getty@tty1.service")]
    [True, False, False, False]
    """
    name, _, place = value.lower().partition(b"@")
    return name != b"git" and place.rpartition(b".")[2] not in _FILES


_ACCEPTS: tuple[Callable[[bytes], bool], ...] = (
    has_changes, is_address, is_login, is_mixed, is_password, is_token, is_told,
)  # fmt: skip
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True)
class Shape:
    """kind: the word in the mark. gate: one of GATES, without which the shape stands nowhere. pattern: compiled, over
    bytes. accepts: whether what matched is a secret; None: it always is. has_keep, has_rest: whether a part before or
    behind the secret stays."""

    kind: str
    gate: str
    pattern: Any
    accepts: Callable[[bytes], bool] | None
    has_keep: bool
    has_rest: bool


def _filled(pattern: str) -> str:
    """A pattern with its parts in place; a part may hold others."""

    def part(met: re.Match[str]) -> str:
        found = _DATA["parts"][met[1]]
        return _filled(found if isinstance(found, str) else f"(?:{'|'.join(found)})")

    return re.sub(r"%([A-Z]+)%", part, pattern)


def _compiled(pattern: str) -> Any:
    return re2.compile(_filled(pattern).encode(), _OPTIONS)


def _shape(kind: str, gate: str, pattern: str | list[str], accepts: str = "") -> Shape:
    whole = "".join(pattern)
    rule = next((one for one in _ACCEPTS if one.__name__ == accepts), None)
    return Shape(kind, gate, _compiled(whole), rule, "(?P<keep>" in whole, "(?P<rest>" in whole)


GATES = {name: _compiled(pattern) for name, pattern in _DATA["gates"].items()}
SHAPES = tuple(_shape(**shape) for shape in _DATA["shapes"])
#: Runs of digits that may hold the number of a card (see `card_numbers`).
DIGITS = _compiled(r"[0-9](?:[ -]?[0-9]){12,}")
#: What may be the number of a bank account (see `iban_end`).
IBAN = _compiled(r"\b[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}")
#: A name and a value of a cookie.
COOKIE = _compiled(r"([^\s=;]+)=([^\s;]+)")
#: Tokens that may be random.
TOKEN = _compiled(r"[A-Za-z0-9+/_-]{24,}={0,2}")
#: Keys of an object whose text is a secret whatever it looks like.
SECRET_KEY = _compiled(r"(?i)^(?:.*[_.-])?(?:%WORDS%|authorization|proxy-authorization|cookie|set-cookie)$")
#: Keys whose text is a name of something: it may look random and joins things, and is shown.
NAME_KEY = _compiled(r"(?i:(?:^|[_.-])(?:ids?|uuid|guid|hash|sha|sha1|sha256|commit|digest)$)|Ids?$")
#: What a cut leaves of a word, or of a number in groups.
HALF_AT_END = _compiled(r"(?:[0-9][0-9 -]{5,}|[^\s\"',;<>()\[\]{}]{6,})\z")
HALF_AT_BEGIN = _compiled(r"\A(?:[0-9 -]{5,}[0-9]|[^\s\"',;<>()\[\]{}]{6,})")
