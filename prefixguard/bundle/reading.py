"""Open a bundle: the version first, then sizes and hashes of every file, and only then their content.

Each file is read once, as a regular file and never through a link, and what is parsed is exactly what was hashed.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle.arrays import arrays_from_bytes
from prefixguard.bundle.automaton import Automaton, automaton_from_bytes, is_named
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.manifest import LIMITS, PICTURES, SCORES, File, read_manifest, schema_of, version_of
from prefixguard.bundle.onnx_check import check_onnx, is_of_variants
from prefixguard.bundle.signature import Signature, Trust, public_keys, unsigned
from prefixguard.bundle.symbol_map import ModelMap, SymbolMap, TreeMap
from prefixguard.context import FEATURES, N_FEATURES, SCORE_FEATURES, SIGNAL_FEATURES, Feature
from prefixguard.encoder import Vocabulary
from prefixguard.errors import AdapterError, BundleError, UntrustedBundleError
from prefixguard.stepview import Adapter
from prefixguard.trace import read_named


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """An opened bundle: every file verified against the manifest, then parsed. Never changed afterwards.

    id: SHA-256 of the manifest, times aside. kind: `onnx`, `automaton` or `scores`.
    horizon: H of the imminent label, None if not stated.
    typical: float32 (d,), read-only, median of each context feature over training steps.
    arrays: all of context.npz. reasons_bytes: None where no reasons.onnx is there.
    model_bytes: None in an automaton whose symbols need no model.
    automaton, symbol_map: None but in kind automaton. glosses: what each symbol means, in words; () elsewhere.
    """

    path: Path
    id: str
    kind: str
    manifest: Mapping[str, Any]
    adapter: Adapter
    vocabulary: Vocabulary
    typical: NDArray[np.float32]
    arrays: Mapping[str, NDArray[Any]]
    model_bytes: bytes | None
    reasons_bytes: bytes | None
    calibration: Calibration
    card: str
    automaton: Automaton | None = None
    symbol_map: SymbolMap | None = None
    glosses: tuple[str, ...] = ()

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the numbers of `typical` are of, in their order."""
        return features_of(self.kind, len(self.typical))

    @property
    def reads_signals(self) -> bool:
        """Whether it reads what steps took: seconds, tokens, dollars."""
        return knows_signals(self.kind, len(self.typical))

    @property
    def higher_is_safer(self) -> bool:
        """Of a monitor of scores: whether a higher score is the safer one."""
        return (self.manifest.get("config") or {}).get("higher_is_safer") is True

    @property
    def horizon(self) -> int | None:
        """Steps before the end of a failed run at which it counts as imminent (inclusive), as trained."""
        value = self.manifest.get("horizon")
        return value if isinstance(value, int) else None


_AGAIN = "Copy the bundle again, or train it again."


def open_bundle(path: str | os.PathLike[str], *, trust: Trust | None = None) -> Bundle:
    """Open, verify and parse the bundle in this folder.

    trust: public keys (PEM; paths or bytes), one of which must have signed it; looked at before anything is parsed.
    None: whoever wrote it, as long as nothing changed since.

    Raises BundleVersionError when a newer release wrote it, UntrustedBundleError when it is not signed as asked,
    BundleError when it is missing, damaged, incomplete or does not fit this release, ConfigError for a key. Reading
    needs no more memory than the files have bytes, each within `manifest.LIMITS`.
    """
    folder = Path(path)
    if not folder.is_dir():
        what = "is a file, a bundle is a folder" if folder.exists() else "does not exist"
        raise BundleError(f"No bundle at {folder}: it {what}. Name the folder that `train` wrote.")
    keys = None if trust is None else public_keys(trust)
    data = _read(folder, File.MANIFEST)
    if keys is not None:
        found = read_signature(folder)
        if found is None:
            raise unsigned(folder, keys)
        found.check(data, keys, str(folder / File.SIGNATURE))
    manifest = read_manifest(data, str(folder / File.MANIFEST))
    files = {name: _verified(folder, name, entry) for name, entry in manifest["files"].items()}
    return _parse(folder, manifest, files)


def read_signature(folder: Path) -> Signature | None:
    """The signature in a bundle's folder, not checked; None where there is none. UntrustedBundleError if damaged."""
    where = folder / File.SIGNATURE
    if not os.path.lexists(where):
        return None
    try:
        data = _read(folder, File.SIGNATURE)
    except BundleError as exc:
        raise UntrustedBundleError(str(exc)) from exc
    return Signature.from_bytes(data, str(where))


def read_pictures(bundle: Bundle) -> dict[str, bytes]:
    """What people look at in a bundle (`manifest.PICTURES`), by name, verified. Raises BundleError as `open_bundle`."""
    files = bundle.manifest["files"]
    return {name: _verified(bundle.path, name, files[name]) for name in PICTURES if name in files}


