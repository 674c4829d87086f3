"""Tables of verdicts that a spec cannot read: maps from run ids to verdicts, CSV and JSON-lines files. They are named
to the user, who can bring them as labels."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.run_places import Column, Places, RunView
from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import MISSING

#: Rows of a table that are looked at.
MAX_ROWS = 20_000
#: Share of the runs that a table must know.
LEAST_KNOWN = 0.5


def table_notes(views: Sequence[RunView], samples: Samples, places: Places) -> list[str]:
    """A sentence for each table beside the runs whose ids are those of the runs and whose values can be outcomes."""
    mine = {view.file for view in views}
    sources = [
        column
        for column in places.columns
        if column.near != "document" and column.coverage >= 0.9 and 0 < column.length <= 120
    ]
    notes = []
    for file in samples.files:
        if file.path in mine:
            continue
        found = _verdict(file, sources)
        if found is not None:
            field, column, why = found
            called = column.spec if isinstance(column.spec, str) else "the file's name"
            notes.append(
                f"{file.path} tells outcomes in {field!r} by {called} ({why}), in a form that a spec cannot read. "
                f"Write it as lines of run_id,outcome and bring it with --labels."
            )
    return notes[:3]


def _verdict(file: SampleFile, sources: Sequence[Column]) -> tuple[str, Column, str] | None:
    best: tuple[float, str, Column, str] | None = None
    rows = list(_rows(file))
    names = sorted({name for row in rows[:200] for name in row})[:40]
    for id_name in names:
        ids = {str(row.get(id_name)): row for row in rows if isinstance(row.get(id_name), str | int)}
        if len(ids) < 2:
            continue
        for column in sources:
            told = [ids.get(text) if text is not None else None for text in column.texts]
            if sum(1 for row in told if row is not None) < LEAST_KNOWN * len(told):
                continue
            for name in names:
                values = [_plain(row.get(name, MISSING)) if row is not None else MISSING for row in told]
                for form in judge_values(values, name)[:1] if name != id_name else []:
                    if form.confidence >= 0.25 and (best is None or form.confidence > best[0]):
                        best = (form.confidence, name, column, form.why)
    return None if best is None else best[1:]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else MISSING


def _rows(file: SampleFile) -> Iterator[Mapping[str, Any]]:
    """Rows of a table: lines of JSON, lines of a CSV with names, entries of a map with their key as "key"."""
    if file.kind == Kind.JSONL and isinstance(file.value, list):
        yield from (row for row in file.value[:MAX_ROWS] if isinstance(row, Mapping))
    elif file.kind == Kind.TEXT and "," in file.text.partition("\n")[0]:
        yield from _csv_rows(file.text)
    elif file.kind == Kind.JSON and isinstance(file.value, Mapping):
        yield from _entries(file.value)
        for inner in file.value.values():
            if isinstance(inner, Mapping):
                yield from _entries(inner)


def _entries(table: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for key, value in list(table.items())[:MAX_ROWS]:
        if isinstance(value, Mapping):
            yield {**value, "key": key}
        elif isinstance(value, str | int | float):
            yield {"key": key, "value": value}


def _csv_rows(text: str) -> Iterator[Mapping[str, Any]]:
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        for n, row in enumerate(reader):
            if n >= MAX_ROWS:
                return
            yield {name: value for name, value in row.items() if isinstance(name, str) and isinstance(value, str)}
    except csv.Error:
        return
