"""Open a bundle: the version first, then sizes and hashes of every file, and only then their content.

Each file is read once, as a regular file and never through a link, and what is parsed is exactly what was hashed.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import layout
from prefixguard.bundle.arrays import arrays_from_bytes
from prefixguard.bundle.automaton import Automaton
from prefixguard.bundle.automaton_file import automaton_from_bytes
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.manifest import read_manifest
from prefixguard.bundle.onnx_check import check_onnx
from prefixguard.bundle.parts import Bundle
from prefixguard.bundle.signature import Signature, Trust, public_keys, unsigned
from prefixguard.bundle.symbol_map import ModelMap, SymbolMap, TreeMap
from prefixguard.context import FEATURES
from prefixguard.encoder import Vocabulary
from prefixguard.errors import AdapterError, BundleError, UntrustedBundleError
from prefixguard.stepview import Adapter

_AGAIN = "Copy the bundle again, or train it again."
_FLAGS = os.O_RDONLY
for _name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # not every system has each
    _FLAGS |= getattr(os, _name, 0)


def open_bundle(path: str | os.PathLike[str], *, trust: Trust | None = None) -> Bundle:
    """Open, verify and parse the bundle in this folder.

    trust: public keys (PEM; paths or bytes), one of which must have signed it; looked at before anything is parsed.
    None: whoever wrote it, as long as nothing changed since.

    Raises BundleVersionError when a newer release wrote it, UntrustedBundleError when it is not signed as asked,
    BundleError when it is missing, damaged, incomplete or does not fit this release, ConfigError for a key. Reading
    needs no more memory than the files have bytes, each within `layout.LIMITS`.
    """
    folder = Path(path)
    if not folder.is_dir():
        what = "is a file, a bundle is a folder" if folder.exists() else "does not exist"
        raise BundleError(f"No bundle at {folder}: it {what}. Name the folder that `train` wrote.")
    keys = None if trust is None else public_keys(trust)
    data = _read(folder, layout.MANIFEST)
    if keys is not None:
        found = read_signature(folder)
        if found is None:
            raise unsigned(folder, keys)
        found.check(data, keys, str(folder / layout.SIGNATURE))
    manifest = read_manifest(data, str(folder / layout.MANIFEST))
    files = {name: _verified(folder, name, entry) for name, entry in manifest["files"].items()}
    return _parse(folder, manifest, files)


def read_signature(folder: Path) -> Signature | None:
    """The signature beside a bundle's files, not checked; None where there is none. UntrustedBundleError if damaged."""
    where = folder / layout.SIGNATURE
    if not os.path.lexists(where):
        return None
    try:
        data = _read(folder, layout.SIGNATURE)
    except BundleError as exc:
        raise UntrustedBundleError(str(exc)) from exc
    return Signature.from_bytes(data, str(where))


def read_pictures(bundle: Bundle) -> dict[str, bytes]:
    """What people look at in a bundle (`layout.PICTURES`), by name, verified. Raises BundleError as `open_bundle`."""
    files = bundle.manifest["files"]
    return {name: _verified(bundle.path, name, files[name]) for name in layout.PICTURES if name in files}


def _verified(folder: Path, name: str, entry: Mapping[str, Any]) -> bytes:
    data = _read(folder, name, size=entry["bytes"])
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise BundleError(f"{folder / name}: damaged, its SHA-256 is not the manifest's. {_AGAIN}")
    return data


def _read(folder: Path, name: str, size: int | None = None) -> bytes:
    """The bytes of a regular file of the folder; `size` is what it must have, checked before reading."""
    where = folder / name
    if where.is_symlink():  # said before the attempt, for systems without O_NOFOLLOW
        raise BundleError(f"{where}: is a symbolic link; a bundle holds plain files only. Put the file itself there.")
    try:
        descriptor = os.open(where, _FLAGS)
    except FileNotFoundError as exc:
        raise BundleError(f"{where}: missing. {_AGAIN}") from exc
    except OSError as exc:
        if exc.errno == errno.ELOOP:
            raise BundleError(f"{where}: is a symbolic link; a bundle holds plain files only.") from exc
        raise BundleError(f"{where}: cannot be opened ({exc.strerror}).") from exc
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise BundleError(f"{where}: not a plain file. {_AGAIN}")
        if status.st_size > layout.LIMITS[name]:
            raise BundleError(f"{where}: {status.st_size:,} bytes, at most {layout.LIMITS[name]:,} are read. {_AGAIN}")
        if size is not None and status.st_size != size:
            raise BundleError(f"{where}: {status.st_size:,} bytes instead of {size:,}. {_AGAIN}")
        chunks, left = [], status.st_size
        while left > 0:
            chunk = os.read(descriptor, min(left, 1 << 24))
            if not chunk:
                raise BundleError(f"{where}: ended while it was read. {_AGAIN}")
            chunks.append(chunk)
            left -= len(chunk)
        return b"".join(chunks)
    except OSError as exc:
        raise BundleError(f"{where}: cannot be read ({exc.strerror}).") from exc
    finally:
        os.close(descriptor)


