"""Raw events beside the records they became: what a person looks at to see whether an adapter reads a format right."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.parser import Parser
from prefixguard.stepview.program import Program
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.stepview.recognition import adapter_for
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.scope import Scope
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class Exchange:
    """Events read since the exchange before, and the records that were complete with the last of them.

    events: decoded JSON values, or lines of text; they belong to the caller's file and are not copied. records: may be
    empty at the end of a run, for events that became no record. Records that are complete only with the end of the run
    stand in the last exchange.
    """

    events: tuple[Any, ...]
    records: tuple[StepRecord, ...]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A run, and how its events became its records."""

    run: Run[StepRecord]
    exchanges: tuple[Exchange, ...]


def side_by_side(
    runs: str | os.PathLike[str],
    adapter: str | Path | Adapter,
    *,
    labels: str | os.PathLike[str] | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
) -> Iterator[SideBySide]:
    """Runs one at a time, as `read_runs` gives them, with the events that each of their records was made of."""
    opened = adapter_for(adapter, os.fspath(runs))
    scopes: list[Scope] = []
    companion = None if labels is None else Path(labels)
    for run in read_runs(
        os.fspath(runs), opened, labels=companion, strict=strict, report=report, witness=scopes.append
    ):
        yield SideBySide(run, tuple(_exchanges(opened.program, scopes.pop())))


def _exchanges(program: Program, scope: Scope) -> Iterator[Exchange]:
    """Feed the run once more, one event (one line of text) at a time."""
    found = program.events.listing(scope)
    if isinstance(found, str):
        events: list[Any] = found.splitlines(keepends=True)
    else:
        events = found if isinstance(found, list) else []
        events = events[: len(events) - program.events.drop_last]
    parser = Parser(program, scope, live=False)
    waiting: list[Any] = []
    for event in events:
        waiting.append(event)
        records = parser.observe(event)
        if records:
            yield Exchange(tuple(waiting), tuple(records))
            waiting = []
    records = parser.end()
    if waiting or records:
        yield Exchange(tuple(waiting), tuple(records))
