"""What a bundle folder holds, and manifest.json, which says so: what a bundle is, its files, and its own id.

The id is the SHA-256 of the canonical JSON of the manifest without the id, the training time and the seal; so two
trainings that give the same monitor give the same id. The seal covers everything, the training time too, so that no
byte can change unseen.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from prefixguard.errors import BundleError, BundleVersionError, DataError


class File(StrEnum):
    """The files of a bundle. SIGNATURE is in the folder of a signed one; the manifest does not name it, since it
    signs the manifest. The last four are what people look at in a bundle of kind automaton; none is read to run one."""

    MANIFEST = "manifest.json"
    ADAPTER = "adapter.json"
    VOCABULARY = "vocabulary.bin"
    CONTEXT = "context.npz"
    MODEL = "model.onnx"
    REASONS = "reasons.onnx"
    CALIBRATION = "calibration.json"
    CARD = "CARD.md"
    AUTOMATON = "automaton.json"
    SIGNATURE = "signature.json"
    DOT = "automaton.dot"
    SVG = "automaton.svg"
    PAGE = "automaton.html"
    GLOSSARY = "GLOSSARY.md"


PICTURES = (File.DOT, File.SVG, File.PAGE, File.GLOSSARY)

SCHEMA_PREFIX = "prefixguard/bundle/v"
#: Newest layout that this release reads.
VERSION = 4
#: First release that reads each layout; stands in the manifest, so that an older release can name it when it refuses.
READ_BY: Mapping[int, str] = MappingProxyType({1: "0.1.0", 2: "0.2.0", 3: "0.3.0", 4: "0.4.0"})

ONNX = "onnx"
AUTOMATON = "automaton"
#: As onnx, of the scores that somebody gives a run instead of the steps of an agent.
SCORES = "scores"
#: The layout in which each kind came. A bundle is written in the layout of its kind: a release that knows the kind
#: reads it, and an older one says which release does, instead of calling it damaged.
SINCE: Mapping[str, int] = MappingProxyType({ONNX: 1, AUTOMATON: 2, SCORES: 4})
#: The layout of a bundle of either kind with alarm thresholds by group: a release that does not know of them would
#: hold every run to the common threshold without a word.
GROUPED = 3
#: The layout of an automaton over behaviours, and of one that says how its alarms did or how its states are called: an
#: older release takes its automaton.json for damaged. And of a bundle whose reasons.onnx gives the risk of variants of
#: a step, which to an older release is none of a step.
NEWER = 4
#: Files of each kind besides the manifest: those that must be there, and those that may.
_ALWAYS = (File.ADAPTER, File.CALIBRATION, File.CARD, File.CONTEXT, File.VOCABULARY)
REQUIRED: Mapping[str, tuple[File, ...]] = MappingProxyType(
    {kind: (*_ALWAYS, File.AUTOMATON if kind == AUTOMATON else File.MODEL) for kind in SINCE}
)
OPTIONAL: Mapping[str, tuple[File, ...]] = MappingProxyType(
    {ONNX: (File.REASONS,), AUTOMATON: (File.MODEL, *PICTURES), SCORES: (File.REASONS,)}
)

_MIB = 1 << 20
#: Bytes a file may have; a larger one is refused before it is read.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys(File, 64 * _MIB),
        **dict.fromkeys((File.CALIBRATION, File.CARD), _MIB),
        **dict.fromkeys((File.MANIFEST, File.AUTOMATON), 16 * _MIB),
        **dict.fromkeys((File.MODEL, File.REASONS), 1024 * _MIB),
        File.ADAPTER: 4 * _MIB,
        File.VOCABULARY: 256 * _MIB,
        File.SIGNATURE: 4096,
    }
)


def version_of(kind: str, *, grouped: bool, newer: bool = False) -> int:
    """The layout a bundle is written in: the oldest that has all it holds. newer: whether it has what came with
    `NEWER`."""
    return max(SINCE[kind], NEWER if newer else GROUPED if grouped else 1)


def schema_of(version: int) -> str:
    """The schema that a manifest of this layout names."""
    return f"{SCHEMA_PREFIX}{version}"


#: Written by us; `BundleParts.info` may not name them.
RESERVED = ("schema", "read_by", "id", "seal", "kind", "files", "adapter")
#: The one measured time; the id leaves it out.
TIME = "training_seconds"

#: Facts that readers of a bundle look into, each an object where it is there at all.
_OBJECTS = ("config", "data", "fidelity", "heads", "libraries", "metrics", "recalibration", "split")
_LONGEST_HORIZON = 1 << 31

_SHA = re.compile(r"[0-9a-f]{64}\Z")
_AGAIN = "Copy the bundle again, or train it again."


def canonical(document: Mapping[str, Any]) -> bytes:
    """JSON with sorted keys and no spaces. Raises DataError for what JSON cannot say (NaN, objects of other types)."""
    try:
        return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as exc:
        raise DataError(
            f"The manifest can hold only what JSON can: {exc}. Turn arrays into lists and leave out NaN."
        ) from exc


def make_manifest(
    kind: str,
    files: Mapping[str, bytes],
    adapter: Mapping[str, str],
    info: Mapping[str, Any],
    *,
    grouped: bool = False,
    newer: bool = False,
) -> dict[str, Any]:
    """The manifest of these files, with id and seal.

    kind: one of `manifest.SINCE`. adapter: name, version and sha256 of the adapter. info: everything else, as it
    is to be written. grouped: whether the calibration has thresholds by group. newer: as for `version_of`.
    Raises DataError when `info` names what we write ourselves, or holds what JSON cannot.
    """
    clash = [name for name in RESERVED if name in info]
    if clash:
        raise DataError(f"info may not name {', '.join(clash)}: the bundle writes that itself.")
    manifest: dict[str, Any] = json.loads(canonical(info))
    version = version_of(kind, grouped=grouped, newer=newer)
    manifest |= {
        "schema": schema_of(version),
        "read_by": READ_BY[version],
        "kind": kind,
        "adapter": dict(adapter),
        "files": {
            name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in files.items()
        },
    }
    manifest["id"] = bundle_id(manifest)
    manifest["seal"] = _digest(manifest)
    return manifest


def bundle_id(manifest: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of the manifest without id, seal and training time."""
    return _digest(manifest, ("id", "seal", TIME))


