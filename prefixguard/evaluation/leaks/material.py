"""The runs that the audit looks at: a bounded sample, weights that count tasks alike, one run a task for the tests."""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

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

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def enough(self) -> bool:
        """Are there FEWEST tasks of each outcome?"""
        lost = int(self.failed[self.single].sum())
        return min(lost, int(self.single.sum()) - lost) >= FEWEST


@dataclass(frozen=True, slots=True)
class Material:
    """runs: those looked at, in their order, none without a record. met: how many there were. judged: see there."""

    runs: tuple[Run[StepRecord], ...]
    met: int
    judged: Judged


def gather(runs: Iterable[Run[StepRecord]], *, most: int, seed: int, given: Collection[str] = GIVEN) -> Material:
    """Take up to `most` runs of an iterable that is read once, drawn by their hash; the order stays."""
    kept: list[tuple[int, int, Run[StepRecord]]] = []  # a heap, the largest hash on top
    met = 0
    for position, run in enumerate(runs):
        if not run.records:
            continue
        met += 1
        entry = (-_hash(seed, f"{position}:{run.run_id}"), position, run)
        if len(kept) < most:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)
    chosen = tuple(run for _, _, run in sorted(kept, key=lambda entry: entry[1]))
    return Material(chosen, met, _judged(chosen, seed, given))


def _judged(runs: tuple[Run[StepRecord], ...], seed: int, given: Collection[str]) -> Judged:
    known = tuple(run for run in runs if run.outcome is not Outcome.UNKNOWN and len(run.records) > 1)
    names = [task_of(run) for run in known]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    count = Counter(names)
    drawn: dict[str, tuple[int, int]] = {}
    for i, (run, name) in enumerate(zip(known, names, strict=True)):
        drawn[name] = min(drawn.get(name, (1 << 64, 0)), (_hash(seed, f"single:{i}:{run.run_id}"), i))
    single = np.zeros(len(known), dtype=np.bool_)
    single[[i for _, i in drawn.values()]] = True
    return Judged(
        known,
        np.array([run.outcome is Outcome.FAILURE for run in known], dtype=np.bool_),
        np.array([codes[name] for name in names], dtype=np.int64),
        np.array([1 / count[name] for name in names], dtype=np.float64),
        single,
        given,
    )


def task_of(run: Run[StepRecord]) -> str:
    """The run's task; a run without one is its own."""
    return f"run {run.run_id}" if run.task_id is None else f"task {run.task_id}"


def _hash(seed: int, text: str) -> int:
    digest = hashlib.blake2b(f"{seed}:{text}".encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
