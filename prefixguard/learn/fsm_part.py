"""The soft automaton as a part of the compiled step, and the source of its symbols."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from prefixguard.learn.graph import Graph
from prefixguard.learn.neural_part import array
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.soft_fsm import READOUT_GAIN, SHARPNESS, FsmNetwork, machine_tau
from prefixguard.learn.step_part import Matrix, encode_context


@dataclass(frozen=True)
class FsmPart:
    """One step of an `FsmNetwork`. State: whether the run has begun, and the distribution over states."""

    network: FsmNetwork
    scale: ContextScale
    tau: float
    prefix: str = ""

    @property
    def table(self) -> Matrix:
        return array(self.network.columns)

    @property
    def state(self) -> int:
        return 1 + len(self.network.machine.theta)

    def step(self, g: Graph, text: str, context: str, state: str) -> tuple[str, str]:
        machine, tau = self.network.machine, machine_tau(self.tau)
        k, n = machine.raw.shape[:2]
        with torch.no_grad():
            start, flat = array(machine.start(tau)), array(machine.transitions(tau).transpose(0, 1).reshape(n, -1))
        logits = symbol_logits(g, self.network, self.scale, text, context, self.prefix)
        scale = g.constant(f"{self.prefix}tau", np.float32(1 / self.tau))
        p = g.node("Softmax", g.node("Mul", logits, scale), axis=-1)  # (N, K)
        begun, before = g.split(state, [1, n])
        new = g.node("Sub", g.constant("one", np.float32(1)), begun)  # (1, 1)
        first = g.node("Mul", new, g.constant(f"{self.prefix}start", start[None]))
        before = g.node("Add", before, first)  # (1, S): all zeros before the first step
        moved = g.node("MatMul", before, g.constant(f"{self.prefix}transitions", np.ascontiguousarray(flat)))
        after = g.node("MatMul", p, g.node("Reshape", moved, g.integers(k, n)))  # (N, S)
        risk = array(self.network.risk) * np.float32(READOUT_GAIN)
        ones = g.node("ReduceMax", g.node("Add", g.node("Mul", p, g.constant("zero", np.float32(0))), g.constant(
            "one", np.float32(1))), g.integers(-1), keepdims=1)  # fmt: skip
        return g.node("MatMul", after, g.constant(f"{self.prefix}risk", risk)), g.concat([ones, after])


@dataclass(frozen=True)
class FsmSymbols:
    """The symbol of an `FsmNetwork`: the nearest code."""

    network: FsmNetwork
    scale: ContextScale

    @property
    def table(self) -> Matrix:
        return array(self.network.columns)

    def symbol(self, g: Graph, text: str, context: str, logits: str) -> str:
        return g.node(
            "ArgMax", symbol_logits(g, self.network, self.scale, text, context, "symbol_"), axis=-1, keepdims=0
        )


def symbol_logits(g: Graph, network: FsmNetwork, scale: ContextScale, text: str, context: str, prefix: str) -> str:
    """text (N, width), context (N, d) -> (N, K), as `FsmNetwork.symbol_logits`."""
    of_context = np.ascontiguousarray(array(network.context.weight).T)
    to_hidden = g.linear(encode_context(g, scale, context), f"{prefix}context", of_context, array(network.bias))
    hidden = g.node("Gelu", g.node("Add", text, to_hidden))
    codes = array(network.codes)
    # beta (u . code - |code|^2 / 2) with u = W h + b is one product from the hidden layer.
    weight = array(network.plane.weight).T @ codes.T * np.float32(SHARPNESS)
    bias = SHARPNESS * (array(network.plane.bias) @ codes.T - np.square(codes).sum(-1) / 2)
    return g.linear(hidden, f"{prefix}codes", np.ascontiguousarray(weight), bias.astype(np.float32))
