"""Tables of verdicts that a spec cannot read: maps from run ids to verdicts, CSV and JSON-lines files. They are named
to the user, with the command that turns them into labels."""

from __future__ import annotations

import csv
import io
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefixguard.induce.offline.outcome import OutcomeForm, judge_values
from prefixguard.induce.offline.run_places import Column, Places, RunView, base_of
from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import MISSING

#: Rows of a table that are looked at.
MAX_ROWS = 20_000
#: Share of the runs that a table must know.
LEAST_KNOWN = 0.5


@dataclass(frozen=True)
class _Verdict:
    """A table that tells outcomes. id_name, name: its fields with the runs and with the verdicts. column: what the runs
    have under id_name; None: the names of their files. won, lost: the values of each side, as Python writes them."""

    id_name: str
    name: str
    column: Column | None
    form: OutcomeForm
    won: tuple[str, ...]
    lost: tuple[str, ...]


def table_notes(
    views: Sequence[RunView], samples: Samples, places: Places, run_id: Any = None, success: str | None = None
) -> list[str]:
    """A sentence for each table beside the runs whose ids are those of the runs and whose values can be outcomes.

    run_id: what the spec takes for the id of a run; labels go by that, or by files. success: as a person said it.
    """
    mine = {view.file for view in views}
    sources = [
        column
        for column in places.columns
        if column.near != "document" and column.coverage >= 0.9 and 0 < column.length <= 120
    ]
    alone = [view.file if view.n_in_document <= 1 else None for view in views]
    notes = []
    for file in samples.files:
        if file.path in mine:
            continue
        found = _verdict(file, sources, alone, success)
        if found is not None:
            spec = found.column.spec if found.column is not None else None
            called = spec if isinstance(spec, str) else "the names of the files"
            hint = f" --hint {shlex.quote(f'id={spec}')}" if isinstance(spec, str) and spec != run_id else ""
            notes.append(
                f"{file.path} tells outcomes in {found.name!r} by {called} ({found.form.why}), in a form that a spec "
                f"cannot read. The next line makes labels of it; then add --labels labels.jsonl{hint}."
            )
            notes.append(f"{_command(file, found, samples.source)} > labels.jsonl")
    return notes[:4]


def _verdict(
    file: SampleFile, sources: Sequence[Column], alone: Sequence[str | None], success: str | None
) -> _Verdict | None:
    best: tuple[float, _Verdict] | None = None
    rows = list(_rows(file))
    names = sorted({name for row in rows[:200] for name in row})[:40]
    for id_name in names:
        ids = {str(row.get(id_name)): row for row in rows if isinstance(row.get(id_name), str | int)}
        if len(ids) < 2:
            continue
        for column, told in _joined(ids, sources, alone):
            if sum(1 for row in told if row is not None) < LEAST_KNOWN * len(told):
                continue
            for name in names:
                values = [_plain(row.get(name, MISSING)) if row is not None else MISSING for row in told]
                for form in judge_values(values, name, success=success)[:1] if name != id_name else []:
                    if form.confidence >= 0.25 and (best is None or form.confidence > best[0]):
                        seen = {str(row.get(name)): form.side(_plain(row.get(name, MISSING))) for row in rows}
                        won, lost = (tuple(sorted(v for v, s in seen.items() if s == side)) for side in (1, -1))
                        best = (form.confidence, _Verdict(id_name, name, column, form, won, lost))
    return None if best is None else best[1]


def _joined(
    ids: Mapping[str, Mapping[str, Any]], sources: Sequence[Column], alone: Sequence[str | None]
) -> Iterator[tuple[Column | None, list[Mapping[str, Any] | None]]]:
    """Rows of the runs, by the names of their files (path, name or stem), then by what else they have.

    alone: the file of each run, None where it holds several.
    """
    stems = [None if path is None else base_of(path) for path in alone]
    by_stem = {base_of(text.rstrip("/")): row for text, row in ids.items()}
    if None not in stems and len(set(stems)) == len(stems) and len(by_stem) == len(ids):
        yield None, [by_stem.get(stem or "") for stem in stems]
    for column in sources:
        if not (isinstance(column.spec, dict) and "file" in column.spec):
            yield column, [ids.get(text) if text is not None else None for text in column.texts]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float) else MISSING


def _rows(file: SampleFile) -> Iterator[Mapping[str, Any]]:
    """Rows of a table: lines of JSON, lines of a CSV with names, entries of a map with their key as "key"."""
    if file.kind == Kind.JSONL and isinstance(file.value, list):
        yield from _listed(file.value)
    elif file.kind == Kind.TEXT and "," in file.text.partition("\n")[0]:
        yield from _csv_rows(file.text)
    elif file.kind == Kind.JSON:
        for _, table in _tables(file.value):
            yield from _entries(table) if isinstance(table, Mapping) else _listed(table)


def _tables(value: Any) -> Iterator[tuple[str | None, Any]]:
    """The document, and what stands in it under a key, as far as they can be tables."""
    if isinstance(value, Mapping | list):
        yield None, value
    if isinstance(value, Mapping):
        yield from ((key, inner) for key, inner in value.items() if isinstance(inner, Mapping | list))


def _listed(table: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    yield from (row for row in table[:MAX_ROWS] if isinstance(row, Mapping))


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


def _command(file: SampleFile, found: _Verdict, source: str) -> str:
    """What a shell is told, to print the table as labels."""
    path = json.dumps(str(Path(source) / file.path if Path(source).is_dir() else file.path))
    key, value = json.dumps(found.id_name), json.dumps(found.name)
    run, told = f"r[{key}]", f"r.get({value})"
    if file.kind == Kind.TEXT:
        rows = f"csv.DictReader(open({path}))"
    elif file.kind == Kind.JSONL:
        rows = f"map(json.loads,open({path}))"
    else:
        where = _table_of(file.value, found)
        rows = f"json.load(open({path}))" + ("" if where is None else f"[{json.dumps(where)}]")
        if found.id_name == "key":
            rows += ".items()"
            run, told = "r[0]", "r[1]" if found.name == "value" else f"r[1].get({value})"
    if found.column is None:  # by the names of files, which may stand in other folders there
        run += '.rpartition("/")[2]'
    sides = json.dumps({**dict.fromkeys(found.won, "success"), **dict.fromkeys(found.lost, "failure")})
    line = f'json.dumps({{"run_id":{run},"outcome":s.get(str({told}))}})'
    return f"python3 -c {shlex.quote(f'import csv,json;s={sides};[print({line})for r in {rows}]')}"


def _table_of(value: Any, found: _Verdict) -> str | None:
    """The key under which a document has the table; None where the document is the table."""
    best: tuple[int, str | None] = (0, None)
    for key, table in _tables(value):
        rows = _entries(table) if isinstance(table, Mapping) else _listed(table)
        n = sum(1 for row in rows if found.id_name in row and found.name in row)
        if n > best[0]:
            best = (n, key)
    return best[1]
