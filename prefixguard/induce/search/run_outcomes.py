"""Which place tells how runs ended."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from prefixguard.induce.search.outcome_forms import SidesForm, forms_of
from prefixguard.induce.search.run_fields import Keys, Sides, Weighed, ranked
from prefixguard.induce.search.seen_runs import SeenRun, Values
from prefixguard.lexicon import Meaning, affinity, is_foreign, path_names, polarity, says_something, words
from prefixguard.stepview import MISSING, canonical

#: Candidates that are compared with each other.
MOST_WEIGHED = 120
#: Share of the runs whose text tells their points, from which on the others have none.
_MOSTLY = 0.8
#: Weight of "no place tells it" where no name says anything. A flag may be any flag there: unless the values alone
#: speak with these odds, its probability stays below the one with which a question that nobody answers is decided.
_UNNAMED, _TELLING, _MOST_UNNAMED = 0.4, 0.8, 0.49
#: Stands for null where others have a kind of failure.
_NO_FAULT = "none"


def outcomes_of(
    columns: Sequence[Values],
    runs: Sequence[SeenRun],
    tasks: Keys | None,
    *,
    names: bool = True,
    success: str | None = None,
) -> list[Weighed]:
    """Readings of the outcome. tasks: of each run, where they are known. names: whether names of places count.
    success: the value that a person says is one."""
    found = []
    marks = _marks(columns, names)
    speak = names and _speak(columns)
    for column in [*columns, *_either(columns), *_never_given(_as_numbers(columns))]:
        if column.near == "shared":
            continue
        values = tuple(None if value == "" or isinstance(value, list | dict) else value for value in column.values)
        for form in forms_of(values, column.name if names else "", success, marks):
            longest = _ran_out(column, form, runs)
            if longest is not None:
                column, form = longest
            odds = form.odds + _outcome_odds(column, form, runs, tasks, names)
            told = (form.odds >= _TELLING and not form.assumed) or (names and _outcome_name(column) >= 1.5)
            is_word = speak and (not column.name or says_something(column.name))
            most = 1.0 if told or is_word else _MOST_UNNAMED
            found.append(Weighed(_outcome(column, form), form.sides, odds, form.why, column, 0.0, form.assumed, most))
    for column in _faults(columns) if names else ():
        sides = tuple(0 if value is MISSING else 1 if value == _NO_FAULT else -1 for value in column.values)
        why = f"a kind of failure, or none: {sides.count(1)} of {len(sides)} have none"
        form = SidesForm("string", _NO_FAULT, "else", sides, 0.8, why)
        odds = form.odds + _outcome_odds(column, form, runs, tasks, names)
        found.append(Weighed(_outcome(column, form), sides, odds, why, column))
    found = sorted(found, key=lambda one: -one.odds)[:MOST_WEIGHED]
    found = [replace(one, odds=one.odds + 0.3 * min(2, _seconded(one, found))) for one in found]
    return ranked(found, _agree, 1.0 if speak else _UNNAMED)


def _speak(columns: Sequence[Values]) -> bool:
    """Are the names of places words that are known? Else that none is called an outcome says nothing."""
    names = [column.name for column in columns if column.place or column.near == "beside"]
    return any(map(says_something, names)) and not is_foreign(path_names(name)[-1] for name in names if name)


#: Share of the runs that may end without being told how, and of the others that are shorter than half of these.
MOST_UNTOLD, LONGER = 0.3, 0.9


def _ran_out(column: Values, form: SidesForm, runs: Sequence[SeenRun]) -> tuple[Values, SidesForm] | None:
    """The reading in which runs whose text does not tell the outcome failed, where these are the longest: they ran out
    of steps before anybody judged."""
    untold = [i for i, value in enumerate(column.values) if value is MISSING]
    whole = form.success in ({"ge": 1}, {"ge": 1.0})
    if column.near != "text" or not 2 <= len(untold) <= MOST_UNTOLD * len(runs) or not (form.type == "string" or whole):
        return None
    lengths = [len(run.events) or len(run.text) for run in runs]
    middle = sorted(lengths[i] for i in untold)[len(untold) // 2]
    told = [n for n, value in zip(lengths, column.values, strict=True) if value is not MISSING]
    if sum(n < middle for n in told) < LONGER * len(told):
        return None
    of = column.spec["json"] if whole else column.spec
    sides = tuple(-1 if i in set(untold) else side for i, side in enumerate(form.sides))
    won = {"re": r"^1(\.0+)?$"} if whole else form.success
    why = f"{form.why}; the {len(untold)} runs that are not told are longer than the others: they ran out of steps"
    return (
        Values({"first": [of, {"const": "none"}]}, column.name, column.values, column.near, column.place),
        replace(form, type="string", success=won, failure="else", sides=sides, why=why),
    )


def _as_numbers(columns: Sequence[Values]) -> list[Values]:
    """Texts of tables and lines that spell numbers, as these."""
    found = []
    for column in columns:
        here = [text for text in column.texts if text is not None]
        if column.near in ("beside", "text") and here and not isinstance(column.spec, str):
            numbers = [number_in(text) for text in here]
            if None not in numbers and not set(numbers) <= {0, 1}:
                values = tuple(MISSING if text is None else number_in(text) for text in column.texts)
                if all(isinstance(value, str) for value in column.values if value is not MISSING):
                    found.append(Values({"json": column.spec}, column.name, values, column.near, column.place))
    return found


def _faults(columns: Sequence[Values]) -> Iterator[Values]:
    """Columns that are called after failure, and tell one of a few kinds of it, or null: with a word for null."""
    for column in columns:
        kinds = [value for value in column.values if isinstance(value, str)]
        clear = sum(value is None for value in column.values)
        if column.near not in ("run", "beside") or not column.name or polarity(path_names(column.name)[-1]) >= 0:
            continue
        few = len(set(kinds)) < len(kinds) and all(re.fullmatch(r"[\w-]{1,40}", kind) for kind in kinds)
        if few and clear >= 2 and len(kinds) + clear >= 0.9 * len(column.values):
            values = tuple(_NO_FAULT if value is None else value for value in column.values)
            spec = {"first": [column.spec, {"const": _NO_FAULT}]}
            yield Values(spec, column.name, values, column.near, column.place)


def _never_given(columns: Sequence[Values]) -> list[Values]:
    """The columns; of points that the text of most runs tells, those with 0 where it tells none: they were not won."""
    return [
        replace(
            one, spec={"first": [one.spec, {"const": 0}]}, values=tuple(0 if v is MISSING else v for v in one.values)
        )
        if one.near == "text" and _MOSTLY <= one.coverage < 1 and min(v for v in one.values if v is not MISSING) >= 0
        else one
        for one in columns
    ]


def _agree(a: Sides, b: Sides) -> bool:
    """Do they tell the same of the runs of which both tell something?"""
    both = [(x, y) for x, y in zip(a, b, strict=True) if x and y]
    return bool(both) and all(x == y for x, y in both)


def _seconded(one: Weighed, found: Sequence[Weighed]) -> int:
    """How many other places, none of them derived from this one, say the same, where both sides occur."""
    if not {1, -1} <= set(one.says):
        return 0
    return sum(other.column is not one.column and other.says == one.says for other in found)


def _outcome(column: Values, form: SidesForm) -> dict[str, Any]:
    if column.near == "list":  # a list of ids in a file: its spec is the test
        test = {"in": column.spec["in"]}
        sides = (test, "else") if form.success is True else ("else", test)
        kind = "string" if any(isinstance(key, str) for key in column.spec["keys"]) else "number"
        return {"of": column.spec["of"], "type": kind, "success": sides[0], "failure": sides[1]}
    if isinstance(column.spec, dict) and "text" in column.spec and form.type != "string":
        return _as_text(column, form)
    return form.spec(column.spec)


def _as_text(column: Values, form: SidesForm) -> dict[str, Any]:
    """The form over texts: a path through a list finds a list, whose text is read."""
    spelled: dict[int, set[str]] = {1: set(), -1: set()}
    for value, side in zip(column.values, form.sides, strict=True):
        if side:
            spelled[side].add(canonical(value))
    if form.type == "boolean":
        spelled[1 if form.success is True else -1].add("true")
        spelled[-1 if form.success is True else 1].add("false")
    else:
        spelled[1].update(("1", "1.0")) if form.success == {"ge": 1} else None
    if form.type == "number":
        won = {"in": sorted(spelled[1])}
        return {"of": column.spec, "type": "string", "success": won, "failure": {"re": "^-?[0-9.]+$", "not": won}}
    sides = {name: {"in": sorted(spelled[side])} for name, side in (("success", 1), ("failure", -1))}
    return {"of": column.spec, "type": "string", **sides}


#: What a number is called from which on something is enough.
_ENOUGH = frozenset("threshold mark required minimum min pass passing cutoff bar least needed enough".split())  # noqa: SIM905


def _marks(columns: Sequence[Values], names: bool) -> Sequence[tuple[Sequence[Any], Any]]:
    """Numbers beside the runs that are called a mark: of each run, and where they stand."""
    return [
        (column.values, column.spec)
        for column in columns
        if names and column.coverage >= 0.9 and _ENOUGH & set(words(column.name)) and column.near != "list"
    ][:8]


_PLACES = {
    "run": 0.0,
    "list": 0.5,
    "beside": 0.4,
    "file": -0.8,
    "piece": -0.8,
    "last": 0.3,
    "tail": 0.0,
    "text": 0.0,
    "once": -0.7,
    "first": -1.5,
}


def _outcome_odds(column: Values, form: SidesForm, runs: Sequence[SeenRun], tasks: Keys | None, names: bool) -> float:
    n = len(form.sides)
    told = sum(map(bool, form.sides)) / max(1, n)
    two_sided = {1, -1} <= set(form.sides)
    odds = -0.5 + _PLACES.get(column.near, -1.5) - 2.5 * (1 - told) - 0.1 * max(0, len(column.place) - 2)
    if column.near == "document" and n > 1:
        odds -= 2.0
    if column.near == "list" and not two_sided:
        odds -= 2.0
    if not two_sided:
        odds -= 0.5 if n < 5 else 1.2 if column.near in ("run", "beside", "document", "file", "piece") else 2.5
    if names:
        odds += _outcome_name(column)
    if two_sided:
        files = [run.file for run in runs]
        for groups in (files, tasks):
            if groups is not None and fixed(groups, form.sides):
                odds -= 1.5
        odds += _tied_to_length(runs, form.sides)
    return odds


def _outcome_name(column: Values) -> float:
    """What the name says: for an outcome, for something else, or, as a word that nobody knows, a little against."""
    name = column.name
    if not name:
        return 0.0
    speaks = affinity(name, Meaning.OUTCOME)
    if path_names(name) and polarity(path_names(name)[-1]):
        speaks = max(speaks, 0.5)
    others = (Meaning.SETUP, Meaning.GROUP, Meaning.MODEL, Meaning.TIME, Meaning.TASK_ID, Meaning.RUN_ID, Meaning.AGENT)
    other = max(affinity(name, meaning) for meaning in (*others, Meaning.AFTER_END, Meaning.HARNESS, Meaning.MISTAKE))
    known = max(speaks, other)
    return 3.5 * speaks - 2.0 * max(0.0, other - speaks) - (1.0 if known < 0.3 and says_something(name) else 0.0)


def fixed(groups: Sequence[str | None], sides: Sides) -> bool:
    """Has every group of three runs or more one side only, while both occur over at least four such groups?"""
    by: dict[str, list[int]] = {}
    for group, side in zip(groups, sides, strict=True):
        if group is not None and side:
            by.setdefault(group, []).append(side)
    several = [found for found in by.values() if len(found) >= 3]
    return len(several) >= 4 and all(len(set(found)) == 1 for found in several)


def _tied_to_length(runs: Sequence[SeenRun], sides: Sides) -> float:
    """How runs went mostly goes with how long they were: twice the distance of the AUC from chance, where that is no
    noise; in [0, 1]."""
    lengths = [len(run.events) or len(run.text) for run in runs]
    won = [x for x, side in zip(lengths, sides, strict=True) if side > 0]
    lost = [x for x, side in zip(lengths, sides, strict=True) if side < 0]
    if len(won) < 5 or len(lost) < 5:
        return 0.0
    pairs, lost = len(won) * len(lost), sorted(lost)
    auc = sum(bisect_left(lost, a) + bisect_right(lost, a) for a in won) / (2 * pairs)
    noise = ((len(won) + len(lost) + 1) / (12 * pairs)) ** 0.5
    return 2 * abs(auc - 0.5) if abs(auc - 0.5) > 3 * noise else 0.0


def _either(columns: Sequence[Values]) -> list[Values]:
    """Two fields of which every run has one: the same field, spelled differently in two sources."""
    thin = [
        c for c in columns if c.near == "run" and 0.1 <= c.coverage <= 0.95 and affinity(c.name, Meaning.OUTCOME) >= 0.5
    ]
    found = []
    for i, a in enumerate(thin[:20]):
        for b in thin[i + 1 : 20]:
            here = [(x is not MISSING and x is not None, y is not MISSING and y is not None)
                    for x, y in zip(a.values, b.values, strict=True)]  # fmt: skip
            if any(x and y for x, y in here) or sum(x or y for x, y in here) < 0.9 * len(here):
                continue
            values = tuple(x if there else y for x, y, (there, _) in zip(a.values, b.values, here, strict=True))
            found.append(Values({"first": [a.spec, b.spec]}, a.name, values, "run", a.place))
    return found


def number_in(text: str) -> float | int | None:
    """The number that a text spells as JSON does; None where it spells none."""
    if not re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.\d{1,17})?", text):
        return None
    return float(text) if "." in text else int(text)
