"""The paper's splits: which runs fit, choose the epoch, calibrate and test.

By task: the first eight bytes of SHA-256("seed:task"), read as a fraction of 2^64, fall into one of the shares; a
task's runs never part. By trajectory: the runs of every task are shuffled and dealt out, so that every task is on every
side. Source: `create_task_grouped_split.py` and `write_terminalbench_split_manifest` of the public reference.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.errors import ConfigError
from prefixguard.trace import Side

_FEWEST = 4  # runs of a task that the split by trajectory can deal out to four sides


def bucket(task: str, seed: int) -> float:
    """Where a task falls, in [0, 1).

    >>> round(bucket("27", 13), 6)
    0.692249
    """
    digest = hashlib.sha256(f"{seed}:{task}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


@dataclass(frozen=True, slots=True)
class TaskSplit:
    """Sides by task. validation, test: shares; the rest trains.

    inner: (seed, share that stays) where the reference takes calibration runs out of the training side by a second
    hash; None where its validation runs also calibrate (no run is then on the calibration side).
    """

    seed: int
    validation: float
    test: float
    inner: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        if min(self.validation, self.test) <= 0 or self.validation + self.test >= 1:
            raise ConfigError(f"shares {self.validation:g} and {self.test:g}: both above 0, together below 1.")

    def sides(self, tasks: Sequence[str]) -> list[Side]:
        """The side of every run. tasks: of each run, as the reference spells them."""
        known = {task: self._side(task) for task in dict.fromkeys(tasks)}
        return [known[task] for task in tasks]

    def _side(self, task: str) -> Side:
        train = 1.0 - self.validation - self.test
        place = bucket(task, self.seed)
        if place >= train + self.validation:
            return Side.TEST
        if place >= train:
            return Side.VALIDATION
        if self.inner is not None and bucket(task, self.inner[0]) >= self.inner[1]:
            return Side.CALIBRATION
        return Side.TRAIN

    def text(self) -> str:
        """In words."""
        train = 1.0 - self.validation - self.test
        inner = "" if self.inner is None else f", of which {1 - self.inner[1]:.0%} calibrate (seed {self.inner[0]})"
        return f"by task, seed {self.seed}, {train:.0%} train{inner}, {self.validation:.0%}, {self.test:.0%} test"


@dataclass(frozen=True, slots=True)
class TrajectorySplit:
    """Sides by trajectory: the same tasks on every side. calibration, validation, test: shares; the rest trains."""

    seed: int
    calibration: float
    validation: float
    test: float

    def __post_init__(self) -> None:
        shares = (self.calibration, self.validation, self.test)
        if min(shares) <= 0 or sum(shares) >= 1:
            raise ConfigError(f"shares {shares}: each above 0, together below 1.")

    def sides(self, tasks: Sequence[str]) -> list[Side]:
        """The side of every run, which depends on the order of the runs. Tasks of fewer than four runs train (the
        reference refuses them)."""
        runs: dict[str, list[int]] = {}
        for number, task in enumerate(tasks):
            runs.setdefault(task, []).append(number)
        rng = random.Random(self.seed)
        out = [Side.TRAIN] * len(tasks)
        for task in sorted(runs):
            dealt = runs[task]
            rng.shuffle(dealt)
            n = len(dealt)
            if n < _FEWEST:
                continue
            shares = (self.calibration, self.validation, self.test)
            calibration, validation, test = (max(1, round(n * share)) for share in shares)
            at = n - calibration - validation - test
            for side, size in ((Side.CALIBRATION, calibration), (Side.VALIDATION, validation), (Side.TEST, test)):
                for number in dealt[at : at + size]:
                    out[number] = side
                at += size
        return out

    def text(self) -> str:
        """In words."""
        train = 1.0 - self.calibration - self.validation - self.test
        return (
            f"by trajectory (the same tasks on every side), seed {self.seed}, {train:.0%} train, "
            f"{self.calibration:.0%}, {self.validation:.0%}, {self.test:.0%} test"
        )


Split = TaskSplit | TrajectorySplit
