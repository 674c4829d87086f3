"""Containers of an adapter: how a document on disk holds runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prefixguard.stepview.compiling import Base, Place, Site, known_keys
from prefixguard.stepview.found import Container, Counts, Found, Unread
from prefixguard.stepview.json_containers import (
    compile_listing,
    grouped_runs,
    json_runs,
    line_runs,
    table_runs,
    zip_runs,
)
from prefixguard.stepview.jsontext import decode
from prefixguard.stepview.paths import Companions
from prefixguard.stepview.text_containers import folder_runs, text_runs
from prefixguard.stepview.values import compile_value
from prefixguard.trace.documents import Document, glob_pattern

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
        read = folder_runs(spec, site)
        return Container(form, tuple(files) if "files" in spec else (f"**/{spec['marker']}",), read), None, run
    if form == "jsonl" and "group_by" in spec:
        line_site = Site(site.at("group_by").where, {"@": Base(None), "^": Base(None)})
        group_by = compile_value(spec["group_by"], line_site)
        return Container(form, tuple(files), grouped_runs(spec, site, group_by), group_by), None, run
    if form in ("text", "notebook"):
        return Container(form, tuple(files), text_runs(spec, site)), None, run
    if form == "parquet":
        return Container(form, tuple(files), table_runs(spec, site)), None, run
    listing, steps = compile_listing(spec, site)
    container = Container(
        form, tuple(files), {"json": json_runs, "jsonl": line_runs, "zip": zip_runs}[form](listing, spec)
    )
    if steps is None:
        return container, None, run
    return container, Base(Place("document", ())), Base(Place("document", steps))
