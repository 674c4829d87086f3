"""The GRU as sequence model, in training and as one step of a compiled graph. Source: PrefixGuard 4.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from prefixguard.learn import neural_heads
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.graph import Graph
from prefixguard.learn.head import FitMaterial, FittedNetwork, SymbolPart
from prefixguard.learn.network import StepNetwork, array


class GruNetwork(StepNetwork):
    """h_t = GRU(z_t, h_{t-1}), one layer; its state is all that is kept of a run."""

    def make_sequence(self, config: TrainConfig) -> None:
        self.gru = nn.GRU(self.width, self.width, batch_first=True)

    def sequence(self, z: Tensor) -> Tensor:
        h: Tensor = self.gru(z)[0]
        return h

    @property
    def state_width(self) -> int:
        return self.width

    @classmethod
    def step_in_graph(cls, g: Graph, prefix: str, members: Sequence[Any], z: str, state: str) -> tuple[str, str]:
        """The outputs are the states after."""
        m, width = len(members), members[0].width
        before = g.node("Reshape", state, g.integers(m, 1, width))
        of_input = _gates(g, f"{prefix}gates_in", z, members, 0)  # (M, N, 3 * q)
        of_state = _gates(g, f"{prefix}gates_state", before, members, 1)  # (M, 1, 3 * q)
        ru_in, n_in = g.split(of_input, [2 * width, width])
        ru_state, n_state = g.split(of_state, [2 * width, width])
        reset, update = g.split(g.node("Sigmoid", g.node("Add", ru_in, ru_state)), [width, width])
        new = g.node("Tanh", g.node("Add", n_in, g.node("Mul", reset, n_state)))
        after = g.node("Add", new, g.node("Mul", update, g.node("Sub", before, new)))
        return after, g.node("Reshape", g.node("Transpose", after, perm=[1, 0, 2]), g.integers(0, -1))


def _gates(g: Graph, name: str, x: str, members: Sequence[GruNetwork], at: int) -> str:
    """From inputs (at = 0) or states (1) of all members to their gates: reset, update, new."""
    weights = [m.gru.all_weights[0] for m in members]
    product = g.node("MatMul", x, g.constant(f"{name}.weight", np.stack([array(w[at]).T for w in weights])))
    return g.node("Add", product, g.constant(f"{name}.bias", np.stack([array(w[2 + at])[None] for w in weights])))


def fit(m: FitMaterial) -> neural_heads.NetworkHead:
    """Fit the head: members on slices of the runs."""
    return neural_heads.fit_members("gru", GruNetwork, m)


def fit_symbols(m: FitMaterial) -> tuple[SymbolPart, FittedNetwork]:
    """The symbols of a monitor whose heads have none of their own."""
    return neural_heads.fit_symbols(GruNetwork, m)
