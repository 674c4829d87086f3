"""Where a command of the factory may write: never over what it reads, and known before any work begins."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

from prefixguard.errors import OutputError

Named = str | os.PathLike[str] | None


def file_for(out: str | os.PathLike[str], inputs: Iterable[Named]) -> Path:
    """The file that is written. OutputError where it is a folder, or one of the inputs, or lies in one of them.

    inputs: files, folders or patterns that are read; None for one that was not given.
    """
    out = Path(out)
    if out.is_dir():
        raise OutputError(f"{out} is a folder: name a file for OUT.")
    _refuse_inputs(out, inputs)
    return out


def folder_for(out: str | os.PathLike[str], inputs: Iterable[Named], names: Iterable[str]) -> Path:
    """The folder into which files of these names are written. OutputError as for `file_for`."""
    out = Path(out)
    for path in (out / name for name in names):
        _refuse_inputs(path, inputs)
    there = next(path for path in (out, *out.parents, Path()) if os.path.lexists(path) or path == Path())
    if not there.is_dir():
        raise OutputError(f"{there} is a file: name a folder for OUT.")
    return out


def _refuse_inputs(out: Path, inputs: Iterable[Named]) -> None:
    real = Path(os.path.realpath(out))
    for named in inputs:
        if not named:
            continue
        for path in map(Path, glob.glob(os.fspath(named), recursive=True) or [os.fspath(named)]):  # noqa: PTH207 - a pattern may be absolute
            if os.path.realpath(path) == str(real) or (path.exists() and out.exists() and path.samefile(out)):
                raise OutputError(f"{out} is one of the inputs ({path}), and would be replaced: name another OUT.")
            if path.is_dir() and real.is_relative_to(os.path.realpath(path)):
                raise OutputError(f"{out} lies in the folder that is read ({path}): name a place outside for OUT.")
