"""Ways in which the values of one place, one a run, can say how runs ended: a type, a test of success, one of failure,
and how much the values alone speak for it, as log-odds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.lexicon import is_undecided, path_names, polarity, words
from prefixguard.stepview import MISSING

#: A place with more different words than this tells something else; so does one with longer words.
MOST_WORDS, LONGEST_WORD = 16, 80
#: Share of runs that must have the greatest value before it is taken for a success.
LEAST_MASS = 0.02
#: What broke off before anybody judged: neither side, where both sides are told.
_BROKEN = frozenset(
    """
    error errored crash crashed abort aborted cancelled canceled invalid killed skipped err infra infrastructure broken
    interrupted exception
    """.split()  # noqa: SIM905, a list would be longer
)
#: Kinds of failure that have no known word, beside words of success.
MOST_ENDS = 3
_WON = ("success", "succeeded", "passed", "pass", "resolved", "solved", "correct", "completed", "true")
_LOST = ("failure", "failed", "fail", "unresolved", "unsolved", "incorrect", "error", "wrong", "false")
#: Signs that stand for words.
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

    def spec(self, of: Any) -> dict[str, Any]:
        """The `outcome` of a spec that reads the value `of`."""
        return {"of": of, "type": self.type, "success": self.success, "failure": self.failure}


def forms_of(
    values: Sequence[Any], name: str = "", success: str | None = None, marks: Sequence[tuple[Sequence[Any], Any]] = ()
) -> list[SidesForm]:
    """Ways to read the values, likeliest first. name: a key or path, of which the polarity is heard ("failed").
    success: the value that a person says is one, as text or JSON (of numbers: at least that). marks: places that may
    say where success begins: the number of each run, and the place, as the spec has it."""
    kinds = Counter(_kind(value) for value in values if value is not None and value is not MISSING)
    if not kinds:
        return []
    kind, n = min(kinds.items(), key=lambda item: (-item[1], item[0]))
    mine = [value if _kind(value) == kind else None for value in values]
    if success is not None:
        found = _stated(mine, kind, success)
    else:
        make = {"boolean": _booleans, "number": _numbers, "string": _texts}.get(kind)
        found = make(mine, name) if make is not None else []
        found += [form for mark in marks if kind == "number" and (form := _marked(mine, *mark)) is not None]
    impure = 1 - n / sum(kinds.values())
    return [replace(form, odds=form.odds - 4 * impure) for form in sorted(found, key=lambda form: -form.odds)]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if value == value and abs(value) < 10**30 else "other"
    return "string" if isinstance(value, str) else "other"


def _is_bad(name: str) -> bool:
    names = path_names(name)
    return bool(names) and polarity(names[-1]) < 0


def _booleans(values: Sequence[Any], name: str) -> list[SidesForm]:
    bad = _is_bad(name)
    sides = tuple(0 if v is None else 1 if v is not bad else -1 for v in values)
    why = f"booleans, {values.count(True)} true and {values.count(False)} false"
    return [SidesForm("boolean", not bad, bad, sides, 0.5, why + ("; the name speaks of failure" if bad else ""))]


def _from(values: Sequence[Any], bound: float, odds: float, why: str, assumed: bool = False) -> SidesForm:
    """Success from the bound on."""
    sides = tuple(0 if v is None else 1 if v >= bound else -1 for v in values)
    return SidesForm("number", {"ge": bound}, {"lt": bound}, sides, odds, why, assumed)


def _numbers(values: Sequence[Any], name: str) -> list[SidesForm]:
    here = [value for value in values if value is not None]
    whole = all(isinstance(value, int) for value in here)
    low, high, n = min(here), max(here), len(here)
    top = sum(value == high for value in here)
    if set(here) <= {0, 1}:
        why = f"0 and 1, {sum(v == 1 for v in here)} of {n} are 1"
        if _is_bad(name):
            form = _from(values, 1, 0.5, f"{why}; the name speaks of failure")
            return [replace(form, success=form.failure, failure=form.success, sides=tuple(-s for s in form.sides))]
        return [_from(values, 1 if whole else 1.0, 0.3 if whole else 1.2, why)]
    if set(here) <= {-1, 0, 1}:
        return [_from(values, 1, 0.0, f"-1, 0 and 1, {top} of {n} are 1")]
    if low >= 0 and high <= 1 and not whole:
        found = [_from(values, 0.5, -1.0, f"numbers in [0, 1], {sum(v >= 0.5 for v in here)} of {n} from 0.5 on", True)]
        if high == 1 and top >= LEAST_MASS * n:
            found = [_from(values, 1.0, 0.8, f"numbers in [0, 1], {top} of {n} are 1"), replace(found[0], odds=-1.5)]
        return found
    if high in (5, 10, 100) and low >= 0 and len(set(here)) > 2:
        return [
            _from(values, high, -1.5, f"numbers up to {high:g}, which {top} of {n} reach", True),
            _from(values, high / 2, -1.7, f"numbers up to {high:g}, {sum(v >= high / 2 for v in here)} of {n} from its "
                  "half on", True),
        ]  # fmt: skip
    if len(set(here)) == 2:
        return [_from(values, high, -2.0, f"two numbers, {top} of {n} are {high:g}", True)]
    return []


def _marked(values: Sequence[Any], marks: Sequence[Any], place: Any) -> SidesForm | None:
    """Success from a mark on that stands elsewhere; None where the numbers are not on both sides of it."""
    here = [(v, mark) for v, mark in zip(values, marks, strict=True) if v is not None and _kind(mark) == "number"]
    numbers = {mark for _, mark in here}
    if {v >= mark for v, mark in here} != {True, False} or {v for v, _ in here} <= {0, 1}:
        return None
    if len(numbers) > 1 and not isinstance(place, str):
        return None
    bound = min(numbers) if len(numbers) == 1 else place
    sides = tuple(
        0 if v is None or _kind(mark) != "number" else 1 if v >= mark else -1
        for v, mark in zip(values, marks, strict=True)
    )
    why = f"numbers, {sides.count(1)} of {len(here)} at least what {place} says"
    return SidesForm("number", {"ge": bound}, {"lt": bound}, sides, 2.0, why)


def _texts(values: Sequence[Any], name: str) -> list[SidesForm]:
    counts = Counter(value for value in values if value is not None)
    if len(counts) > min(MOST_WORDS, max(4, 0.5 * counts.total())) or max(map(len, counts)) > LONGEST_WORD:
        return []  # words that nearly every run has for itself are names
    if set(counts) <= set(_LETTERS) and {"C", "I"} & set(counts):
        return [_of_words(values, counts, _LETTERS, 2.0, "letters of a grader")]
    spelled = {word: _spelled(word) for word in counts}
    if all(spelled.values()):
        return [_of_words(values, counts, {w: s for w, s in spelled.items() if s}, 0.7, "0 and 1 as text")]
    signs = {word: _MARKS.get(word.strip(), 0 if is_undecided(word) else polarity(word)) for word in counts}
    clear = {sign for word, sign in signs.items() if sign and not _is_broken(word)}
    unknown = [word for word in counts if not signs[word] and not is_undecided(word) and not _is_broken(word)]
    if clear == {1, -1} or (clear == {1} and unknown):
        signs = {word: 0 if _is_broken(word) else sign for word, sign in signs.items()}
    known = (word for word in counts if signs[word] or is_undecided(word) or _is_broken(word))
    spoken = sum(counts[word] for word in known) / counts.total()
    sided = {sign for sign in signs.values() if sign}
    found = []
    if sided:
        both = sided == {1, -1}
        what = "words of success and failure" if both else "words of one side"
        found.append(_of_words(values, counts, signs, (2.5 if both else 0.5) - 3 * (1 - spoken), what))
    if len(clear) == 1 and 1 <= len(unknown) <= (MOST_ENDS if clear == {1} else 1):
        # what is no success, and did not break off, is a failure, whatever it is called
        pair = {**signs, **dict.fromkeys(unknown, -min(clear))}
        odds = 0.8 if all(word.count(" ") < 3 for word in counts) else -0.2  # sentences are seldom verdicts
        found.append(_of_words(values, counts, pair, odds, "known words of one side, and others", True))
    if not sided and len(unknown) == 2 and min(counts[word] for word in unknown) > 1:
        for good, bad in (sorted(unknown), sorted(unknown)[::-1]):
            found.append(_of_words(values, counts, {good: 1, bad: -1}, -1.0, "two values, neither a known word", True))
    return found


def _is_broken(word: str) -> bool:
    return bool(_BROKEN & set(words(word)))


def _spelled(word: str) -> int:
    return 1 if re.fullmatch(r"1(\.0+)?", word) else -1 if re.fullmatch(r"0(\.0+)?", word) else 0


def _of_words(
    values: Sequence[Any], counts: Counter[str], signs: dict[str, int], odds: float, what: str, assumed: bool = False
) -> SidesForm:
    good, bad = ([word for word in sorted(counts) if signs.get(word) == side] for side in (1, -1))
    shown = ", ".join(f"{word!r} {n}" for word, n in counts.most_common(5))
    neither = [word for word in sorted(counts) if not signs.get(word)]
    why = f"{what}: {shown}" + (f"; neither side: {', '.join(map(repr, neither[:4]))}" if neither else "")
    sides = tuple(0 if value is None else signs.get(value, 0) for value in values)
    return SidesForm(
        "string", _one_of(good, bad, _WON), _one_of(bad, good, _LOST), sides, odds, why, assumed
    )  # fmt: skip


def _one_of(mine: Sequence[str], others: Sequence[str], usual: Sequence[str]) -> Any:
    """The words of a side; the usual ones, spelled like those of the other, where no sample shows one."""
    if not mine:
        upper, title = (all(test(word) for word in others) for test in (str.isupper, str.istitle))
        mine = sorted(word.upper() if upper else word.capitalize() if title else word for word in usual)
    return mine[0] if len(mine) == 1 else {"in": list(mine)}


def _stated(values: Sequence[Any], kind: str, success: str) -> list[SidesForm]:
    """As a person says; none where no run has that value."""
    try:
        said = json.loads(success)
    except (ValueError, RecursionError):
        said = success
    wanted = said if isinstance(said, list) else [said]
    why = f"{success} is said to be a success"
    if kind == "number" and len(wanted) == 1 and _kind(wanted[0]) == "number":
        form = _from(values, wanted[0], 4.0, why)
    elif kind == "boolean" and len(wanted) == 1 and isinstance(wanted[0], bool):
        sides = tuple(0 if v is None else 1 if v is wanted[0] else -1 for v in values)
        form = SidesForm(kind, wanted[0], not wanted[0], sides, 4.0, why)
    elif kind == "string":
        counts = Counter(value for value in values if value is not None)
        texts = {success.strip().casefold(), *(str(one).casefold() for one in wanted)}
        good = [word for word in counts if word.strip().casefold() in texts]
        if not good or len(counts) > MOST_WORDS:
            return []
        signs = {w: 1 if w in good else 0 if is_undecided(w) and len(counts) > 2 else -1 for w in counts}
        form = _of_words(values, counts, signs, 4.0, why)
    else:
        return []
    return [form] if 1 in form.sides else []
