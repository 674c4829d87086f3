"""JSON documents in a zip archive, read member by member within bounds: nothing is written to disk."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any, BinaryIO

from prefixguard.errors import TraceError, missing_extra
from prefixguard.stepview.found import Counts, Unread
from prefixguard.trace.archives import most_unpacked, refuse_too_much
from prefixguard.trace.documents import LARGEST_DOCUMENT

#: A part of a document that is one JSON value: its place, for messages, and what reads it.
Part = tuple[str, Callable[[], Any]]

#: The number by which a zip archive names zstd.
_ZSTD = 93


def members(
    stream: BinaryIO, where: str, wanted: Callable[[str], bool], counts: Counts, or_else: str = ""
) -> Iterator[Part | Unread]:
    """The members whose path is wanted, by path. They can be read until the iterator is left.

    or_else : another way on where the package is missing that unpacks zstd. TraceError for what is no zip archive, and
    for one that holds too much; MissingExtraError.
    """
    allowed = most_unpacked(stream.seek(0, io.SEEK_END))
    archive = _opened(zipfile, stream, where)
    if any(one.compress_type == _ZSTD for one in archive.infolist()) and not hasattr(zipfile, "ZIP_ZSTANDARD"):
        try:
            from backports.zstd import zipfile as with_zstd
        except ImportError as exc:
            raise missing_extra(f"{where}: unpacking zstd", "zstd", exc, or_else=or_else) from exc
        archive = _opened(with_zstd, stream, where)
    chosen = [one for one in archive.infolist() if not one.is_dir() and wanted(one.filename)]
    refuse_too_much(where, len(archive.infolist()), sum(one.file_size for one in chosen), allowed)
    for info in sorted(chosen, key=lambda one: one.filename):
        place = f"{where}/{info.filename}"
        if info.file_size > LARGEST_DOCUMENT:
            most = f"{info.file_size:,} bytes unpacked, and at most {LARGEST_DOCUMENT:,} are read"
            yield Unread(place, f"{place}: {most}. Unpack it, and write its runs as JSON lines.")
        else:
            yield place, partial(_member, archive, info, place, counts)


def _opened(module: ModuleType, stream: BinaryIO, where: str) -> zipfile.ZipFile:
    try:
        archive: zipfile.ZipFile = module.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as exc:
        raise TraceError(f"{where}: not a zip archive ({exc}). It may be cut off; copy it again.") from exc
    return archive


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str, counts: Counts) -> Any:
    try:
        with archive.open(info) as packed:
            data = packed.read(info.file_size)  # told how many, it unpacks no more
    except Exception as exc:  # what unpacks raises kinds of its own, which share no base
        raise TraceError(f"{where}: cannot be unpacked ({exc}).") from exc
    return counts.json(data, where)
