"""Which place tells the task of a run: an id, or what its agent was told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from prefixguard.induce.search.run_fields import FEWEST_WORDS, Keys, Weighed, is_prose, ranked
from prefixguard.induce.search.seen_runs import SeenRun, Values
from prefixguard.lexicon import Meaning, affinity


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
    columns = [begun_alike(column) for column in columns]
    texts = task_texts(columns, heard)
    files = [run.file for run in runs]
    found = []
    for column in columns:
        if column.spec in refused or column.coverage < 0.8 or column.near in _NOWHERE:
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


def begun_alike(column: Values) -> Values:
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


def _gist(text: str) -> str:
    """The beginning of a text without blanks, signs and capitals."""
    return "".join(letter for letter in text[:1500].lower() if letter.isalnum())[:800]


_NO_TASK = (
    Meaning.RUN_ID, Meaning.GROUP, Meaning.MODEL, Meaning.AGENT, Meaning.AFTER_END, Meaning.OUTCOME, Meaning.TIME,
    Meaning.MISTAKE, Meaning.HARNESS,
)  # fmt: skip
#: Where no task is told.
_NOWHERE = ("list", "text", "piece", "shared", "tail")
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
    if not d or any(isinstance(value, float | bool) for value in column.values if value is not None):
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
    if prose and column.near == "heard" and d == n:
        odds += 1.5  # told to the agent: a task, whether or not these samples have it again
    if named < 0.9 and _counts(keys, files):
        odds -= 1.5
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


def _counts(keys: Keys, files: Sequence[str]) -> bool:
    """Does every file number its runs, from 0 or 1?"""
    by: dict[str, list[str | None]] = {}
    for key, file in zip(keys, files, strict=True):
        by.setdefault(file, []).append(key)
    whole = [found for found in by.values() if len(found) > 1]
    return bool(whole) and all(
        sorted(map(str, found)) == sorted(str(i + first) for i in range(len(found)))
        for found in whole
        for first in (int("0" not in found),)
    )


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
