"""Which task is used for what, and which tasks belong together because they hold the same run.

Runs of one task are never on two sides: the same task occurs many times in most corpora, and a monitor that has seen
a task's other runs knows its words. A task's place depends on the seed and its own name alone, so that adding runs of
known tasks moves nothing.

Published sets hold the same run twice, under two ids and sometimes under two tasks. Such a pair on two sides of a split
is a test question seen in training, so these tasks are linked and share a side. Two runs are repeats when their records
say the same, ids and times removed: position numbers, source positions and agent names do not count. Records were
already cut to the budgets of their adapter, so two runs that differ only inside a cut-out middle count as repeats: the
safe mistake. A reader that still has the uncut values can hand over its own digest to `link_tasks` instead.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from prefixguard.errors import ConfigError, DataError
from prefixguard.trace.run import Run

#: The fields of a record that make two steps the same; the record type itself belongs to a later room.
_FIELDS = ("actor", "tool", "arguments", "observation", "action", "result", "status")


def run_digest(records: Iterable[Any]) -> str:
    """SHA-256 of what a run's records (`StepRecord`) say, as hex; equal for word-for-word repeats and for nothing else.

    Every field is preceded by its length, so that text moved from one field or record to the next gives another digest.
    """
    digest = hashlib.sha256()
    for record in records:
        for name in _FIELDS:
            text = getattr(record, name).encode("utf-8", "surrogatepass")
            digest.update(b"%d:" % len(text))
            digest.update(text)
        if (score := getattr(record, "score", None)) is not None:
            digest.update(b"score %a " % score)
    return digest.hexdigest()


def digest_of(run: Run[Any]) -> str:
    """`run_digest` of a run's records. Of a run of scores, which may well be those of another, with its id.

    So runs of scores repeat each other only where they are called alike and have the same scores.
    """
    digest = run_digest(run.records)
    if run.records and getattr(run.records[0], "score", None) is not None:
        return task_hash(f"{digest} {run.run_id}")
    return digest


def repeat_groups(digests: Sequence[str]) -> list[tuple[int, ...]]:
    """Positions of equal runs, one tuple a group of two or more, in order of first appearance.

    >>> repeat_groups(["a", "b", "a", "c", "b", "a"])
    [(0, 2, 5), (1, 4)]
    """
    places: dict[str, list[int]] = {}
    for position, digest in enumerate(digests):
        places.setdefault(digest, []).append(position)
    return [tuple(group) for group in places.values() if len(group) > 1]


def link_tasks(task_ids: Sequence[str], digests: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups of different tasks that hold the same run, merged until disjoint: what `split_tasks` takes as `linked`.

    task_ids, digests: one entry a run, same order.

    >>> link_tasks(["t1", "t2", "t2", "t3", "t4"], ["a", "a", "b", "b", "c"])
    [('t1', 't2', 't3')]
    """
    pairs = [tuple(dict.fromkeys(task_ids[position] for position in group)) for group in repeat_groups(digests)]
    return [group for group in components(task_ids, pairs) if len(group) > 1]


class Side(StrEnum):
    """What a task's runs are used for."""

    TRAIN = "train"
    VALIDATION = "validation"  # chooses the epoch
    CALIBRATION = "calibration"  # fits the maps from logits to risks, and the risks of automaton states
    ALARM = "alarm"  # sets alarm thresholds; used for nothing else, or their bound does not hold
    TEST = "test"


DEFAULT_SHARES: Mapping[Side, float] = MappingProxyType(
    {Side.TRAIN: 0.55, Side.VALIDATION: 0.10, Side.CALIBRATION: 0.10, Side.ALARM: 0.10, Side.TEST: 0.15}
)


def task_key(run: Run[Any]) -> str:
    """The unit a run is split by: its task, or the run itself where its trace names no task."""
    return run.task_id if run.task_id is not None else own_task(run.run_id)


def own_task(run_id: str) -> str:
    """The task of a run whose trace names none."""
    return f"run {run_id}"


