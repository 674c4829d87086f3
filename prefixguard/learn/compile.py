"""Compile a fitted monitor to ONNX: one step of all its heads at once, and the graph that says what moved the risk.

The graphs are written node by node rather than exported: a third of the nodes, a third of the time a step,
milliseconds instead of ten seconds to make, the same bytes each time. That they compute what the heads compute is
tested on every prefix of a corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prefixguard.learn.context_layer import StepContext, VariedContext
from prefixguard.learn.fit import FittedMonitor
from prefixguard.learn.graph import Graph, Input, Matrix
from prefixguard.learn.head import N_RISKS, StepPart, SymbolPart
from prefixguard.learn.trees import TreesPart

_OUTCOME = 1
#: From what each term adds (nnz or one more, text) and the text (1, text) to the text of variants (N, text).
Vary = Callable[[Graph, str, str], str]


def _as_it_is(g: Graph, rows: str, text: str) -> str:
    return text


def compile_monitor(monitor: FittedMonitor) -> tuple[bytes, bytes]:
    """`model.onnx` and `reasons.onnx` as bytes; `bundle.BundleParts` describes their inputs and outputs."""
    parts = [head.part(f"head{i}.") for i, head in enumerate(monitor.heads)]
    step = _StepGraph(parts, monitor.symbols, len(monitor.vocabulary), monitor.scale.typical)
    return step.model(), step.reasons()


@dataclass(frozen=True)
class _StepGraph:
    """All parts side by side."""

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

    def _texts(self, g: Graph, tables: Sequence[tuple[Matrix, bool]], vary: Vary = _as_it_is) -> list[str]:
        """The text that each table gives, (1, text), or what `vary` makes of it; of an empty table, any other's.

        tables: each with whether its terms are to be added in order. Those that are summed alike are read side by side.
        """
        # A monitor that reads no text still has a row: one column of zeros keeps the graph the same for all.
        nothing = np.zeros((max(self.n_columns, 1), 1), dtype=np.float32)
        some = [*tables, (nothing, False)] if not any(table.size for table, _ in tables) else tables
        texts = dict[int, str]()
        for in_order in sorted({in_order for table, in_order in some if table.size}):
            own = {i: table for i, (table, alike) in enumerate(some) if table.size and alike == in_order}
            name = g.constant(f"table_{in_order:d}", np.concatenate(list(own.values()), axis=1))
            text = vary(g, *self._sum(g, name, in_order))
            pieces = [text] if len(own) == 1 else g.split(text, [table.shape[1] for table in own.values()])
            texts |= dict(zip(own, pieces, strict=True))
        return [texts.get(i, next(iter(texts.values()))) for i in range(len(tables))]

    def _sum(self, g: Graph, table: str, in_order: bool) -> tuple[str, str]:
        """What each term adds to the text (nnz or one more, text), before its value; and their sum (1, text)."""
        first = g.integers(0)
        if in_order:
            rows = g.node("Gather", table, "indices", axis=0)
            terms = g.node("Mul", rows, g.node("Unsqueeze", "values", g.integers(1)))
            return rows, g.node("ReduceSum", terms, first, keepdims=1)
        # One entry more, of no weight: a product over nothing is not 0 everywhere.
        values = g.concat(["values", g.constant("no_weight", np.zeros(1, dtype=np.float32))])
        rows = g.node("Gather", table, g.concat(["indices", first]), axis=0)
        return rows, g.node("MatMul", g.node("Unsqueeze", values, first), rows)

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
        # Where one part needs its terms in order, all are added so: a second look-up costs a step more than that.
        in_order = any(p.adds_in_order for p in self.parts)
        tables = [*(p.table for p in self.parts), self.symbols.table]
        text = self._texts(g, [(table, in_order) for table in tables])
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
        """indices, values, context, state, varied, tried, without -> outcome: the logit of each variant, (N,).

        varied (N, d + 1): 1 where a context feature is at its typical value, and behind them where all terms are left
        out, else 0. tried (k,): places in the row; without (N, k): 1 where that term is left out, else 0.
        """
        g, d = Graph(), len(self.typical)
        parts = [replace(p, imminent=False) if isinstance(p, TreesPart) else p for p in self.parts]
        step = replace(self, parts=parts)
        varied, wordless = g.split("varied", [d, 1])
        kept = g.node("Sub", g.constant("one", np.float32(1)), wordless)  # (N, 1)
        value = g.node("Unsqueeze", g.node("Gather", "values", "tried"), g.integers(1))

        def vary(g: Graph, rows: str, text: str) -> str:
            """(nnz or one more, text), (1, text) -> (N, text)."""
            terms = g.node("Mul", g.node("Gather", rows, "tried", axis=0), value)  # (k, text)
            return g.node("Sub", g.node("Mul", text, kept), g.node("MatMul", "without", terms))

        text = self._texts(g, [(p.table, p.adds_in_order) for p in parts], vary)
        context = VariedContext(g, "context", self.typical, varied)
        logits, _ = step._logits(g, text, context, g.node("Unsqueeze", "state", g.integers(0)))
        outcome = g.node("Gather", logits, g.constant("i_outcome", np.int64(_OUTCOME)), axis=-1)
        more: list[Input] = [
            ("varied", "float32", ["variants", d + 1]),
            ("tried", "int64", ["tried"]),
            ("without", "float32", ["variants", "tried"]),
        ]
        return g.build([*self._inputs(), *more], [("outcome", outcome, "float32", ["variants"])])
