"""The runs that are audited: a bounded sample, weights that count tasks alike, and one run per task for the tests."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import numpy.typing as npt

from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

#: What the agent was given can be tampered with by a harness; the rest it wrote itself.
GIVEN = ("observation", "result", "status", "actor")
#: Runs of each outcome, one a task, below which no statistics are done.
FEWEST = 8


@dataclass(frozen=True, slots=True)
class Judged:
    """Runs of two records and more whose outcome is known.

    failed: bool (N,). tasks: int64 (N,), codes. weight: float (N,), 1 over the runs of the task: tasks count alike.
    single: bool (N,), one run a task, drawn by the seed whatever its outcome: what tests of chance are done on, since
        runs of one task are no independent evidence. given: fields that hold what the agent was given.
    """

    runs: tuple[Run[StepRecord], ...]
    failed: npt.NDArray[np.bool_]
    tasks: npt.NDArray[np.int64]
    weight: npt.NDArray[np.float64]
    single: npt.NDArray[np.bool_]
    given: Collection[str] = GIVEN

    @classmethod
    def of(cls, runs: Sequence[Run[StepRecord]], seed: int, given: Collection[str]) -> Judged:
        """Those of these runs that can be judged."""
        known = tuple(run for run in runs if run.outcome is not Outcome.UNKNOWN and len(run.records) > 1)
        names = [task_of(run) for run in known]
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        count = Counter(names)
        drawn: dict[str, tuple[int, int]] = {}
        for i, (run, name) in enumerate(zip(known, names, strict=True)):
            drawn[name] = min(drawn.get(name, (1 << 64, 0)), (_hash(seed, f"single:{i}:{run.run_id}"), i))
        single = np.zeros(len(known), dtype=np.bool_)
        single[[i for _, i in drawn.values()]] = True
        return cls(
            known,
            np.array([run.outcome is Outcome.FAILURE for run in known], dtype=np.bool_),
            np.array([codes[name] for name in names], dtype=np.int64),
            np.array([1 / count[name] for name in names], dtype=np.float64),
            single,
            given,
        )

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def enough(self) -> bool:
        """Are there FEWEST tasks of each outcome?"""
        lost = int(self.failed[self.single].sum())
        return min(lost, int(self.single.sum()) - lost) >= FEWEST


def sample(runs: Iterable[Run[StepRecord]], *, most: int, seed: int) -> tuple[tuple[Run[StepRecord], ...], int]:
    """Up to `most` runs of an iterable that is read once, drawn by their hash, in their order; and how many there are.

    Runs without a record are passed over.
    """
    met = 0

    def keyed() -> Iterator[tuple[int, int, Run[StepRecord]]]:
        nonlocal met
        for position, run in enumerate(runs):
            if run.records:
                met += 1
                yield _hash(seed, f"{position}:{run.run_id}"), position, run

    chosen = sorted(heapq.nsmallest(most, keyed()), key=itemgetter(1))
    return tuple(run for _, _, run in chosen), met


def task_of(run: Run[StepRecord]) -> str:
    """The run's task; a run without one is its own."""
    return f"run {run.run_id}" if run.task_id is None else f"task {run.task_id}"


def _hash(seed: int, text: str) -> int:
    digest = hashlib.blake2b(f"{seed}:{text}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
