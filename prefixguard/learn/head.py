"""What a fitted head is, whatever it is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from prefixguard.errors import PrefixGuardError
from prefixguard.learn.config import TrainConfig
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.fsm_part import FsmPart, FsmSymbols
from prefixguard.learn.network import StepNetwork
from prefixguard.learn.neural_part import NeuralPart
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.soft_fsm import FsmNetwork
from prefixguard.learn.step_part import StepPart, SymbolPart
from prefixguard.learn.trainer import Fitted, predict


class Head(Protocol):
    """One fitted head. A monitor's logits are the mean of its heads'."""

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Natural log-odds of both risks after every step: one array (T, 2) a run, in the order of `runs`."""
        ...

    def part(self, prefix: str) -> StepPart:
        """The head's part of the compiled step. prefix: of its names in the graph."""
        ...

    def facts(self) -> Mapping[str, Any]:
        """What the manifest says of it: plain JSON."""
        ...


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
