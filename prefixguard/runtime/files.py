"""Runs in files and streams: read them as records, score whole runs, watch one event a line.

Every reading comes by the path that a live run takes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.alarm import Level
from prefixguard.bundle import replace_file
from prefixguard.errors import OutputError, SavedSessionError, UsageError
from prefixguard.runtime.drift import RunSummary
from prefixguard.runtime.monitor import Monitor, load
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.rules_model import RULES
from prefixguard.runtime.saved_session import MOST_BYTES
from prefixguard.runtime.session import Session
from prefixguard.stepview import Adapter, ReadReport, StepRecord, adapter_for, read_events, read_runs
from prefixguard.trace import Run, read_named


def parse(
    runs: str | os.PathLike[str],
    adapter: str | Path | Adapter | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
) -> Iterator[Run[StepRecord]]:
    """Raw runs as records, one run at a time.

    runs: file, folder, glob, tar, or `-`. adapter: a shipped name, the path of a .json file, an opened one, None for
    runs that a guard recorded, or `raw`, `raw:NAME`, `raw:PATH`: the control, each step as one text.
    labels: a file of outcomes joined by run id. strict: the first run that cannot be read is an error, not a skip.
    report: filled with what reading met. Raises AdapterError, TraceError.
    """
    opened = adapter_for(adapter, os.fspath(runs))
    companion = None if labels is None else Path(labels)
    return read_runs(os.fspath(runs), opened, labels=companion, strict=strict, report=report)


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """A run, the readings after each of its steps, in order, and its summary for a drift signal."""

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
    is_rules = isinstance(monitor, str | os.PathLike) and os.fspath(monitor) == RULES
    opened = monitor if isinstance(monitor, Monitor) else load(monitor, adapter=adapter if is_rules else None)
    opened.refuse_other(adapter, os.fspath(runs) if isinstance(runs, str | os.PathLike) else "-")
    if isinstance(runs, str | os.PathLike):
        source = runs if isinstance(runs, str) else Path(runs)
        runs = read_runs(source, opened.bundle.adapter, strict=strict, report=report)
    for run in runs:
        session = Session(opened, None, opened.group_of(run), offer=run.offer)
        readings = tuple(session.observe_record(record) for record in run.records)
        yield ScoredRun(run, readings, session.summary(readings))


def watch(
    monitor: Monitor,
    stream: BinaryIO,
    *,
    header: Mapping[str, Any] | None = None,
    group: str | None = None,
    adapter: str | Path | Adapter | None = None,
    state: str | os.PathLike[str] | None = None,
    end: bool = False,
    tools: Sequence[str] | None = None,
    step_limit: int | None = None,
) -> Iterator[Reading]:
    """The readings of a run, each as soon as its step is complete.

    stream: one raw event a line, JSON (for adapters of text: the text); a line that is no event is a reading of level
    UNKNOWN that says why, and the watch goes on. header, group, tools, step_limit: as for `Monitor.start`.
    adapter: the one that is meant; another than the monitor's own is refused (OtherAdapterError).
    state: a file that keeps the run from one watch to the next. Where it is there, the run goes on from it (header,
    group, tools and limit are those of its start); when the stream is over, the session is saved there, whole or not at
    all, and the run goes on with the next watch. end: with a state, the run is over with this stream, and the file is
    removed. Without a state, it always is.
    Raises UsageError for `end` without a state, SavedSessionError for a file that cannot be restored, what
    `Monitor.start` raises, and once the run has begun only what the stream itself raises, or OutputError at its end.
    """
    if end and state is None:
        raise UsageError("end goes with a state: without one, a run is over with its stream. Leave it out.")
    monitor.refuse_other(adapter)
    place = None if state is None else Path(state)
    saved = None
    if place is not None and os.path.lexists(place):
        remedy = "Name the file that an earlier watch wrote, or a new one."
        saved = read_named(place, MOST_BYTES + monitor.model.state_bytes, remedy=remedy, error=SavedSessionError)
    try:
        if saved is None:
            session = monitor.start(header, group=group, tools=tools, step_limit=step_limit)
        else:
            session = monitor.restore(saved)
    except SavedSessionError as exc:
        raise SavedSessionError(f"{state}: {exc}") from exc
    steps = session.counters["steps"]
    for line in read_events(stream, monitor.bundle.adapter):
        if line.problem is not None:
            yield Reading(steps, None, None, Level.UNKNOWN, None, None, (), line.problem, 0.0)
            continue
        for reading in session.observe(line.event):
            steps = reading.step
            yield reading
    if place is None or end:
        yield from session.end()
    if place is None:
        return
    try:
        if end:
            place.unlink(missing_ok=True)
        else:  # for the owner's eyes alone: the whole of it, or on any failure what was there before
            replace_file(Path(os.path.realpath(place)), session.save(), 0o600)
    except OSError as exc:
        why = exc.strerror
        raise OutputError(
            f"{state}: cannot be removed ({why}). Remove it: its run is over."
            if end
            else f"{state}: the session cannot be saved ({why}). Name a file that can be written."
        ) from exc
