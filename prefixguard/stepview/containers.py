"""Containers of an adapter: how a document on disk holds runs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from prefixguard.errors import TraceError, missing_extra
from prefixguard.stepview.compiling import Base, Site, known_keys
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.contained import contained
from prefixguard.stepview.jsontext import decode, decode_text
from prefixguard.stepview.paths import Getter, Step, is_multiple, parse_path, walk
from prefixguard.stepview.patterns import Pattern
from prefixguard.stepview.scope import MISSING, Companions, Scope
from prefixguard.stepview.terminal import render
from prefixguard.stepview.values import as_id, compile_value
from prefixguard.stepview.visibility import Place
from prefixguard.trace.archives import most_unpacked, refuse_too_much
from prefixguard.trace.documents import LARGEST_DOCUMENT, Document, glob_pattern, too_long

FORMATS = ("json", "jsonl", "text", "notebook", "folder", "zip", "parquet")
_DEFAULT_FILES = {
    "json": ("**/*.json",),
    "jsonl": ("**/*.jsonl", "**/*.ndjson"),
    "text": ("**/*.txt", "**/*.log"),
    "notebook": ("**/*.ipynb",),
    "zip": ("**/*.zip", "**/*.eval"),
    "parquet": ("**/*.parquet",),
}
_KEYS: dict[str, tuple[str, ...]] = {
    "json": ("runs",),
    "jsonl": ("runs", "group_by", "elements"),
    "text": ("runs",),
    "notebook": ("runs", "cells"),
    "folder": ("marker", "members"),
    "zip": ("runs", "entries"),
    "parquet": ("json",),
}
#: Why a line that no group takes is not read: it ends so.
NO_GROUP = "no value to group by, so it belongs to no run."


@dataclass(frozen=True, slots=True)
class Found:
    """One run in its document. position: from 1. key: its name in an object of runs. several: can there be more than
    one. alone: is there no other; known where labels are joined."""

    run: Any
    document: Any
    position: int
    where: str
    key: Any = MISSING
    several: bool = True
    is_json: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Unread:
    """Something in a document that could not be read; the rest can."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Container:
    """The compiled `container` of a spec. `runs` yields what a document holds; TraceError if it cannot be read at
    all."""

    format: str
    files: tuple[str, ...]
    runs: Callable[[Document, Companions, Counts], Iterator[Found | Unread]]
    group_by: Getter | None = None  # which run a line is of, where lines are events