def task_hash(key: str) -> str:
    """SHA-256 of a task key, as hex: how a bundle remembers tasks without naming them."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def split_tasks(
    task_ids: Sequence[str],
    *,
    seed: int,
    shares: Mapping[Side, float] = DEFAULT_SHARES,
    linked: Sequence[Sequence[str]] = (),
) -> dict[str, Side]:
    """A side for every task.

    Tasks are in the order of the SHA-256 of "seed:task" and are cut by shares in the order of `Side`, sizes by
    largest remainder. A group of linked tasks is at the place of its smallest hash and goes whole to the side that its
    middle falls on, so group sizes shift the shares by at most the size of a group a border.

    task_ids: task of each run, or each task once; repetitions do not count.
    shares: share of tasks a side, each 0 or more, summing to 1; a side that is not named gets none.
    linked: groups of tasks that must share a side (`link_tasks`); groups that overlap are merged.
    Returns task -> side, in the order of `task_ids`.
    Raises ConfigError for shares that are no shares, DataError where there is no task.

    >>> sides = split_tasks([f"t{i}" for i in range(20)], seed=13)
    >>> [list(sides.values()).count(side) for side in Side]
    [11, 2, 2, 2, 3]
    """
    tasks = list(dict.fromkeys(task_ids))
    if not tasks:
        raise DataError("there is no task to split: the corpus has no run with an outcome.")
    shown = ", ".join(f"{side} {share:g}" for side, share in shares.items())
    if any(not math.isfinite(share) or share < 0 for share in shares.values()):
        raise ConfigError(f"split shares ({shown}) must be 0 or more each.")
    if not math.isclose(sum(shares.values()), 1.0, abs_tol=1e-6):
        raise ConfigError(f"split shares ({shown}) sum to {sum(shares.values()):g}: make them sum to 1.")
    asked = set(tasks)
    groups = [[task for task in group if task in asked] for group in components(tasks, linked)]
    placed = sorted((_place(group, seed), group) for group in groups if group)
    ends = list(accumulate(_largest_remainder(len(tasks), [shares.get(side, 0.0) for side in Side])))
    sides: dict[str, Side] = {}
    for _, group in placed:
        middle = len(sides) + len(group) / 2
        side = next(side for side, end in zip(Side, ends, strict=True) if middle <= end)
        sides |= dict.fromkeys(group, side)
    return {task: sides[task] for task in tasks}


@dataclass(frozen=True, slots=True)
class Move:
    """Outcome of `move_tasks`: the new sides, the tasks that changed theirs, in the order they were moved, and how many
    tasks that count the target can have at most, or as many as were needed."""

    sides: dict[str, Side]
    moved: tuple[str, ...]
    reached: int


def move_tasks(
    sides: Mapping[str, Side],
    source: Side,
    target: Side,
    *,
    needed: int,
    seed: int,
    counting: Collection[str] | None = None,
    linked: Sequence[Sequence[str]] = (),
    keep: int = 1,
) -> Move:
    """Moves tasks from one side to another until the target holds `needed` tasks that count. Where it cannot hold so
    many, nothing is moved: the source would lose them for nothing.

    An alarm budget needs a number of tasks with a successful run (`alarm.runs_needed`); this finds them. Tasks move in
    the order of their hash whether they count or not: moving only those that count would leave the source a different
    kind of task.

    counting: the tasks that count towards `needed` (say, those with a successful run); None: all.
    keep: tasks that must stay on the source.
    """
    if source == target:
        raise ConfigError(f"tasks cannot move from {source} to {source}: name two different sides.")
    counts = None if counting is None else set(counting)
    have = sum(1 for task, side in sides.items() if side == target and (counts is None or task in counts))
    left = sum(1 for side in sides.values() if side == source)
    groups = components(list(sides), linked)
    at_source = [[task for task in group if sides.get(task) == source] for group in groups]
    moved: list[str] = []
    for _, group in sorted((_place(group, seed), group) for group in at_source if group):
        if have >= needed:
            break
        if left - len(group) < keep:
            continue
        moved.extend(group)
        left -= len(group)
        have += sum(1 for task in group if counts is None or task in counts)
    if have < needed:
        return Move(dict(sides), (), have)
    changed = set(moved)
    return Move({task: target if task in changed else side for task, side in sides.items()}, tuple(moved), have)


def components(tasks: Iterable[str], linked: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    """Tasks merged along their links (union-find): disjoint groups, in order of first appearance.

    Links may pass through tasks that are not in `tasks`; those then appear in the group as well.

    >>> components(["a", "b", "c", "d"], [["a", "c"], ["c", "x"]])
    [('a', 'c', 'x'), ('b',), ('d',)]
    """
    parent: dict[str, str] = {task: task for task in tasks}

    def root(task: str) -> str:
        while parent[task] != task:
            parent[task] = parent[parent[task]]
            task = parent[task]
        return task

    for group in linked:
        for task in group:
            parent.setdefault(task, task)
        for task in group[1:]:
            parent[root(task)] = root(group[0])
    groups: dict[str, list[str]] = {}
    for task in parent:
        groups.setdefault(root(task), []).append(task)
    return [tuple(group) for group in groups.values()]


def _place(group: Sequence[str], seed: int) -> str:
    return min(task_hash(f"{seed}:{task}") for task in group)


def _largest_remainder(total: int, shares: Sequence[float]) -> list[int]:
    """Whole sizes that sum to `total`; ties go to the earlier side."""
    # Rounded, so that .55 * 20 is 11 and not a little less.
    exact = [round(share * total, 9) for share in shares]
    sizes = [math.floor(value) for value in exact]
    by_remainder = sorted(range(len(shares)), key=lambda i: (sizes[i] - exact[i], i))
    for i in by_remainder[: total - sum(sizes)]:
        sizes[i] += 1
    return sizes
