"""Which place tells the task of a run: an id, or what its agent was told."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from prefixguard.induce.search.run_fields import Weighed, ranked
from prefixguard.induce.search.seen_runs import FEWEST_WORDS, Keys, SeenRun, Values
from prefixguard.lexicon import Meaning, affinity

_NO_TASK = (
    Meaning.RUN_ID, Meaning.GROUP, Meaning.MODEL, Meaning.AGENT, Meaning.AFTER_END, Meaning.OUTCOME, Meaning.TIME,
    Meaning.MISTAKE, Meaning.HARNESS,
)  # fmt: skip
#: Where a task may be told, and what that place speaks for it.
_PLACES = {
    "run": 0.0, "file": 0.0, "first": 0.0, "every": -0.3, "beside": -1.0, "once": -1.0, "last": -1.0, "heard": 0.5,
    "document": -1.5,
}  # fmt: skip


def tasks_of(columns: Sequence[Values], runs: Sequence[SeenRun], heard: Keys) -> list[Weighed]:
    """Readings of the task. heard: what each run's agent was told before it did anything."""
    columns = [begun_alike(column) for column in columns if column.near in _PLACES]
    texts = _task_texts(columns, heard)
    files = [run.file for run in runs]
    found = []
    for column in columns:
        if column.coverage < 0.8 or not column.distinct:
            continue
        if any(isinstance(value, float | bool) for value in column.there):
            continue
        why = f"{column.distinct} values over {len(column.texts)} runs"
        found.append(Weighed(column.spec, column.texts, _odds(column, texts, files), why, column))
    best = ranked(found, _parts_alike)
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
    if column.near not in ("run", "first", "every", "heard") or not column.is_prose:
        return column
    ordered = sorted({text for text in column.texts if text})
    added = [b[len(a) :].strip() for a, b in pairwise(ordered) if b.startswith(a)]
    opened = Counter(" ".join(rest.split(" ")[:4]) for rest in added)
    begun, n = opened.most_common(1)[0] if opened else ("", 0)
    if n < 2 or n < 0.8 * len(added) or len(begun) < 12:
        return column
    spec = {"strip": {"re": f"(?s)^(.*?)(?:{re.escape(begun)}.*)?$", "of": column.spec}}
    values = tuple(None if text is None else text.partition(begun)[0].strip() for text in column.texts)
    return replace(column, spec=spec, values=values)


def _parts_alike(a: Keys, b: Keys) -> bool:
    """Do they part the runs alike? A run without a task is a part of its own."""
    whole_a, whole_b = ([(x, None) if x is not None else (None, i) for i, x in enumerate(keys)] for keys in (a, b))
    return len(set(zip(whole_a, whole_b, strict=True))) == len(set(whole_a)) == len(set(whole_b))


def _task_texts(columns: Sequence[Values], heard: Keys) -> list[Keys]:
    """What tells tasks apart without being an id: texts of several words that differ between runs, beside the events or
    heard before the agent did anything. Of each the beginning, without blanks, signs and capitals."""
    found = [
        column.texts
        for column in columns
        if column.near in ("run", "first", "every")
        and column.coverage >= 0.6
        and column.distinct > 1
        and column.is_prose
        and max(affinity(column.name, meaning) for meaning in (Meaning.AFTER_END, Meaning.MISTAKE)) < 0.6
    ][:6]
    prose = [text for text in heard if text and len(text.split()) >= FEWEST_WORDS]
    if len(prose) >= 0.6 * len(heard) and len(set(prose)) > 1:
        found.append(heard)
    return [tuple(None if t is None else re.sub(r"[\W_]", "", t[:1500].lower())[:800] for t in key) for key in found]


