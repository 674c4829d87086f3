"""Which place tells how runs ended."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from prefixguard.induce.search.outcome_forms import BROKEN, NUMBER, SidesForm, forms_of
from prefixguard.induce.search.run_fields import Weighed, ranked
from prefixguard.induce.search.seen_runs import Keys, SeenRun, Values
from prefixguard.lexicon import Meaning, affinity, is_foreign, path_names, polarity, says_something, words
from prefixguard.stepview import MISSING
from prefixguard.stepview.values import read_json

#: Candidates that are compared with each other.
MOST_WEIGHED = 120
#: Weight of "no place tells it" where no name says anything. A flag may be any flag there: unless the values alone
#: speak with these odds, its probability stays below the one with which a question that nobody answers is decided.
_UNNAMED, _TELLING, _MOST_UNNAMED = 0.4, 0.8, 0.49
#: Weight of another place that tells numbers that are enough from those that are not, against a guess.
_JUDGED = 2.0
#: Stands for null where others have a kind of failure.
_NO_FAULT = "none"
#: What a number is called from which on something is enough.
_ENOUGH = frozenset("threshold mark required minimum min pass passing cutoff bar least need needed enough".split())  # noqa: SIM905
#: What a place speaks for by itself.
_PLACES = {
    "run": 0.0, "list": 0.5, "beside": 0.4, "file": -0.8, "piece": -0.8, "last": 0.3, "tail": -1.5, "text": 0.0,
    "once": -0.7, "document": -3.5,
}  # fmt: skip

Sides = tuple[int, ...]


def outcomes_of(
    columns: Sequence[Values], runs: Sequence[SeenRun], tasks: Keys | None, success: str | None = None
) -> list[Weighed]:
    """Readings of the outcome. tasks: of each run, where they are known. success: the value that a person says is
    one."""
    found = []
    marks = [
        (column.values, column.spec)
        for column in columns
        if column.coverage >= 0.9 and _ENOUGH & set(words(column.name)) and column.near != "list"
    ]
    speak = _speak(columns)
    broken = [c for c in columns if c.near == "list" and BROKEN & set(words(path_names(c.name)[-1]))][:1]
    for column in [*columns, *_either(columns), *_as_numbers(columns), *_faults(columns)]:
        if column.near == "shared":
            continue
        values = tuple(None if value == "" or isinstance(value, list | dict) else value for value in column.values)
        named = _outcome_name(column.name)
        mine = [mark for mark in marks if _beside(mark[1], column.spec)]
        named_so = [(c.values, c.spec) for c in columns if c.near == "shared" and _is_named(column, c)]
        mine = mine or (named_so if len(named_so) == 1 else [])
        for form in forms_of(values, column.name, success, mine or marks):
            odds = form.odds + named + _outcome_odds(column, form.sides, runs, tasks)
            told = (form.odds >= _TELLING and not form.assumed) or named >= 1.5
            is_word = speak and (not column.name or says_something(column.name))
            most = 1.0 if told or is_word else _MOST_UNNAMED
            spec, says = _outcome(column, form), form.sides
            for other in broken if column.near == "list" and spec["failure"] == "else" else ():
                if not any(a is True and b is True for a, b in zip(values, other.values, strict=True)):
                    spec["failure"] = {"not": {"any": [spec["success"], {"in": other.spec["in"]}]}}
                    says = tuple(0 if b is True else side for side, b in zip(says, other.values, strict=True))
            found.append(Weighed(spec, says, odds, form.why, column, 0.0, form.assumed, most))
    found = sorted(found, key=lambda one: -one.odds)[:MOST_WEIGHED]
    sure = [one for one in found if not one.assumed and {1, -1} <= set(one.says)]
    found = [replace(one, odds=one.odds - _JUDGED) if one.assumed and _judged(one, sure) else one for one in found]
    seconds = Counter(one.says for one in found if {1, -1} <= set(one.says))
    found = [replace(one, odds=one.odds + 0.3 * min(2, max(0, seconds[one.says] - 1))) for one in found]
    return ranked(found, _agree, 1.0 if speak else _UNNAMED)


def _is_named(column: Values, mark: Values) -> bool:
    """Has the mark in a file of settings the name of the score?"""
    names, marks = path_names(column.name), path_names(mark.name)
    return bool(names) and bool(marks) and column.near != "shared" and names[-1] == marks[-1]


def _beside(one: Any, other: Any) -> bool:
    """Do two values of the spec stand in one object?"""
    single = [s["text"] if isinstance(s, dict) and "text" in s else s for s in (one, other)]
    homes = [{**s, "path": s["path"].rpartition(".")[0]} if isinstance(s, dict) and isinstance(s.get("path"), str)
             else s.rpartition(".")[0] if isinstance(s, str) else None for s in single]  # fmt: skip
    return homes[0] is not None and homes[0] == homes[1]


def _judged(guess: Weighed, sure: Sequence[Weighed]) -> bool:
    """Does another place say which of these numbers are enough, and is it not from the guessed one on?"""
    for other in sure:
        both = [(v, side, mine) for v, side, mine in zip(guess.column.values, other.says, guess.says, strict=True)
                if side and isinstance(v, int | float)]  # fmt: skip
        won, lost = ([v for v, side, _ in both if side == one] for one in (1, -1))
        if won and lost and min(won) > max(lost) and any(side != mine for _, side, mine in both):
            return True
    return False


def _speak(columns: Sequence[Values]) -> bool:
    """Are the names of places words that are known? Else that none is called an outcome says nothing."""
    names = [column.name for column in columns if column.place or column.near == "beside"]
    return any(map(says_something, names)) and not is_foreign(path_names(name)[-1] for name in names if name)


def _either(columns: Sequence[Values]) -> Iterator[Values]:
    """Two fields of which every run has one: the same field, spelled differently in two sources."""
    named = [c for c in columns if c.near == "run" and c.coverage < 1 and affinity(c.name, Meaning.OUTCOME) >= 0.5][:20]
    for a, b in combinations(named, 2):
        pairs = list(zip(a.values, b.values, strict=True))
        told = [[value for value in pair if value is not MISSING and value is not None] for pair in pairs]
        if max(map(len, told)) == 1 and a.there and b.there and told.count([]) <= 0.1 * len(told):
            values = tuple(one[0] if one else MISSING for one in told)
            yield replace(a, spec={"first": [a.spec, b.spec]}, values=values)


def _as_numbers(columns: Sequence[Values]) -> Iterator[Values]:
    """Texts that spell numbers, as these; points that the text of most runs tells are 0 where it tells none."""
    for column in columns:
        if column.there and all(isinstance(v, str) and NUMBER.match(v) for v in column.there):
            spec: Any = {"json": column.spec}
            values = tuple(v if v is MISSING or v is None else read_json(v) for v in column.values)
            is_most = column.near == "text" and 0.8 <= column.coverage < 1
            if is_most and not any(v.startswith("-") for v in column.there):
                spec = {"first": [spec, {"const": 0}]}
                values = tuple(0 if value is MISSING else value for value in values)
            yield replace(column, spec=spec, values=values)


def _faults(columns: Sequence[Values]) -> Iterator[Values]:
    """Columns that are called after failure, and tell one of a few kinds of it, or null: with a word for null."""
    for column in columns:
        kinds, clear, n = column.there, column.values.count(None), len(column.values)
        if column.near not in ("run", "beside") or not column.name or polarity(path_names(column.name)[-1]) >= 0:
            continue
        is_few = len(set(map(str, kinds))) < len(kinds) and clear >= 2 and len(kinds) + clear >= 0.9 * n
        if is_few and all(re.fullmatch(r"[\w-]{1,40}", str(kind)) for kind in kinds):
            values = tuple(value if value is MISSING else value is not None for value in column.values)
            yield replace(column, spec={"first": [column.spec, {"const": _NO_FAULT}]}, values=values)


def _agree(a: Sides, b: Sides) -> bool:
    """Do they tell the same of the runs of which both tell something?"""
    both = [(x, y) for x, y in zip(a, b, strict=True) if x and y]
    return bool(both) and all(x == y for x, y in both)


def _outcome(column: Values, form: SidesForm) -> dict[str, Any]:
    spec, kind, success, failure = column.spec, form.type, form.success, form.failure
    if column.near == "list":  # a list of ids in a file: its spec is the test
        test = {"in": spec["in"]}
        kind = "string" if any(isinstance(key, str) for key in spec["keys"]) else "number"
        success, failure = (test, "else") if form.success is True else ("else", test)
        spec = spec["of"]
    elif isinstance(spec, dict) and {"const": _NO_FAULT} in spec.get("first", ()):
        kind, success, failure = "string", _NO_FAULT, "else"
    elif isinstance(spec, dict) and "text" in spec and kind != "string":
        spec = {"json": spec}  # a path through a list finds a list, whose text is read
    return {"of": spec, "type": kind, "success": success, "failure": failure}


def _outcome_odds(column: Values, sides: Sides, runs: Sequence[SeenRun], tasks: Keys | None) -> float:
    n = len(sides)
    odds = -0.5 + _PLACES.get(column.near, -1.5) - 2.5 * sides.count(0) / n - 0.1 * max(0, len(column.place) - 2)
    if not {1, -1} <= set(sides):
        odds -= 0.5 if n < 5 else 1.2 if column.near in ("run", "beside", "document", "file", "piece") else 2.5
        return odds - (2.0 if column.near == "list" else 0.0)
    for groups in ([run.file for run in runs], tasks):
        if groups is not None and _fixed(groups, sides):
            odds -= 1.5
    return odds + _tied_to_length(runs, sides)


def _outcome_name(name: str) -> float:
    """What the name says: for an outcome, for something else, or, as a word that nobody knows, a little against."""
    if not name:
        return 0.0
    speaks = affinity(name, Meaning.OUTCOME)
    if path_names(name) and polarity(path_names(name)[-1]):
        speaks = max(speaks, 0.5)
    others = (Meaning.SETUP, Meaning.GROUP, Meaning.MODEL, Meaning.TIME, Meaning.TASK_ID, Meaning.RUN_ID, Meaning.AGENT)
    other = max(affinity(name, meaning) for meaning in (*others, Meaning.AFTER_END, Meaning.HARNESS, Meaning.MISTAKE))
    known = max(speaks, other)
    return 3.5 * speaks - 2.0 * max(0.0, other - speaks) - (1.0 if known < 0.3 and says_something(name) else 0.0)


def _fixed(groups: Sequence[str | None], sides: Sides) -> bool:
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
    won, lost = ([run.size for run, side in zip(runs, sides, strict=True) if side == one] for one in (1, -1))
    if len(won) < 5 or len(lost) < 5:
        return 0.0
    pairs, lost = len(won) * len(lost), sorted(lost)
    auc = sum(bisect_left(lost, a) + bisect_right(lost, a) for a in won) / (2 * pairs)
    noise = ((len(won) + len(lost) + 1) / (12 * pairs)) ** 0.5
    return 2 * abs(auc - 0.5) if abs(auc - 0.5) > 3 * noise else 0.0
