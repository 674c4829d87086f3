"""Whole runs through an escalator: a stream as it comes, and the steps of a finished run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from prefixguard.alarm import Level
from prefixguard.escalate.session import EscalatedReading, Escalator
from prefixguard.runtime import Reading
from prefixguard.stepview import StepRecord, read_events
from prefixguard.trace import NO_OFFER, RunOffer


def watch_escalated(
    escalator: Escalator,
    stream: BinaryIO,
    *,
    header: Mapping[str, Any] | None = None,
    group: str | None = None,
    patience: float = 0.0,
    offer: RunOffer = NO_OFFER,
) -> Iterator[EscalatedReading]:
    """As `runtime.watch`, with what verdicts change.

    patience: seconds to wait at the run's end for verdicts that are still on their way; what comes is one reading more,
    the last one again. offer: what the run is given.
    """
    session = escalator.start(header, group=group, offer=offer)
    steps = 0
    for line in read_events(stream, escalator.monitor.bundle.adapter):
        if line.problem is not None:
            unknown = Reading(steps, None, None, Level.UNKNOWN, None, None, (), line.problem, 0.0)
            yield EscalatedReading(unknown, Level.UNKNOWN)
            continue
        for said in session.observe(line.event):
            steps = said.reading.step
            yield said
    yield from session.end()
    last = session.wait(patience)
    if last is not None:
        yield last


def escalate_records(
    escalator: Escalator,
    records: Iterable[StepRecord],
    *,
    group: str | None = None,
    patience: float = 0.0,
    offer: RunOffer = NO_OFFER,
) -> Iterator[EscalatedReading]:
    """A finished run, step by step as if it were live. patience, offer: as for `watch_escalated`."""
    session = escalator.start(group=group, offer=offer)
    for record in records:
        yield session.observe_record(record)
    last = session.wait(patience)
    if last is not None:
        yield last
