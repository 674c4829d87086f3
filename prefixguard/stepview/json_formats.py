"""Container formats of JSON values: documents, lines, lines grouped into runs, zip archives and tables."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from prefixguard.errors import TraceError, missing_extra
from prefixguard.stepview.compiling import Base, DataPlace, Site
from prefixguard.stepview.conditions import compile_cases
from prefixguard.stepview.conversations import TracedEvent, agents, compile_conversations, joined
from prefixguard.stepview.delegates import apart, compile_delegates
from prefixguard.stepview.events import fields_of
from prefixguard.stepview.found import Container, Counts, Found, Unread, contained
from prefixguard.stepview.paths import MISSING, Companions, Scope, Step, is_multiple, parse_path, walk
from prefixguard.stepview.reorder import Key
from prefixguard.stepview.spellings import unflatten
from prefixguard.stepview.values import NULL, as_id, compile_value, table_rows
from prefixguard.stepview.zip_archives import Part, members
from prefixguard.trace.documents import Document, glob_pattern, too_long

Spec = dict[str, Any]
#: What compiles a container, and the keys that it may have besides.
Format = tuple[Callable[[Spec, Site], Container], tuple[str, ...]]
Parts = Callable[[Document, Counts], Iterator[Part | Unread]]
#: From a document to its runs: (key or MISSING, run), or MISSING where the path leads nowhere.
Listing = Callable[[Any], Any]

#: Why a line that no group takes is not read: it ends so.
NO_GROUP = "no value to group by, so it belongs to no run."


def globs(spec: Spec, key: str, default: tuple[str, ...], site: Site) -> tuple[str, ...]:
    """Globs under a key of a container: one, or a list of them. AdapterError for anything else."""
    found = spec.get(key, list(default))
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list) or not all(isinstance(one, str) and one for one in found):
        raise site.at(key).error('a glob such as "**/trajs/*.traj", or a list of them.')
    return tuple(found)


def _document_path(path: Any, site: Site) -> tuple[Step, ...]:
    root, steps = parse_path(path, site.where)
    if root not in ("$", "%"):
        raise site.error("a path from the document: $[*], $.simulations[*], $.* for an object of runs.")
    return steps


def _cases(spec: list[Any], site: Site) -> Listing:
    judged = Site(site.where, {"%": Base(DataPlace("document"))})
    cases = compile_cases(spec, judged, "%", "$[*]", lambda path, here: _listing(_document_path(path, here)))

    def listing(document: Any) -> Any:
        scope = Scope(document=document)
        return next((runs(document) for when, runs in cases if when(scope)), MISSING)

    return listing


def _listing(steps: tuple[Step, ...]) -> Listing:
    """Runs at a path of a document. Where the path ends with all elements, those of an object have its names."""
    by_name = steps[-1:] == (("all",),)
    inner = steps[:-1] if by_name else steps
    find, spread = walk(inner), is_multiple(inner)

    def runs(document: Any) -> Any:
        found = find(document)
        if found is MISSING:
            return MISSING
        found = found if spread else [found]
        if not by_name:
            return [(MISSING, run) for run in found]
        groups = [one for one in found if isinstance(one, dict | list)]
        named = (one.items() if isinstance(one, dict) else ((MISSING, run) for run in one) for one in groups)
        return [pair for pairs in named for pair in pairs] if groups else MISSING

    return runs


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


def _each(parts: Iterator[Part | Unread], find: Callable[[Any, str], list[Any]]) -> Iterator[Any]:
    """For every part of a document: its place, its JSON, and what is found in it; or why it cannot be read."""
    for part in parts:
        if isinstance(part, Unread):
            yield part
            continue
        where, read = part
        try:
            with contained(where):
                value = read()
                found = find(value, where)
        except TraceError as exc:
            yield Unread(where, str(exc))
            continue
        yield where, value, found


def _listed(spec: Spec, site: Site, parts: Parts, files: tuple[str, ...]) -> Container:
    """Runs at the path `runs` of every part of a document."""
    here, at = site.at("runs"), spec.get("runs", "$")
    is_document, several = spec["format"] == "json", spec["format"] != "json" or "runs" in spec
    steps = None if isinstance(at, list) else _document_path(at, here) if "runs" in spec else ()
    listing = _cases(at, here) if steps is None else _listing(steps)

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        position = 0
        for part in _each(parts(document, counts), lambda value, where: _runs_of(listing, at, value, where)):
            if isinstance(part, Unread):
                yield part
                continue
            where, value, found = part
            for key, run in found:
                position += 1
                shown = f"{where} run {position}" if is_document and several else where
                yield Found(run, value, position, shown, key, several, is_json=True)

    if steps is None:
        return Container(runs, files)
    return Container(runs, files, run=Base(DataPlace("document", steps)), document=Base(DataPlace("document")))


def _json(spec: Spec, site: Site) -> Container:
    files = ("**/*.json",)
    return _grouped(spec, site, _whole, files) if _is_grouped(spec, site) else _listed(spec, site, _whole, files)


def _whole(document: Document, counts: Counts) -> Iterator[Part | Unread]:
    yield document.where, lambda: counts.json(document.read(), document.where)


def _lines(document: Document, counts: Counts) -> Iterator[Part | Unread]:
    """Every line that is not blank."""
    for number, line in enumerate(document.lines(), 1):
        where = f"{document.where} line {number}"
        if line is None:
            yield Unread(where, f"{where}: {too_long()}")
        elif line.strip():
            yield where, partial(counts.json, line.rstrip(b"\r\n"), document.where, number)


def _jsonl(spec: Spec, site: Site) -> Container:
    files = ("**/*.jsonl", "**/*.ndjson")
    return _grouped(spec, site, _lines, files) if _is_grouped(spec, site) else _listed(spec, site, _lines, files)


def _table_rows(document: Document, counts: Counts) -> Iterator[Part | Unread]:
    """Every row of a table with a head, as an object of texts, without a database's NULL. A row with more cells than
    the head has is none."""
    rows = table_rows(counts.text(document.read()))
    number = 1
    while True:
        number += 1
        where = f"{document.where} row {number}"
        try:
            row = next(rows, None)
        except csv.Error as exc:
            yield Unread(where, f"{where}: not a row of a table ({exc}). Mend or remove it.")
            return
        if row is None:
            return
        if None in row:
            yield Unread(where, f"{where}: it has more cells than the head of the table. Mend or remove it.")
            continue
        yield where, partial(lambda row: {name: cell for name, cell in row.items() if cell not in (None, NULL)}, row)


def _csv(spec: Spec, site: Site) -> Container:
    return _grouped({"group_by": {"file": "path"}, **spec}, site, _table_rows, ("**/*.csv",))


def _is_grouped(spec: Spec, site: Site) -> bool:
    for name, other in (("delegates", "group_by"), ("conversations", "delegates")):
        if name in spec and other not in spec:
            raise site.at(name).error(f'it goes with "{other}", which tells {_TELLS[other]} apart.')
    return "group_by" in spec


_TELLS = {"group_by": "the traces", "delegates": "what stands below a call"}


def _grouped(spec: Spec, site: Site, parts: Parts, files: tuple[str, ...]) -> Container:
    """Lines, or elements of them, are events; events of one group are one run, in the order in which groups begin, its
    delegates behind it. The run of a document that holds no other is that document."""
    bases = {"@": Base(None), "^": Base(None)}
    group_by = compile_value(spec["group_by"], Site(site.at("group_by").where, bases))
    told = spec.get("delegates")
    delegates = None if told is None else compile_delegates(told, Site(site.at("delegates").where, bases))
    told = spec.get("conversations")
    talks = None
    if told is not None:
        talks = compile_conversations(told, delegates, Site(site.at("conversations").where, bases))
    root, steps = parse_path(spec.get("elements", "@"), site.at("elements").where)
    if root != "@":
        raise site.at("elements").error("a path from the line: @.resourceSpans[*].scopeSpans[*].spans[*].")
    elements = walk(steps)
    flat = fields_of(spec.get("unflatten", []), site.at("unflatten"), "@.attributes")

    def of_line(value: Any, where: str) -> list[Any]:
        found = elements(value) if "elements" in spec else [value]
        if not isinstance(found, list):
            raise TraceError(f"{where}: nothing at {spec['elements']}.")
        return found

    def read(scope: Scope, last: Key) -> tuple[str | None, TracedEvent]:
        event = scope.event
        if isinstance(event, dict) and flat:
            scope.event = event | {name: unflatten(event[name]) for name in flat if name in event}
        place = None if delegates is None else delegates.place(scope)
        found = TracedEvent(event, place, last, last, False) if talks is None else talks.read(scope, place, last)
        found.event = event
        return as_id(group_by(scope)), found

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        groups: dict[str, list[TracedEvent]] = {}
        scope, last = Scope(file=document.path), (0, 0)
        for part in _each(parts(document, counts), of_line):
            if isinstance(part, Unread):
                yield part
                continue
            where, scope.parent, found = part
            for scope.event in found:
                try:
                    with contained(where):
                        group, event = read(scope, last)
                except TraceError as exc:
                    yield Unread(where, str(exc))
                    continue
                last = event.begins
                if group is None:
                    yield Unread(where, f"{where}: {NO_GROUP}")
                else:
                    groups.setdefault(group, []).append(event)
        is_whole = spec["format"] == "json" and len(groups) == 1 and isinstance(scope.parent, dict)
        position = 0
        for group, events in (groups if talks is None else joined(groups)).items():
            whole = scope.parent if is_whole else {"events": [one.event for one in events], "group": group}
            for delegate, own in _agents(events):
                position += 1
                run = whole if len(own) == len(events) else whole | {"events": [one.event for one in own]}
                where = f"{document.where} group {group}{'' if delegate is None else '/' + delegate}"
                yield Found(run, MISSING, position, where, group, delegate=delegate, whole=whole)

    def _agents(events: list[TracedEvent]) -> Iterable[tuple[str | None, list[TracedEvent]]]:
        if talks is not None:
            return agents(events)
        return [(None, events)] if delegates is None else apart(events, [one.place for one in events])

    return Container(runs, files, group_by=group_by, goes_on=None if talks is None else talks.goes_on)


def _zip(spec: Spec, site: Site) -> Container:
    wanted = glob_pattern(globs(spec, "entries", ("**/*.json",), site))

    def parts(document: Document, counts: Counts) -> Iterator[Part | Unread]:
        with document.seekable() as stream:
            yield from members(stream, document.where, wanted, counts)

    return _listed(spec, site, parts, ("**/*.zip", "**/*.eval"))


def _parquet(spec: Spec, site: Site) -> Container:
    columns = spec.get("json", [])
    columns = [columns] if isinstance(columns, str) else columns
    if not isinstance(columns, list):
        raise site.at("json").error("the column, or a list of the columns, that hold JSON text.")

    def read(row: dict[str, Any], where: str, counts: Counts) -> dict[str, Any]:
        # Tables hold NaN where a number is missing: a merged table, in rows of a file that had no such column.
        row = {name: None if isinstance(value, float) and value != value else value for name, value in row.items()}
        for name in columns:
            value = row.get(name)
            if isinstance(value, str | bytes):
                data = value.encode("utf-8", "replace") if isinstance(value, str) else value
                row[name] = counts.json(data, f"{where} column {name}")
        return row

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        try:
            import pyarrow.parquet as parquet
        except ImportError as exc:
            raise missing_extra(f"{document.where}: reading parquet", "data", exc) from exc
        try:
            with document.seekable() as stream:
                batches = parquet.ParquetFile(stream).iter_batches(batch_size=16)
                for position, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                    where = f"{document.where} row {position}"
                    try:
                        found: Found | Unread = Found(read(row, where, counts), MISSING, position, where)
                    except TraceError as exc:
                        found = Unread(where, str(exc))
                    yield found
        except (OSError, ValueError) as exc:
            if isinstance(exc, TraceError):
                raise
            raise TraceError(f"{document.where}: not a parquet file ({exc}). Copy it again.") from exc

    return Container(runs, ("**/*.parquet",))


_GROUPING = ("group_by", "elements", "unflatten", "delegates", "conversations")
JSON_FORMATS: dict[str, Format] = {
    "json": (_json, ("runs", *_GROUPING)),
    "jsonl": (_jsonl, ("runs", *_GROUPING)),
    "csv": (_csv, ("group_by",)),
    "zip": (_zip, ("runs", "entries")),
    "parquet": (_parquet, ("json",)),
}
