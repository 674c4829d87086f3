"""The context of a step as a graph reads it: as it is, or through a linear layer on its encoding (`ContextEncoding`).

What a layer gives of a feature is linear between the ends of its bins. Its values at the ends stand in a table, and a
step reads two rows of it for each feature instead of the weights of all its bins: a sixth of the memory, which is what
a step waits for.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.scaling import N_HAZARDS, ContextScale

_FLOAT, _INT64 = 1, 7
_FAR = 4.0  # standard deviations from the mean at which standardising ends
_NEVER = np.finfo(np.float32).max  # where a bin begins that no number reaches


class StepContext:
    """The context of one step in a graph, for parts of one scale. rows: name of what trees read, (1, d)."""

    def __init__(self, g: Graph, context: str) -> None:
        """context: name of (d,)."""
        self._g, self._context = g, context
        self._found: tuple[str, str] | None = None
        self.rows = g.node("Unsqueeze", context, g.integers(0))

    def layer(self, scale: ContextScale, name: str, weight: Matrix, bias: Matrix) -> str:
        """The layer with weight (C, out) and bias (out,), (1, out). name: of its table in the graph."""
        g = self._g
        at, share = self._look_up(scale)
        rows = g.node("Gather", _table(g, name, scale, weight, bias), at)
        return g.node("MatMul", g.node("Unsqueeze", share, g.integers(0)), rows)

    def _look_up(self, scale: ContextScale) -> tuple[str, str]:
        """Which rows of a layer's table are read, and how much of each is taken, (2 * (d + 1),): of every feature, and
        of the hazards behind them, the row below, then those above."""
        if self._found is None:
            self._found = self._find(scale)
        return self._found

    def _find(self, scale: ContextScale) -> tuple[str, str]:
        g = self._g
        zero, one = g.constant("zero", np.float32(0)), g.constant("one", np.float32(1))
        pieces = _pieces(scale)
        full = g.node("Unsqueeze", self._context, g.integers(1))  # (d, 1)
        full = g.node("Sub", full, g.constant("context.low", pieces.low))
        full = g.node("Clip", g.node("Div", full, g.constant("context.width", pieces.width)), zero, one)
        full = g.node("ReduceSum", full, g.integers(1), keepdims=0)  # (d,): pieces that are full, and of one a part
        step = g.node("Gather", self._context, g.integers(0))
        step = g.node("Clip", step, one, g.constant("context.last", np.float32(len(scale.hazards))))
        full = g.concat([full, step])
        whole = g.node("Cast", full, to=_INT64)
        part = g.node("Sub", full, g.node("Cast", whole, to=_FLOAT))
        at = g.node("Add", g.concat([whole, whole]), g.constant("context.begins", pieces.begins))
        return at, g.concat([g.node("Sub", one, part), part])


class VariedContext(StepContext):
    """Variants of a step's context: in each, some features are at their typical values.

    rows : (N, d). A variant's layer is that of the step, and what those features give more at their typical values.
    """

    def __init__(self, g: Graph, context: str, typical: Matrix, varied: str) -> None:
        """typical: (d,). varied: name of (N, d), 1 where a feature is at its typical value, else 0."""
        super().__init__(g, context)
        self._typical, self._varied = typical, varied
        kept = g.node("Mul", self.rows, g.node("Sub", g.constant("one", np.float32(1)), varied))
        self.rows = g.node("Add", kept, g.node("Mul", varied, g.constant("context.typical", typical)))

    def layer(self, scale: ContextScale, name: str, weight: Matrix, bias: Matrix) -> str:
        g, d = self._g, len(self._typical)
        at, share = (
            g.node("Transpose", g.node("Reshape", each, g.integers(2, d + 1)), perm=[1, 0])
            for each in self._look_up(scale)
        )
        rows = g.node("Gather", _table(g, name, scale, weight, bias), at)  # (d + 1, 2, out)
        own = g.node("MatMul", g.node("Unsqueeze", share, g.integers(1)), rows)  # (d + 1, 1, out)
        own = g.node("Squeeze", own, g.integers(1))
        as_it_is = g.node("ReduceSum", own, g.integers(0), keepdims=1)  # (1, out)
        own, hazards = g.nodes("Split", 2, own, g.integers(d, 1), axis=0)
        hazards = g.node("Mul", hazards, g.constant("context.of_step", np.eye(d, 1, dtype=np.float32)))  # (d, out)
        more = g.node("Sub", g.constant(f"{name}.typical", _typical(scale, weight, bias, self._typical)), own)
        return g.node("Add", as_it_is, g.node("MatMul", self._varied, g.node("Sub", more, hazards)))


def _typical(scale: ContextScale, weight: Matrix, bias: Matrix, typical: Matrix) -> Matrix:
    """What each feature gives of the layer at its typical value, (d, out); the bias is with the step's hazards."""
    standard = np.clip((typical - scale.mean) / scale.std, -4, 4)
    bins = np.clip((typical[scale.feature] - scale.low) / scale.width, 0, 1)
    hazards = scale.hazards[np.clip(int(typical[0]) - 1, 0, len(scale.hazards) - 1)]
    values = np.concatenate((standard, bins, hazards))
    features = np.concatenate((np.arange(len(typical)), scale.feature, np.zeros(N_HAZARDS, np.int64)))
    own = np.where(features == np.arange(len(typical))[:, None], values, 0)  # (d, C)
    out = own.astype(np.float64) @ weight
    out[0] += bias
    return np.asarray(out, dtype=np.float32)


