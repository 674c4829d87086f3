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
#: Records of a run that are looked at.
_MOST_STEPS = 300
#: Steps that a length must fall without a break to be a count-down.
_FALLS = 4

_GIVEN = ("observation", "result")
_OWN = ("action", "arguments")


@dataclass(frozen=True, slots=True)
class _Text:
    """A text first said at a record. grams: those looked up. whole: for comparing. beside: hashes of words that must
    stand where it is found."""

    at: int
    field: str
    grams: tuple[int, ...]
    whole: int
    beside: tuple[int, ...] = ()


@dataclass(slots=True)
class _Tally:
    """Over runs: in how many it could have been seen, in how many it was, and texts held and looked for."""

    runs: int = 0
    hit: int = 0
    held: int = 0
    texts: int = 0


def find_later_text(runs: Sequence[Run[StepRecord]]) -> Iterator[LeakFinding]:
    """Findings of kind whole_rest (one record holds what is still to come), later_text (records hold the next one's
    text) and countdown (a field shrinks with every step down to the end)."""
    rest: dict[tuple[str, str], _Tally] = defaultdict(_Tally)
    following: dict[tuple[str, str], _Tally] = defaultdict(_Tally)
    falls: Counter[str] = Counter()
    fallen: Counter[str] = Counter()
    for run in runs:
        records = run.records[:_MOST_STEPS]
        if len(records) > _FEWEST:
            _look(records, rest, following)
        for field in _GIVEN:
            lengths = [len(getattr(record, field)) for record in records]
            while lengths and not lengths[-1]:  # the last record may have nothing after it
                lengths.pop()
            if len(lengths) > _FALLS:
                falls[field] += 1
                fallen[field] += all(b < a for a, b in pairwise(lengths))
    for (field, whose), tally in sorted(rest.items()):
        says = f"one {field} holds word for word nearly all that {whose} in the records after it"
        yield from _finding("whole_rest", field, whose, says, tally)
    for (field, whose), tally in sorted(following.items()):
        says = f"the {field} of most records holds word for word what {whose} in a later one"
        yield from _finding("later_text", field, whose, says, tally)
    for field, n in sorted(fallen.items()):
        share = n / falls[field]
        if falls[field] >= _FEWEST_FALLING and share > 0.6:
            text = f"In {n} of {falls[field]} runs the {field} gets shorter with every step: its length counts down."
            figures = {"runs": float(n), "of": float(falls[field]), "share": share}
            yield LeakFinding("countdown", field, "length of the text", "error", figures, text)


def _finding(kind: str, field: str, whose: str, says: str, tally: _Tally) -> Iterator[LeakFinding]:
    share = tally.hit / tally.runs if tally.runs else 0.0
    least, surely = _SHARES[whose]
    if tally.hit < max(1, min(_FEWEST_RUNS, tally.runs)) or share < least:
        return
    is_own = field in _OWN  # an agent that plans, or dreams up what comes back
    severity: Severity = "error" if share >= surely and not is_own else "warning"
    text = f"In {tally.hit} of {tally.runs} runs {says} ({tally.held} of {tally.texts} texts)."
    text += " The agent wrote it: it may have foreseen it." if is_own else " Read only what belongs to the record."
    figures = {
        "runs": float(tally.hit),
        "of": float(tally.runs),
        "share": share,
        "held": float(tally.held),
        "texts": float(tally.texts),
    }
    yield LeakFinding(kind, field, whose, severity, figures, text)


def _look(
    records: Sequence[StepRecord],
    rest: dict[tuple[str, str], _Tally],
    following: dict[tuple[str, str], _Tally],
) -> None:
    """Count one run. Every gram knows the records in which it stands as bits of a number: linear in the text."""
    said = _texts(records, _OWN)
    given = {"is seen": _texts(records, ("observation",)), "comes back": _texts(records, ("result",))}
    wanted = {gram for texts in (said, *given.values()) for text in texts for gram in (*text.grams, *text.beside)}
    for field in (*_GIVEN, *_OWN):
        where: dict[int, int] = {}
        whole: list[int] = []
        for at, record in enumerate(records):
            found = words(getattr(record, field))
            whole.append(hash(tuple(found)))
            for gram in {*_grams(found), *map(_named, set(found))} & wanted:
                where[gram] = where.get(gram, 0) | 1 << at
        if field in _GIVEN:
            _count(said, field, where, whole, rest[field, "the agent says"], following[field, "the agent says"])
        for whose, texts in given.items():
            _count(texts, field, where, whole, rest[field, whose], following[field, whose])


def _count(
    texts: Sequence[_Text], field: str, where: dict[int, int], whole: list[int], rest: _Tally, following: _Tally
) -> None:
    later_texts: Counter[int] = Counter()
    looked = held_before = 0
    for text in texts:
        if not text.at:
            continue
        holding = (1 << text.at) - 1  # records before it
        for name in text.beside:
            holding &= where.get(name, 0)
        misses = len(text.grams) // 8  # a text may be cut a little
        hits: Counter[int] = Counter()
        for gram in text.grams:
            bits = where.get(gram, 0) & holding
            while bits:
                lowest = bits & -bits
                hits[lowest.bit_length() - 1] += 1
                bits ^= lowest
        # What came back to one step may be said again as what was seen before the next.
        shift = text.field == "observation" and field == "result"
        held = [
            at
            for at, n in hits.items()
            if n >= len(text.grams) - misses and whole[at] != text.whole and not (shift and at == text.at - 1)
        ]
        looked += 1
        held_before += any(at == text.at - 1 for at in held)
        later_texts.update(held)
    if looked < _FEWEST:
        return
    places = [text.at for text in texts]
    best = 0
    for at, n in later_texts.items():
        later = sum(place > at for place in places)
        if later >= _FEWEST and n >= _REST * later:
            best = max(best, n)
    rest.runs += 1
    rest.hit += best > 0
    rest.held += best
    rest.texts += looked
    following.runs += 1
    following.hit += held_before >= max(2, _NEXT * looked)
    following.held += held_before
    following.texts += looked


def _texts(records: Sequence[StepRecord], fields: Sequence[str]) -> list[_Text]:
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
            beside = tuple(map(_named, words(record.tool))) if field == "arguments" else ()
            found.append(_Text(at, field, tuple(dict.fromkeys(grams[::step][:_LOOKED_UP])), whole, beside))
    return found


def _named(word: str) -> int:
    """The hash of a word of a tool's name."""
    return hash(("tool", word))


def _grams(found: Sequence[str]) -> list[int]:
    """Hashes of the runs of GRAM words, in order."""
    return [hash(tuple(found[i : i + GRAM])) for i in range(len(found) - GRAM + 1)]
