"""Constant guesses of the decisive step: the best for a task is chosen on the other tasks, never on its own labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Int = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """A labelled run: its task, the number of its last step, and that of the decisive one (at most the last)."""

    task: str
    n_steps: int
    gold: int


def best_constant(runs: Sequence[Placed]) -> int:
    """The constant with most hits on these very runs; of several the one with most near hits, then the smallest.

    A constant beyond the end of a run blames its last step. 1 where there is no run.

    >>> best_constant([Placed("a", 9, 4), Placed("b", 3, 3), Placed("c", 9, 2)])
    4
    """
    size = max((run.n_steps for run in runs), default=1)
    return _best(_scores(runs, size))


def best_constants(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the best constant of all other tasks."""
    size = max((run.n_steps for run in runs), default=1)
    whole = _scores(runs, size)
    own = _by_task(runs)
    return {task: _best(whole - _scores(own.get(task, ()), size)) for task in tasks}


def mode_steps(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the commonest decisive step of all other tasks; of several the smallest. 1 where there is none."""
    whole = Counter(run.gold for run in runs)
    own = _by_task(runs)
    found = {}
    for task in tasks:
        rest = whole - Counter(run.gold for run in own.get(task, ()))
        found[task] = min(rest, key=lambda step: (-rest[step], step), default=1)
    return found


def median_steps(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the median decisive step of all other tasks (the lower of two): the constant of least shift."""
    own = _by_task(runs)
    ordered = sorted(run.gold for run in runs)
    found = {}
    for task in tasks:
        mine = Counter(run.gold for run in own.get(task, ()))
        rest = []
        for step in ordered:
            if mine[step]:
                mine[step] -= 1
            else:
                rest.append(step)
        found[task] = rest[(len(rest) - 1) // 2] if rest else 1
    return found


def _by_task(runs: Sequence[Placed]) -> Mapping[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for run in runs:
        found.setdefault(run.task, []).append(run)
    return found


def _scores(runs: Sequence[Placed], size: int) -> Int:
    """Hits and near hits (an error of one step) of the constants 1..size, int64 (2, size)."""
    rises = np.zeros((2, size + 2), dtype=np.int64)  # a step up at the first constant that counts, down after the last
    for run in runs:
        for row, slack in ((0, 0), (1, 1)):
            first, last = max(1, run.gold - slack), run.gold + slack
            if first > run.n_steps:
                continue
            # The last step stands for every constant beyond it.
            last = size if last >= run.n_steps else last
            rises[row, first] += 1
            rises[row, last + 1] -= 1
    return np.cumsum(rises, axis=1)[:, 1 : size + 1]


def _best(scores: Int) -> int:
    hits, near = scores
    return int(np.lexsort((np.arange(len(hits)), -near, -hits))[0]) + 1
