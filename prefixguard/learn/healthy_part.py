"""One step of a `HealthyHead` inside a compiled graph. The state is the distance of the run so far, one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.graph import Graph, Matrix

if TYPE_CHECKING:
    from prefixguard.learn.healthy import HealthySteps

_FLOAT = 1


@dataclass(frozen=True, slots=True)
class HealthyPart:
    """A `StepPart`. prefix: of the names of its constants."""

    steps: HealthySteps
    prefix: str
    adds_in_order = False
    state = 1

    @property
    def table(self) -> Matrix:
        """See `HealthySteps.table`."""
        return self.steps.table

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        """text (N, tools), context (N, d), state (1, 1) -> logits (N, 2), state after (N, 1)."""
        distance = self._distance(g, text, context.rows)
        kept = g.node("Mul", state, self._number(g, "memory", self.steps.memory))
        running = g.node("Add", distance, kept)
        both = g.concat([distance, running])
        return g.node("Div", both, g.node("Add", both, self._number(g, "half", self.steps.half))), running

    def _distance(self, g: Graph, named: str, context: str) -> str:
        """How far a step is from the nearest healthy one, (N, 1)."""
        own = g.constant(f"{self.prefix}features", np.arange(len(self.steps.deviation)))  # signals are not read
        point = g.node("Gather", context, own, axis=-1)
        point = g.node("Div", point, g.constant(f"{self.prefix}deviation", self.steps.deviation))
        if self.table.shape[1]:
            called = g.node("Cast", g.node("Greater", named, self._number(g, "at_0", 0.0)), to=_FLOAT)
            point = g.concat([point, called])
        prototypes = g.constant(f"{self.prefix}steps", self.steps.prototypes)
        away = g.node("Sub", g.node("Unsqueeze", point, g.integers(1)), prototypes)  # (N, M, k)
        squares = g.node("ReduceSum", g.node("Mul", away, away), g.integers(-1), keepdims=0)
        none = self._number(g, "at_0", 0.0)
        nearest = g.node("ReduceMax", g.node("Sub", none, squares), g.integers(-1), keepdims=1)
        return g.node("Sqrt", g.node("Sub", none, nearest))

    def _number(self, g: Graph, name: str, value: float) -> str:
        return g.constant(f"{self.prefix}{name}", np.float32(value))