def _parse(folder: Path, manifest: dict[str, Any], files: Mapping[str, bytes]) -> Bundle:
    """Parse verified files, and check that they belong together and to this release."""
    where = str(folder / layout.ADAPTER)
    try:
        adapter = Adapter.from_bytes(files[layout.ADAPTER], where)
    except AdapterError as exc:
        raise BundleError(f"{where}: {exc}") from exc
    named = manifest.get("adapter")
    if not isinstance(named, dict) or named.get("sha256") != adapter.sha256:
        raise BundleError(f"{where}: not the adapter that the manifest names. {_AGAIN}")
    arrays = arrays_from_bytes(files[layout.CONTEXT], str(folder / layout.CONTEXT))
    try:
        card = files[layout.CARD].decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BundleError(f"{folder / layout.CARD}: not UTF-8 text. {_AGAIN}") from exc
    vocabulary = Vocabulary.from_bytes(files[layout.VOCABULARY], str(folder / layout.VOCABULARY))
    automaton, symbol_map, glosses = _automaton(folder, files, len(vocabulary))
    where = str(folder / layout.CALIBRATION)
    calibration = Calibration.from_bytes(files[layout.CALIBRATION], where)
    version = layout.version_of(manifest["kind"], grouped=calibration.groups is not None)
    if manifest["schema"] != layout.schema(version):
        raise BundleError(f"{where}: is of {layout.schema(version)!r}, the manifest of another layout. {_AGAIN}")
    typical = _typical(arrays, str(folder / layout.CONTEXT))
    for name in (layout.MODEL, layout.REASONS):
        if name in files:
            check_onnx(files[name], len(vocabulary), len(typical), str(folder / name))
    return Bundle(
        path=folder,
        id=manifest["id"],
        kind=manifest["kind"],
        manifest=MappingProxyType(manifest),
        adapter=adapter,
        vocabulary=vocabulary,
        typical=typical,
        arrays=MappingProxyType(arrays),
        model_bytes=files.get(layout.MODEL),
        reasons_bytes=files.get(layout.REASONS),
        calibration=calibration,
        card=card,
        automaton=automaton,
        symbol_map=symbol_map,
        glosses=glosses,
    )


def _automaton(
    folder: Path, files: Mapping[str, bytes], n_terms: int
) -> tuple[Automaton | None, SymbolMap | None, tuple[str, ...]]:
    """The automaton with its map and glosses, after checking that the other files have what the map needs."""
    if layout.AUTOMATON_FILE not in files:
        return None, None, ()
    where = str(folder / layout.AUTOMATON_FILE)
    automaton, symbol_map, glosses = automaton_from_bytes(files[layout.AUTOMATON_FILE], where)
    if isinstance(symbol_map, ModelMap) != (layout.MODEL in files):
        needs = "come from" if isinstance(symbol_map, ModelMap) else "need no"
        raise BundleError(f"{where}: its symbols {needs} {layout.MODEL}; export the monitor again.")
    if isinstance(symbol_map, TreeMap) and symbol_map.columns and symbol_map.columns[-1] >= n_terms:
        raise BundleError(
            f"{where}: asks for term {symbol_map.columns[-1]}, the vocabulary has {n_terms}; export the monitor again."
        )
    return automaton, symbol_map, glosses


def _typical(arrays: Mapping[str, NDArray[Any]], where: str) -> NDArray[np.float32]:
    """Array `typical`, after checking that the bundle was trained on the context features of this release."""
    typical, names = arrays.get("typical"), arrays.get("names")
    if typical is None or names is None or typical.dtype != np.float32 or typical.shape != names.shape:
        raise BundleError(f"{where}: needs the arrays typical (float32) and names, one entry a feature. {_AGAIN}")
    ours, theirs = [feature.name for feature in FEATURES], [str(name) for name in names.ravel().tolist()]
    if ours != theirs:
        odd = next((n for n in theirs if n not in ours), next((n for n in ours if n not in theirs), "their order"))
        raise BundleError(
            f"{where}: trained on other context features than this release computes "
            f"({len(theirs)} against {len(ours)}; first difference: {odd}). Train it again with this release."
        )
    if not np.isfinite(typical).all():
        raise BundleError(f"{where}: typical holds a number that is not finite. {_AGAIN}")
    return typical
