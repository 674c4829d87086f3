"""Names of symbols short enough for an edge: what is asked may be shortened, the condition on it stays whole.

A name such as "share of failed steps in the last runs <= 25 %" is told from its neighbours by its end. So the first
words of a name that is too long are left out.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence

from prefixguard.automata.summary.wording import CUT, one_line

#: Letters of a line on an edge, and lines of one name.
LINE_LETTERS = 20
LINES = 2

_NUMBER = r"[-−]?\d[\d.,]*(?: ?%)?"
#: What a name ends in where it is a test; a number in brackets may follow that tells equal names apart.
_CONDITION = re.compile(
    rf"(?:(?:[<>=≤≥]+|above|below|over|under|at most|at least) {_NUMBER}"
    rf"|{_NUMBER} ?(?:to|–) ?{_NUMBER}|(?:lowest|highest) {_NUMBER}"
    rf"|(?<=: )(?:any|(?:next to )?none|(?:not )?mostly empty))(?: \(\d+\))?$"
)
#: A comma that ends a test, not one inside the name of what is asked.
_BETWEEN = re.compile(r"(?<=[\d%)\]]), (?![\d.]+[)\]])|, (?=not: )")
_NUMBERED = re.compile(r"^(?:symbol )?(\d+): ?(?=\S)")
_HARD = "\u00a0"  # a space at which no line ends


def edge_names(glosses: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """For each symbol the lines of its name on an edge, in order; names that come out alike are numbered.

    >>> edge_names(["longest result >= 1024", "books", "books"])
    (('longest result', '≥ 1024'), ('1: books',), ('2: books',))
    """
    clean = [one_line(gloss, 400) or f"symbol {symbol}" for symbol, gloss in enumerate(glosses)]
    names = [_lines(gloss) for gloss in clean]
    often = Counter(names)
    return tuple(
        _lines(f"{symbol}: {_NUMBERED.sub('', gloss)}") if often[name] > 1 else name
        for symbol, (gloss, name) in enumerate(zip(clean, names, strict=True))
    )


def _lines(gloss: str) -> tuple[str, ...]:
    numbered = _NUMBERED.match(gloss)
    number = f"{numbered[1]}:{_HARD}" if numbered else ""
    text = (gloss[numbered.end() :] if numbered else gloss).replace("<=", "≤").replace(">=", "≥")
    whole = _wrapped(number + _held(text))
    if len(whole) <= LINES:
        return _shown(whole)
    first = _BETWEEN.split(text)[0]
    if _CONDITION.search(first) is None:  # what does not end in a condition is known by its beginning
        return _shown(textwrap.wrap(number + text, LINE_LETTERS, max_lines=LINES, placeholder=CUT) or [text])
    words = _held(first).split(" ")
    for at in range(len(words)):
        kept = _wrapped(number + (CUT if at else "") + " ".join(words[at:]))
        if len(kept) <= LINES:
            return _shown(kept)
    return _shown([CUT + words[-1][1 - LINE_LETTERS :]])  # a condition longer than two lines


def _held(text: str) -> str:
    """The text with its conditions kept on one line each."""
    parts = []
    for part in _BETWEEN.split(text):
        found = _CONDITION.search(part)
        at = found.start() if found else len(part)
        parts.append(part[:at] + part[at:].replace(" ", _HARD))
    return ", ".join(parts)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, LINE_LETTERS, break_on_hyphens=False)


def _shown(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line.replace(_HARD, " ") for line in lines)
