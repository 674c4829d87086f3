"""Tables of scores: what a verifier, judge or critic said of runs, a row a step.

Columns: run, step (from 1), score, and perhaps outcome and task; the others are not read. A .csv is a table with a
head, a .parquet one with these columns, all else JSON lines. Rows of runs may alternate; those of one run stand in
order. Of a row 8 bytes are kept, and of a run its names.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import TraceError, missing_extra
from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.found import Container, Counts, Found, Unread, contained
from prefixguard.stepview.paths import MISSING, Companions
from prefixguard.stepview.record import score_record
from prefixguard.stepview.text import plain
from prefixguard.stepview.values import as_id, compile_value
from prefixguard.trace import Outcome
from prefixguard.trace.documents import Document, too_long
from prefixguard.trace.labels import outcome_of

#: Rows of one file.
MOST_ROWS = 20_000_000
_NEEDED, _COLUMNS = ("run", "step", "score"), ("run", "step", "score", "outcome", "task")
_WANTED = "needed: run,step,score[,outcome,task]"
Row = Mapping[str, Any]


@dataclass(slots=True)
class _RunOfScores:
    """What the rows of a run say. problem: why it cannot be read; the first, where there are several."""

    scores: array[float] = field(default_factory=lambda: array("d"))
    outcome: Outcome = Outcome.UNKNOWN
    task: str | None = None
    problem: str | None = None

    def take(self, row: Row, where: str) -> None:
        """One more row. TraceError for what it may not say."""
        step, expected = _number(row.get("step")), len(self.scores) + 1
        if not isinstance(step, int | float) or isinstance(step, bool) or step % 1 != 0 or step < 1:
            raise TraceError(f"{where}: step {_shown(row['step'])} is not a whole number from 1.")
        if step < expected:
            raise TraceError(f"{where}: step {step:.0f} comes after step {expected - 1}. Give each once, in order.")
        if step > expected:
            raise TraceError(f"{where}: step {step:.0f} comes, and step {expected} is missing before it.")
        try:
            self.scores.append(score_record(1, _number(row.get("score"))).score or 0.0)
        except TraceError as exc:
            raise TraceError(f"{where}: {exc}.") from exc
        outcome, task = outcome_of({"outcome": row.get("outcome")}, where), as_id(row.get("task")) or None
        for old, new, what in ((_known(self.outcome), _known(outcome), "outcome"), (self.task, task, "task")):
            if old is not None and new is not None and old != new:
                raise TraceError(f"{where}: {what} {_shown(new)}, and {_shown(old)} in an earlier row of the run.")
        self.outcome = self.outcome if outcome is Outcome.UNKNOWN else outcome
        self.task = self.task or task


def _known(outcome: Outcome) -> str | None:
    return None if outcome is Outcome.UNKNOWN else outcome.value


def _shown(value: Any) -> str:
    return plain(repr(value), 60)


def _is_parquet(document: Document) -> bool:
    return document.path.lower().endswith(".parquet")


def _number(value: Any) -> Any:
    """A cell of text as the number it spells; anything else as it is."""
    if not isinstance(value, str) or len(value) > 40 or "_" in value:
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _table(rows: Iterable[tuple[int, Row]], document: Document) -> Iterator[Found | Unread]:
    runs: dict[str, _RunOfScores] = {}
    unit = "row" if _is_parquet(document) else "line"
    for n, (number, row) in enumerate(rows, 1):
        if n > MOST_ROWS:
            raise TraceError(f"{document.where}: more than {MOST_ROWS:,} rows. Write the runs into several files.")
        where = f"{document.where} {unit} {number}"
        name = as_id(row.get("run"))
        if not name:
            yield Unread(where, f"{where}: names no run. Every row needs run, step and score.")
            continue
        run = runs.setdefault(name, _RunOfScores())
        if run.problem is None:
            try:
                run.take(row, where)
            except TraceError as exc:
                run.problem = str(exc)
    for position, (name, run) in enumerate(runs.items(), 1):
        where = f"{document.where} run {plain(name, 60)}"
        if run.problem is not None:
            yield Unread(where, run.problem)
            continue
        steps = [{"score": score} for score in run.scores]
        found = {"run": name, "task": run.task, "outcome": run.outcome.value, "steps": steps}
        yield Found(found, MISSING, position, where, name, is_json=True)


def _columns(names: Iterable[Any], where: str) -> None:
    known = [name for name in names if isinstance(name, str)]
    twice = sorted({name for name in known if name in _COLUMNS and known.count(name) > 1})
    if twice:
        raise TraceError(f"{where}: two columns are called {twice[0]}. Rename one.")
    if not set(_NEEDED) <= set(known):
        shown = ", ".join(plain(name, 40) for name in known[:8]) or "none"
        raise TraceError(f"{where}: the columns are {shown}; {_WANTED}. Rename them, or name another adapter.")


def _text_lines(document: Document) -> Iterator[str]:
    for number, line in enumerate(document.lines(), 1):
        if line is None:
            raise TraceError(f"{document.where} line {number}: {too_long()}")
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as exc:
            raise TraceError(
                f"{document.where} line {number}: not UTF-8 ({exc.reason}). Save the table as UTF-8."
            ) from exc


def _csv_rows(document: Document) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(_text_lines(document))
    try:
        names = [name.strip() for name in next(reader, [])]
        _columns(names, f"{document.where} line 1")
        for cells in reader:
            if cells:
                row = dict(zip(names, cells, strict=False))
                yield reader.line_num, {name: row[name] for name in _COLUMNS if name in row}
    except csv.Error as exc:
        raise TraceError(f"{document.where} line {reader.line_num}: not CSV ({exc}).") from exc


def _json_rows(document: Document, counts: Counts) -> Iterator[tuple[int, Row]]:
    first = True
    for number, line in enumerate(document.lines(), 1):
        where = f"{document.where} line {number}"
        if line is None:
            raise TraceError(f"{where}: {too_long()}")
        if not line.strip():
            continue
        row = counts.json(line.rstrip(b"\r\n"), document.where, number)
        if first or not isinstance(row, dict):
            _columns(row if isinstance(row, dict) else (), where)
        first = False
        yield number, row


def _parquet_rows(document: Document) -> Iterator[tuple[int, Row]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as exc:
        raise missing_extra(f"{document.where}: reading parquet", "data", exc) from exc
    try:
        with document.seekable() as stream:
            file = parquet.ParquetFile(stream)
            _columns(file.schema_arrow.names, document.where)
            wanted = [name for name in file.schema_arrow.names if name in _COLUMNS]
            batches = file.iter_batches(batch_size=4096, columns=wanted)
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                gone = {name for name, cell in row.items() if isinstance(cell, float) and math.isnan(cell)} - {"score"}
                yield number, {name: None if name in gone else cell for name, cell in row.items()}
    except (OSError, ValueError) as exc:
        if isinstance(exc, TraceError):
            raise
        raise TraceError(f"{document.where}: not a parquet file ({exc}). Copy it again.") from exc


def _is_csv(document: Document) -> tuple[bool, Document]:
    """By its name, or where that says nothing by its first character. And the document, still whole."""
    ending = document.path.rpartition(".")[2].lower()
    if ending in ("csv", "jsonl", "ndjson", "json"):
        return ending == "csv", document
    lines, document = document.first_lines(1)
    return not (lines and lines[0].lstrip(b"\xef\xbb\xbf \t").startswith(b"{")), document


def _scores(spec: dict[str, Any], site: Site) -> Container:
    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        if _is_parquet(document):
            rows = _parquet_rows(document)
        else:
            is_csv, document = _is_csv(document)
            rows = _csv_rows(document) if is_csv else _json_rows(document, counts)
        with contained(document.where):
            yield from _table(rows, document)

    group_by = compile_value("@.run", Site(site.where, {"@": Base(None)}))
    return Container(runs, ("**/*.csv", "**/*.jsonl", "**/*.ndjson", "**/*.parquet"), group_by=group_by)


SCORE_FORMATS = {"scores": (_scores, ())}
