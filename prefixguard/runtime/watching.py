"""Watch a stream of raw events, one a line, while the agent runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.alarm import Level
from prefixguard.errors import SavedSessionError, UsageError
from prefixguard.runtime.monitor import Monitor
from prefixguard.runtime.reading import Reading
from prefixguard.runtime.saved_session import MOST_BYTES
from prefixguard.runtime.state_file import read_state, remove_state, write_state
from prefixguard.stepview import Adapter, read_events


def watch(
    monitor: Monitor,
    stream: BinaryIO,
    *,
    header: Mapping[str, Any] | None = None,
    group: str | None = None,
    adapter: str | Path | Adapter | None = None,
    state: str | os.PathLike[str] | None = None,
    end: bool = False,
) -> Iterator[Reading]:
    """The readings of a run, each as soon as its step is complete.

    stream: one raw event a line, JSON (for adapters of text: the text); a line that is no event is a reading of level
    UNKNOWN that says why, and the watch goes on. header, group: as for `Monitor.start`.
    adapter: the one that is meant; another than the monitor's own is refused (OtherAdapterError).
    state: a file that keeps the run from one watch to the next. Where it is there, the run goes on from it (header and
    group are those of its start); when the stream is over, the session is saved there, whole or not at all, and the run
    goes on with the next watch. end: with a state, the run is over with this stream, and the file is removed. Without a
    state, it always is.
    Raises UsageError for `end` without a state, SavedSessionError for a file that cannot be restored, what
    `Monitor.start` raises, and once the run has begun only what the stream itself raises, or OutputError at its end.
    """
    if end and state is None:
        raise UsageError("end goes with a state: without one, a run is over with its stream. Leave it out.")
    monitor.refuse_other(adapter)
    saved = None if state is None else read_state(state, MOST_BYTES + monitor.model.state_bytes)
    try:
        session = monitor.start(header, group=group) if saved is None else monitor.restore(saved)
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
    if state is not None and not end:
        write_state(state, session.save())
        return
    yield from session.end()
    if state is not None:
        remove_state(state)
