"""Neural networks as parts of the compiled step: members side by side as blocks of shared matrices, so that a step
costs a handful of products whatever their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from prefixguard.errors import PrefixGuardError
from prefixguard.learn.graph import Graph
from prefixguard.learn.gru import GruNetwork, gru_step
from prefixguard.learn.network import StepNetwork
from prefixguard.learn.scaling import ContextScale
from prefixguard.learn.step_part import Matrix, blocks, encode_context
from prefixguard.learn.transformer import TransformerNetwork, transformer_step

#: graph, name prefix, members, what is read (N, M * q), state (1, S) -> what is given (N, M * q), state after (N, S)
SequenceStep = Callable[[Graph, str, Sequence[Any], str, str], tuple[str, str]]
_STEPS: Mapping[type[StepNetwork], SequenceStep] = {GruNetwork: gru_step, TransformerNetwork: transformer_step}


@dataclass(frozen=True)
class NeuralPart:
    """Members of one kind; their logits are averaged. tau: of the softmax over symbols. prefix: of names in the graph.

    Layout of the text: the members' abstractions (M * A), then their bypasses (M * B). All of it passes one GELU.
    """

    members: Sequence[StepNetwork]
    scale: ContextScale
    tau: float
    prefix: str = ""

    def __post_init__(self) -> None:
        if any(m.bypass_context is None or m.wide is None or m.abstraction_context is None for m in self.members):
            raise PrefixGuardError("cannot compile members without bypass, wide path or context.")
        if any(type(m) is not type(self.members[0]) for m in self.members) or type(self.members[0]) not in _STEPS:
            raise PrefixGuardError(f"cannot compile a {type(self.members[0]).__name__}: no step is defined for it.")

    @property
    def table(self) -> Matrix:
        own = [(array(m.columns), m.abstraction_width) for m in self.members]
        return np.concatenate([*(w[:, :a] for w, a in own), *(w[:, a:] for w, a in own)], axis=1)

    @property
    def state(self) -> int:
        return sum(m.state_width for m in self.members)

    def step(self, g: Graph, text: str, context: str, state: str) -> tuple[str, str]:
        encoded = encode_context(g, self.scale, context)
        abstraction = sum(m.abstraction_width for m in self.members)
        bypass = sum(m.bypass_width for m in self.members)
        width = sum(m.width for m in self.members)
        both = g.linear(encoded, f"{self.prefix}context", *self._context())
        to_text, to_wide = g.split(both, [abstraction + bypass, width])
        abstractions, bypasses = g.split(g.node("Gelu", g.node("Add", text, to_text)), [abstraction, bypass])
        logits = g.linear(abstractions, f"{self.prefix}symbols", *self._symbols())
        each = g.node("Reshape", logits, g.integers(0, len(self.members), -1))
        p = g.node("Reshape", g.node("Softmax", each, axis=-1), g.integers(0, -1))
        z = g.node("Gelu", g.linear(g.concat([p, bypasses]), f"{self.prefix}embed", *self._embed()))
        h, after = _STEPS[type(self.members[0])](g, self.prefix, self.members, z, state)
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

    def _embed(self) -> tuple[Matrix, Matrix]:
        """[symbol probabilities of all members, bypasses of all members] to what the sequence models read."""
        own = [(array(m.embed.weight).T, m.symbols.out_features) for m in self.members]
        weight = np.concatenate([blocks([w[:k] for w, k in own]), blocks([w[k:] for w, k in own])])
        return weight, np.concatenate([array(m.embed.bias) for m in self.members])

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

    def symbol(self, g: Graph, text: str, context: str, logits: str) -> str:
        hidden = g.node("Add", text, g.constant("symbol_bias", array(self.network.abstraction_bias)))
        if self.network.abstraction_context is not None:
            weight = array(self.network.abstraction_context.weight).T
            hidden = g.node("Add", hidden, g.linear(encode_context(g, self.scale, context), "symbol_context", weight))
        weight, bias = array(self.network.symbols.weight).T, array(self.network.symbols.bias)
        scores = g.linear(g.node("Gelu", hidden), "symbol_logits", np.ascontiguousarray(weight), bias)
        return g.node("ArgMax", scores, axis=-1, keepdims=0)


def array(tensor: Tensor) -> Matrix:
    """A weight as numpy has it."""
    return np.array(tensor.detach().cpu().numpy(), dtype=np.float32)


def _wide(member: StepNetwork) -> list[nn.Linear]:
    return [x for x in member.wide or () if isinstance(x, nn.Linear)]
