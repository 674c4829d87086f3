"""Write a bundle: all of it or nothing; write one again with something of it changed; sign one.

Everything goes into a temporary folder next to the target, is flushed to disk, opened and verified as a reader would,
and takes the target's name in one rename. On any failure the temporary folder is removed and the target is as before.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from prefixguard.bundle.arrays import arrays_to_bytes
from prefixguard.bundle.automaton import alarm_performance_of, automaton_from_bytes, automaton_to_bytes, is_named
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.card import write_card
from prefixguard.bundle.files import output_error, replace_file, sync_folder, write_file
from prefixguard.bundle.manifest import (
    AUTOMATON,
    LIMITS,
    NEWER,
    ONNX,
    OPTIONAL,
    PICTURES,
    REQUIRED,
    RESERVED,
    SCORES,
    File,
    make_manifest,
    render,
    schema_of,
)
from prefixguard.bundle.onnx_check import is_of_variants
from prefixguard.bundle.reading import Bundle, knows_signals, open_bundle, read_pictures
from prefixguard.bundle.signature import Key, Signature, private_key
from prefixguard.bundle.state_names import state_names
from prefixguard.errors import BundleError, OutputError
from prefixguard.stepview import Adapter


@dataclass(frozen=True, slots=True)
class BundleParts:
    """All that makes a bundle, as bytes, arrays and plain values; what trained it is not needed.

    Its kind is automaton where `automaton` is given, scores where `of_scores`, else onnx.

    adapter: `Adapter.to_bytes()`. vocabulary: `Vocabulary.to_bytes()`.
    context_arrays: at least `typical` float32 (d,), the median of each context feature over training steps, and
        `names` (d,), the features' names in order.
    model: ONNX of one step: (indices int64 (nnz,), values float32 (nnz,), context float32 (d,), state float32 (S,))
        -> (logits float32 (2,): imminent, outcome; symbol int64 (); state_out float32 (S,)). The state before the
        first step is zeros. Of an automaton: None, but where its symbol map is a `ModelMap`; only the symbol counts.
    reasons: ONNX of the same inputs and varied float32 (n, d + 1), tried int64 (k,), without float32 (n, k)
        -> (outcome float32 (n,)): the outcome logit of variants of the step. varied: 1 where a context feature is at
        its median, and behind the features where no term is read, else 0. tried: places in the row of terms that are
        left out where without is 1. At most 128 variants and 32 terms. Or, as releases before 0.4.0 read it, of the
        step's inputs -> (context_contributions float32 (d,), term_contributions float32 (nnz,)): how much each moved
        the outcome logit, positive towards failure. None: readings give no reasons; so of an automaton, which gives
        reasons of its own.
    info: the rest of the manifest: horizon, seed, config, split, data, metrics, training_seconds ...; plain JSON.
    card: CARD.md; None: written from `info` (see `write_card`).
    automaton: `automaton_to_bytes(...)`. pictures: files of `manifest.PICTURES` by name, for people.
    of_scores: whether it reads scores instead of steps.
    """

    adapter: bytes
    vocabulary: bytes
    context_arrays: Mapping[str, NDArray[Any]]
    model: bytes | None
    reasons: bytes | None
    calibration: Calibration
    info: Mapping[str, Any] = field(default_factory=dict)
    card: str | None = None
    automaton: bytes | None = None
    pictures: Mapping[str, bytes] = field(default_factory=dict)
    of_scores: bool = False

    @property
    def kind(self) -> str:
        """`onnx`, `automaton` or `scores`."""
        return AUTOMATON if self.automaton is not None else SCORES if self.of_scores else ONNX


def write_bundle(path: str | os.PathLike[str], parts: BundleParts, *, overwrite: bool = False) -> str:
    """Write the bundle into the folder `path` and return its id.

    overwrite: replace a bundle that is there. Only a bundle or an empty folder is ever replaced; a folder with
    anything else in it is left alone. If the machine stops between the two renames of a replacement, the old bundle
    lies whole next to the target, under a name that ends in `.old`.

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
    unique = secrets.token_hex(4)
    temporary = target.parent / f".{target.name}.{unique}.tmp"
    try:
        os.mkdir(temporary)  # noqa: PTH102  - one call, whose mode follows the process's umask
        for name, data in files.items():
            write_file(temporary / name, data)
        sync_folder(temporary)
        open_bundle(temporary)
        _swap(temporary, target, target.parent / f".{target.name}.{unique}.old" if replaces else None)
    except OSError as exc:
        if isinstance(exc, OutputError):
            raise
        raise output_error(target, exc) from exc
    finally:
        shutil.rmtree(temporary, ignore_errors=True)  # gone already if all went well
    return str(manifest["id"])


