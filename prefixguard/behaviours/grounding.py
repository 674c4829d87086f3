"""Identifiers of a call that stood nowhere before: what an agent must have read somewhere, unless it made it up."""

from __future__ import annotations

import re
from typing import Final

from prefixguard.context import ContextState, knows
from prefixguard.encoder import Tokens, tokenize
from prefixguard.stepview import FIELDS, StepRecord

#: Calls that name what is there already. Edits and commands are full of numbers of their own, and so are searches,
#: unless they say what it is that they look up.
_NAMING: Final = frozenset(("reads", "writes", "acts", "escalates"))
_LOOKED_UP = re.compile(r'"[A-Za-z_]*(?:[iI][dD]|[nN]umber|[cC]ode|[sS][kK][uU])s?"\s*:')
_DIGITS: Final = 6  # of a word of digits alone; shorter ones are amounts
_MIXED: Final = (5, 3)  # characters, and digits among them, of a word with letters
_PREFIXED: Final = 4  # digits behind letters and a hyphen, as in `CS-55120`
_PREFIXES = re.compile(r"\b[A-Z]{1,8}[-#]([0-9]+)")
#: A number of JSON is a quantity (an offset, a size, a price), unless its key says that it names something.
_QUANTITIES = re.compile(
    r'"(?![A-Za-z_]*(?:[iI][dD]|[nN]umber|[nN]o|[cC]ode|[sS][kK][uU])s?")[^"]{0,60}"\s*:\s*-?([0-9]+)\s*[,}\]]'
)
_LOOKED_AT: Final = 4000  # code points of the arguments
_PIECE = re.compile(rb"[0-9]+|[^0-9_]+")


def made_up(context: ContextState, record: StepRecord, tokens: Tokens, kind: str) -> str:
    """The first identifier of the call that neither the run nor what arrived with this step held; "" if there is none.

    context: of the run, after this step. A word counts that looks like an identifier, and that is not put together of
    words that are known: `W123` of `W-123`, `5551234` of `555-1234`.
    """
    if not context.made_up:
        return ""
    is_named = kind in _NAMING or (
        kind == "searches" and _LOOKED_UP.search(record.arguments, 0, _LOOKED_AT) is not None
    )
    if not is_named:
        return ""
    prefixed = _PREFIXES.findall(record.arguments, 0, _LOOKED_AT)
    quantities = _QUANTITIES.findall(record.arguments, 0, _LOOKED_AT)
    for i in context.made_up:
        word = tokens.text(i)
        n = sum(c.isdigit() for c in word)
        if n == len(word):
            if n < (_PREFIXED if word in prefixed else _DIGITS) or word in quantities:
                continue
        elif len(word) < _MIXED[0] or n < _MIXED[1]:
            continue
        if not _is_derived(context, word.encode()):
            return word
    return ""


def _is_derived(context: ContextState, word: bytes) -> bool:
    """Whether a word is put together of words that the run has held; pieces of letters are free."""
    pieces = [piece for piece in _PIECE.findall(word) if piece.isdigit()]
    return all(_is_known(context, piece) if piece != word else _in_parts(context, piece) for piece in pieces)


def _in_parts(context: ContextState, digits: bytes) -> bool:
    """Whether digits are a row of known words of two digits or more."""
    if len(digits) > 20:
        return False
    cuts = {(a, b) for a in range(len(digits)) for b in range(a + 2, len(digits) + 1) if (a, b) != (0, len(digits))}
    spans = sorted(cuts)
    held = dict(zip(spans, _known(context, [digits[a:b] for a, b in spans]), strict=True))
    reached = {0}
    for a, b in spans:  # by where they begin, so that all that end there were tried
        if a in reached and held[a, b]:
            reached.add(b)
    return len(digits) in reached


def _is_known(context: ContextState, piece: bytes) -> bool:
    return _known(context, [piece])[0] or _in_parts(context, piece)


def _known(context: ContextState, words: list[bytes]) -> list[bool]:
    """Of each word whether the run has held it."""
    if not words:
        return []
    document = b"".join(bytes([tag]) for tag in range(1, len(FIELDS))) + b" ".join(words) + bytes([len(FIELDS)])
    return knows(context, tokenize(document).hashes)
