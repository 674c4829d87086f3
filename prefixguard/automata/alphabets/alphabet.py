"""An alphabet, fitted: its map, and the symbols of every step of a corpus."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import SymbolMap


@dataclass(frozen=True, slots=True, eq=False)
class Alphabet:
    """name: tree, steps, typed, gumbel or quantized. map: from step and context to symbol, as the bundle keeps it.

    symbols: int32 (steps,), of every step of the corpus that it was fitted with.
    glosses: a few words a symbol; conditions: the full definition of each, "" where it has none in words.
    reads_history: for each symbol, whether it depends on earlier steps of the run.
    """

    name: str
    map: SymbolMap
    symbols: NDArray[np.int32]
    glosses: tuple[str, ...]
    conditions: tuple[str, ...]
    reads_history: tuple[bool, ...]