def _odds(column: Values, texts: Sequence[Keys], files: Sequence[str]) -> float:
    keys, d, n = column.texts, column.distinct, len(column.texts)
    prose = column.is_prose
    of_id, of_text = (affinity(column.name, meaning) for meaning in (Meaning.TASK_ID, Meaning.TASK_TEXT))
    named = 0.7 * max(of_text, of_id) if prose else of_id
    other = max(affinity(column.name, meaning) for meaning in _NO_TASK)
    odds = -1.0 + _PLACES[column.near] - 0.1 * max(0, len(column.place) - 2)
    odds += 4.0 * named - 3.0 * max(0.0, other - named)
    repeats = 1 < d <= 0.8 * n
    agreement = max((min(_one_way(keys, text), _one_way(text, keys)) for text in texts), default=0.0)
    if repeats:
        odds += 0.5 + (2.5 * agreement if agreement >= 0.7 else 0.0)
        odds -= 2.0 if texts and agreement < 0.5 and named < 0.7 else 0.0
        odds -= 1.0 if d <= 3 and n >= 12 and agreement < 0.9 else 0.0
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
    by_file: dict[str, list[str | None]] = {}
    by_key: dict[str | None, set[str]] = {}
    for key, file in zip(keys, files, strict=True):
        by_file.setdefault(file, []).append(key)
        by_key.setdefault(key, set()).add(file.rpartition("/")[0])
    if repeats and 2 <= len(by_file) <= 0.5 * n and not prose and all(len(set(f)) == len(f) for f in by_file.values()):
        odds += 1.0 if column.near == "run" else 0.0  # the same tasks, done once in each of several files
    several = [found for found in by_file.values() if len(found) > 1]
    counted = [{str(i + first) for i in range(len(found))} for found in several for first in (int("0" not in found),)]
    if several and named < 0.9 and counted == [set(map(str, found)) for found in several]:
        odds -= 1.5  # every file numbers its runs
    if several and not prose and all(len(set(found)) == 1 for found in by_file.values()):
        odds -= 1.5
    if column.near == "file":
        crosses = sum(len(folders) > 1 for folders in by_key.values()) >= 0.3 * len(by_key)
        odds += 0.8 if repeats and crosses else -0.5
        odds -= 1.0 if sum(text is not None and text.isdigit() for text in keys) > 0.5 * n else 0.0
    return odds


def _one_way(keys: Keys, other: Keys) -> float:
    """Share of runs whose `other` is the usual one among the runs with the same key, in [0, 1]."""
    by: dict[str, Counter[str]] = {}
    for a, b in zip(keys, other, strict=True):
        if a is not None and b is not None:
            by.setdefault(a, Counter())[b] += 1
    return sum(max(found.values()) for found in by.values()) / max(1, sum(found.total() for found in by.values()))


def _told_apart(best: Weighed, columns: Sequence[Values], texts: Sequence[Keys]) -> Weighed | None:
    """Ids that stand for different tasks, joined with what tells these apart: a domain, a data set."""
    keys: Keys = best.says
    here = [key for key in keys if key is not None]
    if best.column.is_prose or sum(key.isdigit() or len(key) <= 3 for key in here) < 0.5 * len(here):
        return None
    options = []
    for column in columns:
        if column.spec == best.spec or column.near in ("last", "beside", "once") or column.is_prose:
            continue
        if column.coverage < 0.95 or not 1 < column.distinct <= max(3, 0.34 * len(keys)) or column.length > 80:
            continue
        pairs = tuple(None if a is None or b is None else f"{a}:{b}" for a, b in zip(column.texts, keys, strict=True))
        told = [text for text in texts if _one_way(text, keys) >= 0.8]
        gain = max((_one_way(pairs, text) - _one_way(keys, text) for text in told), default=0.0)
        named = affinity(column.name, Meaning.GROUP)
        if affinity(column.name, Meaning.OUTCOME) < 0.5 and (gain >= 0.05 or (named >= 0.9 and not texts)):
            options.append((gain + 0.3 * named - 0.2 * column.distinct / len(keys), column, pairs))
    if not options:
        return None
    _, column, pairs = max(options, key=lambda item: item[0])
    why = f"{best.why}; the same id stands for several tasks, told apart"
    return replace(best, spec={"join": [column.spec, best.spec], "sep": ":"}, says=pairs, why=why)
