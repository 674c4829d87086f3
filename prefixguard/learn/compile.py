"""Compile a fitted monitor to ONNX: one step of all its heads at once, and the graph that says what moved the risk.

The graphs are written node by node rather than exported: a third of the nodes, a third of the time a step,
milliseconds instead of ten seconds to make, the same bytes each time. That they compute what the heads compute is
tested on every prefix of a corpus.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.learn.context_layer import StepContext, VariedContext
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.graph import Graph, Input, Matrix
from prefixguard.learn.head import N_RISKS, StepPart, SymbolPart

_OUTCOME = 1
_TERMS = 32  # terms of a row that reasons look at


def compile_monitor(monitor: FittedMonitor) -> tuple[bytes, bytes]:
    """`model.onnx` and `reasons.onnx` as bytes; `bundle.BundleParts` describes their inputs and outputs."""
    parts = [head.part(f"head{i}.") for i, head in enumerate(monitor.heads)]
    step = _StepGraph(parts, monitor.symbols, len(monitor.vocabulary), monitor.scale.typical)
    return step.model(), step.reasons()


@dataclass(frozen=True)
class _StepGraph:
    """All parts side by side. Layout of the text: the parts' in order, then the symbol part's."""

    parts: Sequence[StepPart]
    symbols: SymbolPart
    n_columns: int
    typical: Matrix

    @property
    def state(self) -> int:
        return sum(p.state for p in self.parts)

    def _inputs(self) -> list[Input]:
        return [
            ("indices", "int64", ["nnz"]),
            ("values", "float32", ["nnz"]),
            ("context", "float32", [len(self.typical)]),
            ("state", "float32", [self.state]),
        ]

    def _text(self, g: Graph, tables: Sequence[Matrix]) -> tuple[str, str]:
        """What each term's column adds to the text (nnz or one more, text), before its value; and their sum (1, text).

        tables: what is read, side by side.
        """
        own = [table for table in tables if table.size]
        # A monitor that reads no text still has a row: one column of zeros keeps the graph the same for all.
        table = np.concatenate(own, axis=1) if own else np.zeros((max(self.n_columns, 1), 1), dtype=np.float32)
        name, first = g.constant("table", table), g.integers(0)
        if any(p.adds_in_order for p in self.parts):
            rows = g.node("Gather", name, "indices", axis=0)
            terms = g.node("Mul", rows, g.node("Unsqueeze", "values", g.integers(1)))
            return rows, g.node("ReduceSum", terms, first, keepdims=1)
        # One entry more, of no weight: a product over nothing is not 0 everywhere.
        values = g.concat(["values", g.constant("no_weight", np.zeros(1, dtype=np.float32))])
        rows = g.node("Gather", name, g.concat(["indices", first]), axis=0)
        return rows, g.node("MatMul", g.node("Unsqueeze", values, first), rows)

    def _split(self, g: Graph, text: str, tables: Sequence[Matrix]) -> list[str]:
        """The text of each table; those that are empty share the whole."""
        widths = [table.shape[1] for table in tables]
        if sum(w > 0 for w in widths) < 2:
            return [text] * len(widths)
        found = iter(g.split(text, [w for w in widths if w]))
        return [next(found) if w else text for w in widths]

    def _logits(self, g: Graph, text: Sequence[str], context: StepContext, state: str) -> tuple[str, str]:
        """Mean logits (N, 2), state after (N, S)."""
        one = len(self.parts) == 1
        states = [state] if one else g.split(state, [p.state for p in self.parts])
        each = [p.step(g, t, context, s) for p, t, s in zip(self.parts, text, states, strict=False)]
        if one:
            return each[0]
        logits = g.node("Mean", *(logits for logits, _ in each))
        return logits, g.concat([after for _, after in each])

    def model(self) -> bytes:
        """indices, values, context, state -> logits, symbol, state."""
        g = Graph()
        first = g.integers(0)
        tables = [*(p.table for p in self.parts), self.symbols.table]
        text = self._split(g, self._text(g, tables)[1], tables)
        context, state = StepContext(g, "context"), g.node("Unsqueeze", "state", first)
        logits, after = self._logits(g, text, context, state)
        symbol = self.symbols.symbol(g, text[-1], context, logits)
        return g.build(
            self._inputs(),
            [
                ("logits", g.node("Squeeze", logits, first), "float32", [N_RISKS]),
                ("symbol", g.node("Squeeze", symbol, first), "int64", []),
                ("state_out", g.node("Squeeze", after, first), "float32", [self.state]),
            ],
        )

    def reasons(self) -> bytes:
        """One batch of variants of a step: as it is; each context feature at its typical value; each term taken away.

        Of the terms, only those of highest weight in the row are tried; the others' contributions are given as 0.
        """
        g, d = Graph(), len(self.typical)
        first = g.integers(0)
        tables = [p.table for p in self.parts]
        rows, e = self._text(g, tables)  # (nnz or one more, text), (1, text)
        tried = g.node("Min", g.node("Shape", "indices"), g.integers(_TERMS))
        value, top = g.nodes("TopK", 2, "values", tried)  # (k,)
        term = g.node("Mul", g.node("Gather", rows, top, axis=0), g.node("Unsqueeze", value, g.integers(1)))
        without = g.node("Sub", e, term)  # (k, text)
        as_it_is = g.node("Expand", e, g.integers(1 + d, 1))  # (1 + d, text)
        text = self._split(g, g.concat([as_it_is, without], axis=0), tables)  # (1 + d + k, text)
        context = VariedContext(g, "context", self.typical, tried)
        logits, _ = self._logits(g, text, context, g.node("Unsqueeze", "state", first))
        outcome = g.node("Gather", logits, g.constant("i_outcome", np.int64(_OUTCOME)), axis=-1)  # (1 + d + k,)
        moved = g.node("Sub", g.node("Gather", outcome, first, axis=0), outcome)
        of_context = g.node("Slice", moved, g.integers(1), g.integers(1 + d), first)
        of_tried = g.node("Slice", moved, g.integers(1 + d), g.integers(1 << 40), first)
        of_terms = g.node("ScatterElements", g.node("Sub", "values", "values"), top, of_tried, axis=0)
        return g.build(
            self._inputs(),
            [
                ("context_contributions", of_context, "float32", [d]),
                ("term_contributions", of_terms, "float32", ["nnz"]),
            ],
        )