@dataclass(frozen=True)
class _Pieces:
    """Where what a feature gives of any layer bends: at the ends of its bins, and where standardising ends.

    low, width: float32 (d, most), of each feature's pieces in order, behind them some that no number reaches.
    begins: int64 (2 * (d + 1),), rows of a table where each feature's values begin, those of the hazards behind; then
        one further, but for the hazards.
    ends: float64 (rows, C), the encoding at the ends of the pieces, of that feature alone.
    """

    low: Matrix
    width: Matrix
    begins: NDArray[np.int64]
    ends: NDArray[np.float64]


def _pieces(scale: ContextScale) -> _Pieces:
    d = len(scale.mean)
    each: list[list[tuple[float, float]]] = []
    ends: list[NDArray[np.float64]] = []
    for j, (mean, std) in enumerate(zip(scale.mean.tolist(), scale.std.tolist(), strict=True)):
        places = np.flatnonzero(scale.feature == j).tolist()
        starts = scale.low[places].astype(np.float64).tolist()
        stops = (scale.low[places].astype(np.float64) + scale.width[places]).tolist()
        bounds = [mean - _FAR * std, mean + _FAR * std]
        outside = (starts[0], stops[-1]) if places else (mean, mean)
        parts = [(bounds[0], outside[0], -1), *zip(starts, stops, places, strict=True), (outside[1], bounds[1], -1)]
        pieces = [
            (a, b, place, (b - a) / (stop - start))
            for start, stop, place in parts
            for a, b in pairwise([start, *(x for x in bounds if start < x < stop), stop])
            if a < b
        ]
        row = np.zeros(scale.size)
        row[j] = max((pieces[0][0] - mean) / std, -_FAR)
        ends.append(row)
        for _, b, place, of_bin in pieces:
            row = row.copy()
            row[j] = min(max((b - mean) / std, -_FAR), _FAR)
            if place >= 0:
                row[d + place] += of_bin
            ends.append(row)
        each.append([(a, b - a) for a, b, _, _ in pieces])
    counts = np.array([len(pieces) for pieces in each])
    low, width = np.full((2, d, counts.max()), _NEVER, dtype=np.float32)
    for j, found in enumerate(each):
        low[j, : len(found)], width[j, : len(found)] = np.transpose(found)
    hazards = np.zeros((len(scale.hazards), scale.size))
    hazards[:, -N_HAZARDS:] = scale.hazards
    begins, step = np.cumsum(counts + 1) - (counts + 1), [len(ends) - 1]  # a row before that of step 1
    return _Pieces(low, width, np.concatenate((begins, step, begins + 1, step)), np.concatenate((ends, hazards)))


def _table(g: Graph, name: str, scale: ContextScale, weight: Matrix, bias: Matrix) -> str:
    """What a layer gives at the ends of the pieces; the bias is with the hazards, of which every step reads one row."""
    table = _pieces(scale).ends @ weight
    table[-len(scale.hazards) :] += bias
    return g.constant(f"{name}.table", table.astype(np.float32))
