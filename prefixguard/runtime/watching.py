"""Watch a stream of raw events, one a line, while the agent runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.alarm import Level
from prefixguard.runtime.monitor import Monitor
from prefixguard.runtime.reading import Reading
from prefixguard.stepview import Adapter, read_events


def watch(
    monitor: Monitor,
    stream: BinaryIO,
    *,
    header: Mapping[str, Any] | None = None,
    group: str | None = None,
    adapter: str | Path | Adapter | None = None,
) -> Iterator[Reading]:
    """The readings of a run, each as soon as its step is complete.

    stream: one raw event a line, JSON (for adapters of text: the text); a line that is no event is a reading of level
    UNKNOWN that says why, and the watch goes on. header, group: as for `Monitor.start`.
    adapter: the one that is meant; another than the monitor's own is refused (OtherAdapterError).
    Raises what `Monitor.start` raises, and nothing once the run has begun but what the stream itself raises.
    """
    monitor.refuse_other(adapter)
    session = monitor.start(header, group=group)
    steps = 0
    for line in read_events(stream, monitor.bundle.adapter):
        if line.problem is not None:
            yield Reading(steps, None, None, Level.UNKNOWN, None, None, (), line.problem, 0.0)
            continue
        for reading in session.observe(line.event):
            steps = reading.step
            yield reading
    yield from session.end()
