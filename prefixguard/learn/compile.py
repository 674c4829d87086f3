"""Compile a fitted monitor to ONNX: one step of all members at once, and the graph that says what moved the risk.

The members stand side by side as blocks of shared matrices, so that a step costs a handful of products whatever their
number, and a session's state is their GRU states in a row. The graphs are written node by node rather than exported:
a third of the nodes, a third of the time a step, milliseconds instead of ten seconds to make, the same bytes each time.
That they compute what the networks compute is tested on every prefix of a corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.context import N_FEATURES
from prefixguard.errors import PrefixGuardError
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.graph import Graph, Input
from prefixguard.learn.network import N_RISKS, GruNetwork
from prefixguard.learn.scaling import ContextScale

_Matrix = NDArray[np.float32]
_OUTCOME = 1
_TERMS = 32  # terms of a row that reasons look at


def compile_monitor(monitor: FittedMonitor) -> tuple[bytes, bytes]:
    """`model.onnx` and `reasons.onnx` as bytes; what goes in and out stands at `bundle.BundleParts`."""
    members = [_network(m.network) for m in monitor.members]
    weights = _Weights(members, _network(monitor.symbol.network), monitor.scale, monitor.config.tau_end)
    return _step(weights), _reasons(weights)


def _network(module: nn.Module) -> GruNetwork:
    if not isinstance(module, GruNetwork):
        raise PrefixGuardError(f"cannot compile a {type(module).__name__}: no step is defined for it.")
    return module


def _array(tensor: Tensor) -> _Matrix:
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)


def _blocks(parts: Sequence[_Matrix]) -> _Matrix:
    """Matrices along a diagonal, zeros elsewhere."""
    out = np.zeros((sum(p.shape[0] for p in parts), sum(p.shape[1] for p in parts)), dtype=np.float32)
    row = column = 0
    for p in parts:
        out[row : row + p.shape[0], column : column + p.shape[1]] = p
        row, column = row + p.shape[0], column + p.shape[1]
    return out


@dataclass(frozen=True)
class _Weights:
    """Members and symbol network as shared matrices.

    Layout of the text width: the members' abstractions (M * A), the symbol network's (A'), the members' bypasses
    (M * B). All of it passes one GELU.
    """

    members: list[GruNetwork]
    symbol: GruNetwork
    scale: ContextScale
    tau: float

    def __post_init__(self) -> None:
        if any(m.bypass_context is None or m.wide is None or m.abstraction_context is None for m in self.members):
            raise PrefixGuardError("cannot compile members without bypass, wide path or context.")

    @property
    def abstraction(self) -> int:
        return sum(m.abstraction_width for m in self.members)

    @property
    def text(self) -> int:
        return self.abstraction + self.symbol.abstraction_width + sum(m.bypass_width for m in self.members)

    @property
    def state(self) -> int:
        return sum(m.width for m in self.members)

    @property
    def n_symbols(self) -> int:
        return self.symbol.symbols.out_features

    def table(self) -> _Matrix:
        """First layers of all networks side by side, (V, text)."""
        own = [_array(m.columns) for m in self.members]
        cut = [m.abstraction_width for m in self.members]
        return np.concatenate(
            [
                *(w[:, :a] for w, a in zip(own, cut, strict=True)),
                _array(self.symbol.columns),
                *(w[:, a:] for w, a in zip(own, cut, strict=True)),
            ],
            axis=1,
        )

    def context(self) -> tuple[_Matrix, _Matrix]:
        """Encoded context to (text + wide hidden): weight (C, text + S), bias."""
        c = self.scale.size
        zero = np.zeros((c, self.symbol.abstraction_width), dtype=np.float32)
        symbol = self.symbol.abstraction_context
        weights = [_array(m.abstraction_context.weight).T for m in self.members if m.abstraction_context is not None]
        weights.append(zero if symbol is None else _array(symbol.weight).T)
        bypasses = [m.bypass_context for m in self.members if m.bypass_context is not None]
        wides = [self._wide(m)[0] for m in self.members]
        weights += [_array(x.weight).T for x in (*bypasses, *wides)]
        biases = [_array(m.abstraction_bias) for m in (*self.members, self.symbol)]
        biases += [_array(x.bias) for x in (*bypasses, *wides)]
        return np.concatenate(weights, axis=1), np.concatenate(biases)

    def symbols(self) -> tuple[_Matrix, _Matrix]:
        """All abstractions to all symbol logits, the members' already divided by tau."""
        scaled = [(m, 1 / self.tau) for m in self.members] + [(self.symbol, 1.0)]
        weight = _blocks([_array(m.symbols.weight).T * np.float32(s) for m, s in scaled])
        return weight, np.concatenate([_array(m.symbols.bias) * np.float32(s) for m, s in scaled])

    def embed(self) -> tuple[_Matrix, _Matrix]:
        """[symbol probabilities of all members, bypasses of all members] to what the GRUs read."""
        k = [m.symbols.out_features for m in self.members]
        own = [_array(m.embed.weight).T for m in self.members]
        weight = np.concatenate(
            [
                _blocks([w[:n] for w, n in zip(own, k, strict=True)]),
                _blocks([w[n:] for w, n in zip(own, k, strict=True)]),
            ]
        )
        return weight, np.concatenate([_array(m.embed.bias) for m in self.members])

    def gates(self, of_state: bool) -> tuple[_Matrix, _Matrix]:
        """Inputs or states of the GRUs to their gates: reset of all, update of all, new of all."""
        at = 1 if of_state else 0
        weights = [np.split(_array(m.gru.all_weights[0][at]), 3) for m in self.members]
        biases = [np.split(_array(m.gru.all_weights[0][2 + at]), 3) for m in self.members]
        return (
            np.concatenate([_blocks([w[gate].T for w in weights]) for gate in range(3)], axis=1),
            np.concatenate([b[gate] for gate in range(3) for b in biases]),
        )

    def readout(self) -> tuple[_Matrix, _Matrix]:
        """[GRU states, wide hidden] to the mean logits."""
        share = np.float32(1 / len(self.members))
        outs = [*(m.readout for m in self.members), *(self._wide(m)[1] for m in self.members)]
        weight = np.concatenate([_array(o.weight).T for o in outs]) * share
        bias = np.stack([_array(o.bias) for o in outs]).sum(axis=0) * share
        return weight, np.asarray(bias, dtype=np.float32)

    @staticmethod
    def _wide(member: GruNetwork) -> list[nn.Linear]:
        return [x for x in member.wide or () if isinstance(x, nn.Linear)]


def _encode_context(g: Graph, scale: ContextScale, context: str) -> str:
    """(N, d) -> (N, C), as `ContextEncoding`."""
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


def _project(g: Graph, w: _Weights, context: str) -> tuple[str, str]:
    """(N, d) -> what the context adds to the text width (N, text), and the wide hidden layer (N, S)."""
    weight, bias = w.context()
    to_text, to_wide = g.split(
        g.linear(_encode_context(g, w.scale, context), "context", weight, bias), [w.text, w.state]
    )
    return to_text, g.node("Gelu", to_wide)


def _core(g: Graph, w: _Weights, pre: str, wide: str, state: str) -> tuple[str, str, str]:
    """Text plus context (N, text), wide hidden (N, S), state (N or 1, S) -> logits (N, 2), symbol (N,), state."""
    hidden = g.node("Gelu", pre)
    n_bypass = w.text - w.abstraction - w.symbol.abstraction_width
    abstractions, bypasses = g.split(hidden, [w.text - n_bypass, n_bypass])
    member_k = sum(m.symbols.out_features for m in w.members)
    logits, symbol_logits = g.split(g.linear(abstractions, "symbols", *w.symbols()), [member_k, w.n_symbols])
    each = g.node("Reshape", logits, g.integers(0, len(w.members), -1))
    p = g.node("Reshape", g.node("Softmax", each, axis=-1), g.integers(0, -1))
    z = g.node("Gelu", g.linear(g.concat([p, bypasses]), "embed", *w.embed()))
    ru_in, n_in = g.split(g.linear(z, "gates_in", *w.gates(False)), [2 * w.state, w.state])
    ru_state, n_state = g.split(g.linear(state, "gates_state", *w.gates(True)), [2 * w.state, w.state])
    reset, update = g.split(g.node("Sigmoid", g.node("Add", ru_in, ru_state)), [w.state, w.state])
    new = g.node("Tanh", g.node("Add", n_in, g.node("Mul", reset, n_state)))
    after = g.node("Add", new, g.node("Mul", update, g.node("Sub", state, new)))
    out = g.linear(g.concat([after, wide]), "readout", *w.readout())
    return out, g.node("ArgMax", symbol_logits, axis=-1, keepdims=0), after


def _inputs(w: _Weights) -> list[Input]:
    return [
        ("indices", "int64", ["nnz"]),
        ("values", "float32", ["nnz"]),
        ("context", "float32", [N_FEATURES]),
        ("state", "float32", [w.state]),
    ]


def _terms(g: Graph, w: _Weights) -> str:
    """Each term's share of the text, (nnz, text)."""
    rows = g.node("Gather", g.constant("table", w.table()), "indices", axis=0)
    return g.node("Mul", rows, g.node("Unsqueeze", "values", g.integers(1)))


def _step(w: _Weights) -> bytes:
    g = Graph()
    first = g.integers(0)
    # A sum over no term is 0, which a matrix product of empty matrices would not be everywhere.
    e = g.node("ReduceSum", _terms(g, w), first, keepdims=1)
    to_text, wide = _project(g, w, g.node("Unsqueeze", "context", first))
    logits, symbol, state = _core(g, w, g.node("Add", e, to_text), wide, g.node("Unsqueeze", "state", first))
    return g.build(
        _inputs(w),
        [
            ("logits", g.node("Squeeze", logits, first), "float32", [N_RISKS]),
            ("symbol", g.node("Squeeze", symbol, first), "int64", []),
            ("state_out", g.node("Squeeze", state, first), "float32", [w.state]),
        ],
    )


def _reasons(w: _Weights) -> bytes:
    """One batch of variants of a step: as it is; each context feature at its typical value; each term taken away.

    Of the terms, only those of highest weight in the row are tried; the others' contributions are given as 0.
    """
    g, d = Graph(), N_FEATURES
    first = g.integers(0)
    terms = _terms(g, w)
    e = g.node("ReduceSum", terms, first, keepdims=1)  # (1, text)
    context = g.node("Unsqueeze", "context", first)
    eye = np.eye(d, dtype=np.float32)
    kept = g.node("Mul", context, g.constant("others", 1 - eye))
    varied = g.node("Add", kept, g.constant("typical", eye * w.scale.typical))  # (d, d): row j has feature j typical
    to_text, wide = _project(g, w, g.concat([context, varied], axis=0))  # (1 + d, ...)
    own_text, own_wide = (g.node("Gather", x, first, axis=0) for x in (to_text, wide))  # (1, ...)
    nnz = g.node("Shape", "indices")
    tried = g.node("Min", nnz, g.integers(_TERMS))
    _, top = g.nodes("TopK", 2, "values", tried)  # (k,)
    without = g.node("Add", g.node("Sub", e, g.node("Gather", terms, top, axis=0)), own_text)  # (k, text)
    pre = g.concat([g.node("Add", e, to_text), without], axis=0)  # (1 + d + k, text)
    same = g.node("Expand", own_wide, g.concat([tried, g.integers(w.state)], axis=0))
    logits, _, _ = _core(g, w, pre, g.concat([wide, same], axis=0), g.node("Unsqueeze", "state", first))
    outcome = g.node("Gather", logits, g.constant("i_outcome", np.int64(_OUTCOME)), axis=-1)  # (1 + d + k,)
    base = g.node("Gather", outcome, first, axis=0)  # (1,)
    moved = g.node("Sub", base, outcome)
    end = g.integers(1 << 40)
    of_context = g.node("Slice", moved, g.integers(1), g.integers(1 + d), first)
    of_tried = g.node("Slice", moved, g.integers(1 + d), end, first)
    of_terms = g.node("ScatterElements", g.node("Sub", "values", "values"), top, of_tried, axis=0)
    return g.build(
        _inputs(w),
        [("context_contributions", of_context, "float32", [d]), ("term_contributions", of_terms, "float32", ["nnz"])],
    )
