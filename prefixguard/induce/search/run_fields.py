"""Which place tells a run's outcome, and which its task: candidates from every place, evidence as log-odds, and the
probability that follows. Names of places are one term of several and can be left out.

Candidates that say the same of all runs are one reading. The probability of a reading is its weight beside those of the
readings that contradict it and of "none of these".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import exp
from typing import Any

from prefixguard.induce.search.outcome_forms import SidesForm, forms_of
from prefixguard.induce.search.seen_runs import SeenRun, Values
from prefixguard.lexicon import Meaning, affinity, path_names, polarity, says_something, words
from prefixguard.stepview import MISSING, canonical

#: Readings below this are not taken; from SURE on nobody is asked; rivals from NEAR on are shown.
TAKEN, SURE, NEAR = 0.4, 0.8, 0.08
#: Candidates that are compared with each other.
MOST_WEIGHED = 120
#: Texts from so many words on are what a task says; an id, a name or a path has fewer.
FEWEST_WORDS = 4

Sides = tuple[int, ...]
Keys = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Weighed:
    """A candidate. spec: of the outcome, or of the task. says: of each run its side (1, -1, 0), or its task.
    odds: natural logarithm. confidence: the probability, once rivals were looked at. assumed: one of its parts is a
    guess whatever the odds."""

    spec: Any
    says: tuple[Any, ...]
    odds: float
    why: str
    column: Values
    confidence: float = 0.0
    assumed: bool = False

    @property
    def label(self) -> str:
        """The place, for a person."""
        of = self.column.spec
        if self.column.near == "list":
            return f"the list {of['in'].get('path')} of {of['in']['sibling']}"
        return of if isinstance(of, str) else canonical(of)


def ranked(found: Iterable[Weighed], agrees: Callable[[Any, Any], bool]) -> list[Weighed]:
    """Readings, likeliest first, each by its likeliest candidate, with its probability."""
    readings: list[Weighed] = []
    for one in sorted(found, key=lambda one: -one.odds):
        if not any(agrees(one.says, other.says) for other in readings):
            readings.append(one)
    total = 1.0 + sum(exp(one.odds) for one in readings)
    return [replace(one, confidence=exp(one.odds) / total) for one in readings]


# --- outcomes


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
    for column in [*columns, *_either(columns), *_as_numbers(columns)]:
        if column.near == "shared":
            continue
        values = tuple(None if value == "" or isinstance(value, list | dict) else value for value in column.values)
        for form in forms_of(values, column.name if names else "", success, marks):
            odds = form.odds + _outcome_odds(column, form, runs, tasks, names)
            found.append(
                Weighed(_outcome(column, form), form.sides, odds, form.why, column, assumed=form.assumed)
            )  # fmt: skip
    found = sorted(found, key=lambda one: -one.odds)[:MOST_WEIGHED]
    found = [replace(one, odds=one.odds + 0.3 * min(2, _seconded(one, found))) for one in found]
    return ranked(found, _agree)


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


def number_in(text: str) -> float | int | None:
    """The number that a text spells as JSON does; None where it spells none."""
    if not re.fullmatch(r"-?(0|[1-9]\d{0,14})(\.\d{1,17})?", text):
        return None
    return float(text) if "." in text else int(text)


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
_ENOUGH = {
    *(
        "threshold",
        "mark",
        "required",
        "minimum",
        "min",
        "pass",
        "passing",
        "cutoff",
        "bar",
        "least",
        "needed",
        "enough",
    )
}


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
    "beside": 0.0,
    "file": -0.8,
    "piece": -0.8,
    "last": 0.3,
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


# --- tasks


def tasks_of(
    columns: Sequence[Values],
    runs: Sequence[SeenRun],
    heard: Keys,
    *,
    names: bool = True,
    refused: Sequence[Any] = (),
) -> list[Weighed]:
    """Readings of the task. heard: what each run's agent was told before it did anything. refused: specs that are read
    for something else."""
    columns = [_begun_alike(column) for column in columns]
    texts = task_texts(columns, heard)
    files = [run.file for run in runs]
    found = []
    for column in columns:
        if column.spec in refused or column.coverage < 0.8 or column.near in ("list", "text", "piece", "shared"):
            continue
        odds = _task_odds(column, texts, files, names)
        if odds is not None:
            found.append(Weighed(column.spec, column.texts, odds, _task_why(column), column))
    best = ranked(found, same_partition)
    none = 1.0 - sum(one.confidence for one in best)  # which parts the runs as a task for each of them does
    best = [
        replace(one, confidence=one.confidence + none) if len(set(one.says)) == len(one.says) else one for one in best
    ]
    best.sort(key=lambda one: -one.confidence)
    if best and (joined := _told_apart(best[0], columns, texts)) is not None:
        best[0] = joined
    return best


def _begun_alike(column: Values) -> Values:
    """Of texts of which some go on where others end, always with the same words, what they have in common: the text of
    a task, without what a later attempt adds to it. Other columns as they are."""
    if column.near not in ("run", "first", "every", "heard") or not is_prose(column):
        return column
    ordered = sorted({text for text in column.texts if text})
    added = [b[len(a) :].strip() for a, b in pairwise(ordered) if b.startswith(a)]
    opened = Counter(" ".join(rest.split(" ")[:4]) for rest in added)
    begun, n = opened.most_common(1)[0] if opened else ("", 0)
    if n < 2 or n < 0.8 * len(added) or len(begun) < 12:
        return column
    spec = {"strip": {"re": f"(?s)^(.*?)(?:{re.escape(begun)}.*)?$", "of": column.spec}}
    values = tuple(None if text is None else text.partition(begun)[0].strip() for text in column.texts)
    return Values(spec, column.name, values, column.near, column.place)


def same_partition(a: Keys, b: Keys) -> bool:
    """Do they part the runs alike? A run without a task is a part of its own."""
    whole_a, whole_b = ([(x, None) if x is not None else (None, i) for i, x in enumerate(keys)] for keys in (a, b))
    return len(set(zip(whole_a, whole_b, strict=True))) == len(set(whole_a)) == len(set(whole_b))


def task_texts(columns: Sequence[Values], heard: Keys) -> list[Keys]:
    """What tells tasks apart without being an id: texts of several words that differ between runs, beside the events or
    heard before the agent did anything."""
    found = [
        column.texts
        for column in columns
        if column.near in ("run", "first", "every")
        and column.coverage >= 0.6
        and column.distinct > 1
        and is_prose(column)
        and max(affinity(column.name, meaning) for meaning in (Meaning.AFTER_END, Meaning.MISTAKE)) < 0.6
    ][:6]
    prose = [text for text in heard if text and len(text.split()) >= FEWEST_WORDS]
    if len(prose) >= 0.6 * len(heard) and len(set(prose)) > 1:
        found.append(heard)
    return [tuple(None if text is None else _gist(text) for text in key) for key in found]


def is_prose(column: Values) -> bool:
    """Are its values texts of several words, rather than ids, names, times or paths?"""
    here = [text for text in column.texts if text]
    return bool(here) and sum(len(text.split()) >= FEWEST_WORDS for text in here) >= 0.8 * len(here)


def _gist(text: str) -> str:
    """The beginning of a text without blanks, signs and capitals."""
    return "".join(letter for letter in text[:1500].lower() if letter.isalnum())[:800]


_NO_TASK = (
    Meaning.RUN_ID, Meaning.GROUP, Meaning.MODEL, Meaning.AGENT, Meaning.AFTER_END, Meaning.OUTCOME, Meaning.TIME,
    Meaning.MISTAKE, Meaning.HARNESS,
)  # fmt: skip
_TASK_PLACES = {
    "run": 0.0,
    "file": 0.0,
    "first": 0.0,
    "every": -0.3,
    "beside": -1.0,
    "once": -1.0,
    "last": -1.0,
    "heard": 0.5,
}


def _task_odds(column: Values, texts: Sequence[Keys], files: Sequence[str], names: bool) -> float | None:
    keys, d, n = column.texts, column.distinct, len(column.texts)
    if (
        not d
        or (column.near == "heard" and d == n)
        or any(isinstance(value, float | bool) for value in column.values if value is not None)
    ):
        return None
    prose = is_prose(column)
    odds = -1.0 + _TASK_PLACES.get(column.near, -1.5) - 0.1 * max(0, len(column.place) - 2)
    named = 0.0
    if names and column.name:
        of_id, of_text = affinity(column.name, Meaning.TASK_ID), affinity(column.name, Meaning.TASK_TEXT)
        named = max(0.7 * max(of_text, of_id) if prose else of_id, 0.0)
        odds += 4.0 * named - 3.0 * max(0.0, max(affinity(column.name, meaning) for meaning in _NO_TASK) - named)
    repeats = 1 < d <= 0.8 * n
    agreement = max((min(one_way(keys, text), one_way(text, keys)) for text in texts), default=0.0)
    if repeats:
        odds += 0.5 + (2.5 * agreement if agreement >= 0.7 else 0.0)
        odds -= 2.0 if texts and agreement < 0.5 and named < 0.7 else 0.0
        odds -= 1.0 if d <= 3 and n >= 12 and agreement < 0.9 else 0.0
        if column.near == "run" and not prose and _once_a_file(keys, files):
            odds += 1.0
    elif prose and 1 < d < n:
        odds += 1.5  # two ids may be the same by chance; sentences mostly are not, but tasks repeat more than once
    elif d == 1 and n > 1:
        odds -= 1.5
    elif column.near == "file" or named < 0.3:
        odds -= 1.0
    if d == n and named < 0.7 and any(len(set(text) - {None}) < n - text.count(None) for text in texts):
        odds -= 1.0  # the same words were said to several runs
    if column.near == "file":
        odds += 0.8 if repeats and _crosses(keys, files) else -0.5
        odds -= 1.0 if sum(text is not None and text.isdigit() for text in keys) > 0.5 * n else 0.0
    if len(set(files)) < n and not prose and _constant_within(keys, files):
        odds -= 1.5
    return odds


def _task_why(column: Values) -> str:
    named = affinity(column.name, Meaning.TASK_ID) if column.name else 0.0
    said = "the name speaks for a task; " if named >= 0.4 else ""
    return f"{said}{column.distinct} values over {len(column.texts)} runs"


def one_way(keys: Keys, other: Keys) -> float:
    """Share of runs whose `other` is the usual one among the runs with the same key, in [0, 1]."""
    by: dict[str, dict[str, int]] = {}
    for a, b in zip(keys, other, strict=True):
        if a is not None and b is not None:
            counts = by.setdefault(a, {})
            counts[b] = counts.get(b, 0) + 1
    total = sum(sum(counts.values()) for counts in by.values())
    return sum(max(counts.values()) for counts in by.values()) / total if total else 0.0


def _once_a_file(keys: Keys, files: Sequence[str]) -> bool:
    """Is every value there once in a file, and again in other files: the same tasks, done by several?"""
    return 2 <= len(set(files)) <= 0.5 * len(keys) and len(set(zip(keys, files, strict=True))) == len(keys)


def _crosses(keys: Keys, files: Sequence[str]) -> bool:
    """Do values repeat over folders?"""
    by: dict[str | None, set[str]] = {}
    for key, file in zip(keys, files, strict=True):
        by.setdefault(key, set()).add(file.rpartition("/")[0])
    return sum(len(found) > 1 for found in by.values()) >= 0.3 * len(by)


def _constant_within(keys: Keys, files: Sequence[str]) -> bool:
    by: dict[str, set[str | None]] = {}
    for key, file in zip(keys, files, strict=True):
        by.setdefault(file, set()).add(key)
    return all(len(found) == 1 for found in by.values())


def _told_apart(best: Weighed, columns: Sequence[Values], texts: Sequence[Keys]) -> Weighed | None:
    """Ids that stand for different tasks, joined with what tells these apart: a domain, a data set."""
    keys: Keys = best.says
    here = [key for key in keys if key is not None]
    if is_prose(best.column) or sum(key.isdigit() or len(key) <= 3 for key in here) < 0.5 * len(here):
        return None
    options = []
    for column in columns:
        if column.spec == best.spec or column.near in ("list", "last", "beside", "once", "shared") or is_prose(column):
            continue
        if column.coverage < 0.95 or not 1 < column.distinct <= max(3, 0.34 * len(keys)) or column.length > 80:
            continue
        pairs = tuple(None if a is None or b is None else f"{a}:{b}" for a, b in zip(column.texts, keys, strict=True))
        gain = max(
            (one_way(pairs, text) - one_way(keys, text) for text in texts if one_way(text, keys) >= 0.8), default=0.0
        )
        named = affinity(column.name, Meaning.GROUP) if column.name else 0.0
        if affinity(column.name, Meaning.OUTCOME) < 0.5 and (gain >= 0.05 or (named >= 0.9 and not texts)):
            options.append((gain + 0.3 * named - 0.2 * column.distinct / len(keys), column, pairs))
    if not options:
        return None
    _, column, pairs = max(options, key=lambda item: item[0])
    spec = {"join": [column.spec, best.spec], "sep": ":"}
    return replace(best, spec=spec, says=pairs, why=f"{best.why}; the same id stands for several tasks, told apart")
