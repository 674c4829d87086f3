"""The file in which a watch keeps its session from one process to the next."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from prefixguard.errors import OutputError, SavedSessionError


def read_state(path: str | os.PathLike[str], most: int) -> bytes | None:
    """What was saved there; None where there is no file. At most `most` bytes and one more are read.

    Raises SavedSessionError for what is no plain file, or cannot be read.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):  # noqa: PTH116  - a pipe or a device would block or never end
            raise SavedSessionError(
                f"{path}: is no plain file. Name the file that an earlier watch wrote, or a new one."
            )
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise SavedSessionError(f"{path}: cannot be read ({exc.strerror}). Name a file that you may read.") from exc


def write_state(path: str | os.PathLike[str], data: bytes) -> None:
    """Put it there, for the owner's eyes alone: the whole of it, or on any failure what was there before.

    Raises OutputError when it cannot be written.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name}.{secrets.token_hex(4)}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as exc:
        raise OutputError(
            f"{path}: the session cannot be saved ({exc.strerror}). Name a file that can be written."
        ) from exc
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def remove_state(path: str | os.PathLike[str]) -> None:
    """The run is over. Raises OutputError when the file cannot be removed."""
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as exc:
        raise OutputError(f"{path}: cannot be removed ({exc.strerror}). Remove it: its run is over.") from exc
