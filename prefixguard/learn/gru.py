"""The GRU as sequence model, in training and as one step of a compiled graph. Source: PrefixGuard 4.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn

from prefixguard.learn import neural_heads
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.graph import Graph, Matrix, blocks
from prefixguard.learn.head import FitMaterial, FittedNetwork, SymbolPart
from prefixguard.learn.network import StepNetwork


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
        """The outputs are the states after. The members' matrices stand along diagonals, so that a step is two products
        whatever their number."""
        width = sum(m.width for m in members)
        of_input = g.linear(z, f"{prefix}gates_in", *_gates(members, of_state=False))
        of_state = g.linear(state, f"{prefix}gates_state", *_gates(members, of_state=True))
        ru_in, n_in = g.split(of_input, [2 * width, width])
        ru_state, n_state = g.split(of_state, [2 * width, width])
        reset, update = g.split(g.node("Sigmoid", g.node("Add", ru_in, ru_state)), [width, width])
        new = g.node("Tanh", g.node("Add", n_in, g.node("Mul", reset, n_state)))
        after = g.node("Add", new, g.node("Mul", update, g.node("Sub", state, new)))
        return after, after


def _gates(members: Sequence[GruNetwork], *, of_state: bool) -> tuple[Matrix, Matrix]:
    """Weight and bias from inputs or states to the gates: reset of all, update of all, new of all."""
    at = 1 if of_state else 0
    arrays = [[p.detach().cpu().numpy().astype(np.float32) for p in m.gru.all_weights[0]] for m in members]
    weights = [np.split(a[at], 3) for a in arrays]
    biases = [np.split(a[2 + at], 3) for a in arrays]
    return (
        np.concatenate([blocks([w[gate].T for w in weights]) for gate in range(3)], axis=1),
        np.concatenate([b[gate] for gate in range(3) for b in biases]),
    )


def fit(m: FitMaterial) -> neural_heads.NetworkHead:
    """Fit the head: members on slices of the runs."""
    return neural_heads.fit_members("gru", GruNetwork, m)


def fit_symbols(m: FitMaterial) -> tuple[SymbolPart, FittedNetwork]:
    """The symbols of a monitor whose heads have none of their own."""
    return neural_heads.fit_symbols(GruNetwork, m)
