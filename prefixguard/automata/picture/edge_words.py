"""Names of symbols short enough for an edge: what is asked may be shortened, the condition on it stays whole.

A name such as "greatest length of results so far <= 373 characters" is told from its neighbours by its end. So its
front is shortened: by shorter phrases for what steps are asked, then by leaving out its first words.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Sequence

from prefixguard.automata.picture.wording import CUT, one_line

#: Letters of a line on an edge, and lines of one name.
LINE_LETTERS = 20
LINES = 2

#: Longer phrases first, where one is a part of another.
_SHORTER = (
    ("words of runs about to fail", "words near failure"),
    ("words of runs that fail", "words of failed runs"),
    ("share of recent calls' identifiers that were nowhere before", "recent share of new ids"),
    ("share of the call's identifiers that were nowhere before", "share of new ids"),
    ("calls so far with identifiers that were nowhere before", "calls with new ids"),
    ("identifiers that were nowhere before", "new ids"),
    ("calls so far that were repeats", "repeated calls so far"),
    ("share of steps so far that were repeats", "share of repeats"),
    ("share of steps so far that", "share of steps that"),
    ("share of new words in recent results", "recent new result words"),
    ("share of new words in the agent's recent texts", "recent new agent words"),
    ("share of new words", "new words"),
    ("times this very", "times this"),
    ("gave this very", "gave this"),
    ("times the most repeated call was made", "most repeated call"),
    ("typical length of observations so far", "usual observed size"),
    ("greatest length of observations so far", "longest observation"),
    ("greatest length of results so far", "longest result"),
    ("greatest length of calls' arguments so far", "longest arguments"),
    ("greatest length of the agent's texts so far", "longest agent text"),
    ("greatest length of", "longest"),
    ("typical length of calls' arguments so far", "usual arguments size"),
    ("typical length of the agent's texts so far", "usual text length"),
    ("typical length of results so far", "usual result length"),
    ("length of the observation", "observed length"),
    ("the call's arguments", "arguments"),
    ("the agent's text", "agent text"),
    ("the result", "result"),
    ("the observation", "observation"),
    (" (50 if none did)", ""),
    (" (50 if none was)", ""),
    ("not the case: ", "not: "),
    ("<=", "≤"),
    (">=", "≥"),
)
#: What may follow a number without telling anything apart: units, and what the number amounts to.
_AFTER = re.compile(r"(?<=\d) (?:characters|bits)\b(?: \((?:not )?mostly empty\))?")
_ANY = re.compile(r": (any|(?:next to )?none) \([^()]*\)")
_SPAN = re.compile(r"from (\S+) % to (\S+) % of steps")
_INSIDE = re.compile(r"in \((\S+), (\S+)\]")
_END = re.compile(r"the (lowest|highest) (\S+ %) of steps")
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

    >>> edge_names(["greatest length of results so far >= 1024 characters", "books", "books"])
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
    text = _shortened(gloss[numbered.end() :] if numbered else gloss)
    whole = _wrapped(number + _held(text))
    if len(whole) <= LINES:
        return _shown(whole)
    first = _BETWEEN.split(text)[0]
    if _CONDITION.search(first) is None:  # what does not end in a condition is told by its beginning
        return _shown(textwrap.wrap(number + text, LINE_LETTERS, max_lines=LINES, placeholder=CUT) or [text])
    words = _held(first).split(" ")
    for at in range(len(words)):
        kept = _wrapped(number + (CUT if at else "") + " ".join(words[at:]))
        if len(kept) <= LINES:
            return _shown(kept)
    return _shown([CUT + words[-1][1 - LINE_LETTERS :]])  # a condition longer than two lines


def _shortened(text: str) -> str:
    text = _ANY.sub(r": \1", _AFTER.sub("", text))
    text = _INSIDE.sub(r"\1–\2", _END.sub(r"\1 \2", _SPAN.sub(r"\1–\2 %", text)))
    for phrase, shorter in _SHORTER:
        text = text.replace(phrase, shorter)
    return text


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
