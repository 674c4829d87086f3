"""Ways in which the values of one place, one a run, can say how runs ended: a type, a test of success, one of failure,
and how much the values alone speak for it, as log-odds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.lexicon import is_undecided, path_names, polarity, words
from prefixguard.stepview import MISSING

#: A place with more different words than this tells something else; so does one with longer words.
MOST_WORDS, LONGEST_WORD = 16, 80
#: Share of runs that must have the greatest value before it is taken for a success.
LEAST_MASS = 0.02
#: Texts that spell numbers are read as these.
NUMBER = re.compile(r"-?\d{1,15}(\.\d+)?\Z")
#: What broke off before anybody judged: neither side, where both sides are told.
BROKEN = frozenset(
    """
    error errored crash crashed abort aborted cancelled canceled invalid killed skipped err infra infrastructure broken
    interrupted exception
    """.split()  # noqa: SIM905, a list would be longer
)
#: Against words of which the only bad ones are what breaks.
_OF_MACHINES = 1.5
#: Kinds of failure that have no known word, beside words of success.
MOST_ENDS = 3
#: How words are denied, in the languages of most products.
_NO = "not no non un nicht kein keine niet ikke inte pas não не 未 不 没有".split()  # noqa: SIM905
_WON = ("success", "succeeded", "passed", "pass", "resolved", "solved", "correct", "completed", "true")
_LOST = ("failure", "failed", "fail", "unresolved", "unsolved", "incorrect", "error", "wrong", "false")
#: Signs that stand for words, and the letters of a grader.
_MARKS = {**dict.fromkeys("✅✔✓👍🟢", 1), **dict.fromkeys("❌✗✘👎🔴", -1)}
_LETTERS = {"C": 1, "I": -1, "P": 0, "N": 0}


@dataclass(frozen=True, slots=True)
class SidesForm:
    """One way to read outcomes. type, success, failure: as in the spec. sides: of each run 1, -1 or 0 (unknown).
    odds: of the values alone, natural logarithm. assumed: which value is which side is a guess."""

    type: str
    success: Any
    failure: Any
    sides: tuple[int, ...]
    odds: float
    why: str
    assumed: bool = False


def forms_of(
    values: Sequence[Any], name: str = "", success: str | None = None, marks: Sequence[tuple[Sequence[Any], Any]] = ()
) -> list[SidesForm]:
    """Ways to read the values. name: a key or path, of which the polarity is heard ("failed"). success: the value that
    a person says is one, as text or JSON (of numbers: at least that). marks: places that may say where success begins:
    the number of each run, and the place, as the spec has it."""
    kinds = Counter(_kind(value) for value in values if value is not None and value is not MISSING)
    if not kinds:
        return []
    kind, n = min(kinds.items(), key=lambda item: (-item[1], item[0]))
    mine = [value if _kind(value) == kind else None for value in values]
    names = path_names(name)
    is_bad = bool(names) and polarity(names[-1]) < 0
    if success is not None:
        found = _stated(mine, kind, success)
    elif kind == "boolean":
        told = f"booleans, {mine.count(True)} true and {mine.count(False)} false"
        found = [_of_signs(kind, mine, {True: -1 if is_bad else 1, False: 1 if is_bad else -1}, 0.5, told)]
    elif kind == "number":
        found = [*_numbers(mine, is_bad), *(form for mark in marks if (form := _marked(mine, *mark)) is not None)]
    else:
        found = _texts(mine) if kind == "string" else []
    impure = 1 - n / sum(kinds.values())
    return [replace(form, odds=form.odds - 4 * impure) for form in found]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if value == value and abs(value) < 10**30 else "other"
    return "string" if isinstance(value, str) else "other"


def _from(values: Sequence[Any], bound: float, odds: float, assumed: bool = False) -> SidesForm:
    """Success from the bound on."""
    sides = tuple(0 if v is None else 1 if v >= bound else -1 for v in values)
    why = f"numbers, {sides.count(1)} of {len(sides) - sides.count(0)} from {bound:g} on"
    return SidesForm("number", {"ge": bound}, {"lt": bound}, sides, odds, why, assumed)


def _numbers(values: Sequence[Any], is_bad: bool) -> list[SidesForm]:
    here = [value for value in values if value is not None]
    low, high = min(here), max(here)
    some = sum(value == high for value in here) >= LEAST_MASS * len(here)
    if set(here) <= {-1, 0, 1}:
        whole = all(isinstance(value, int) for value in here)
        form = _from(values, 1 if whole else 1.0, 0.0 if low < 0 else 0.3 if whole else 1.2)
        if is_bad:
            return [replace(form, success=form.failure, failure=form.success, sides=tuple(-s for s in form.sides))]
        return [form]
    if low >= 0 and high <= 1:
        whole_marks = [_from(values, 1.0, 0.8)] if high == 1 and some else []
        return [*whole_marks, _from(values, 0.5, -1.5 if whole_marks else -1.0, True)]
    if low >= 0 and high in (5, 10, 100) and len(set(here)) > 2:
        return [_from(values, high, -1.5, True), _from(values, high / 2, -1.7, True)]
    return [_from(values, high, -2.0, True)] if len(set(here)) == 2 else []


def _marked(values: Sequence[Any], marks: Sequence[Any], place: Any) -> SidesForm | None:
    """Success from a mark on that stands elsewhere; None where the numbers are not on both sides of it."""
    numbers = {mark for mark in marks if _kind(mark) == "number"}
    sides = tuple(
        0 if v is None or _kind(mark) != "number" else 1 if v >= mark else -1
        for v, mark in zip(values, marks, strict=True)
    )
    if not {1, -1} <= set(sides) or set(values) <= {0, 1, None} or (len(numbers) > 1 and not isinstance(place, str)):
        return None
    bound = min(numbers) if len(numbers) == 1 else place
    why = f"numbers, {sides.count(1)} of {len(sides) - sides.count(0)} at least what {place} says"
    return SidesForm("number", {"ge": bound}, {"lt": bound}, sides, 2.0, why)


def _texts(values: Sequence[Any]) -> list[SidesForm]:
    counts = Counter(value for value in values if value is not None)
    if len(counts) > min(MOST_WORDS, max(4, 0.5 * counts.total())) or max(map(len, counts)) > LONGEST_WORD:
        return []  # words that nearly every run has for itself are names
    if all(map(NUMBER.match, counts)):
        return []
    letters = _LETTERS if set(counts) <= set(_LETTERS) else {}
    open_ = {word for word in counts if is_undecided(word)}
    broken = {word for word in counts if BROKEN & set(words(word))}
    signs = {w: letters.get(w, _MARKS.get(w.strip(), 0 if w in open_ else polarity(w))) for w in counts}
    signs |= {w: side for w in counts if not signs[w] and (side := _opposed(w, counts))}
    clear = {sign for word, sign in signs.items() if sign and word not in broken}
    unknown = sorted(w for w in counts if not signs[w] and w not in open_ | broken and w not in letters)
    if clear == {1, -1} or (clear == {1} and unknown):
        signs |= dict.fromkeys(broken, 0)
    spoken = 1 - sum(counts[word] for word in unknown) / counts.total()
    sided = {sign for sign in signs.values() if sign}
    found = []
    if sided:
        both = len(sided) == 2
        what = "words of success and failure" if both else "words of one side"
        # that something ran, or broke, is no verdict on what it did
        ran = _OF_MACHINES * (clear <= {1} and bool(broken))
        found.append(_of_signs("string", values, signs, (2.5 if both else 0.5) - 3 * (1 - spoken) - ran, what))
    if len(clear) == 1 and 1 <= len(unknown) <= (MOST_ENDS if clear == {1} else 1):
        # what is no success, and did not break off, is a failure, whatever it is called
        odds = 0.8 if all(word.count(" ") < 3 for word in counts) else -0.2  # sentences are seldom verdicts
        others = {**signs, **dict.fromkeys(unknown, -min(clear))}
        found.append(_of_signs("string", values, others, odds, "known words of one side, and others", True))
    if not sided and len(unknown) == 2 and min(counts[word] for word in unknown) > 1:
        for good, bad in (unknown, unknown[::-1]):
            told = "two values, neither a known word"
            found.append(_of_signs("string", values, {good: 1, bad: -1}, -1.0, told, True))
    return found


def _opposed(word: str, others: Iterable[str]) -> int:
    """Of a word of any language: 1 where one of the others denies it, -1 where it denies one of them."""
    return sum(_denies(other, word) - _denies(word, other) for other in others)


def _denies(one: str, other: str) -> bool:
    one, other = one.casefold().strip(), other.casefold().strip()
    return any(one == f"{no}{sign}{other}" for no in _NO for sign in ("", " ", "_", "-"))


def _of_signs(
    kind: str, values: Sequence[Any], signs: Mapping[Any, int], odds: float, what: str, assumed: bool = False
) -> SidesForm:
    """The form in which each value is on the side that its sign tells."""
    good, bad = (sorted(one for one, sign in signs.items() if sign == side) for side in (1, -1))
    if kind == "string":
        counts = Counter(value for value in values if value is not None)
        what += ": " + ", ".join(f"{word!r} {n}" for word, n in counts.most_common(5))
        neither = sorted(word for word in counts if not signs.get(word))
        what += f"; neither side: {', '.join(map(repr, neither[:4]))}" if neither else ""
        good, bad = good or _usual(_WON, bad), bad or _usual(_LOST, good)
    success, failure = (side[0] if len(side) == 1 else {"in": side} for side in (good, bad))
    sides = tuple(0 if value is None else signs.get(value, 0) for value in values)
    return SidesForm(kind, success, failure, sides, odds, what, assumed)


def _usual(mine: Sequence[str], others: Sequence[str]) -> list[str]:
    """The words of a side of which no sample shows one, spelled like those of the other."""
    for spelled in (str.upper, str.capitalize):
        if all(spelled(word) == word for word in others):
            return sorted(map(spelled, mine))
    return sorted(mine)


def _stated(values: Sequence[Any], kind: str, success: str) -> list[SidesForm]:
    """As a person says; none where no run has that value."""
    try:
        said = json.loads(success)
    except (ValueError, RecursionError):
        said = success
    wanted = said if isinstance(said, list) else [said]
    why = f"{success} is said to be a success"
    if kind == "number" and _kind(said) == "number":
        form = _from(values, said, 4.0)
    else:
        here = {value for value in values if value is not None}
        texts = {success.strip().casefold(), *(str(one).casefold() for one in wanted)}
        good = {value for value in here if str(value).strip().casefold() in texts}
        if kind not in ("boolean", "string") or not good or len(here) > MOST_WORDS:
            return []
        others = {True, False} if kind == "boolean" else {w for w in here if len(here) <= 2 or not is_undecided(w)}
        form = _of_signs(kind, values, {**dict.fromkeys(others, -1), **dict.fromkeys(good, 1)}, 4.0, why)
    return [replace(form, why=why)] if 1 in form.sides else []
