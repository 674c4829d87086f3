"""Whether, and how, the values of one place (one a run) can say how runs ended."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.lexicon import Meaning, affinity, is_undecided, path_names, polarity, says_something
from prefixguard.stepview import MISSING

#: A place with more different words than this tells something else.
MOST_WORDS = 16
#: Share of runs that must have the greatest value before it is taken for "solved".
LEAST_MASS = 0.02

_SUCCESS_WORDS = ("success", "succeeded", "passed", "pass", "resolved", "solved", "correct", "completed", "true")
_FAILURE_WORDS = ("failure", "failed", "fail", "unresolved", "unsolved", "incorrect", "error", "wrong", "false")
#: Letters of a grader: correct, incorrect; P (partly) and N (no answer) are neither.
_LETTERS = {"C": 1, "I": -1, "P": 0, "N": 0, "Y": 1}


@dataclass(frozen=True, slots=True)
class OutcomeForm:
    """One way to read outcomes from values.

    type, success, failure: as in the spec's `outcome`. confidence: in [0, 1], of values and name together. won, lost:
    how many of the values are a success, a failure; what is neither is unknown. why: a sentence for a person.
    assumed: one of its sides is no known word, and taken for a side because there is no third: to be asked about.
    """

    type: str
    success: Any
    failure: Any
    confidence: float
    why: str
    won: int = 0
    lost: int = 0
    assumed: bool = False

    def spec(self, of: Any) -> dict[str, Any]:
        """The `outcome` of a spec that reads the value `of`."""
        return {"of": of, "type": self.type, "success": self.success, "failure": self.failure}

    def side(self, value: Any) -> int:
        """1 for a success, -1 for a failure, 0 for neither, as the spec would judge the value."""
        if value is None or value is MISSING or _kind(value) != self.type:
            return 0
        won = _holds(self.success, value)
        lost = not won if self.failure == "else" else _holds(self.failure, value)
        return 0 if won is lost else 1 if won else -1


def _holds(test: Any, value: Any) -> bool:
    if not isinstance(test, dict):
        return type(test) is type(value) and bool(test == value) if isinstance(test, bool) else bool(test == value)
    for name, wanted in test.items():
        if name == "in" and value not in wanted:
            return False
        if name in ("eq", "not") and _holds(wanted, value) is (name == "not"):
            return False
        if name == "ge" and not value >= wanted:
            return False
        if name == "lt" and not value < wanted:
            return False
        if name == "le" and not value <= wanted:
            return False
        if name == "gt" and not value > wanted:
            return False
    return True


def judge_values(
    values: Sequence[Any], name: str = "", *, success: str | None = None, named: bool = False
) -> list[OutcomeForm]:
    """The ways to read outcomes from the values of a place, likeliest first; empty where they tell none.

    values: one a run; None or MISSING where a run has none (its outcome is unknown). name: of the place, a key or a
    path; it gives the direction of booleans and weighs, but without it a shape that fits is still a candidate.
    success: the value that a person says is a success, as text or JSON (a list: one of these; a number: at least that,
    or at most if it is the least there is). named: a person says that outcomes are here, so that two values are two
    sides whatever they are called.
    """
    present = [value for value in values if value is not None and value is not MISSING]
    if not present:
        return []
    kinds = Counter(_kind(value) for value in present)
    kind, n = min(kinds.items(), key=lambda item: (-item[1], item[0]))
    mine = [value for value in present if _kind(value) == kind]
    if success is not None:
        forms = _stated(mine, kind, success)
    elif kind == "boolean":
        forms = _booleans(mine, name)
    elif kind == "number":
        forms = _numbers(mine, name) or (_two_numbers(mine) if named else [])
    elif kind == "string":
        forms = _words(mine, name, named)
    else:
        return []
    pure = n / len(present)
    weighed = [_weighed(form, name, pure) for form in forms]
    return sorted(weighed, key=lambda form: -form.confidence)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number" if value == value else "nan"
    return "string" if isinstance(value, str) else "other"


def _weighed(form: OutcomeForm, name: str, pure: float) -> OutcomeForm:
    """With what the name says: it can lift a fitting shape, and lower one that is called something else."""
    speaks = affinity(name, Meaning.OUTCOME)
    if speaks < 0.5 and (names := path_names(name)) and polarity(names[-1]):
        speaks = 0.5
    other = max(affinity(name, Meaning.AFTER_END), affinity(name, Meaning.HARNESS)) - speaks
    other = max(other, affinity(name, Meaning.SETUP) - speaks, affinity(name, Meaning.TASK_ID) - 0.35 - speaks)
    confidence = form.confidence + 0.5 * speaks - 0.25 * max(0.0, other)
    if speaks < 0.3 and form.type != "string" and says_something(name):
        confidence *= 0.5  # a switch or a share of something else, by its name
    if not (form.won and form.lost):
        confidence -= 0.1 if form.won + form.lost > 4 else 0.03
    confidence = max(0.02, min(0.98, confidence * pure))
    called = f"; the name speaks for an outcome ({speaks:.2f})" if speaks >= 0.3 else ""
    return replace(form, confidence=confidence, why=form.why + called)


def _bad_name(name: str) -> bool:
    """Does the innermost name speak of failure, so that true and high mean failed?"""
    names = path_names(name)
    return bool(names) and polarity(names[-1]) < 0


def _booleans(values: Sequence[bool], name: str) -> list[OutcomeForm]:
    bad = _bad_name(name)
    true = sum(1 for value in values if value)
    won, lost = (len(values) - true, true) if bad else (true, len(values) - true)
    why = f"booleans, {true} of {len(values)} true" + ("; the name speaks of failure" if bad else "")
    return [OutcomeForm("boolean", not bad, bad, 0.4, why, won, lost)]


def _numbers(values: Sequence[float], name: str) -> list[OutcomeForm]:
    low, high = min(values), max(values)
    distinct = set(values)  # 1 and 1.0 are one; no float(): a number of a thousand digits is none
    n = len(values)
    whole = all(isinstance(value, int) for value in values)
    if distinct <= {0.0, 1.0}:
        one = sum(1 for value in values if value == 1)
        confidence = 0.3 if whole else 0.45
        if _bad_name(name):
            why = f"0 and 1, {one} of {n} are 1; the name speaks of failure"
            return [OutcomeForm("number", {"lt": 1}, {"ge": 1}, confidence, why, n - one, one)]
        why = f"0 and 1, {one} of {n} are 1"
        return [OutcomeForm("number", {"ge": 1.0}, {"lt": 1.0}, confidence, why, one, n - one)]
    if distinct <= {-1.0, 0.0, 1.0}:
        one = sum(1 for value in values if value == 1)
        less = sum(1 for value in values if value == -1)
        why = f"-1, 0 and 1; {one} of {n} are 1, {less} are -1"
        return [OutcomeForm("number", {"ge": 1}, {"lt": 1}, 0.25, why, one, n - one)]
    inside = sum(1 for value in values if 0 <= value <= 1)
    if high <= 1 and inside >= 0.99 * n:  # a penalty below zero now and then is no other scale
        top = sum(1 for value in values if value == 1)
        forms = []
        if top and top >= LEAST_MASS * n:
            why = f"numbers in [0, 1], {top} of {n} are 1"
            forms.append(OutcomeForm("number", {"ge": 1.0}, {"lt": 1.0}, 0.4, why, top, n - top))
        half = sum(1 for value in values if value >= 0.5)
        why = f"numbers in [0, 1], {half} of {n} at least 0.5; where success begins is a guess"
        forms.append(OutcomeForm("number", {"ge": 0.5}, {"lt": 0.5}, 0.1, why, half, n - half))
        return forms
    if high in (5, 10, 100) and low >= 0 and affinity(name, Meaning.OUTCOME) >= 0.5:
        bound = float(high) if not whole else high
        top = sum(1 for value in values if value == high)
        why = f"numbers up to {high:g}, {top} of {n} reach it; where success begins is a guess"
        return [OutcomeForm("number", {"ge": bound}, {"lt": bound}, 0.1, why, top, n - top)]
    if whole and affinity(name, Meaning.STATUS) >= 0.8 and 0 in distinct and high <= 255:
        zero = sum(1 for value in values if value == 0)
        return [OutcomeForm("number", 0, {"not": {"eq": 0}}, 0.1, f"exit codes, {zero} of {n} are 0", zero, n - zero)]
    return []


def _two_numbers(values: Sequence[float]) -> list[OutcomeForm]:
    """Two numbers where a person says that outcomes are: the greater is a success."""
    if len(set(values)) != 2:
        return []
    high = max(values)
    won = sum(1 for value in values if value == high)
    why = f"two numbers, {won} of {len(values)} are {high:g}; that the greater is a success is a guess"
    return [OutcomeForm("number", {"ge": high}, {"lt": high}, 0.1, why, won, len(values) - won, assumed=True)]


def _stated(values: Sequence[Any], kind: str, success: str) -> list[OutcomeForm]:
    """The form for a value that a person says is a success; none where no run has it."""
    try:
        said = json.loads(success)
    except (ValueError, RecursionError):
        said = success
    wanted = said if isinstance(said, list) else [said]
    why = f"{success} is said to be a success"
    if kind == "boolean":
        if len(wanted) != 1 or not isinstance(wanted[0], bool):
            return []
        form = OutcomeForm(kind, wanted[0], not wanted[0], 0.5, why)
    elif kind == "number":
        numbers = [one for one in wanted if _kind(one) == "number"]
        if len(numbers) != 1 or len(wanted) != 1:
            return []
        (bound,) = numbers
        least = bound <= min(values) < max(values)
        form = OutcomeForm(kind, {"le" if least else "ge": bound}, {"gt" if least else "lt": bound}, 0.5, why)
    else:
        texts = {success.strip().casefold(), *(str(one).casefold() for one in wanted if isinstance(one, str))}
        counts = Counter(values)
        good = sorted(word for word in counts if word.strip().casefold() in texts)
        bad = sorted(word for word in counts if word not in good and (len(counts) == 2 or not is_undecided(word)))
        if not good:
            return []
        lost = _one_of(bad) if bad and len(counts) <= MOST_WORDS else "else"
        form = OutcomeForm(kind, _one_of(good), lost, 0.5 if len(counts) <= MOST_WORDS else 0.1, why)
    sides = [form.side(value) for value in values]
    if 1 not in sides:
        return []
    return [replace(form, won=sides.count(1), lost=sides.count(-1))]


def _words(values: Sequence[str], name: str, named: bool) -> list[OutcomeForm]:
    counts = Counter(values)
    if len(counts) > MOST_WORDS or max(map(len, counts)) > 80:
        return []
    if set(counts) <= set(_LETTERS) and ("C" in counts or "I" in counts):
        return [_sides(counts, dict(_LETTERS), 0.45, "letters of a grader")]
    numbers = _spelled_numbers(counts)
    if numbers is not None:
        return [_sides(counts, numbers, 0.3, "0 and 1 spelled as text")]
    signs = {word: polarity(word) for word in counts}
    if not any(signs.values()):
        return _pairs(counts, signs, 0.1) if named else []
    spoken = sum(counts[word] for word in counts if signs[word]) / len(values)
    both = {1, -1} <= set(signs.values())
    # "unknown sign" words beside a single side that speaks are most likely reasons, not verdicts
    confidence = (0.5 if both else 0.35) * (0.3 + 0.7 * spoken)
    if max(len(word) for word in counts) > 40:
        confidence *= 0.5
    usual = [_sides(counts, signs, confidence, "words of success and failure" if both else "words of one side")]
    if named or affinity(name, Meaning.OUTCOME) >= 0.5:
        return [*_pairs(counts, signs, 0.35, 1 if named else 2), *usual][:1]
    return [*usual, *_pairs(counts, signs, 0.5 * confidence, 2)]


def _pairs(counts: Counter[str], signs: dict[str, int], confidence: float, least: int = 1) -> list[OutcomeForm]:
    """Two values that have one known word, or none: two sides. Both ways round where none is known.

    least: runs that must have a value which is no known word.
    """
    two = sorted(word for word in counts if word.strip())
    unknown = [word for word in two if not signs[word]]
    if len(two) != 2 or not unknown or any(is_undecided(word) or counts[word] < least for word in unknown):
        return []
    if len(unknown) == 1:
        known = two[0] if two[1] == unknown[0] else two[1]
        pair = {**signs, unknown[0]: -signs[known]}
        other = "failure" if signs[known] > 0 else "success"
        form = _sides(counts, pair, confidence, "two values, of which one is a known word")
        return [replace(form, why=f"{form.why}; that {unknown[0]!r} means {other} is a guess", assumed=True)]
    forms = []
    for good, bad in (two, two[::-1]):
        form = _sides(counts, {**signs, good: 1, bad: -1}, confidence, "two values, neither a known word")
        forms.append(replace(form, why=f"{form.why}; that {good!r} means success is a guess", assumed=True))
    return forms


def _spelled_numbers(counts: Counter[str]) -> dict[str, int] | None:
    """Sides of texts such as "1.0" and "0.0"; None where they are something else."""
    signs: dict[str, int] = {}
    for word in counts:
        try:
            number = float(word)
        except ValueError:
            return None
        if number not in (0.0, 1.0):
            return None
        signs[word] = 1 if number else -1
    return signs


def _sides(counts: Counter[str], signs: dict[str, int], confidence: float, what: str) -> OutcomeForm:
    good = sorted(word for word in counts if signs.get(word, 0) > 0)
    bad = sorted(word for word in counts if signs.get(word, 0) < 0)
    neither = sorted(word for word in counts if not signs.get(word, 0))
    won, lost = sum(counts[word] for word in good), sum(counts[word] for word in bad)
    shown = ", ".join(f"{word!r} {counts[word]}" for word in sorted(counts, key=lambda w: (-counts[w], w))[:5])
    why = f"{what}: {shown}"
    success: Any = _one_of(good) if good else _other(bad, _SUCCESS_WORDS)
    failure: Any = _one_of(bad) if bad else _other(good, _FAILURE_WORDS)
    if neither:
        why += f"; neither side: {', '.join(map(repr, neither[:4]))}"
    return OutcomeForm("string", success, failure, confidence, why, won, lost)


def _one_of(found: list[str]) -> Any:
    return found[0] if len(found) == 1 else {"in": found}


def _other(seen: list[str], usual: tuple[str, ...]) -> Any:
    """The side that no sample shows: the usual words for it, spelled like the words that were seen."""
    if seen and all(word.isupper() for word in seen):
        return {"in": sorted(word.upper() for word in usual) + (["I"] if "C" in seen else [])}
    if seen and all(word[:1].isupper() for word in seen):
        return {"in": sorted(word.capitalize() for word in usual)}
    return {"in": sorted(usual)}
