"""How the first steps parse, beside the raw input: what a person sees before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prefixguard.stepview import Adapter, Exchange, SideBySide, side_by_side

#: Steps that are shown, and events (lines of a log) beside each.
STEPS = 6
_EVENTS, _LINES = 2, 6


def first_steps(
    source: str | Path, adapter: Adapter, *, steps: int = STEPS, labels: str | Path | None = None
) -> tuple[SideBySide, ...]:
    """The first run, cut to its first steps and to a few of the events before each; a sentence stands for the others.

    labels: outcomes beside the runs. TraceError where no run can be read.
    """
    one = next(side_by_side(source, adapter, labels=labels), None)
    shown: list[Exchange] = []
    left, begin = steps, 0
    for exchange in one.exchanges if one is not None else ():
        if left <= 0:
            break
        records = exchange.records[:left]
        wanted = {record.event - begin + k for record in records for k in range(_EVENTS)}
        shown.append(Exchange(tuple(_few(exchange.events, wanted, max(1, len(records)))), records))
        left -= len(records)
        begin += len(exchange.events)
    return (SideBySide(one.run, tuple(shown)),) if one is not None else ()


def _few(events: tuple[Any, ...], wanted: set[int], steps: int) -> Iterator[Any]:
    """A few of the events: those at these places, and of a log its first lines."""
    is_log = any(isinstance(event, str) for event in events)
    most = steps * (_LINES if is_log else _EVENTS)
    places = range(len(events))
    kept = places if is_log else sorted(wanted & {*places}) or places[-1:]
    if len(events) <= most:
        kept = places
    last = -1
    for at in (*kept[:most], len(events)):
        if missing := at - last - 1:
            yield f"... {missing} more event{'' if missing == 1 else 's'} ..."
        yield from events[at : at + 1]
        last = at
