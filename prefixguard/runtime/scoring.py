"""Score whole runs from files: the reading of every step, by the path that a live run takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.runtime.monitor import Monitor, load
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.run_summary import RunSummary, summarise_run
from prefixguard.runtime.session import Session
from prefixguard.stepview import Adapter, ReadReport, StepRecord, read_runs
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run, what the monitor said after each of its steps, in order, and the whole run for a drift signal."""

    run: Run[StepRecord]
    readings: tuple[Reading, ...]
    summary: RunSummary

    def to_json(self) -> list[dict[str, Any]]:
        """One object a step: `run_id` and the fields of the reading, times left out."""
        return [{"run_id": self.run.run_id, **reading.to_json()} for reading in self.readings]


def score(
    monitor: Monitor | str | os.PathLike[str],
    runs: str | os.PathLike[str] | Iterable[Run[StepRecord]],
    *,
    adapter: str | Path | Adapter | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
) -> Iterator[ScoredRun]:
    """Every run with its readings, one at a time; outcomes are not needed and not looked at.

    Where the monitor has alarm thresholds by group, each run's own group picks its.

    monitor: an opened monitor, or the folder of its bundle. runs: parsed runs, or a file, folder, glob, tar or `-`
    that the monitor's own adapter reads. adapter: the one that is meant; another than its own is refused.
    strict: the first run that cannot be read is an error, not a skip.
    report: filled with what reading met, such as runs without a step, which are not yielded.
    Raises BundleError and OtherAdapterError as `load` does, TraceError as `read_runs` does.
    """
    opened = monitor if isinstance(monitor, Monitor) else load(monitor)
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, str | os.PathLike) else "-")
    if isinstance(runs, str | os.PathLike):
        source = runs if isinstance(runs, str) else Path(runs)
        runs = read_runs(source, opened.bundle.adapter, strict=strict, report=report)
    for run in runs:
        session = Session(opened, None, opened.group_of(run))
        readings = tuple(session.observe_record(record) for record in run.records)
        yield ScoredRun(run, readings, summarise_run(session, readings))
