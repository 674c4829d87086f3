"""Cutting one sample file: the chosen runs alone, long texts short, likely secrets masked. What a file of some form
cannot lose simply stays."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
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
    container = _container_of(spec.get("container"), path)
    keep = {"json": _keep_in, "jsonl": _keep_lines, "text": _keep_text, "zip": _keep_members}
    try:
        return keep[container["format"]](data, container, runs) if runs else data
    except (ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, RecursionError):
        return data


def _container_of(container: Any, path: str) -> Mapping[str, Any]:
    """The part of a spec's container that reads the file at this path."""
    for one in container if isinstance(container, list) else [container]:
        part = {"format": one} if isinstance(one, str) else one
        if not isinstance(container, list) or "files" not in part or _globs(part["files"])(path):
            return dict(part)
    return {}


def _globs(names: str | Sequence[str]) -> Callable[[str], Any]:
    return glob_pattern([names] if isinstance(names, str) else list(names))


def _value(data: bytes) -> Any:
    return json.loads(data.decode("utf-8-sig", "replace"))


def _keep_in(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    """The chosen elements alone where the runs are. ValueError where they are in several places."""
    *names, last = parse_path(container["runs"], "runs")[1]
    if last != ("all",) or any(step[0] != "name" for step in names):
        raise ValueError("runs in several places")
    document = {"": _value(data)}
    above: Any = document
    name = ""
    for step in names:
        above, name = above[name], step[1]
    holder = above[name]
    if isinstance(holder, list):
        above[name] = [holder[i - 1] for i in sorted({one.position for one in runs})]
    else:
        keys = {one.key for one in runs}
        above[name] = {key: value for key, value in holder.items() if key in keys}
    return _json(document[""])


def _keep_lines(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    lines = [line for line in data.splitlines() if _is_json(line)]
    if "group_by" not in container and "runs" not in container:
        kept = [lines[i - 1] for i in sorted({one.position for one in runs})]
    elif isinstance(container["group_by"], str) and "elements" not in container:
        find, groups = walk(parse_path(container["group_by"], "group_by")[1]), {one.key for one in runs}
        kept = [line for line in lines if str(find(_value(line))) in groups]
    else:
        return data
    return b"".join(line + b"\n" for line in kept)


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


def _keep_members(data: bytes, container: Mapping[str, Any], runs: Sequence[RunFiles]) -> bytes:
    if "runs" in container:
        return data
    wanted = _globs(container.get("entries", "**/*.json"))
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


def _changed(data: bytes, in_json: Callable[[Any], Any], in_text: Callable[[str], str]) -> bytes:
    """Every JSON value of a file through `in_json`, other text through `in_text`."""
    if data.startswith((b"PAR1", b"PK\x03\x04")):
        return data
    lines = [line for line in data.splitlines() if line.strip()]
    with suppress(RecursionError):
        if all(map(_is_json, lines[:20])):  # one line of JSON may be a file of lines
            changed = [_json(in_json(_value(line)), None) if _is_json(line) else line + b"\n" for line in lines]
            return b"".join(changed)
        if _is_json(data):
            return _json(in_json(_value(data)))
    try:
        return in_text(data.decode()).encode()
    except UnicodeDecodeError:
        return in_text(data.decode("latin-1")).encode("latin-1", "replace")


def _is_json(data: bytes) -> bool:
    """Is it an object or a list?"""
    try:
        return isinstance(_value(data), dict | list)
    except (ValueError, RecursionError):
        return False


def _json(value: Any, indent: int | None = 1) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=indent) + "\n").encode("utf-8", "surrogatepass")


def _short(value: Any, length: int) -> Any:
    if isinstance(value, str) and len(value) > length:
        return value[: length * 2 // 3] + _MARK + value[-(length // 3) :]
    if isinstance(value, dict):
        return {key: _short(inner, length) for key, inner in value.items()}
    return [_short(inner, length) for inner in value] if isinstance(value, list) else value
