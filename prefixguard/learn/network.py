"""The neural monitors: event abstraction, a bypass around it, a sequence model, and a wide path from the context.

    e = W x                                   text: sparse row times the first layer's columns      PrefixGuard 4.2
    c                                         context: standardised, binned, with hazards
    p = Gumbel-softmax(W2 GELU(W1 [e, c]))    event abstraction, K symbols                          PrefixGuard 4.3
    b = GELU(Wb [e, c])                       bypass
    h_t = sequence(GELU(V [p, b]))_1..t       a GRU or a causal Transformer                         PrefixGuard 4.4
    logits = U h + MLP(c)                     imminent and outcome

The symbols that automata are read from come from a second network without bypass and wide path, which has nothing but
symbols between what it reads and the risk, fitted on its own: the symbols of a network that can look around them go
lazy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prefixguard.learn.config import TrainConfig
from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.head import N_RISKS
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.trainer import Batch


class ContextEncoding(nn.Module):
    """Context vector (..., d) -> (..., size). Nothing in it is trained by gradient; all of it is fitted before."""

    mean: Tensor
    std: Tensor
    low: Tensor
    width: Tensor
    feature: Tensor
    hazards: Tensor

    def __init__(self, scale: ContextScale) -> None:
        super().__init__()
        self.size = scale.size
        for name in ("mean", "std", "low", "width", "feature", "hazards"):
            self.register_buffer(name, torch.from_numpy(getattr(scale, name).copy()))

    def forward(self, context: Tensor) -> Tensor:
        standard = ((context - self.mean) / self.std).clamp(-4, 4)  # (..., d)
        bins = ((context[..., self.feature] - self.low) / self.width).clamp(0, 1)  # (..., bins)
        step = (context[..., 0].long() - 1).clamp(0, self.hazards.shape[0] - 1)  # feature 0 is the step, from 1
        return torch.cat((standard, bins, self.hazards[step]), dim=-1)


class StepNetwork(nn.Module, ABC):
    """One network; its subclass says what it does with the sequence of steps.

    symbols_only: no bypass and no wide path. reads_context: whether context joins the text before the symbols
    (False with symbols_only is the paper's own setting). width: of what is read and given at a step.
    """

    def __init__(
        self,
        n_columns: int,
        scale: ContextScale,
        config: TrainConfig,
        *,
        width: int,
        symbols_only: bool = False,
        reads_context: bool = True,
    ) -> None:
        super().__init__()
        self.abstraction_width, self.width = config.abstraction_width, width
        self.bypass_width = 0 if symbols_only else config.bypass
        self.symbols_only, self.reads_context = symbols_only, reads_context
        self.encoding = ContextEncoding(scale)
        c = self.encoding.size
        self.columns = nn.Parameter(torch.randn(n_columns, self.abstraction_width + self.bypass_width) * 0.1)
        self.abstraction_bias = nn.Parameter(torch.zeros(self.abstraction_width))
        self.abstraction_context = nn.Linear(c, self.abstraction_width, bias=False) if reads_context else None
        self.symbols = nn.Linear(self.abstraction_width, config.symbols)
        self.bypass_context = nn.Linear(c, self.bypass_width) if self.bypass_width else None
        self.embed = nn.Linear(config.symbols + self.bypass_width, width)
        self.make_sequence(config)
        self.readout = nn.Linear(width, N_RISKS)
        self.wide = (
            None
            if symbols_only
            else nn.Sequential(nn.Linear(c, width), nn.GELU(), nn.Dropout(config.dropout), nn.Linear(width, N_RISKS))
        )
        self.drop = nn.Dropout(0.0 if symbols_only else config.dropout)

    @abstractmethod
    def make_sequence(self, config: TrainConfig) -> None:
        """Create the modules that `sequence` uses; called once, in the middle of construction."""

    @abstractmethod
    def sequence(self, z: Tensor) -> Tensor:
        """(B, T, q) -> (B, T, q), causal: what is given at a step rests on it and those before it."""

    @property
    @abstractmethod
    def state_width(self) -> int:
        """Floats that the sequence model keeps between steps."""

    @classmethod
    @abstractmethod
    def step_in_graph(cls, g: Graph, prefix: str, members: Sequence[Any], z: str, state: str) -> tuple[str, str]:
        """One step of all members of this kind at once: what is read (M, N, q), states (1, S) -> what is given
        (M, N, q), states after (N, S). prefix: of names in the graph."""

    def forward(self, batch: Batch, tau: float) -> tuple[Tensor, Tensor]:
        """Logits (B, T, 2) and symbol probabilities (B, T, K). tau: Gumbel temperature, > 0."""
        size = batch.context.shape[:2]
        c = self.encoding(batch.context)  # (B, T, C)
        e = F.embedding_bag(
            batch.indices, self.columns, batch.offsets, mode="sum", per_sample_weights=batch.values
        ).view(*size, -1)  # (B, T, A + bypass)
        symbol_logits = self.symbol_logits(e, c)  # (B, T, K)
        p = F.gumbel_softmax(symbol_logits, tau=tau) if self.training else F.softmax(symbol_logits / tau, dim=-1)
        z = self.embed_step(p, e, c)  # (B, T, q)
        h = self.sequence(self.drop(z))  # (B, T, q)
        logits: Tensor = self.readout(self.drop(h))  # (B, T, 2)
        return logits if self.wide is None else logits + self.wide(c), p

    def symbol_logits(self, e: Tensor, c: Tensor) -> Tensor:
        """(..., A + bypass), (..., C) -> (..., K)."""
        hidden = e[..., : self.abstraction_width] + self.abstraction_bias
        if self.abstraction_context is not None:
            hidden = hidden + self.abstraction_context(c)
        logits: Tensor = self.symbols(F.gelu(hidden))
        return logits

    def embed_step(self, p: Tensor, e: Tensor, c: Tensor) -> Tensor:
        """What the sequence model reads at a step: (..., q)."""
        if self.bypass_context is not None:
            b = F.gelu(e[..., self.abstraction_width :] + self.bypass_context(c))
            p = torch.cat((p, self.drop(b)), dim=-1)
        return F.gelu(self.embed(p))


def array(tensor: Tensor) -> Matrix:
    """A weight as numpy has it."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)
