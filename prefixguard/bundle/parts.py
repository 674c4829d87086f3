"""What goes into a bundle, and what comes out of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle.automaton import Automaton
from prefixguard.bundle.calibration import Calibration
from prefixguard.bundle.manifest import AUTOMATON, ONNX
from prefixguard.bundle.symbol_map import SymbolMap
from prefixguard.encoder import Vocabulary
from prefixguard.stepview import Adapter


@dataclass(frozen=True, slots=True)
class BundleParts:
    """All that makes a bundle, as bytes, arrays and plain values; what trained it is not needed.

    Its kind is automaton where `automaton` is given, else onnx.

    adapter: `Adapter.to_bytes()`. vocabulary: `Vocabulary.to_bytes()`.
    context_arrays: at least `typical` float32 (d,), the median of each context feature over training steps, and
        `names` (d,), the features' names in order.
    model: ONNX of one step: (indices int64 (nnz,), values float32 (nnz,), context float32 (d,), state float32 (S,))
        -> (logits float32 (2,): imminent, outcome; symbol int64 (); state_out float32 (S,)). The state before the
        first step is zeros. Of an automaton: None, but where its symbol map is a `ModelMap`; only the symbol counts.
    reasons: ONNX of the same inputs -> (context_contributions float32 (d,), term_contributions float32 (nnz,)): how
        much each moved the outcome logit, positive towards failure. None: readings give no reasons; so of an
        automaton, which gives reasons of its own.
    info: the rest of the manifest: horizon, seed, config, split, data, metrics, training_seconds ...; plain JSON.
    card: CARD.md; None: written from `info` (see `write_card`).
    automaton: `automaton_to_bytes(...)`. pictures: files of `manifest.PICTURES` by name, for people.
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

    @property
    def kind(self) -> str:
        """`onnx` or `automaton`."""
        return ONNX if self.automaton is None else AUTOMATON


@dataclass(frozen=True, slots=True, eq=False)
class Bundle:
    """An opened bundle: every file verified against the manifest, then parsed. Never changed afterwards.

    id: SHA-256 of the manifest, times aside. kind: `onnx` or `automaton`.
    horizon: H of the imminent label, None if not stated.
    typical: float32 (d,), read-only, median of each context feature over training steps.
    arrays: all of context.npz. reasons_bytes: None where no reasons.onnx is there.
    model_bytes: None in an automaton whose symbols need no model.
    automaton, symbol_map: None in kind onnx. glosses: one a symbol, in words; () in kind onnx.
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
    def horizon(self) -> int | None:
        """Steps before the end of a failed run at which it counts as imminent (inclusive), as trained."""
        value = self.manifest.get("horizon")
        return value if isinstance(value, int) else None
