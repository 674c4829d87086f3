"""Tar archives of runs, unpacked within bounds: a small file may say that it holds more than a disk."""

from __future__ import annotations

import bz2
import errno
import gzip
import io
import lzma
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from prefixguard.errors import TraceError
from prefixguard.trace.named_file import open_named

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")

#: An archive may unpack to so many bytes whatever its own size,
ALWAYS_UNPACKED = 1 << 30
#: beyond that to at most so many times its own size,
MOST_TIMES = 100
#: and never to more than this.
MOST_UNPACKED = 32 << 30
#: Members of an archive, of any kind.
MOST_MEMBERS = 500_000
#: Characters of a member's path.
LONGEST_NAME = 1024

#: No header, name or piece of a member is longer than this, in bytes.
_LONGEST_READ = 4 << 20
_OPENERS: tuple[tuple[bytes, Callable[..., Any]], ...] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)


def unpack(archive: Path, folder: Path) -> dict[str, str]:
    """Put the regular files of an archive into a folder: no links, no devices, no path that leaves the folder.

    Returns why members were left out, by their path. TraceError where the archive is cut off or damaged, or holds more
    than the bounds above; nothing more of it is unpacked then.
    """
    left_out: dict[str, str] = {}
    try:
        with open_named(archive) as packed:
            start = packed.read(8)
            packed.seek(0)
            opener = next((opener for magic, opener in _OPENERS if start.startswith(magic)), None)
            allowed = most_unpacked(archive.stat().st_size) if opener else MOST_UNPACKED
            plain = packed if opener is None else opener(packed)
            bounded: Any = _Bounded(plain, allowed, str(archive))
            with tarfile.open(fileobj=bounded, mode="r:") as tar:
                members = unpacked = 0
                while (member := tar.next()) is not None:
                    # All headers of a large archive would fill the memory.
                    tar.members.clear()  # type: ignore[attr-defined]
                    members += 1
                    unpacked += member.size if member.isfile() and not member.issparse() else 0
                    refuse_too_much(str(archive), members, unpacked, allowed)
                    reason = _put(tar, member, folder)
                    if reason is not None:
                        left_out[member.name[-LONGEST_NAME:]] = reason
    except TraceError:
        raise
    except Exception as exc:  # lzma and zlib raise their own kinds, which share no base
        why = getattr(exc, "strerror", None) or exc
        raise TraceError(f"{archive}: cannot be unpacked ({why}). It may be cut off; copy it again.") from exc
    return left_out


def most_unpacked(size: int) -> int:
    """Bytes that a packed archive of so many bytes may unpack to."""
    return min(MOST_UNPACKED, max(ALWAYS_UNPACKED, MOST_TIMES * size))


def refuse_too_much(archive: str, members: int, unpacked: int, allowed: int) -> None:
    """TraceError where an archive has too many members, or unpacks to more bytes than are allowed."""
    if members > MOST_MEMBERS:
        raise TraceError(f"{archive}: more than {MOST_MEMBERS:,} members. {_UNPACK}")
    if unpacked > allowed:
        raise TraceError(
            f"{archive}: unpacks to more than {allowed:,} bytes (at most {MOST_TIMES} times its own size, "
            f"or {ALWAYS_UNPACKED:,} bytes where that is more, and never more than {MOST_UNPACKED:,}). {_UNPACK}"
        )


_UNPACK = "If you trust it, unpack it yourself and name the folder."


def _put(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> str | None:
    """Write one member; why it is left out, or None. OSError where the disk is full."""
    parts = [part for part in member.name.replace("\\", "/").split("/") if part not in ("", ".")]
    if member.isdir():
        return None
    if member.issparse():
        return "a file with holes; archive it without --sparse."
    if not member.isfile():
        return "a link or a device, which are never unpacked."
    if ".." in parts or not parts or ":" in parts[0] or len(member.name) > LONGEST_NAME:
        return "its name leaves the folder or is too long; rename it."
    target = folder.joinpath(*parts)
    content = tar.extractfile(member) or io.BytesIO()
    with content:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            out = target.open("wb")
        except (OSError, ValueError) as exc:
            if getattr(exc, "errno", None) in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE):
                raise
            return f"cannot be written ({getattr(exc, 'strerror', None) or exc}); rename it."
        with out:
            shutil.copyfileobj(content, out, 1 << 16)
    return None


class _Bounded:
    """What an archive unpacks to, as tarfile reads it, up to a number of bytes."""

    def __init__(self, plain: BinaryIO, allowed: int, archive: str) -> None:
        self._plain, self._allowed, self._archive = plain, allowed, archive

    def tell(self) -> int:
        """Position in the unpacked bytes."""
        return self._plain.tell()

    def seek(self, position: int, whence: int = io.SEEK_SET) -> int:
        """To a position, reading what lies between; TraceError beyond what is allowed."""
        refuse_too_much(self._archive, 0, position, self._allowed + _LONGEST_READ)
        return self._plain.seek(position, whence)

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; TraceError beyond what is allowed."""
        if not 0 <= size <= _LONGEST_READ:
            raise TraceError(f"{self._archive}: a header of {size:,} bytes. {_UNPACK}")
        data = self._plain.read(size)
        refuse_too_much(self._archive, 0, self._plain.tell(), self._allowed + _LONGEST_READ)
        return data