class Counts:
    """Bad bytes met while reading."""

    __slots__ = ("bad_bytes",)

    def __init__(self) -> None:
        self.bad_bytes = 0

    def text(self, data: bytes) -> str:
        """UTF-8, with what is not replaced by U+FFFD and counted."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("utf-8", "replace")
            self.bad_bytes += text.count("�") - data.count(b"\xef\xbf\xbd")
            return text

    def json(self, data: bytes, where: str, line: int | None = None) -> Any:
        """JSON bytes as values. TraceError with the place and what to do."""
        if data.startswith(b"\xef\xbb\xbf"):
            data = data[3:]
        try:
            try:
                return decode(data)
            except UnicodeDecodeError:
                return decode_text(self.text(data))
        except ValueError as exc:
            raise TraceError(_not_json(exc, data, where, line)) from exc


class SharedCounts(Counts):
    """For several readings of the same documents: JSON that one decoded is there for the next, up to a size."""

    __slots__ = ("_kept", "_room")

    def __init__(self, room: int) -> None:
        """room: bytes of raw JSON whose values are kept."""
        super().__init__()
        self._room = room
        self._kept: dict[tuple[str, int | None], Any] = {}

    def json(self, data: bytes, where: str, line: int | None = None) -> Any:
        key = (where, line)
        if key in self._kept:
            return self._kept[key]
        value = super().json(data, where, line)
        if len(data) <= self._room:
            self._room -= len(data)
            self._kept[key] = value
        return value


def _not_json(exc: ValueError, data: bytes, where: str, line: int | None) -> str:
    message = getattr(exc, "msg", None) or str(exc)
    at = ""
    if isinstance(exc, orjson.JSONDecodeError) or hasattr(exc, "lineno"):
        row = getattr(exc, "lineno", 1)
        column = getattr(exc, "colno", 1)
        at = f" line {line}, column {column}" if line is not None else f" line {row}, column {column}"
    elif line is not None:
        at = f" line {line}"
    if not data.strip():
        return f"{where}{at}: the file is empty. Remove it, or write the run again."
    cut_off = getattr(exc, "pos", 0) >= len(data.rstrip()) - 2
    hint = "It looks cut off; write it again." if cut_off else "Mend or remove it, or name another adapter."
    return f"{where}{at}: not JSON ({message}). {hint}"


def compile_container(spec: Any, site: Site) -> tuple[Container, Base | None, Base]:
    """The container, and what % (None where it cannot be used) and $ stand for. AdapterError if it is wrong.

    A list of containers: each document is read by the first whose `files` fit its path. Where none do (standard
    input, a file of another name) and the list has both json and jsonl, the lines decide: a first line that is JSON
    by itself with another after it is jsonl.
    """
    if not isinstance(spec, list):
        return _one_container(spec, site)
    parts = [_one_container(one, site.at(f"[{i}]"))[0] for i, one in enumerate(spec)]
    if not parts:
        raise site.error("an empty list of containers.")
    choices = [(glob_pattern(part.files), part) for part in parts]

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        chosen = next((part for wanted, part in choices if wanted(document.path)), None)
        if chosen is None:
            chosen, document = _by_its_lines(parts, document)
        return chosen.runs(document, companions, counts)

    files = tuple(dict.fromkeys(glob for part in parts for glob in part.files))
    group_by = next((part.group_by for part in parts if part.group_by is not None), None)
    return Container("+".join(part.format for part in parts), files, runs, group_by), None, Base(Place("run", ()))


def _by_its_lines(parts: list[Container], document: Document) -> tuple[Container, Document]:
    """The container that fits a document whose name says nothing, and the document, still whole."""
    forms = {part.format: part for part in reversed(parts)}
    if not {"json", "jsonl"} <= forms.keys():
        return parts[0], document
    lines, document = document.first_lines(2)
    if len(lines) < 2:
        return forms["json"], document
    try:
        decode(lines[0].strip())
    except ValueError:
        return forms["json"], document
    return forms["jsonl"], document


def _one_container(spec: Any, site: Site) -> tuple[Container, Base | None, Base]:
    if isinstance(spec, str):
        spec = {"format": spec}
    if not isinstance(spec, dict) or spec.get("format") not in FORMATS:
        raise site.error(f'{{"format": one of {", ".join(FORMATS)}}}.')
    form: str = spec["format"]
    known_keys(spec, ("format", "files", "comment", *_KEYS[form]), site)
    files = spec.get("files", list(_DEFAULT_FILES.get(form, ())))
    files = [files] if isinstance(files, str) else files
    if not isinstance(files, list) or not all(isinstance(one, str) and one for one in files):
        raise site.at("files").error('a glob such as "**/trajs/*.traj", or a list of them.')
    run = Base(Place("run", ()))
    if form == "folder":
        runs = _folder(spec, site)
        marker = spec["marker"]
        return Container(form, (f"**/{marker}",) if "files" not in spec else tuple(files), runs), None, run
    if form in ("text", "notebook"):
        return Container(form, tuple(files), _text(spec, form, site)), None, run
    if form == "jsonl" and "group_by" in spec:
        line_site = Site(site.at("group_by").where, {"@": Base(None), "^": Base(None)})
        group_by = compile_value(spec["group_by"], line_site)
        return Container(form, tuple(files), _grouped(spec, site, group_by), group_by), None, run
    if form == "parquet":
        return Container(form, tuple(files), _parquet(spec, site)), None, run
    reader = {"json": _json, "jsonl": _lines, "zip": _zip}[form]
    if isinstance(spec.get("runs"), list):
        return Container(form, tuple(files), reader(_cases(spec["runs"], site.at("runs")), spec, site)), None, run
    steps: tuple[Step, ...] = _document_path(spec["runs"], site.at("runs")) if "runs" in spec else ()
    document = Base(Place("document", ()))
    return Container(form, tuple(files), reader(_listing(steps), spec, site)), document, Base(Place("document", steps))


def _document_path(path: Any, site: Site) -> tuple[Step, ...]:
    root, steps = parse_path(path, site.where)
    if root not in ("$", "%"):
        raise site.error("a path from the document: $[*], $.simulations[*], $.* for an object of runs.")
    return steps


def _cases(spec: list[Any], site: Site) -> Listing:
    """Where the runs are, by what the document looks like: the first case whose `when` holds."""
    cases: list[tuple[Condition, Listing]] = []
    for i, case in enumerate(spec):
        here = site.at(f"[{i}]")
        if not isinstance(case, dict) or "path" not in case:
            raise here.error('a case is {"when": condition over %, "path": "$[*]"}.')
        known_keys(case, ("when", "path", "comment"), here)
        judged = Site(here.at("when").where, {"%": Base(Place("document", ()))})
        steps = _document_path(case["path"], here.at("path"))
        cases.append((compile_when(case.get("when", "else"), judged), _listing(steps)))
    if not cases:
        raise site.error("an empty list of cases.")

    def listing(document: Any) -> Any:
        scope = Scope()
        scope.document = document
        for when, runs in cases:
            if when(scope):
                return runs(document)
        return MISSING

    return listing


#: From a document to its runs: (key or MISSING, run), or MISSING where the path leads nowhere.
Listing = Callable[[Any], Any]


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


def _json(
    listing: Listing, spec: Mapping[str, Any], site: Site
) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
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


def _lines(
    listing: Listing, spec: Mapping[str, Any], site: Site
) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
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


def _grouped(
    spec: Mapping[str, Any], site: Site, group_by: Getter
) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
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


def _text(
    spec: Mapping[str, Any], form: str, site: Site
) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
    part = spec.get("runs")
    here = site.at("runs")
    head: Pattern | None = None
    sections: list[Pattern] = []
    if part is not None:
        if not isinstance(part, dict):
            raise here.error('{"split": {"head": RE}} and, if you like, "section": RE.')
        known_keys(part, ("split", "section", "tail"), here)
        if "split" in part:
            if not isinstance(part["split"], dict) or "head" not in part["split"]:
                raise here.at("split").error('{"head": RE}: a run begins where it matches.')
            known_keys(part["split"], ("head",), here.at("split"))
            head = Pattern(part["split"]["head"], here.at("split.head").where)
        named = part.get("section", [])
        sections = [Pattern(one, here.at("section").where) for one in (named if isinstance(named, list) else [named])]
    tail = Pattern(part["tail"], here.at("tail").where) if part is not None and "tail" in part else None
    cells = spec.get("cells", "all")
    if cells not in ("all", "last"):
        raise site.at("cells").error('"all" or "last": outputs of which cells.')

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        data = document.read()
        text = (
            counts.text(data) if form == "text" else _outputs(counts.json(data, document.where), cells, document.where)
        )
        text = render(text)
        if head is None:
            yield Found({"text": text, "body": text, "section": {}}, MISSING, 1, document.where, several=False)
            return
        for position, run in enumerate(split_runs(text, head, sections, tail), 1):
            yield Found(run, MISSING, position, f"{document.where} run {position}")

    return runs


def split_runs(text: str, head: Pattern, sections: list[Pattern], tail: Pattern | None) -> Iterator[dict[str, Any]]:
    """Runs of a text: from one head to the next or to the next section heading, with the headings above it."""
    data = text.encode("utf-8", "replace")
    marks: list[tuple[int, int, int, dict[str, str]]] = [
        (start, end, -1, named) for start, end, named in head.all_spans(data)
    ]
    for i, section in enumerate(sections):
        marks.extend((start, end, i, named) for start, end, named in section.all_spans(data))
    marks.sort(key=lambda mark: (mark[0], -mark[2]))
    current: dict[int, dict[str, str]] = {}
    for n, (start, end, kind, named) in enumerate(marks):
        if kind >= 0:
            current[kind] = named
            continue
        stop = marks[n + 1][0] if n + 1 < len(marks) else len(data)
        whole = data[start:stop]
        if tail is not None:
            spans = tail.all_spans(whole)
            if spans:
                whole = whole[: spans[0][0]]
        above = {name: value for i in sorted(current) for name, value in current[i].items()}
        yield {
            **named,
            "text": whole.decode("utf-8", "replace"),
            "body": whole[end - start :].decode("utf-8", "replace"),
            "section": above,
        }


def _outputs(notebook: Any, cells: str, where: str) -> str:
    """Text of the outputs of a notebook's cells, joined."""
    found = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(found, list):
        raise TraceError(f"{where}: not a Jupyter notebook (no list of cells). Name another adapter.")
    texts: list[str] = []
    for cell in found:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        if not isinstance(outputs, list) or not outputs:
            continue
        parts = []
        for output in outputs:
            if not isinstance(output, dict):
                continue
            text = output.get("text")
            if text is None and isinstance(output.get("data"), dict):
                text = output["data"].get("text/plain")
            if isinstance(text, list):
                text = "".join(one for one in text if isinstance(one, str))
            if isinstance(text, str):
                parts.append(text)
        if cells == "last":
            texts.clear()
        texts.append("".join(parts))
    return "".join(texts)


