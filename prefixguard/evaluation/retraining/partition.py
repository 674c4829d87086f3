"""Task-grouped folds: which runs a fold trains on, calibrates on and is tested on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import ConfigError, DataError
from prefixguard.learn import Corpus
from prefixguard.trace import DEFAULT_SHARES, Side, link_tasks, split_tasks, task_hash

Runs = NDArray[np.int64]

_TAUGHT = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION)
#: Of the tasks that are not held out: what `train` gives these three, made to sum to one.
SHARES = {side: DEFAULT_SHARES[side] / sum(DEFAULT_SHARES[s] for s in _TAUGHT) for side in _TAUGHT}


@dataclass(frozen=True, slots=True)
class Fold:
    """One fit and what it is tested on. Run numbers of a corpus, int64, ascending; no task is in two of them.

    repeat: number of the repetition, from 0; another repetition deals tasks to other folds.
    seed: of initialisation and batches, and of which training tasks validate and calibrate.
    number: of the fold, from 0.
    train: heads are fitted on. validation: chooses epochs. calibration: fits both Platt maps. test: held out.
    """

    repeat: int
    seed: int
    number: int
    train: Runs
    validation: Runs
    calibration: Runs
    test: Runs

    @property
    def name(self) -> str:
        """What the fold is called in a folder of results.

        >>> none = np.empty(0, np.int64)
        >>> Fold(0, 13, 2, none, none, none, none).name
        'repeat-0-seed-13-fold-2'
        """
        return f"repeat-{self.repeat}-seed-{self.seed}-fold-{self.number}"


def partition(corpus: Corpus, *, folds: int = 5, repeats: int = 1, seeds: Sequence[int] = (13,)) -> list[Fold]:
    """All folds of a repeated cross-validation, repetition by repetition, seed by seed.

    Tasks are dealt out to folds in the order of the SHA-256 of "repeat:task"; tasks that hold word-for-word repeats of
    one run go to the same fold. Of the others, tasks are split as `train` splits them: 73 % train, 13 % validation,
    13 % calibration.
    Raises ConfigError for counts out of range, DataError where there are fewer tasks than folds, or where a fold would
    train or calibrate on one outcome only.
    """
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1), ("seeds", len(seeds), 1)):
        if value < least:
            raise ConfigError(f"{name}: {value} given; at least {least} is needed.")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"seeds {', '.join(map(str, seeds))}: give each once.")
    linked = link_tasks(corpus.task_ids, corpus.digests)
    found = []
    for repeat in range(repeats):
        fold_of = folds_of_tasks(corpus.task_ids, folds, repeat, linked)
        fold = np.array([fold_of[task] for task in corpus.task_ids], dtype=np.int64)
        for seed in seeds:
            for k in range(folds):
                others = [task for task, number in fold_of.items() if number != k]
                sides = split_tasks(others, seed=seed, shares=SHARES, linked=linked)
                side_of = [sides.get(task) for task in corpus.task_ids]
                parts = {side: np.flatnonzero([s is side for s in side_of]).astype(np.int64) for side in _TAUGHT}
                for side in (Side.TRAIN, Side.CALIBRATION):
                    _refuse_one_outcome(corpus, parts[side], f"repeat {repeat + 1}, fold {k + 1}: its {side} part")
                test = np.flatnonzero(fold == k).astype(np.int64)
                train, validation, calibration = (parts[side] for side in _TAUGHT)
                found.append(Fold(repeat, seed, k, train, validation, calibration, test))
    return found


def folds_of_tasks(
    task_ids: Sequence[str], folds: int, repeat: int, linked: Sequence[Sequence[str]] = ()
) -> dict[str, int]:
    """Fold of every task, from 0: groups of linked tasks in the order of their smallest hash, each to the fold that
    holds the fewest tasks so far. Raises DataError where there are fewer groups than folds.

    >>> fold_of = folds_of_tasks(["a", "b", "a", "c"], 2, 0, linked=[["b", "c"]])
    >>> fold_of["b"] == fold_of["c"] != fold_of["a"]
    True
    """
    groups: dict[str, list[str]] = {}
    first = {task: group[0] for group in linked for task in group}
    for task in dict.fromkeys(task_ids):
        groups.setdefault(first.get(task, task), []).append(task)
    if len(groups) < folds:
        raise DataError(
            f"{len(groups)} tasks (those that share repeats count once) are too few for {folds} folds: give fewer "
            "folds, or runs of more tasks."
        )
    placed = sorted((min(task_hash(f"{repeat}:{task}") for task in group), group) for group in groups.values())
    sizes = [0] * folds
    fold_of: dict[str, int] = {}
    for _, group in placed:
        k = sizes.index(min(sizes))
        sizes[k] += len(group)
        fold_of.update(dict.fromkeys(group, k))
    return fold_of


def _refuse_one_outcome(corpus: Corpus, runs: Runs, where: str) -> None:
    if len(set(corpus.failed[runs].tolist())) < 2:
        raise DataError(
            f"{where} has {len(runs)} runs that do not hold both outcomes. Give runs of more tasks, fewer folds or "
            "another seed."
        )
