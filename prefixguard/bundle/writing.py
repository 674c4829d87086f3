"""Write a bundle: all of it or nothing.

Everything goes into a temporary folder beside the target, is flushed to disk, opened and verified as a reader would,
and takes the target's name in one rename. On any failure the temporary folder is removed and the target is as before.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path

from prefixguard.bundle import layout
from prefixguard.bundle.arrays import arrays_to_bytes
from prefixguard.bundle.automaton_file import automaton_from_bytes
from prefixguard.bundle.card import write_card
from prefixguard.bundle.manifest import make_manifest, render
from prefixguard.bundle.parts import BundleParts
from prefixguard.bundle.reading import open_bundle
from prefixguard.errors import BundleError, OutputError
from prefixguard.stepview import Adapter

_BINARY = getattr(os, "O_BINARY", 0)


def write_bundle(path: str | os.PathLike[str], parts: BundleParts, *, overwrite: bool = False) -> str:
    """Write the bundle into the folder `path` and return its id.

    overwrite: replace a bundle that is there. Only a bundle or an empty folder is ever replaced; a folder with
    anything else in it is left alone. If the machine stops between the two renames of a replacement, the old bundle
    lies whole beside the target, under a name that ends in `.old`.

    Raises OutputError (already there, disk full, no permission), DataError (info that JSON cannot hold), BundleError
    (parts that no reader would accept).
    """
    target = Path(os.path.realpath(path))
    files, manifest = _contents(parts)
    try:
        replaces = check_target(target, overwrite)
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise output_error(target, exc) from exc
    mark = secrets.token_hex(4)
    temporary = target.parent / f".{target.name}.{mark}.tmp"
    try:
        os.mkdir(temporary)  # noqa: PTH102  - one call, whose mode follows the process's umask
        for name, data in files.items():
            write_file(temporary / name, data)
        _sync_folder(temporary)
        open_bundle(temporary)
        _swap(temporary, target, target.parent / f".{target.name}.{mark}.old" if replaces else None)
    except OSError as exc:
        if isinstance(exc, OutputError):
            raise
        raise output_error(target, exc) from exc
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # gone already if all went well
    return str(manifest["id"])


def _contents(parts: BundleParts) -> tuple[dict[str, bytes], Mapping[str, object]]:
    """Bytes of every file, the manifest last, and the manifest."""
    adapter = Adapter.from_bytes(parts.adapter, layout.ADAPTER)
    named = {"name": adapter.name, "version": adapter.version, "sha256": adapter.sha256}
    optional = {layout.MODEL: parts.model, layout.REASONS: parts.reasons, layout.AUTOMATON_FILE: parts.automaton}
    files = {
        layout.ADAPTER: parts.adapter,
        layout.CALIBRATION: parts.calibration.to_bytes(),
        layout.CONTEXT: arrays_to_bytes(parts.context_arrays),
        layout.VOCABULARY: parts.vocabulary,
        **{name: data for name, data in optional.items() if data is not None},
        **parts.pictures,
    }
    card = parts.card
    if card is None:
        automaton = None if parts.automaton is None else automaton_from_bytes(parts.automaton)[0]
        card = write_card(named, parts.calibration, parts.info, automaton, sorted(parts.pictures))
    files[layout.CARD] = card.encode("utf-8", "replace")
    known = layout.REQUIRED[parts.kind] + layout.OPTIONAL[parts.kind]
    odd = sorted(set(parts.pictures) - set(layout.PICTURES)) or sorted(set(files) - set(known))
    odd = odd or sorted(set(layout.REQUIRED[parts.kind]) - set(files))
    if odd:
        raise BundleError(f"A bundle of kind {parts.kind} has {', '.join(sorted(known))}; check {odd[0]}.")
    grouped = parts.calibration.groups is not None
    manifest = make_manifest(parts.kind, files, named, parts.info, grouped=grouped)
    files[layout.MANIFEST] = render(manifest)
    return files, manifest


def check_target(target: Path, overwrite: bool) -> bool:
    """Whether something is there that a bundle would replace; OutputError if it must not be."""
    try:
        if not target.exists():
            return False
        if not target.is_dir():
            raise OutputError(f"{target} is a file; a bundle is a folder. Choose another name.")
        held = sorted(entry.name for entry in target.iterdir())
    except OSError as exc:
        raise output_error(target, exc) from exc
    if not held:
        return True
    if layout.MANIFEST not in held:
        raise OutputError(f"{target} is a folder with other things in it. Choose another name.")
    if not overwrite:
        raise OutputError(f"{target} holds a bundle already. Choose another name, or ask for it to be overwritten.")
    strange = [name for name in held if name not in layout.LIMITS]
    if strange:
        raise OutputError(f"{target} also holds {', '.join(strange[:3])}, which would be lost. Move that away first.")
    return True


def _swap(temporary: Path, target: Path, aside: Path | None) -> None:
    if aside is None:
        temporary.rename(target)
        _sync_folder(target.parent)
        return
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    _sync_folder(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


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


def _sync_folder(folder: Path) -> None:
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
    """What is said where the system refuses to write."""
    if isinstance(exc, OutputError):
        return exc
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return OutputError(f"{target}: the disk is full, nothing was written. Make room and try again.")
    return OutputError(f"{target}: cannot be written ({exc.strerror}). Choose a folder you may write to.")
