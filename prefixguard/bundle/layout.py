"""What a bundle folder holds: file names, the schema, and how large a file may be."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SCHEMA_PREFIX = "prefixguard/bundle/v"
#: Newest layout that this release reads.
VERSION = 3
#: First release that reads each layout; stands in the manifest, so that an older release can name it when it refuses.
READ_BY: Mapping[int, str] = MappingProxyType({1: "0.1.0", 2: "0.2.0", 3: "0.3.0"})

MANIFEST = "manifest.json"
ADAPTER = "adapter.json"
VOCABULARY = "vocabulary.bin"
CONTEXT = "context.npz"
MODEL = "model.onnx"
REASONS = "reasons.onnx"
CALIBRATION = "calibration.json"
CARD = "CARD.md"
AUTOMATON_FILE = "automaton.json"
#: Stands beside the files of a signed bundle; the manifest does not name it, since it signs the manifest.
SIGNATURE = "signature.json"
#: What people look at in a bundle of kind automaton; nothing of it is read to run one.
PICTURES = ("automaton.dot", "automaton.svg", "automaton.html", "GLOSSARY.md")

ONNX = "onnx"
AUTOMATON = "automaton"
#: The layout in which each kind came. A bundle is written in the layout of its kind: a release that knows the kind
#: reads it, and an older one says which release does, instead of calling it damaged.
SINCE: Mapping[str, int] = MappingProxyType({ONNX: 1, AUTOMATON: 2})
#: The layout of a bundle of either kind with alarm thresholds by group: a release that does not know of them would
#: hold every run to the common threshold without a word.
GROUPED = 3
#: Files of each kind besides the manifest: those that must be there, and those that may.
REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        ONNX: (ADAPTER, CALIBRATION, CARD, CONTEXT, MODEL, VOCABULARY),
        AUTOMATON: (ADAPTER, AUTOMATON_FILE, CALIBRATION, CARD, CONTEXT, VOCABULARY),
    }
)
OPTIONAL: Mapping[str, tuple[str, ...]] = MappingProxyType({ONNX: (REASONS,), AUTOMATON: (MODEL, *PICTURES)})

_MIB = 1 << 20
#: Bytes a file may have; a larger one is refused before it is read.
LIMITS: Mapping[str, int] = MappingProxyType(
    {
        MANIFEST: 16 * _MIB,
        ADAPTER: 4 * _MIB,
        VOCABULARY: 256 * _MIB,
        CONTEXT: 64 * _MIB,
        MODEL: 1024 * _MIB,
        REASONS: 1024 * _MIB,
        CALIBRATION: _MIB,
        CARD: _MIB,
        AUTOMATON_FILE: 16 * _MIB,
        **dict.fromkeys(PICTURES, 64 * _MIB),
        SIGNATURE: 4096,
    }
)


def version_of(kind: str, *, grouped: bool) -> int:
    """The layout a bundle is written in: the oldest that has all it holds."""
    return GROUPED if grouped else SINCE[kind]


def schema(version: int) -> str:
    """The schema that a manifest of this layout names."""
    return f"{SCHEMA_PREFIX}{version}"
