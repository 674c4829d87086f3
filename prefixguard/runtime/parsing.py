"""Raw runs as records, by an adapter's name, path or itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from prefixguard.stepview import Adapter, ReadReport, StepRecord, adapter_for, read_runs
from prefixguard.trace import Run


def parse(
    runs: str | os.PathLike[str],
    adapter: str | Path | Adapter,
    *,
    labels: str | os.PathLike[str] | None = None,
    strict: bool = False,
    report: ReadReport | None = None,
) -> Iterator[Run[StepRecord]]:
    """Raw runs as records, one run at a time.

    runs: file, folder, glob, tar, or `-`. adapter: a shipped name, the path of a .json file, an opened one,
    or `raw`, `raw:NAME`, `raw:PATH`: the control, each step as one text.
    labels: a file of outcomes joined by run id. strict: the first run that cannot be read is an error, not a skip.
    report: filled with what reading met. Raises AdapterError, TraceError.
    """
    opened = adapter_for(adapter, os.fspath(runs))
    companion = None if labels is None else Path(labels)
    return read_runs(os.fspath(runs), opened, labels=companion, strict=strict, report=report)
