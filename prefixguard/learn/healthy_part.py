"""One step of a `HealthyHead` inside a compiled graph.

The state is the running sum of the evidence, and the symbol of the step before: one number each, 0 but for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.healthy_runs import EMPTY, FARTHEST, IS_MESSAGE, UNUSUAL, HealthyRuns

if TYPE_CHECKING:
    from prefixguard.learn.healthy import ChannelEvidence

#: Nats at which the running sum of a run stays.
MOST_EVIDENCE: Final = 1e4
_FLOAT, _INT64 = 1, 7


@dataclass(frozen=True, slots=True)
class HealthyPart:
    """A `StepPart`. prefix: of the names of its constants."""

    runs: HealthyRuns
    evidence: ChannelEvidence
    prefix: str
    adds_in_order = True

    @property
    def table(self) -> Matrix:
        """See `HealthyRuns.table`."""
        return self.runs.table

    @property
    def state(self) -> int:
        """Floats kept between steps."""
        return 1 + self._symbols

    @property
    def _symbols(self) -> int:
        return len(self.runs.tools) + 2

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        """text (N, text), context (N, d), state (1, S) -> logits (N, 2), state after (N, S)."""
        sizes = [one.table.shape[1] for one in self.runs.texts]
        *fields, named = g.split(text, [*sizes, len(self.runs.tools)])
        total, before = g.split(state, [1, self._symbols])
        symbol = self._symbol(g, named, context.rows)
        channels = [self._context(g, context.rows), self._surprise(g, before, symbol)]
        channels += [self._distance(g, field, i) for i, field in enumerate(fields)]
        evidence = self._evidence(g, g.concat(channels))
        more = g.node("Sub", evidence, self._number(g, "drift", self.evidence.drift))
        running = self._clip(g, g.node("Add", total, more), 0.0, MOST_EVIDENCE)
        both = g.concat([evidence, running])
        logits = g.node("Div", both, g.node("Add", both, self._number(g, "half", self.evidence.half)))
        return logits, g.concat([running, symbol])

    def _number(self, g: Graph, name: str, value: float) -> str:
        return g.constant(f"{self.prefix}{name}", np.float32(value))

    def _array(self, g: Graph, name: str, value: Matrix) -> str:
        return g.constant(f"{self.prefix}{name}", value)

    def _clip(self, g: Graph, x: str, low: float, high: float) -> str:
        ends = (self._number(g, f"at_{end:g}", end) for end in (low, high))
        return g.node("Clip", x, *ends)

    def _squares(self, g: Graph, x: str) -> str:
        """(N, k) -> (N, 1)."""
        return g.node("ReduceSum", g.node("Mul", x, x), g.integers(-1), keepdims=1)

    def _context(self, g: Graph, context: str) -> str:
        """Squared distance from the healthy mean at that step, (N, 1)."""
        runs = self.runs
        step = g.node("Cast", g.node("Gather", context, g.constant("i_first", np.int64(0)), axis=-1), to=_INT64)
        last = g.constant(f"{self.prefix}last", np.int64(len(runs.mean) - 1))
        row = g.node("Sub", step, g.constant("i_one", np.int64(1)))
        row = g.node("Clip", row, g.constant("i_first", np.int64(0)), last)
        mean = g.node("Gather", self._array(g, "mean", runs.mean), row, axis=0)
        own = g.node("Gather", context, g.constant(f"{self.prefix}unusual", UNUSUAL), axis=-1)
        away = g.node("Div", g.node("Sub", own, mean), self._array(g, "deviation", runs.deviation))
        return self._squares(g, g.linear(self._clip(g, away, -FARTHEST, FARTHEST), f"{self.prefix}whiten", runs.whiten))

    def _symbol(self, g: Graph, named: str, context: str) -> str:
        """Of each step the symbol, (N, symbols), 1 where it is: the rarest tool, else another call; or a message."""
        n = self._symbols
        present = g.node("Cast", g.node("Greater", named, self._number(g, "at_0", 0.0)), to=_FLOAT)
        ranked = g.node("Mul", present, self._array(g, "ranks", np.arange(n, 2, -1, dtype=np.float32)))
        message = g.node("Gather", context, g.integers(IS_MESSAGE), axis=-1)
        is_message = g.node("Cast", g.node("Greater", message, self._number(g, "at_half", 0.5)), to=_FLOAT)
        said = g.node("Mul", is_message, self._number(g, "first", n + 1.0))
        other = g.node("Add", g.node("Sub", is_message, is_message), self._number(g, "at_1", 1.0))
        best = g.node("ArgMax", g.concat([ranked, other, said]), axis=-1, keepdims=0)
        return g.node("Gather", self._array(g, "one", np.eye(n, dtype=np.float32)), best, axis=0)

    def _surprise(self, g: Graph, before: str, symbol: str) -> str:
        """-log P(symbol | the one before), (N, 1). before: (1, symbols), all 0 at the first step."""
        seen = g.node("ReduceSum", before, g.integers(-1), keepdims=1)
        none = g.node("Sub", self._number(g, "at_1", 1.0), seen)
        row = g.linear(g.concat([before, none]), f"{self.prefix}transitions", self.runs.transitions)
        return g.node("ReduceSum", g.node("Mul", row, symbol), g.integers(-1), keepdims=1)

    def _distance(self, g: Graph, z: str, i: int) -> str:
        """How far a field's text (N, k) is from the nearest healthy one, (N, 1)."""
        near = g.linear(z, f"{self.prefix}prototypes{i}", self.runs.texts[i].prototypes)
        best = self._clip(g, g.node("ReduceMax", near, g.integers(-1), keepdims=1), 0.0, MOST_EVIDENCE)
        size = self._squares(g, z)
        apart = g.node("Sub", size, g.node("Mul", best, best))
        return g.node("Div", apart, g.node("Add", size, self._number(g, "empty", EMPTY)))

    def _evidence(self, g: Graph, channels: str) -> str:
        """(N, channels) -> (N, 1)."""
        e = self.evidence
        own = g.node("Gather", channels, g.constant(f"{self.prefix}channel", e.channel), axis=-1)
        passed = g.node("Div", g.node("Sub", own, self._array(g, "low", e.low)), self._array(g, "width", e.width))
        return g.linear(self._clip(g, passed, 0.0, 1.0), f"{self.prefix}height", e.height[:, None])
