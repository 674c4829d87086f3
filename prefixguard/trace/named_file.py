"""Files that a user names, opened so that nothing hangs and nothing grows without a bound.

A name may lead to anything: a folder, a named pipe that nobody writes to, a device that never ends, a file of a
terabyte. What is opened here is a regular file. One thing besides is allowed: a pipe that this process was started
with (`/dev/stdin`, or `/dev/fd/63` as a shell writes `<(command)`), because its other end is a program that ends.
"""

from __future__ import annotations

import io
import os
import select
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import re2

from prefixguard.errors import PrefixGuardError, TraceError

#: Seconds without a byte after which a pipe that should hold labels or options is given up.
PATIENCE = 30.0

_CHUNK = 1 << 20

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_INHERITED = re2.compile(r"/dev/stdin|/dev/fd/[0-9]+|/proc/(?:self|[0-9]+)/fd/[0-9]+")
_KINDS = (
    (stat.S_ISLNK, "is a symbolic link, and only the file itself is read"),
    (stat.S_ISDIR, "is a folder, not a file"),
    (stat.S_ISFIFO, "is a named pipe, not a file"),
    (stat.S_ISSOCK, "is a socket, not a file"),
    (stat.S_ISCHR, "is a device or a terminal, not a file"),
    (stat.S_ISBLK, "is a device, not a file"),
)


def is_inherited_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether the path names a pipe that this process was started with, as `/dev/fd/63` does for `<(command)`."""
    name = os.path.normpath(os.fspath(path))
    try:
        return _INHERITED.fullmatch(name) is not None and stat.S_ISFIFO(Path(name).stat().st_mode)
    except (OSError, ValueError):
        return False


def is_read_once(source: str | os.PathLike[str]) -> bool:
    """Whether runs or labels can be read once only: `-` (standard input), or a pipe that this process was started
    with."""
    return os.fspath(source) == "-" or is_inherited_pipe(source)


def open_named(
    path: str | Path,
    *,
    shown: str | None = None,
    patience: float | None = None,
    remedy: str = "Check the path and its permissions.",
    links: bool = True,
    error: type[PrefixGuardError] = TraceError,
) -> BinaryIO:
    """A regular file, or a pipe that this process was started with, open for reading.

    shown: what messages call it; None: the path. patience: seconds that a pipe may be silent; None: any time. remedy:
    how messages end. links: whether a symbolic link is followed. Raises `error` at once for anything else.
    """
    where = os.fspath(path) if shown is None else shown
    try:
        found = Path(path).stat(follow_symlinks=links)
        piped = is_inherited_pipe(path)
        _refuse_other_kinds(found, where, piped, remedy, error)
        descriptor = os.open(path, _FLAGS if links else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    except (OSError, ValueError) as exc:
        if isinstance(exc, PrefixGuardError):
            raise
        raise error(f"{where}: cannot be read ({getattr(exc, 'strerror', None) or exc}). {remedy}") from exc
    try:
        # Of what was opened: the name may lead elsewhere by now.
        _refuse_other_kinds(os.fstat(descriptor), where, piped, remedy, error)
        if piped:
            if patience is not None:
                return io.BufferedReader(_Pipe(descriptor, patience))
            os.set_blocking(descriptor, True)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with suppress(OSError):
            os.close(descriptor)
        raise


def read_named(
    path: str | Path,
    most: int,
    *,
    shown: str | None = None,
    patience: float | None = PATIENCE,
    remedy: str = "Check the path and its permissions.",
    links: bool = True,
    error: type[PrefixGuardError] = TraceError,
) -> bytes:
    """All bytes of what `open_named` opens; `error`, too, where they cannot be read or are more than `most`."""
    where = os.fspath(path) if shown is None else shown
    with open_named(path, shown=shown, patience=patience, remedy=remedy, links=links, error=error) as stream:
        return read_bounded(stream, most, where, remedy, error)


def read_bounded(
    stream: BinaryIO, most: int, where: str, remedy: str, error: type[PrefixGuardError] = TraceError
) -> bytes:
    """The rest of a stream; `error` where it is more than `most` bytes, or cannot be read."""
    size = _size(stream)
    if size > most:
        raise error(f"{where}: {size:,} bytes, and at most {most:,} are read. {remedy}")
    try:
        data = stream.read((size or min(_CHUNK, most)) + 1)
        if 0 < len(data) <= size:
            return data
        chunks, total = [data], len(data)
        while total <= most and (data := stream.read(_CHUNK)):
            chunks.append(data)
            total += len(data)
        if total <= most:
            return b"".join(chunks)
    except (OSError, ValueError, MemoryError) as exc:
        why = getattr(exc, "strerror", None) or str(exc) or "not enough memory"
        raise error(f"{where}: cannot be read ({why}). {remedy}") from exc
    raise error(f"{where}: more than {most:,} bytes, and at most so many are read. {remedy}")


def _size(stream: BinaryIO) -> int:
    """Bytes of the file behind a stream; 0 where there is none."""
    try:
        return os.fstat(stream.fileno()).st_size
    except (OSError, ValueError):
        return 0


def _refuse_other_kinds(
    found: os.stat_result, where: str, piped: bool, remedy: str, error: type[PrefixGuardError]
) -> None:
    if stat.S_ISREG(found.st_mode) or (piped and stat.S_ISFIFO(found.st_mode)):
        return
    kind = next((words for is_kind, words in _KINDS if is_kind(found.st_mode)), "is not a regular file")
    raise error(f"{where}: {kind}. {remedy}")


class _Pipe(io.RawIOBase):
    """A pipe that was opened without waiting, and is read with a bound on how long it may be silent."""

    def __init__(self, descriptor: int, patience: float) -> None:
        self._descriptor, self._patience = descriptor, patience

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def readinto(self, buffer: Any) -> int:
        ready, _, _ = select.select([self._descriptor], [], [], self._patience)
        if not ready:
            raise TimeoutError(f"nothing came through the pipe for {self._patience:g} s")
        data = os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()
