"""A set, read and featurised, with the paper's side of every run."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import DataError
from prefixguard.learn import Corpus, featurise
from prefixguard.stepview import ReadReport, StepRecord
from prefixguard.trace import Outcome, Run, Side
from reproduce.benchmark import Benchmark, Runs
from reproduce.splits import bucket

#: With and without what the reference's importers leak.
READINGS = ("leaked", "clean")
_THIN_SEED = 13


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Numbers of the corpus's runs on each side, int64, rising. calibration: validation where the paper has one side
    for both."""

    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    calibration: NDArray[np.int64]
    test: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """One reading of a set. unknown: runs without an outcome. thinned: runs with one that were not kept."""

    corpus: Corpus
    sides: Sides
    report: ReadReport
    unknown: int
    thinned: int


@dataclass(slots=True)
class _Seen:
    """What went by: the task of every run that was read, and the position of each that is kept."""

    tasks: list[str] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    unknown: int = 0


def gather(
    benchmark: Benchmark, folder: Path, reading: str, *, most: int | None, on_run: Callable[[int], None]
) -> Gathered:
    """Read one reading of a set.

    most: runs that are kept, those whose hash is smallest; sides are those of the whole set all the same. None: all.
    on_run: called with the number of runs read so far.
    Raises DataError where a side has no run or the training side one outcome only.
    """
    report, seen = ReadReport(), _Seen()
    source = (benchmark.read_leaked if reading == "leaked" else benchmark.read)(folder, report)
    corpus = featurise(_noted(source, benchmark, seen, most, on_run))
    all_sides = benchmark.split.sides(seen.tasks)
    sides = [all_sides[position] for position in seen.kept]
    numbers = {side: np.flatnonzero([s is side for s in sides]).astype(np.int64) for side in Side}
    calibration = numbers[Side.CALIBRATION] if len(numbers[Side.CALIBRATION]) else numbers[Side.VALIDATION]
    found = Sides(numbers[Side.TRAIN], numbers[Side.VALIDATION], calibration, numbers[Side.TEST])
    _refuse(benchmark, corpus, found)
    return Gathered(corpus, found, report, seen.unknown, len(seen.tasks) - seen.unknown - len(corpus))


def _noted(source: Runs, benchmark: Benchmark, seen: _Seen, most: int | None, on_run: Callable[[int], None]) -> Runs:
    """The runs that are kept, in the order they are read, noting all."""

    def numbered() -> Iterator[tuple[int, Run[StepRecord]]]:
        for position, run in enumerate(source):
            seen.tasks.append(benchmark.task(run))
            on_run(position + 1)
            if run.outcome is Outcome.UNKNOWN:
                seen.unknown += 1
                continue
            yield position, run

    for position, run in numbered() if most is None else _fewest(numbered(), most):
        seen.kept.append(position)
        yield run


def _fewest(runs: Iterator[tuple[int, Run[StepRecord]]], most: int) -> list[tuple[int, Run[StepRecord]]]:
    """At most `most` of the runs, those of smallest hash, in the order they came; no more are held in memory."""
    kept: list[tuple[float, int, Run[StepRecord]]] = []
    for position, run in runs:
        entry = (-bucket(run.run_id, _THIN_SEED), -position, run)
        if len(kept) < most:
            heapq.heappush(kept, entry)
        else:
            heapq.heappushpop(kept, entry)
    return sorted(((-position, run) for _, position, run in kept), key=lambda pair: pair[0])


def _refuse(benchmark: Benchmark, corpus: Corpus, sides: Sides) -> None:
    sizes = {name: len(getattr(sides, name)) for name in ("train", "validation", "test")}
    empty = [name for name, size in sizes.items() if not size]
    if empty:
        raise DataError(
            f"{benchmark.name}: no run on the {' and the '.join(empty)} side ({len(corpus):,} runs of "
            f"{len(set(corpus.task_ids)):,} tasks; split {benchmark.split.text()}). Download more of the set."
        )
    if len(set(corpus.failed[sides.train].tolist())) < 2:
        raise DataError(f"{benchmark.name}: the training runs have one outcome only. Download more of the set.")
