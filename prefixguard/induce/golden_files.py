"""Cutting one sample file: the chosen runs alone, long texts short, likely secrets masked. What a file of some form
cannot lose simply stays."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import re2

from prefixguard.escalate import Masker
from prefixguard.stepview import RunFiles, parse_path, walk
from prefixguard.trace import glob_pattern

#: The mark of a cut text. Short, so that cutting twice changes nothing.
_MARK = " [...] "
#: Date of members of an archive that is written anew: the same samples, the same bytes.
_DATE = (1980, 1, 1, 0, 0, 0)


def keep_runs(path: str, data: bytes, runs: Sequence[RunFiles], spec: Mapping[str, Any]) -> bytes:
    """The file with these of its runs alone, where its container allows that; otherwise as it is."""
    if not runs:
        return data
    container = container_of(spec.get("container"), path)
    form = container.get("format")
    try:
        if form == "json" and isinstance(container.get("runs"), str):
            return _json(_keep_in(_value(data), container["runs"], runs))
        if form == "jsonl":
            return _keep_lines(data, container, runs)
        if form == "text" and "runs" in container:
            return _keep_text(data, container, runs)
        if form == "notebook" and "runs" in container:
            return _notebook(_keep_text(_printed(data, container.get("cells")), container, runs))
        if form == "zip" and "runs" not in container:
            return _keep_members(data, container, runs)
    except (ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, RecursionError):
        return data
    return data


def container_of(container: Any, path: str) -> Mapping[str, Any]:
    """The part of a spec's container that reads the file at this path."""
    for one in container if isinstance(container, list) else [container]:
        if isinstance(one, str):
            one = {"format": one}
        if not isinstance(one, dict):
            continue
        files = one.get("files")
        globs = [files] if isinstance(files, str) else files
        if not isinstance(container, list) or globs is None or glob_pattern(globs)(path):
            return one
    return {}


def _value(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig", "replace"))


def _json(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")


def _keep_in(document: Any, runs_at: str, runs: Sequence[RunFiles]) -> Any:
    """The document with the chosen elements alone where its runs are. ValueError where they are in several places."""
    _, steps = parse_path(runs_at, "runs")
    if not steps or steps[-1] != ("all",) or any(step[0] != "name" for step in steps[:-1]):
        raise ValueError("runs in several places")
    above = document
    for step in steps[:-2]:
        above = above[step[1]]
    names = [step[1] for step in steps[:-1]]
    holder = above[names[-1]] if names else document
    if isinstance(holder, list):
        kept: Any = [holder[i - 1] for i in sorted({one.position for one in runs})]
    else:
        keys = {one.key for one in runs}
        kept = {key: value for key, value in holder.items() if key in keys}
    if not names:
        return kept
    above[names[-1]] = kept
    return document


def _keep_lines(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    lines = [line for line in data.splitlines() if line.strip()]
    group_by = container.get("group_by")
    if group_by is None and "runs" not in container:
        readable = [line for line in lines if _is_json(line)]
        return b"".join(readable[i - 1] + b"\n" for i in sorted({one.position for one in runs}))
    if isinstance(group_by, str) and "elements" not in container:
        find, groups = walk(parse_path(group_by, "group_by")[1]), {one.key for one in runs}
        return b"".join(line + b"\n" for line in lines if _is_json(line) and str(find(_value(line))) in groups)
    return data


def _is_json(line: bytes) -> bool:
    try:
        _value(line)
    except (ValueError, RecursionError):
        return False
    return True


def _keep_text(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    """The chosen runs with the headings between them, cut where the adapter cuts: at heads and at headings."""
    part = container["runs"]
    sections = part.get("section", [])
    heads = {match.start() for match in re2.finditer(part["split"]["head"].encode(), data)}
    marks = set(heads)
    for section in [sections] if isinstance(sections, str) else sections:
        marks |= {match.start() for match in re2.finditer(section.encode(), data)}
    positions = {one.position for one in runs}
    kept, position, places = [], 0, sorted(marks)
    for start, stop in zip(places, [*places[1:], len(data)], strict=True):
        position += start in heads
        if start not in heads or position in positions:
            kept.append(data[start:stop])
    return b"".join(kept)


def _printed(data: bytes, cells: Any) -> bytes:
    """What the cells of a notebook printed; of the last that printed, if the adapter reads that alone."""
    texts = []
    for cell in _value(data)["cells"]:
        parts = [output.get("text", "") for output in cell.get("outputs", ())]
        if parts:
            texts.append("".join("".join(part) if isinstance(part, list) else part for part in parts))
    return "".join(texts[-1:] if cells == "last" else texts).encode("utf-8", "surrogatepass")


def _notebook(printed: bytes) -> bytes:
    lines = printed.decode("utf-8", "surrogatepass").splitlines(keepends=True)
    output = {"output_type": "stream", "name": "stdout", "text": lines}
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": None,
        "metadata": {},
        "source": [],
        "outputs": [output],
    }
    return _json({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _keep_members(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    entries = container.get("entries", "**/*.json")
    wanted = glob_pattern([entries] if isinstance(entries, str) else entries)
    positions = {one.position for one in runs}
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as small:
        names = sorted(info.filename for info in archive.infolist() if not info.is_dir() and wanted(info.filename))
        for position, name in enumerate(names, 1):
            if position in positions:
                small.writestr(zipfile.ZipInfo(name, _DATE), archive.read(name))
    return out.getvalue()


def mask_file(data: bytes, masker: Masker) -> bytes:
    """The file with likely secrets masked, in its own form; archives and tables as they are."""
    return _changed(data, masker.mask_all, lambda text: "".join(map(masker.mask, text.splitlines(keepends=True))))


def shorten_file(data: bytes, length: int) -> bytes:
    """The file with texts cut to about `length` code points, in its own form."""
    return _changed(data, lambda value: _short(value, length), lambda text: text)


def _changed(data: bytes, in_json: Any, in_text: Any) -> bytes:
    """Every JSON value of a file through `in_json`, other text through `in_text`."""
    if data.startswith((b"PAR1", b"PK\x03\x04")):
        return data
    if data.lstrip()[:1] in (b"{", b"[") and b"\n" not in data.strip() and _is_json(data):
        return _line(data.strip(), in_json)  # one line of JSON may be a file of lines
    try:
        if data.lstrip()[:1] in (b"{", b"["):
            return _json(in_json(_value(data)))
    except (ValueError, RecursionError):
        lines = data.splitlines(keepends=True)
        if all(_is_json(line) for line in lines[:20] if line.strip()):
            return b"".join(_line(line, in_json) for line in lines)
    try:
        return str(in_text(data.decode("utf-8"))).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data


def _line(line: bytes, in_json: Any) -> bytes:
    try:
        changed = json.dumps(in_json(_value(line)), ensure_ascii=False)
    except (ValueError, RecursionError):
        return line
    return changed.encode("utf-8", "surrogatepass") + b"\n"


def _short(value: Any, length: int) -> Any:
    if isinstance(value, str):
        if len(value) <= length:
            return value
        return value[: length * 2 // 3] + _MARK + value[-(length // 3) :]
    if isinstance(value, dict):
        return {key: _short(inner, length) for key, inner in value.items()}
    if isinstance(value, list):
        return [_short(inner, length) for inner in value]
    return value
