"""Containers of JSON values: documents, lines, lines grouped into runs, zip archives and tables."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prefixguard.errors import TraceError, missing_extra
from prefixguard.stepview.compiling import Base, Place, Site
from prefixguard.stepview.conditions import compile_cases
from prefixguard.stepview.found import Counts, Found, Runs, Unread, contained
from prefixguard.stepview.paths import MISSING, Companions, Getter, Scope, Step, is_multiple, parse_path, walk
from prefixguard.stepview.values import as_id
from prefixguard.trace.archives import most_unpacked, refuse_too_much
from prefixguard.trace.documents import LARGEST_DOCUMENT, Document, glob_pattern, too_long

#: Why a line that no group takes is not read: it ends so.
NO_GROUP = "no value to group by, so it belongs to no run."
#: From a document to its runs: (key or MISSING, run), or MISSING where the path leads nowhere.
Listing = Callable[[Any], Any]


def compile_listing(spec: Mapping[str, Any], site: Site) -> tuple[Listing, tuple[Step, ...] | None]:
    """Where the runs of a document are, by `runs`, and the steps to them; None where that depends on the document."""
    here = site.at("runs")
    if isinstance(spec.get("runs"), list):
        return _cases(spec["runs"], here), None
    steps = _document_path(spec["runs"], here) if "runs" in spec else ()
    return _listing(steps), steps


def _document_path(path: Any, site: Site) -> tuple[Step, ...]:
    root, steps = parse_path(path, site.where)
    if root not in ("$", "%"):
        raise site.error("a path from the document: $[*], $.simulations[*], $.* for an object of runs.")
    return steps


def _cases(spec: list[Any], site: Site) -> Listing:
    judged = Site(site.where, {"%": Base(Place("document", ()))})
    cases = compile_cases(spec, judged, "%", "$[*]", lambda path, here: _listing(_document_path(path, here)))

    def listing(document: Any) -> Any:
        scope = Scope()
        scope.document = document
        return next((runs(document) for when, runs in cases if when(scope)), MISSING)

    return listing


def _listing(steps: tuple[Step, ...]) -> Listing:
    if not steps:
        return lambda document: [(MISSING, document)]
    if not is_multiple(steps):
        one = walk(steps)

        def single(document: Any) -> Any:
            run = one(document)
            return MISSING if run is MISSING else [(MISSING, run)]

        return single
    if steps[-1] != ("all",):
        many = walk(steps)

        def every(document: Any) -> Any:
            runs = many(document)
            return MISSING if runs is MISSING else [(MISSING, run) for run in runs]

        return every
    before = walk(steps[:-1])
    spread = is_multiple(steps[:-1])

    def last(document: Any) -> Any:
        outer = before(document)
        if outer is MISSING:
            return MISSING
        found: list[tuple[Any, Any]] = []
        usable = False
        for group in outer if spread else [outer]:
            if isinstance(group, dict):
                found.extend(group.items())
                usable = True
            elif isinstance(group, list):
                found.extend((MISSING, run) for run in group)
                usable = True
        return found if usable else MISSING

    return last


def _runs_of(listing: Listing, place: Any, document: Any, where: str) -> list[tuple[Any, Any]]:
    runs = listing(document)
    if runs is MISSING:
        kind = "an object" if isinstance(document, dict) else "an array" if isinstance(document, list) else "one value"
        keys = ", ".join(sorted(map(str, document))[:8]) if isinstance(document, dict) else ""
        at = " or ".join(case["path"] for case in place) if isinstance(place, list) else place
        raise TraceError(
            f"{where}: no runs at {at}; the document is {kind}{' with ' + keys if keys else ''}. "
            "It may be of another format: see what an adapter reads with prefixguard parse."
        )
    found: list[tuple[Any, Any]] = runs
    return found


def json_runs(listing: Listing, spec: Mapping[str, Any]) -> Runs:
    several = "runs" in spec

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        value = counts.json(document.read(), document.where)
        for position, (key, run) in enumerate(_runs_of(listing, spec.get("runs", "$"), value, document.where), 1):
            where = f"{document.where} run {position}" if several else document.where
            yield Found(run, value, position, where, key, several, is_json=True)

    return runs


def _each_line(
    document: Document, counts: Counts, read: Callable[[Any, str], list[Any]]
) -> Iterator[tuple[str, Any, list[Any] | Unread]]:
    """For every line that is not blank: where it stands, its JSON, and what `read` finds in it, or why nothing."""
    for number, line in enumerate(document.lines(), 1):
        where = f"{document.where} line {number}"
        if line is None:
            yield where, MISSING, Unread(where, f"{where}: {too_long()}")
        elif line.strip():
            try:
                with contained(where):
                    value = counts.json(line.rstrip(b"\r\n"), document.where, number)
                    found = read(value, where)
            except TraceError as exc:
                yield where, MISSING, Unread(where, str(exc))
                continue
            yield where, value, found


def line_runs(listing: Listing, spec: Mapping[str, Any]) -> Runs:
    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        position = 0
        at = spec.get("runs", "$")
        for where, value, found in _each_line(
            document, counts, lambda value, where: _runs_of(listing, at, value, where)
        ):
            if isinstance(found, Unread):
                yield found
                continue
            for key, run in found:
                position += 1
                yield Found(run, value, position, where, key, is_json=True)

    return runs


def grouped_runs(spec: Mapping[str, Any], site: Site, group_by: Getter) -> Runs:
    """Lines are events; events of one group are one run, in the order in which groups begin."""
    elements: Callable[[Any], Any] | None = None
    if "elements" in spec:
        root, steps = parse_path(spec["elements"], site.at("elements").where)
        if root != "@":
            raise site.at("elements").error("a path from the line: @.resourceSpans[*].scopeSpans[*].spans[*].")
        elements = walk(steps)

    def of_line(value: Any, where: str) -> list[Any]:
        found = [value] if elements is None else elements(value)
        if not isinstance(found, list):
            raise TraceError(f"{where}: nothing at {spec['elements']}.")
        return found

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        groups: dict[str, list[Any]] = {}
        scope = Scope()
        scope.file = document.path
        for where, value, found in _each_line(document, counts, of_line):
            if isinstance(found, Unread):
                yield found
                continue
            for element in found:
                scope.event, scope.parent = element, value
                try:
                    with contained(where):
                        group = as_id(group_by(scope))
                except TraceError as exc:
                    yield Unread(where, str(exc))
                    continue
                if group is None:
                    yield Unread(where, f"{where}: {NO_GROUP}")
                    continue
                groups.setdefault(group, []).append(element)
        for position, (group, events) in enumerate(groups.items(), 1):
            run = {"events": events, "group": group}
            yield Found(run, MISSING, position, f"{document.where} group {group}", group)

    return runs


def zip_runs(listing: Listing, spec: Mapping[str, Any]) -> Runs:
    entries = spec.get("entries", "**/*.json")
    wanted = glob_pattern([entries] if isinstance(entries, str) else entries)

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        position = 0
        with document.seekable() as stream:
            allowed = most_unpacked(stream.seek(0, io.SEEK_END))
            try:
                archive = zipfile.ZipFile(stream)
            except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as exc:
                raise TraceError(
                    f"{document.where}: not a zip archive ({exc}). It may be cut off; copy it again."
                ) from exc
            members = archive.infolist()
            chosen = [one for one in members if not one.is_dir() and wanted(one.filename)]
            refuse_too_much(document.where, len(members), sum(one.file_size for one in chosen), allowed)
            for info in sorted(chosen, key=lambda one: one.filename):
                where = f"{document.where}/{info.filename}"
                if info.file_size > LARGEST_DOCUMENT:
                    most = f"{info.file_size:,} bytes unpacked, and at most {LARGEST_DOCUMENT:,} are read"
                    yield Unread(where, f"{where}: {most}. Unpack it, and write its runs as JSON lines.")
                    continue
                try:
                    value = counts.json(archive.read(info), where)
                    found = _runs_of(listing, spec.get("runs", "$"), value, where)
                except (TraceError, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as exc:
                    yield Unread(
                        where, str(exc) if isinstance(exc, TraceError) else f"{where}: cannot be unpacked ({exc})."
                    )
                    continue
                for key, run in found:
                    position += 1
                    yield Found(run, value, position, where, key, is_json=True)

    return runs


def _is_nan(value: Any) -> bool:
    """Tables hold NaN where a number is missing: a merged table, in rows of the file that had no such column."""
    return isinstance(value, float) and value != value


def table_runs(spec: Mapping[str, Any], site: Site) -> Runs:
    columns = spec.get("json", [])
    columns = [columns] if isinstance(columns, str) else columns
    if not isinstance(columns, list):
        raise site.at("json").error("the column, or a list of the columns, that hold JSON text.")

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        try:
            import pyarrow.parquet as parquet
        except ImportError as exc:
            raise missing_extra(f"{document.where}: reading parquet", "data", exc) from exc
        position = 0
        try:
            with document.seekable() as stream:
                for batch in parquet.ParquetFile(stream).iter_batches(batch_size=16):
                    for row in batch.to_pylist():
                        position += 1
                        where = f"{document.where} row {position}"
                        row = {name: None if _is_nan(value) else value for name, value in row.items()}
                        try:
                            for name in columns:
                                value = row.get(name)
                                if isinstance(value, str | bytes):
                                    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
                                    row[name] = counts.json(data, f"{where} column {name}")
                        except TraceError as exc:
                            yield Unread(where, str(exc))
                            continue
                        yield Found(row, MISSING, position, where)
        except (OSError, ValueError) as exc:
            if isinstance(exc, TraceError):
                raise
            raise TraceError(f"{document.where}: not a parquet file ({exc}). Copy it again.") from exc

    return runs
