"""Which files a run was read from: its document, where in it, and the companions that were asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.reader import ReadReport, companions_of, read_runs
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.scope import Scope
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
    place: list[tuple[str, int, str | None, tuple[str, ...]]] = []

    def witness(scope: Scope) -> None:
        key = scope.key if isinstance(scope.key, str) else None
        place.append((scope.file or "", scope.position, key, companions_of(scope)))

    for run in read_runs(source, adapter, labels=labels, report=report, witness=witness):
        yield RunFiles(run, *place.pop())