def _verified(folder: Path, name: str, entry: Mapping[str, Any]) -> bytes:
    data = _read(folder, name, size=entry["bytes"])
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise BundleError(f"{folder / name}: damaged, its SHA-256 is not the manifest's. {_AGAIN}")
    return data


def _read(folder: Path, name: str, size: int | None = None) -> bytes:
    """The bytes of a regular file of the folder, never through a link; `size` is what it must have."""
    where, most = folder / name, LIMITS[name] if size is None else min(size, LIMITS[name])
    data = read_named(where, most, remedy=_AGAIN, links=False, error=BundleError)
    if size is not None and len(data) != size:
        raise BundleError(f"{where}: {len(data):,} bytes instead of {size:,}. {_AGAIN}")
    return data


def _parse(folder: Path, manifest: dict[str, Any], files: Mapping[str, bytes]) -> Bundle:
    """Parse verified files, and check that they belong together and to this release."""
    where = str(folder / File.ADAPTER)
    try:
        adapter = Adapter.from_bytes(files[File.ADAPTER], where)
    except AdapterError as exc:
        raise BundleError(f"{where}: {exc}") from exc
    named = manifest.get("adapter")
    if not isinstance(named, dict) or named.get("sha256") != adapter.sha256:
        raise BundleError(f"{where}: not the adapter that the manifest names. {_AGAIN}")
    arrays = arrays_from_bytes(files[File.CONTEXT], str(folder / File.CONTEXT))
    try:
        card = files[File.CARD].decode("utf-8")
    except UnicodeDecodeError as exc:
        raise BundleError(f"{folder / File.CARD}: not UTF-8 text. {_AGAIN}") from exc
    vocabulary = Vocabulary.from_bytes(files[File.VOCABULARY], str(folder / File.VOCABULARY))
    automaton, symbol_map, glosses = _automaton(folder, files, len(vocabulary))
    where = str(folder / File.CALIBRATION)
    calibration = Calibration.from_bytes(files[File.CALIBRATION], where)
    newer = is_of_variants(files.get(File.REASONS)) or (automaton is not None and is_named(files[File.AUTOMATON]))
    version = version_of(manifest["kind"], grouped=calibration.groups is not None, newer=newer)
    if manifest["schema"] != schema_of(version):
        raise BundleError(f"{where}: is of {schema_of(version)!r}, the manifest of another layout. {_AGAIN}")
    typical = _typical(arrays, manifest["kind"], str(folder / File.CONTEXT))
    for name in (File.MODEL, File.REASONS):
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
        model_bytes=files.get(File.MODEL),
        reasons_bytes=files.get(File.REASONS),
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
    if File.AUTOMATON not in files:
        return None, None, ()
    where = str(folder / File.AUTOMATON)
    automaton, symbol_map, glosses = automaton_from_bytes(files[File.AUTOMATON], where)
    if isinstance(symbol_map, ModelMap) != (File.MODEL in files):
        needs = "come from" if isinstance(symbol_map, ModelMap) else "need no"
        raise BundleError(f"{where}: its symbols {needs} {File.MODEL}; export the monitor again.")
    if isinstance(symbol_map, TreeMap) and symbol_map.columns and symbol_map.columns[-1] >= n_terms:
        raise BundleError(
            f"{where}: asks for term {symbol_map.columns[-1]}, the vocabulary has {n_terms}; export the monitor again."
        )
    return automaton, symbol_map, glosses


def knows_signals(kind: str, n: int) -> bool:
    """Whether n numbers of a bundle of this kind hold what steps took."""
    return kind != SCORES and n == N_FEATURES + len(SIGNAL_FEATURES)


def features_of(kind: str, n: int) -> tuple[Feature, ...]:
    """What a bundle of this kind knows of a run besides its words, in n numbers: with what steps took, or without."""
    if kind == SCORES:
        return SCORE_FEATURES
    return (*FEATURES, *SIGNAL_FEATURES) if knows_signals(kind, n) else FEATURES


def _typical(arrays: Mapping[str, NDArray[Any]], kind: str, where: str) -> NDArray[np.float32]:
    """Array `typical`, after checking that the bundle was trained on the context features of this release."""
    typical, names = arrays.get("typical"), arrays.get("names")
    if typical is None or names is None or typical.dtype != np.float32 or typical.shape != names.shape:
        raise BundleError(f"{where}: needs the arrays typical (float32) and names, one entry a feature. {_AGAIN}")
    ours, theirs = (
        [feature.name for feature in features_of(kind, typical.size)],
        [str(name) for name in names.ravel().tolist()],
    )
    if ours != theirs:
        odd = next((n for n in theirs if n not in ours), next((n for n in ours if n not in theirs), "their order"))
        raise BundleError(
            f"{where}: trained on other context features than this release computes "
            f"({len(theirs)} against {len(ours)}; first difference: {odd}). Train it again with this release."
        )
    if not np.isfinite(typical).all():
        raise BundleError(f"{where}: typical holds a number that is not finite. {_AGAIN}")
    return typical
