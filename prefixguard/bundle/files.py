"""Files that are written whole, or not at all: flushed to disk, and never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from pathlib import Path

from prefixguard.errors import OutputError

_BINARY = getattr(os, "O_BINARY", 0)


def write_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a new file, flushed to disk; never over one that is there, nor through a link. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Write a file, or put it in the place of one that is there, in one rename. Raises OSError."""
    temporary = path.parent / f".{path.name}.{secrets.token_hex(4)}.tmp"
    try:
        write_file(temporary, data, mode)
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Flush a folder's entries, where the system can."""
    with contextlib.suppress(PermissionError):  # Windows opens no folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as exc:
            if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
                raise
        finally:
            os.close(descriptor)


def output_error(target: Path, exc: OSError) -> OutputError:
    """The error for a file that the system refuses to write."""
    if isinstance(exc, OutputError):
        return exc
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{target}: the disk is full, nothing was written. Make room and try again.")
    return OutputError(f"{target}: cannot be written ({exc.strerror}). Choose a folder you may write to.")
