"""An alphabet, fitted: its map, and the symbols of every step of a corpus; and what a model gave, to make one of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import SymbolMap


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """name: see `ALPHABETS`. map: from step and context to symbol, as the bundle keeps it.

    symbols: int32 (steps,), of every step of the corpus. They are the map's, except on steps that something inside the
    map was fitted on (scores of words; a monitor's own risks): there they are those of a fit without the step's task,
    for learners are to see symbols as they fall on new runs.
    glosses: a few words a symbol; conditions: the full definition of each, "" where it has none in words.
    reads_history: for each symbol, whether it says something of earlier steps of the run.
    """

    name: str
    map: SymbolMap
    symbols: NDArray[np.int32]
    glosses: tuple[str, ...]
    conditions: tuple[str, ...]
    reads_history: tuple[bool, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """Symbols that a monitor's model gives.

    symbols: int32 (steps,), of every step of the corpus, each in [0, n_symbols). glosses: one a symbol; () where they
    have no words. model: the step that gives them at run time, ONNX.
    """

    symbols: NDArray[np.int32]
    n_symbols: int
    glosses: tuple[str, ...] = ()
    model: bytes = b""
