"""What heads that are networks share: how they are fitted, what they are once fitted, and their part of the compiled
step, in which members stand side by side as blocks of shared matrices, so that a step costs a handful of products
whatever their number.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from prefixguard.errors import ConfigError, PrefixGuardError
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import Graph, Matrix, blocks
from prefixguard.learn.head import FitMaterial, FittedNetwork, StepPart, SymbolPart
from prefixguard.learn.network import StepNetwork, array
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.trainer import Target, fit_network, predict


@dataclass(frozen=True)
class NeuralPart:
    """Members of one kind; their logits are averaged. tau: of the softmax over symbols. prefix: of names in the graph.

    Layout of the text: the members' abstractions (M * A), then their bypasses (M * B). All of it passes one GELU.
    """

    members: Sequence[StepNetwork]
    scale: ContextScale
    tau: float
    prefix: str = ""
    adds_in_order = False

    def __post_init__(self) -> None:
        if any(m.bypass_context is None or m.wide is None or m.abstraction_context is None for m in self.members):
            raise PrefixGuardError("cannot compile members without bypass, wide path or context.")
        if len({type(m) for m in self.members}) != 1:
            raise PrefixGuardError("cannot compile members of several kinds as one part.")

    @property
    def table(self) -> Matrix:
        own = [(array(m.columns), m.abstraction_width) for m in self.members]
        return np.concatenate([*(w[:, :a] for w, a in own), *(w[:, a:] for w, a in own)], axis=1)

    @property
    def state(self) -> int:
        return sum(m.state_width for m in self.members)

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        abstraction = sum(m.abstraction_width for m in self.members)
        bypass = sum(m.bypass_width for m in self.members)
        width = sum(m.width for m in self.members)
        both = context.layer(self.scale, f"{self.prefix}context", *self._context())
        to_text, to_wide = g.split(both, [abstraction + bypass, width])
        abstractions, bypasses = g.split(g.node("Gelu", g.node("Add", text, to_text)), [abstraction, bypass])
        logits = g.linear(abstractions, f"{self.prefix}symbols", *self._symbols())
        each = g.integers(0, len(self.members), -1)
        p = g.node("Softmax", g.node("Reshape", logits, each), axis=-1)  # (N, M, K)
        both = g.concat([p, g.node("Reshape", bypasses, each)])
        both = g.node("Transpose", both, perm=[1, 0, 2])  # (M, N, K + B)
        z = g.node("Gelu", g.node("MatMul", both, g.constant(f"{self.prefix}embed", self._embed())))
        h, after = self.members[0].step_in_graph(g, self.prefix, self.members, z, state)
        h = g.node("Reshape", g.node("Transpose", h, perm=[1, 0, 2]), g.integers(0, -1))  # (N, M * q)
        read = g.concat([h, g.node("Gelu", to_wide)])
        return g.linear(read, f"{self.prefix}readout", *self._readout()), after

    def _context(self) -> tuple[Matrix, Matrix]:
        """Encoded context to (text + wide hidden): weight (C, text + M * q), bias."""
        weights = [array(m.abstraction_context.weight).T for m in self.members if m.abstraction_context is not None]
        biases = [array(m.abstraction_bias) for m in self.members]
        bypasses = [m.bypass_context for m in self.members if m.bypass_context is not None]
        for layer in (*bypasses, *(_wide(m)[0] for m in self.members)):
            weights.append(array(layer.weight).T)
            biases.append(array(layer.bias))
        return np.concatenate(weights, axis=1), np.concatenate(biases)

    def _symbols(self) -> tuple[Matrix, Matrix]:
        """All abstractions to all symbol logits, divided by tau."""
        scale = np.float32(1 / self.tau)
        weight = blocks([array(m.symbols.weight).T * scale for m in self.members])
        return weight, np.concatenate([array(m.symbols.bias) * scale for m in self.members])

    def _embed(self) -> Matrix:
        """A member's symbol probabilities and bypass to what its sequence model reads, (M, K + B, q). The bias is with
        the weights of the probabilities, whose sum is 1."""
        own = np.stack([array(m.embed.weight).T for m in self.members])
        biases = np.stack([array(m.embed.bias) for m in self.members])
        symbols = self.members[0].symbols.out_features
        own[:, :symbols] += biases[:, None]
        return own

    def _readout(self) -> tuple[Matrix, Matrix]:
        """[what the sequence models give, wide hidden] to the mean logits."""
        share = np.float32(1 / len(self.members))
        outs = [*(m.readout for m in self.members), *(_wide(m)[1] for m in self.members)]
        weight = np.concatenate([array(o.weight).T for o in outs]) * share
        bias = np.stack([array(o.bias) for o in outs]).sum(axis=0) * share
        return weight, np.asarray(bias, dtype=np.float32)


@dataclass(frozen=True)
class NetworkSymbols:
    """The symbol of a symbols-only network: the argmax of its symbol logits. Source: PrefixGuard 4.3."""

    network: StepNetwork
    scale: ContextScale

    @property
    def table(self) -> Matrix:
        return array(self.network.columns)[:, : self.network.abstraction_width]

    def symbol(self, g: Graph, text: str, context: StepContext, logits: str) -> str:
        bias = array(self.network.abstraction_bias)
        if self.network.abstraction_context is None:
            hidden = g.node("Add", text, g.constant("symbol_bias", bias))
        else:
            weight = array(self.network.abstraction_context.weight).T
            hidden = g.node("Add", text, context.layer(self.scale, "symbol_context", weight, bias))
        weight, bias = array(self.network.symbols.weight).T, array(self.network.symbols.bias)
        scores = g.linear(g.node("Gelu", hidden), "symbol_logits", np.ascontiguousarray(weight), bias)
        return g.node("ArgMax", scores, axis=-1, keepdims=0)


def _wide(member: StepNetwork) -> list[nn.Linear]:
    return [x for x in member.wide or () if isinstance(x, nn.Linear)]


@dataclass(frozen=True, slots=True)
class NetworkHead:
    """Networks of one kind that were fitted on different slices; their logits are averaged."""

    members: tuple[FittedNetwork, ...]
    scale: ContextScale
    config: TrainConfig
    device: torch.device

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        each = [predict(m.network, corpus, rows, runs, self.config, self.device) for m in self.members]
        return [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]

    def part(self, prefix: str) -> StepPart:
        networks = [m.network for m in self.members if isinstance(m.network, StepNetwork)]
        return NeuralPart(networks, self.scale, self.config.tau_end, prefix)

    def symbols(self, m: FitMaterial) -> SymbolPart | None:
        return None

    def facts(self) -> Mapping[str, Any]:
        return {"epochs": [m.epoch for m in self.members]}


def choose_device(name: str) -> torch.device:
    """auto: CUDA when present. Raises ConfigError for cuda without one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device cuda: torch sees no CUDA device. Use --device cpu or auto.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def prepare(config: TrainConfig) -> None:
    """Before anything is fitted: torch's threads, and ConfigError for a device that is not there."""
    torch.set_num_threads(config.threads)
    choose_device(config.device)