def _contents(parts: BundleParts) -> tuple[dict[str, bytes], Mapping[str, object]]:
    """Bytes of every file, the manifest last, and the manifest."""
    adapter = Adapter.from_bytes(parts.adapter, File.ADAPTER)
    named = {"name": adapter.name, "version": adapter.version, "sha256": adapter.sha256}
    optional = ((File.MODEL, parts.model), (File.REASONS, parts.reasons), (File.AUTOMATON, parts.automaton))
    files: dict[str, bytes] = {
        File.ADAPTER: parts.adapter,
        File.CALIBRATION: parts.calibration.to_bytes(),
        File.CONTEXT: arrays_to_bytes(parts.context_arrays),
        File.VOCABULARY: parts.vocabulary,
        **{name: data for name, data in optional if data is not None},
        **parts.pictures,
    }
    card, automaton, performance, newer = parts.card, None, None, is_of_variants(parts.reasons)
    if parts.automaton is not None:
        automaton = automaton_from_bytes(parts.automaton)[0]
        performance, newer = alarm_performance_of(parts.automaton), is_named(parts.automaton)
    if card is None:
        card = write_card(
            named, parts.calibration, parts.info, automaton, sorted(parts.pictures), performance,
            of_scores=parts.of_scores,
            of_signals=knows_signals(parts.kind, len(parts.context_arrays.get("typical", ()))),
        )  # fmt: skip
    files[File.CARD] = card.encode("utf-8", "replace")
    known = REQUIRED[parts.kind] + OPTIONAL[parts.kind]
    odd = sorted(set(parts.pictures) - set(PICTURES)) or sorted(set(files) - set(known))
    odd = odd or sorted(set(REQUIRED[parts.kind]) - set(files))
    if odd:
        raise BundleError(f"A bundle of kind {parts.kind} has {', '.join(sorted(known))}; check {odd[0]}.")
    grouped = parts.calibration.groups is not None
    manifest = make_manifest(parts.kind, files, named, parts.info, grouped=grouped, newer=newer)
    files[File.MANIFEST] = render(manifest)
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
    if File.MANIFEST not in held:
        raise OutputError(f"{target} is a folder with other things in it. Choose another name.")
    if not overwrite:
        raise OutputError(f"{target} holds a bundle already. Choose another name, or ask for it to be overwritten.")
    strange = [name for name in held if name not in LIMITS]
    if strange:
        raise OutputError(f"{target} also holds {', '.join(strange[:3])}, which would be lost. Move that away first.")
    return True


def _swap(temporary: Path, target: Path, aside: Path | None) -> None:
    if aside is None:
        temporary.rename(target)
        sync_folder(target.parent)
        return
    target.rename(aside)
    try:
        temporary.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    sync_folder(target.parent)
    shutil.rmtree(aside, ignore_errors=True)


def parts_of(bundle: Bundle) -> BundleParts:
    """What `write_bundle` makes this bundle of again; its card is written anew.

    How an automaton's alarms did is left out: with other thresholds it is not true.

    Raises BundleError where a picture is gone or damaged since the bundle was opened.
    """
    automaton = None
    if bundle.automaton is not None and bundle.symbol_map is not None:
        named = bundle.manifest["schema"] == schema_of(NEWER)
        names = state_names(bundle.automaton, bundle.glosses) if named else None
        automaton = automaton_to_bytes(bundle.automaton, bundle.symbol_map, bundle.glosses, names=names)
    return BundleParts(
        adapter=bundle.adapter.to_bytes(),
        vocabulary=bundle.vocabulary.to_bytes(),
        context_arrays=dict(bundle.arrays),
        model=bundle.model_bytes,
        reasons=bundle.reasons_bytes,
        calibration=bundle.calibration,
        info={name: value for name, value in bundle.manifest.items() if name not in RESERVED},
        automaton=automaton,
        pictures=read_pictures(bundle) if bundle.kind == AUTOMATON else {},
        of_scores=bundle.kind == SCORES,
    )


@dataclass(frozen=True, slots=True)
class Signed:
    """A signature that was written. id: of the bundle. public_key: the signer's, 64 hexadecimal digits."""

    path: Path
    id: str
    public_key: str


def sign(monitor: str | os.PathLike[str], key: Key) -> Signed:
    """Sign a bundle: write `signature.json` into its folder, in place of one that is there. Nothing else changes.

    monitor: folder of the bundle, which is opened and checked first. key: private key of Ed25519 in PEM, without a
    passphrase: a path, or the bytes.
    Raises BundleError as `open_bundle` does, ConfigError for the key, OutputError where nothing can be written,
    MissingExtraError without the package cryptography.
    """
    private = private_key(key)
    bundle = open_bundle(monitor)
    signature = Signature.of(render(dict(bundle.manifest)), private)
    target = bundle.path / File.SIGNATURE
    try:
        replace_file(target, signature.to_bytes())
    except OSError as exc:
        raise output_error(target, exc) from exc
    return Signed(target, bundle.id, signature.key)
