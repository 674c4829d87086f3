"""Runs that are parsed once and read as often as wanted: in memory while they are small, else in a temporary file."""

from __future__ import annotations

import json
import tempfile
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.offered import readable_offer
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.signals import Signals
from prefixguard.trace import Fault, Mistake, Outcome, Run

_IN_MEMORY = 128 << 20  # bytes a spool keeps in memory before it moves to a temporary file


class Spool:
    """Bytes written once in order and read back by position; in memory while small, in a temporary file when large."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115, closed below
        weakref.finalize(self, self._file.close)
        self._starts = array("q", [0])

    def __len__(self) -> int:
        return len(self._starts) - 1

    def append(self, data: bytes) -> None:
        """One more entry. An entry may not be written once the spool was read."""
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))

    def read(self, first: int, stop: int) -> bytes:
        """Entries first..stop-1, joined."""
        self._file.seek(self._starts[first])
        return self._file.read(self._starts[stop] - self._starts[first])

    def each(self, first: int, stop: int) -> Iterator[bytes]:
        """Entries first..stop-1, one by one."""
        data = self.read(first, stop)
        base = self._starts[first]
        for i in range(first, stop):
            yield data[self._starts[i] - base : self._starts[i + 1] - base]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Bytes of each entry, int64 (entries,)."""
        starts = np.array(self._starts, dtype=np.int64)
        return starts[1:] - starts[:-1]

    @property
    def size(self) -> int:
        """Bytes held."""
        return self._starts[-1]


class SpooledRuns:
    """Parsed runs, which every iteration gives anew, equal and in the same order; one run is in memory at a time.

    `evaluate`, `cross_validate` and the like take them where they take parsed runs, and say what `report` says.

    runs : parsed runs, read to their end here. report : of that reading, if there is one.
    progress : called with the number of runs read so far.
    """

    def __init__(
        self,
        runs: Iterable[Run[StepRecord]],
        report: ReadReport | None = None,
        *,
        progress: Callable[[int], None] | None = None,
    ) -> None:
        self._spool = Spool()
        for run in runs:
            self._spool.append(_dumped(run))
            if progress is not None:
                progress(len(self))
        self.report = report or ReadReport()

    @classmethod
    def read(
        cls,
        source: str | Path,
        adapter: Adapter,
        *,
        labels: str | Path | None = None,
        strict: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> SpooledRuns:
        """Runs of a file, folder, glob, tar or `-`, parsed once. Options and errors are those of `read_runs`."""
        report = ReadReport()
        companion = None if labels is None else Path(labels)
        return cls(
            read_runs(source, adapter, labels=companion, strict=strict, report=report), report, progress=progress
        )

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[Run[StepRecord]]:
        for place in range(len(self)):
            yield _loaded(self._spool.read(place, place + 1))


_FIELDS = attrgetter(*(one.name for one in fields(StepRecord)))


def _dumped(run: Run[StepRecord]) -> bytes:
    """A run as JSON; texts keep every code point, lone surrogates among them."""
    mistake = None if run.mistake is None else [run.mistake.step, run.mistake.agent]
    faults = [[fault.agent, fault.mode] for fault in run.faults]
    offer = [run.offer.tools, run.offer.step_limit]
    head = [run.run_id, run.task_id, run.outcome.value, run.source, dict(run.groups), mistake, faults, offer]
    return json.dumps([head, list(map(_FIELDS, run.records))], ensure_ascii=False).encode("utf-8", "surrogatepass")


def _loaded(data: bytes) -> Run[StepRecord]:
    (run_id, task_id, outcome, source, groups, mistake, faults, offer), records = json.loads(
        data.decode("utf-8", "surrogatepass")
    )
    return Run(
        run_id,
        task_id,
        Outcome(outcome),
        tuple(map(_record, records)),
        source,
        groups,
        None if mistake is None else Mistake(*mistake),
        tuple(Fault(*fault) for fault in faults),
        readable_offer(*offer),
    )


def _record(values: list[Any]) -> StepRecord:
    record = StepRecord(*values)
    return record if record.signals is None else replace(record, signals=Signals(*record.signals))