def _folder(spec: Mapping[str, Any], site: Site) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
    marker = spec.get("marker")
    if not isinstance(marker, str) or not marker or ".." in marker.split("/"):
        raise site.at("marker").error("the name of a file that every folder of a run holds, such as results.json.")
    members = spec.get("members", {})
    here = site.at("members")
    if not isinstance(members, dict) or not members:
        raise here.error('names and files of the folder: {"log": {"path": "sessions/agent.log", "format": "text"}}.')
    parts: list[tuple[str, str, str]] = []
    for name, member in members.items():
        if isinstance(member, str):
            member = {"path": member}
        if not isinstance(member, dict) or not isinstance(member.get("path"), str):
            raise here.at(name).error('{"path": "sessions/agent.log", "format": "text"}.')
        known_keys(member, ("path", "format"), here.at(name))
        form = member.get("format", "json")
        if form not in ("json", "jsonl", "text"):
            raise here.at(name).error(f'format {form!r}: "json", "jsonl" or "text".')
        parts.append((name, member["path"], form))
    up = "../" * marker.count("/")

    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        run: dict[str, Any] = {}
        for name, path, form in parts:
            data = companions.raw(document.path, up + path)
            if data is None:
                continue
            place = f"{document.where} ({path})"
            if form == "text":
                run[name] = render(counts.text(data))
            elif form == "json":
                run[name] = counts.json(data, place)
            else:
                lines = enumerate(data.split(b"\n"), 1)
                run[name] = [counts.json(line, place, number) for number, line in lines if line.strip()]
        yield Found(run, MISSING, 1, document.where, several=False)

    return runs


def _zip(
    listing: Listing, spec: Mapping[str, Any], site: Site
) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
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


def _parquet(spec: Mapping[str, Any], site: Site) -> Callable[[Document, Companions, Counts], Iterator[Found | Unread]]:
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
