"""What a bundle folder holds: file names, the schema, and how large a file may be."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SCHEMA_PREFIX = "prefixguard/bundle/v"
#: Newest layout that this release reads, and the only one it writes.
VERSION = 1
SCHEMA = f"{SCHEMA_PREFIX}{VERSION}"
#: First release that reads `SCHEMA`; stands in the manifest, so that an older release can name it when it refuses.
READ_BY = "0.1.0"

MANIFEST = "manifest.json"
ADAPTER = "adapter.json"
VOCABULARY = "vocabulary.bin"
CONTEXT = "context.npz"
MODEL = "model.onnx"
REASONS = "reasons.onnx"
CALIBRATION = "calibration.json"
CARD = "CARD.md"

ONNX = "onnx"
#: Files of each kind besides the manifest: those that must be there, and those that may.
REQUIRED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {ONNX: (ADAPTER, CALIBRATION, CARD, CONTEXT, MODEL, VOCABULARY)}
)
OPTIONAL: Mapping[str, tuple[str, ...]] = MappingProxyType({ONNX: (REASONS,)})

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
    }
)