def _digest(manifest: Mapping[str, Any], leave_out: tuple[str, ...] = ("seal",)) -> str:
    rest = {name: value for name, value in manifest.items() if name not in leave_out}
    return hashlib.sha256(canonical(rest)).hexdigest()


def render(manifest: Mapping[str, Any]) -> bytes:
    """The bytes of manifest.json, for people too; one content has one rendering."""
    return json.dumps(manifest, sort_keys=True, indent=2, ensure_ascii=True, allow_nan=False).encode() + b"\n"


def read_manifest(data: bytes, where: str) -> dict[str, Any]:
    """Parse and check manifest.json; the schema's version is looked at before anything else.

    Raises BundleVersionError for a newer schema, BundleError for what is damaged or not a manifest.
    """
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as exc:
        raise BundleError(f"{where}: damaged, not JSON ({exc}). {_AGAIN}") from exc
    if not isinstance(manifest, dict) or not isinstance(manifest.get("schema"), str):
        raise BundleError(f"{where}: names no schema, so this is not a bundle's manifest. {_AGAIN}")
    _check_version(manifest, where)
    try:
        intact = render(manifest) == data and manifest.get("seal") == _digest(manifest)
        intact = intact and manifest.get("id") == bundle_id(manifest)
    except (DataError, ValueError, RecursionError):
        intact = False
    if not intact:
        raise BundleError(f"{where}: changed since it was written (its id does not match). {_AGAIN}")
    _check_files(manifest, where)
    for name in _OBJECTS:
        if not isinstance(manifest.get(name), dict | None):
            raise BundleError(f"{where}: {name} is not an object. {_AGAIN}")
    horizon = manifest.get("horizon")
    if horizon is not None and not (type(horizon) is int and 0 <= horizon < _LONGEST_HORIZON):
        raise BundleError(f"{where}: the horizon is not a number of steps. {_AGAIN}")
    return manifest


def _check_version(manifest: Mapping[str, Any], where: str) -> None:
    schema = manifest["schema"]
    number = schema.removeprefix(SCHEMA_PREFIX)
    if not schema.startswith(SCHEMA_PREFIX) or not re.fullmatch(r"[1-9][0-9]{0,5}", number):
        ours = schema_of(VERSION)
        raise BundleError(f"{where}: schema {schema[:80]!r} is not a bundle's ({ours!r} is). {_AGAIN}")
    if int(number) > VERSION:
        named = manifest.get("read_by")
        known = isinstance(named, str) and re.fullmatch(r"[0-9A-Za-z.+-]{1,30}", named)
        release = f"prefixguard {named} or newer" if known else "a newer prefixguard"
        raise BundleVersionError(
            f"{where}: schema v{number}, this release reads up to v{VERSION}. Install {release} to read it."
        )


def _check_files(manifest: Mapping[str, Any], where: str) -> None:
    """Whether the manifest lists the files of its kind, and nothing that could lead elsewhere."""
    kind, files = manifest.get("kind"), manifest.get("files")
    if not isinstance(kind, str) or kind not in REQUIRED:
        raise BundleError(f"{where}: kind {kind!r} is not known here (known: {', '.join(REQUIRED)}). {_AGAIN}")
    layouts = (max(SINCE[kind], layout) for layout in (1, GROUPED, NEWER))
    if manifest["schema"] not in map(schema_of, layouts):
        raise BundleError(f"{where}: kind {kind} is of {schema_of(SINCE[kind])!r}. {_AGAIN}")
    if not isinstance(files, dict):
        raise BundleError(f"{where}: lists no files. {_AGAIN}")
    known = REQUIRED[kind] + OPTIONAL[kind]
    odd = [name for name in files if name not in known] + [n for n in REQUIRED[kind] if n not in files]
    if odd:
        raise BundleError(f"{where}: files missing from the list or unknown: {', '.join(map(repr, odd[:5]))}. {_AGAIN}")
    for name, entry in files.items():
        good = isinstance(entry, dict) and entry.keys() == {"sha256", "bytes"}
        good = good and isinstance(entry["sha256"], str) and _SHA.match(entry["sha256"]) is not None
        if not good or type(entry["bytes"]) is not int or entry["bytes"] < 0:
            raise BundleError(f"{where}: the entry of {name} is not a hash and a size. {_AGAIN}")
