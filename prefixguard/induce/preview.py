"""How the first steps parse, beside the raw input: what a person sees before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from prefixguard.stepview import Adapter, Exchange, SideBySide, StepRecord, side_by_side

#: Steps that are shown, and events (lines of a log) beside each.
STEPS = 6
_EVENTS, _LINES = 2, 6


def first_steps(
    source: str | Path, adapter: Adapter, *, steps: int = STEPS, labels: str | Path | None = None
) -> tuple[SideBySide, ...]:
    """The first run, cut to its first steps and to a few of the events before each; a sentence stands for the others.

    labels: outcomes beside the runs. TraceError where no run can be read.
    """
    for one in islice(side_by_side(source, adapter, labels=labels), 1):
        shown: list[Exchange] = []
        left, begin = steps, 0
        for exchange in one.exchanges:
            if left <= 0:
                break
            records = exchange.records[:left]
            shown.append(Exchange(tuple(_few(exchange, records, begin)), records))
            left -= len(records)
            begin += len(exchange.events)
        return (SideBySide(one.run, tuple(shown)),)
    return ()


def _few(exchange: Exchange, records: Sequence[StepRecord], begin: int) -> Iterator[Any]:
    """A few of an exchange's events: those that begin the records, and what follows each. begin: number of the first
    event in the run."""
    events = exchange.events
    most = _EVENTS * max(1, len(records))
    if any(isinstance(event, str) for event in events):
        most, wanted = _LINES * max(1, len(records)), set(range(len(events)))
    else:
        wanted = {at + k for record in records for at in (record.event - begin,) for k in range(_EVENTS)}
        wanted = {at for at in wanted if 0 <= at < len(events)} or {len(events) - 1}
    if len(events) <= most:
        yield from events
        return
    last = -1
    for at in sorted(wanted)[:most]:
        if at > last + 1:
            yield f"... {_count(at - last - 1)} ..."
        yield events[at]
        last = at
    if last + 1 < len(events):
        yield f"... {_count(len(events) - last - 1)} ..."


def _count(n: int) -> str:
    return f"{n} more event{'' if n == 1 else 's'}"
