"""Heads that are networks: fitting them, and what they are once fitted. The only way from `fit` to torch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from prefixguard.errors import ConfigError, PrefixGuardError
from prefixguard.learn.batches import epoch
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.fit import FitMaterial
from prefixguard.learn.fsm_part import FsmPart, FsmSymbols
from prefixguard.learn.gru import GruNetwork
from prefixguard.learn.network import StepNetwork
from prefixguard.learn.neural_part import NetworkSymbols, NeuralPart
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.soft_fsm import FsmNetwork
from prefixguard.learn.step_part import Head, StepPart, SymbolPart
from prefixguard.learn.trainer import Fitted, Target, fit_network, predict
from prefixguard.learn.transformer import TransformerNetwork

_NETWORKS: Mapping[str, type[StepNetwork]] = {"gru": GruNetwork, "transformer": TransformerNetwork}


@dataclass(frozen=True, slots=True)
class NetworkHead:
    """Networks of one kind that were fitted on different slices; their logits are averaged."""

    members: tuple[Fitted, ...]
    scale: ContextScale
    config: TrainConfig
    device: torch.device

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        each = [predict(m.network, corpus, rows, runs, self.config, self.device) for m in self.members]
        return [np.mean(parts, axis=0) for parts in zip(*each, strict=True)]

    def part(self, prefix: str) -> StepPart:
        networks = [m.network for m in self.members if isinstance(m.network, StepNetwork)]
        return NeuralPart(networks, self.scale, self.config.tau_end, prefix)

    def facts(self) -> Mapping[str, Any]:
        return {"epochs": [m.epoch for m in self.members]}


@dataclass(frozen=True, slots=True)
class FsmHead:
    """The soft automaton. One network: the mean of several would be no automaton.

    off_argmax: share of the probability mass that is not where the argmax automaton is, over training steps.
    """

    members: tuple[Fitted, ...]
    scale: ContextScale
    config: TrainConfig
    device: torch.device
    off_argmax: float

    @property
    def network(self) -> FsmNetwork:
        """The one network."""
        network = self.members[0].network
        if not isinstance(network, FsmNetwork):
            raise PrefixGuardError(f"an FsmHead needs an FsmNetwork, this is a {type(network).__name__}.")
        return network

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        return predict(self.network, corpus, rows, runs, self.config, self.device)

    def part(self, prefix: str) -> StepPart:
        return FsmPart(self.network, self.scale, self.config.tau_end, prefix)

    def symbols(self) -> SymbolPart:
        """The machine's own symbols."""
        return FsmSymbols(self.network, self.scale)

    def facts(self) -> Mapping[str, Any]:
        return {"epochs": [m.epoch for m in self.members], "off_argmax": round(self.off_argmax, 6)}


def choose_device(name: str) -> torch.device:
    """auto: CUDA when present. Raises ConfigError for cuda without one."""
    if name == "cuda" and not torch.cuda.is_available():
        raise ConfigError("device cuda: torch sees no CUDA device. Use --device cpu or auto.")
    return torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")


def prepare(config: TrainConfig) -> None:
    """Before anything is fitted: torch's threads, and ConfigError for a device that is not there."""
    torch.set_num_threads(config.threads)
    choose_device(config.device)


def fit_head(kind: str, m: FitMaterial) -> Head:
    """Fit the networks of one backend: gru, transformer or fsm."""
    config = m.config
    if kind == "fsm":
        return _fit_fsm(m)
    members = []
    for i in range(config.members):
        seed = config.seed * 1009 + i
        torch.manual_seed(seed)
        network = _NETWORKS[kind](m.rows.n_columns, m.scale, config, width=config.width)
        m.listener.on_stage("network", f"{kind} {i + 1} of {config.members}")
        members.append(_fit(m, f"{kind}{i}", network, Target(m.soft, *m.slice(i)), config, seed))
    return NetworkHead(tuple(members), m.scale, config, choose_device(config.device))


def _fit(m: FitMaterial, name: str, network: torch.nn.Module, target: Target, config: TrainConfig, seed: int) -> Fitted:
    """Train one network."""
    return fit_network(
        name, network, m.corpus, m.rows, target, config,
        seed=seed, device=choose_device(config.device), listener=m.listener, checkpoints=m.checkpoints,
    )  # fmt: skip


def _fit_fsm(m: FitMaterial) -> FsmHead:
    """One soft automaton, with a third more epochs: it has to get sharp as well as right."""
    config = dataclasses.replace(m.config, epochs=math.ceil(m.config.epochs * 4 / 3))
    seed = config.seed * 1009
    torch.manual_seed(seed)
    network = FsmNetwork(m.rows.n_columns, m.scale, config)
    m.listener.on_stage("network", "fsm")
    fitted = _fit(m, "fsm0", network, Target(m.soft, *m.slice(0)), config, seed)
    off, steps = 0.0, 0
    for batch in epoch(m.corpus, m.rows, m.pool, 4 * config.batch_runs, None):
        batch = batch.to(choose_device(config.device))
        off += float(network.off_argmax(batch, config.tau_end)[batch.mask].double().sum())
        steps += int(batch.mask.sum())
    return FsmHead((fitted,), m.scale, config, choose_device(config.device), off / steps)


def fit_symbols(heads: tuple[Head, ...], m: FitMaterial) -> tuple[SymbolPart, Fitted | None]:
    """The machine's own symbols where the soft automaton is all; else those of a symbols-only network beside."""
    config = m.config
    if config.heads == ("fsm",) and isinstance(heads[0], FsmHead):
        return heads[0].symbols(), None
    m.listener.on_stage("symbols", "a network that reads its own symbols only")
    torch.manual_seed(config.seed)
    network = GruNetwork(m.rows.n_columns, m.scale, config, width=config.width, symbols_only=True)
    none = np.empty(0, np.int64)
    target = Target(m.soft, m.pool, m.validation if m.validation is not None else none)
    fitted = _fit(m, "symbol", network, target, dataclasses.replace(config, epochs=config.symbol_epochs), config.seed)
    return NetworkSymbols(network, m.scale), fitted
