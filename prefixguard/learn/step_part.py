"""What every head gives to the compiled step: how it computes one step inside an ONNX graph.

A bundle's logits are the mean of its parts'. All parts read the text through one table, which is gathered once a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Graph
from prefixguard.learn.scaling import ContextScale

N_RISKS = 2  # imminent, outcome
Matrix = NDArray[np.float32]


class StepPart(Protocol):
    """How a head computes one step.

    table: float32 (V, text), what each vocabulary column adds to the part's text vector.
    state: S, floats kept between steps; all zeros before the first.
    """

    @property
    def table(self) -> Matrix: ...

    @property
    def state(self) -> int: ...

    def step(self, g: Graph, text: str, context: str, state: str) -> tuple[str, str]:
        """text (N, text), context (N, d), state (1, S) -> logits (N, 2), state after (N, S).

        N is 1 in the step; in the graph of reasons N variants of one step meet the same state.
        """
        ...


class SymbolPart(Protocol):
    """How a step's symbol is computed. table: float32 (V, text)."""

    @property
    def table(self) -> Matrix: ...

    def symbol(self, g: Graph, text: str, context: str, logits: str) -> str:
        """text (N, text), context (N, d), the monitor's logits (N, 2) -> symbol (N,), int64."""
        ...


class Head(Protocol):
    """One fitted head. A monitor's logits are the mean of its heads'."""

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Natural log-odds of both risks after every step: one array (T, 2) a run, in the order of `runs`."""
        ...

    def part(self, prefix: str) -> StepPart:
        """The head's part of the compiled step. prefix: of its names in the graph."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the manifest says of it: plain JSON."""
        ...


def encode_context(g: Graph, scale: ContextScale, context: str) -> str:
    """(N, d) -> (N, C), as `ContextEncoding`; computed once a graph, whoever asks."""
    return g.once(f"encoded {context}", lambda: _encode(g, scale, context))


def _encode(g: Graph, scale: ContextScale, context: str) -> str:
    low, high = g.constant("minus_4", np.float32(-4)), g.constant("plus_4", np.float32(4))
    zero, one = g.constant("zero", np.float32(0)), g.constant("one", np.float32(1))
    centred = g.node("Sub", context, g.constant("mean", scale.mean))
    standard = g.node("Clip", g.node("Div", centred, g.constant("std", scale.std)), low, high)
    own = g.node("Gather", context, g.constant("feature", scale.feature), axis=-1)
    offset = g.node("Sub", own, g.constant("low", scale.low))
    bins = g.node("Clip", g.node("Div", offset, g.constant("width", scale.width)), zero, one)
    step = g.node("Cast", g.node("Gather", context, g.constant("i_first", np.int64(0)), axis=-1), to=7)  # int64
    last = g.constant("i_last_hazard", np.int64(len(scale.hazards) - 1))
    before = g.node("Sub", step, g.constant("i_one", np.int64(1)))
    row = g.node("Clip", before, g.constant("i_first", np.int64(0)), last)
    hazards = g.node("Gather", g.constant("hazards", scale.hazards), row, axis=0)
    return g.concat([standard, bins, hazards])


def blocks(parts: list[Matrix]) -> Matrix:
    """Matrices along a diagonal, zeros elsewhere."""
    out = np.zeros((sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)), dtype=np.float32)
    row = column = 0
    for p in parts:
        out[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return out
