"""All prefixes of a set of runs, laid flat; and scores that know the time and nothing else.

A monitor below such a clock has learned less than a clock would know.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.errors import DataError


@dataclass(frozen=True, slots=True)
class Prefixes:
    """One row a prefix, runs one after another, steps in order. N prefixes of R runs of U tasks.

    run: int64 (N,), position of the run, from 0.
    step: int64 (N,), t, from 1.
    remaining: int64 (N,), T - t, down to 0; T is the length of the whole run, judged or not.
    failed: bool (R,).
    task: int64 (R,), code of the run's task, 0..U-1.
    n_tasks: U.
    """

    run: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]
    remaining: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]
    task: npt.NDArray[np.int64]
    n_tasks: int

    @classmethod
    def of(cls, lengths: Sequence[int], failed: Sequence[bool], tasks: Sequence[str]) -> Prefixes:
        """From the number of steps, the outcome and the task of each run. Raises DataError where counts differ."""
        if not len(lengths) == len(failed) == len(tasks):
            raise DataError(f"{len(lengths)} runs with {len(failed)} outcomes and {len(tasks)} tasks: give one each.")
        sizes = np.asarray(lengths, dtype=np.int64)
        run = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
        starts = np.cumsum(sizes) - sizes
        step = np.arange(len(run), dtype=np.int64) - starts[run] + 1
        codes = {task: code for code, task in enumerate(dict.fromkeys(tasks))}
        return cls(
            run=run,
            step=step,
            remaining=sizes[run] - step,
            failed=np.asarray(failed, dtype=np.bool_),
            task=np.array([codes[task] for task in tasks], dtype=np.int64),
            n_tasks=len(codes),
        )

    def keep(self, rows: npt.NDArray[np.bool_]) -> Prefixes:
        """The prefixes where `rows`, bool (N,), is true; runs and tasks keep their codes."""
        return Prefixes(self.run[rows], self.step[rows], self.remaining[rows], self.failed, self.task, self.n_tasks)

    def __len__(self) -> int:
        return len(self.run)

    @property
    def units(self) -> npt.NDArray[np.int64]:
        """Task code of each prefix, (N,): the unit that is resampled."""
        return self.task[self.run]

    @property
    def outcome_labels(self) -> npt.NDArray[np.uint8]:
        """1 at every prefix of a failed run, (N,)."""
        return self.failed[self.run].astype(np.uint8)

    def imminent_labels(self, horizon: int) -> npt.NDArray[np.uint8]:
        """1 where the run failed and at most `horizon` steps remain, (N,); as `trace.imminent_labels` run by run."""
        return (self.failed[self.run] & (self.remaining <= horizon)).astype(np.uint8)


def step_index(prefixes: Prefixes) -> npt.NDArray[np.float64]:
    """Score t of each prefix, (N,): with a step cap, late means failing."""
    return prefixes.step.astype(np.float64)


def end_oracle(prefixes: Prefixes) -> npt.NDArray[np.float64]:
    """Score -(T - t) of each prefix, (N,): knows when the run ends, as no monitor can, and nothing of its outcome."""
    return -prefixes.remaining.astype(np.float64)
