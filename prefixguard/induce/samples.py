"""Sample files, opened: decoded by what they hold, never by what they are called."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview import contained, decode, decode_text, render
from prefixguard.trace import open_documents

#: A file is read whole up to this size; what is larger is left out and named.
MAX_FILE_BYTES = 64 << 20
#: All samples together; then files are left out, spread over the folder.
MAX_BYTES = 256 << 20
MAX_FILES = 2000


class Kind(StrEnum):
    """What a file holds."""

    JSON = "json"
    JSONL = "jsonl"
    TEXT = "text"
    NOTEBOOK = "notebook"
    ZIP = "zip"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One file. path: inside the folder of samples. value: the decoded document; for JSONL the list of its lines; for
    a zip a dict of member name to decoded document; None for text. text: of text files, rendered, and of notebooks the
    outputs joined; "" otherwise."""

    path: str
    where: str
    kind: Kind
    size: int
    value: Any
    text: str


@dataclass(frozen=True, slots=True)
class Samples:
    """Files of a folder (or one file). left_out: (path, why) of what is not looked at."""

    source: str
    files: tuple[SampleFile, ...]
    left_out: tuple[tuple[str, str], ...] = ()


def open_samples(source: str | Path) -> Samples:
    """Read sample files: a folder, a file, a glob, an archive. TraceError where there is nothing to read."""
    files: list[SampleFile] = []
    left_out: list[tuple[str, str]] = []
    total = 0
    with open_documents(source) as documents:
        found = list(documents.matching(["**/*"]))
        kept = _drawn([document.path for document in found], MAX_FILES)
        for document in found:
            size, why = documents.size(document.path), "empty"
            if document.path not in kept:
                why = f"{MAX_FILES:,} of {len(found):,} files are looked at"
            elif size > MAX_FILE_BYTES or total + size > MAX_BYTES:
                why = f"{size:,} bytes: more than is looked at"
            else:
                try:
                    with contained(document.where):
                        data = document.read()
                        total += len(data)
                        if data.strip():
                            files.append(_file(document.path, document.where, data))
                            continue
                except TraceError as exc:
                    why = str(exc)
            left_out.append((document.path, why))
        left_out.extend(documents.left_out.items())
    if not files:
        raise TraceError(f"{source}: no file with anything in it. Name a folder with a few raw runs.")
    return Samples(str(source), tuple(files), tuple(left_out))


def _drawn(paths: list[str], n: int) -> set[str]:
    """At most n of the paths, drawn by their own bytes: every second file may be of one sort."""
    return set(sorted(paths, key=lambda path: hashlib.blake2b(path.encode("utf-8", "replace")).digest())[:n])


def _file(path: str, where: str, data: bytes) -> SampleFile:
    def held(kind: Kind, value: Any = None, text: str = "") -> SampleFile:
        return SampleFile(path, where, kind, len(data), value, text)

    if data.startswith(b"PAR1"):
        return held(Kind.PARQUET)
    if data.startswith(b"PK\x03\x04"):
        return held(Kind.ZIP, dict(_members(data)))
    if data.lstrip()[:1] in (b"{", b"["):
        value = _json(data)
        if isinstance(value, dict) and isinstance(value.get("cells"), list) and "nbformat" in value:
            return held(Kind.NOTEBOOK, value, _outputs(value))
        if value is not None:
            return held(Kind.JSON, value)
        lines = [_json(line) for line in data.splitlines() if line.strip()]
        good = [line for line in lines if line is not None]
        if good and len(good) >= 0.5 * len(lines):
            return held(Kind.JSONL, good)
    return held(Kind.TEXT, None, render(data.decode("utf-8", "replace")))


def _json(data: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        return decode(data)
    with suppress(ValueError, RecursionError):
        return decode_text(data.decode("utf-8", "replace"))
    return None


def _outputs(notebook: dict[str, Any]) -> str:
    cells = [cell for cell in notebook["cells"] if isinstance(cell, dict)]
    texts = [output.get("text") for cell in cells for output in cell.get("outputs", ()) if isinstance(output, dict)]
    return render("".join("".join(map(str, text)) if isinstance(text, list) else str(text or "") for text in texts))


def _members(data: bytes) -> Iterator[tuple[str, Any]]:
    total = 0
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for info in archive.infolist()[:MAX_FILES]:
                total += info.file_size
                if info.is_dir() or total > MAX_FILE_BYTES or PurePosixPath(info.filename).suffix != ".json":
                    continue
                value = _json(archive.read(info))
                if value is not None:
                    yield info.filename, value
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, NotImplementedError):
        return
