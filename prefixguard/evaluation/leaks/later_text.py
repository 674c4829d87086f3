"""Text of later records inside earlier ones: pages that nest in each other, the next observation, whole dumps.

A text is known by the hashes of its runs of GRAM words. Repeats are legitimate: an agent copies what it was shown, a
page is shown again, a loop returns the same. So a text counts only where it could not have been repeated:

- what the agent says at a later record, first said there, in what it was given at an earlier one; of the arguments of
  a call, which it may copy from there (a link that it follows), only where the name of the tool stands there too;
- what is seen or comes back later, in a field of an earlier record, unless that is the same, and only where most
  records hold that of the next, or one record holds nearly all that is still to come.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from prefixguard.evaluation.leaks.features import words
from prefixguard.evaluation.leaks.finding import LeakFinding, Severity
from prefixguard.stepview import StepRecord
from prefixguard.trace import Run

#: Words that follow each other and are hashed together; words a text must have to be looked for.
GRAM = 5
_LEAST_WORDS = 8
#: Grams of a text that are looked up, evenly spread.
_LOOKED_UP = 24
#: Different later texts there must be, and the share of them that one earlier record must hold.
_FEWEST = 3
_REST = 0.8
#: Share of its records that must hold the text of the next one for a run to count.
_NEXT = 0.5
#: Share of runs from which it is a finding, and from which it is an error: for what the agent says, and for what comes
#: back, which loops and polling repeat honestly.
_SHARES = {"the agent says": (0.05, 0.20), "is seen": (0.15, 0.40), "comes back": (0.15, 0.40)}
_FEWEST_RUNS = 3  # or all, where there are fewer
_FEWEST_FALLING = 2
#: Records of a run that are read.
_MOST_STEPS = 300
#: Steps that a length must fall without a break to be a count-down.
_FALLS = 4

_GIVEN = ("observation", "result")
_OWN = ("action", "arguments")


@dataclass(frozen=True, slots=True)
class _FirstSaid:
    """A text first said at a record. grams: those looked up. whole: for comparing. tool: hashes of words that must
    stand where it is found."""

    at: int
    field: str
    grams: tuple[int, ...]
    whole: int
    tool: tuple[int, ...] = ()


@dataclass(slots=True)
class _Overlap:
    """Over runs: in how many it could have been seen, in how many it was, and texts held and looked for."""

    runs: int = 0
    hit: int = 0
    held: int = 0
    texts: int = 0

    def add(self, hit: bool, held: int, texts: int) -> None:
        self.runs, self.hit = self.runs + 1, self.hit + hit
        self.held, self.texts = self.held + held, self.texts + texts


#: By kind of finding, field, and whose text it is.
_Overlaps = dict[tuple[str, str, str], _Overlap]
_SAYS = {
    "whole_rest": "one {} holds word for word nearly all that {} in the records after it",
    "later_text": "the {} of most records holds word for word what {} in a later one",
}


def find_later_text(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """Findings of kind whole_rest (one record holds what is still to come), later_text (records hold the next one's
    text) and countdown (a field shrinks with every step down to the end)."""
    overlaps: _Overlaps = defaultdict(_Overlap)
    falls: Counter[str] = Counter()
    fallen: Counter[str] = Counter()
    for run in runs:
        records = run.records[:_MOST_STEPS]
        if len(records) > _FEWEST:
            _look(records, overlaps)
        for field in _GIVEN:
            lengths = [len(getattr(record, field)) for record in records]
            while lengths and not lengths[-1]:  # the last record may have nothing after it
                lengths.pop()
            if len(lengths) > _FALLS:
                falls[field] += 1
                fallen[field] += all(b < a for a, b in pairwise(lengths))
    for kind in _SAYS:
        for key in sorted(key for key in overlaps if key[0] == kind):
            yield from _finding(*key, overlaps[key])
    for field, n in sorted(fallen.items()):
        share = n / falls[field]
        if falls[field] >= _FEWEST_FALLING and share > 0.6:
            text = f"In {n} of {falls[field]} runs the {field} gets shorter with every step: its length counts down."
            figures = {"runs": float(n), "of": float(falls[field]), "share": share}
            yield LeakFinding("countdown", field, "length of the text", "error", figures, text)


def _finding(kind: str, field: str, whose: str, one: _Overlap) -> Iterator[LeakFinding]:
    share = one.hit / one.runs if one.runs else 0.0
    least, surely = _SHARES[whose]
    if one.hit < max(1, min(_FEWEST_RUNS, one.runs)) or share < least:
        return
    is_own = field in _OWN  # an agent that plans, or dreams up what comes back
    severity: Severity = "error" if share >= surely and not is_own else "warning"
    says = _SAYS[kind].format(field, whose)
    text = f"In {one.hit} of {one.runs} runs {says} ({one.held} of {one.texts} texts)."
    text += " The agent wrote it: it may have foreseen it." if is_own else " Read only what belongs to the record."
    counts = {"runs": one.hit, "of": one.runs, "share": share, "held": one.held, "texts": one.texts}
    yield LeakFinding(kind, field, whose, severity, {name: float(n) for name, n in counts.items()}, text)


def _look(records: Sequence[StepRecord], overlaps: _Overlaps) -> None:
    """Count one run. Every gram knows the records in which it stands as bits of a number: linear in the text."""
    texts = {
        "the agent says": _texts(records, _OWN),
        "is seen": _texts(records, ("observation",)),
        "comes back": _texts(records, ("result",)),
    }
    wanted = {gram for found in texts.values() for text in found for gram in (*text.grams, *text.tool)}
    for field in (*_GIVEN, *_OWN):
        where: dict[int, int] = {}
        whole: list[int] = []
        for at, record in enumerate(records):
            found = words(getattr(record, field))
            whole.append(hash(tuple(found)))
            for gram in {*_grams(found), *map(_named, set(found))} & wanted:
                where[gram] = where.get(gram, 0) | 1 << at
        for whose in texts:
            if field in _GIVEN or whose != "the agent says":
                _count(texts[whose], field, whose, where, whole, overlaps)


def _count(
    texts: Sequence[_FirstSaid],
    field: str,
    whose: str,
    where: dict[int, int],
    whole: Sequence[int],
    overlaps: _Overlaps,
) -> None:
    holding: Counter[int] = Counter()  # by record, how many later texts it holds
    looked = held_before = 0
    for text in texts:
        if text.at:
            held = _holders(text, field, where, whole)
            looked += 1
            held_before += text.at - 1 in held
            holding.update(held)
    if looked < _FEWEST:
        return
    best = 0
    for at, n in holding.items():
        later = sum(text.at > at for text in texts)
        if later >= _FEWEST and n >= _REST * later:
            best = max(best, n)
    overlaps["whole_rest", field, whose].add(best > 0, best, looked)
    overlaps["later_text", field, whose].add(held_before >= max(2, _NEXT * looked), held_before, looked)


def _holders(text: _FirstSaid, field: str, where: dict[int, int], whole: Sequence[int]) -> list[int]:
    """Records before a text that hold it in this field."""
    before = (1 << text.at) - 1
    for name in text.tool:
        before &= where.get(name, 0)
    hits: Counter[int] = Counter()
    for gram in text.grams:
        bits = where.get(gram, 0) & before
        while bits:
            lowest = bits & -bits
            hits[lowest.bit_length() - 1] += 1
            bits ^= lowest
    least = len(text.grams) - len(text.grams) // 8  # a text may be cut a little
    # What came back to one step may be said again as what was seen before the next.
    shift = text.field == "observation" and field == "result"
    return [
        at for at, n in hits.items() if n >= least and whole[at] != text.whole and not (shift and at == text.at - 1)
    ]


def _texts(records: Sequence[StepRecord], fields: Sequence[str]) -> list[_FirstSaid]:
    """Long texts where they first stand, each once."""
    known: set[int] = set()
    found = []
    for at, record in enumerate(records):
        for field in fields:
            said = words(getattr(record, field))
            if len(said) < _LEAST_WORDS:
                continue
            whole = hash(tuple(said))
            if whole in known:
                continue
            known.add(whole)
            grams = _grams(said)
            step = max(1, len(grams) // _LOOKED_UP)
            tool = tuple(map(_named, words(record.tool))) if field == "arguments" else ()
            found.append(_FirstSaid(at, field, tuple(dict.fromkeys(grams[::step][:_LOOKED_UP])), whole, tool))
    return found


def _named(word: str) -> int:
    """The hash of a word of a tool's name."""
    return hash(("tool", word))


def _grams(found: Sequence[str]) -> list[int]:
    """Hashes of the runs of GRAM words, in order."""
    return [hash(tuple(found[i : i + GRAM])) for i in range(len(found) - GRAM + 1)]