def fit_members(kind: str, network: type[StepNetwork], m: FitMaterial) -> NetworkHead:
    """Fit the networks of one kind, each with a slice of the runs of its own to choose its epoch."""
    config, members = m.config, []
    for i in range(config.members):
        seed = config.seed * 1009 + i
        torch.manual_seed(seed)
        member = network(m.rows.n_columns, m.scale, config, width=config.width)
        m.listener.on_stage("network", f"{kind} {i + 1} of {config.members}")
        members.append(fit_member(m, f"{kind}{i}", member, Target(m.soft, *m.slice(i)), config, seed))
    return NetworkHead(tuple(members), m.scale, config, choose_device(config.device))


def fit_member(
    m: FitMaterial, name: str, network: torch.nn.Module, target: Target, config: TrainConfig, seed: int
) -> FittedNetwork:
    """Train one network."""
    return fit_network(
        name, network, m.corpus, m.rows, target, config,
        seed=seed, device=choose_device(config.device), listener=m.listener, checkpoints=m.checkpoints,
    )  # fmt: skip


def fit_symbols(network: type[StepNetwork], m: FitMaterial) -> tuple[SymbolPart, FittedNetwork]:
    """The symbols of a network of this kind that has nothing but symbols between what it reads and the risk."""
    config = m.config
    m.listener.on_stage("symbols", "a network that reads its own symbols only")
    torch.manual_seed(config.seed)
    member = network(m.rows.n_columns, m.scale, config, width=config.width, symbols_only=True)
    none = np.empty(0, np.int64)
    target = Target(m.soft, m.pool, m.validation if m.validation is not None else none)
    config = dataclasses.replace(config, epochs=config.symbol_epochs)
    return NetworkSymbols(member, m.scale), fit_member(m, "symbol", member, target, config, config.seed)
