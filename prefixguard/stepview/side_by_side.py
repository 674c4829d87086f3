"""Runs together with what they were read from: their files, or the raw events that their records were made of."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.parser import Parser
from prefixguard.stepview.paths import Scope
from prefixguard.stepview.program import Program
from prefixguard.stepview.reader import ReadReport, companions_of, read_runs
from prefixguard.stepview.recognition import adapter_for
from prefixguard.stepview.record import StepRecord
from prefixguard.trace import Run


@dataclass(frozen=True, slots=True)
class RunFiles:
    """A run and its files, as paths inside the folder of runs, with forward slashes.

    position: of the run in its document, from 1. key: its name there, in an object of runs or a group of lines.
    companions: files that were looked for to read it; some may not be there.
    """

    run: Run[StepRecord]
    file: str
    position: int
    key: str | None
    companions: tuple[str, ...]


def run_files(
    source: str | Path, adapter: Adapter, *, labels: Path | None = None, report: ReadReport | None = None
) -> Iterator[RunFiles]:
    """Runs as `read_runs` gives them, each with its files."""
    scopes: list[Scope] = []
    for run in read_runs(source, adapter, labels=labels, report=report, witness=scopes.append):
        scope = scopes.pop()
        key = scope.key if isinstance(scope.key, str) else None
        yield RunFiles(run, scope.file or "", scope.position, key, companions_of(scope))


@dataclass(frozen=True, slots=True)
class Exchange:
    """Events read since the exchange before, and the records that were complete with the last of them.

    events: decoded JSON values, or lines of text; they belong to the caller's file and are not copied. records: may be
    empty at the end of a run, for events that became no record. Records that are complete only with the end of the run
    are in the last exchange.
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
    adapter: str | Path | Adapter | None = None,
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
    parser = Parser(program, scope, live=False)
    waiting: list[Any] = []
    for event in program.events.feed(scope):
        waiting.append(event)
        if records := parser.observe(event):
            yield Exchange(tuple(waiting), tuple(records))
            waiting = []
    records = parser.end()
    if waiting or records:
        yield Exchange(tuple(waiting), tuple(records))
