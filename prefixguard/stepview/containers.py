"""Containers of an adapter: how a document on disk holds runs. The formats are the entries of `FORMATS`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.found import Container, Counts, Found, Unread
from prefixguard.stepview.inspect_logs import INSPECT_FORMATS
from prefixguard.stepview.json_formats import JSON_FORMATS, globs
from prefixguard.stepview.jsontext import decode
from prefixguard.stepview.paths import MISSING, Companions
from prefixguard.stepview.score_tables import SCORE_FORMATS
from prefixguard.stepview.text_formats import TEXT_FORMATS
from prefixguard.trace.documents import Document, glob_pattern

#: By name: what compiles the container, and the keys that it may have besides `format`, `files` and `comment`.
FORMATS = JSON_FORMATS | TEXT_FORMATS | INSPECT_FORMATS | SCORE_FORMATS


def compile_container(spec: Any, site: Site) -> Container:
    """The container of a spec. AdapterError if it is wrong.

    A list of containers: each document is read by the first whose `files` fit its path. Where none do (standard
    input, a file of another name) and the list has both json and jsonl, the lines decide: a first line that is JSON
    by itself with another after it is jsonl.
    """
    if not isinstance(spec, list):
        return _one_container(spec, site)
    parts = [_one_container(one, site.at(f"[{i}]")) for i, one in enumerate(spec)]
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
    goes_on = next((part.goes_on for part in parts if part.goes_on is not None), None)
    return Container(runs, files, "+".join(part.format for part in parts), group_by, goes_on)


def _by_its_lines(parts: list[Container], document: Document) -> tuple[Container, Document]:
    """The container that fits a document whose name says nothing, and the document, still whole."""
    forms = {part.format: part for part in reversed(parts)}
    if not {"json", "jsonl"} <= forms.keys():
        return parts[0], document
    lines, document = document.first_lines(2)
    try:
        is_lines = len(lines) == 2 and decode(lines[0].strip()) is not MISSING
    except ValueError:
        is_lines = False
    return forms["jsonl" if is_lines else "json"], document


def _one_container(spec: Any, site: Site) -> Container:
    if isinstance(spec, str):
        spec = {"format": spec}
    if not isinstance(spec, dict) or spec.get("format") not in tuple(FORMATS):
        raise site.error(f'{{"format": one of {", ".join(FORMATS)}}}.')
    form: str = spec["format"]
    build, keys = FORMATS[form]
    site.keys(spec, ("format", "files", "comment", *keys))
    files = globs(spec, "files", (), site)
    container = build(spec, site)
    return replace(container, format=form, files=files if "files" in spec else container.files)
