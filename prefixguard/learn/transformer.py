"""A causal Transformer as sequence model, in training and as one step of a compiled graph.

A layer normalises first, and its attention and feed-forward halves stand side by side: one product in, one out.

    q_1..q_H, k_t, v_t, f = A norm(x_t) + a         H queries share one key and one value, 16 wide
    s_hj = q_h k_j / sqrt(16) + b_h[t - j]          j from t - window + 1 to t
    x_t <- x_t + B [softmax(s_1) v, .., softmax(s_H) v, GELU(f)]

The first layer reads z, so that what a step says itself goes past every layer; norm(x) of the last is given.

What stands past the window. A layer looks at this step and the window - 1 before it, so what is given rests on this
step and the layers * (window - 1) before it, and on nothing older: a step beyond has no influence at all, not a small
one. Where fewer steps have been, blank ones stand for the others, with keys and values of zeros, attended to like any
other. All zeros is therefore the state before the first step, no slot needs a flag that says whether it is filled,
and no counter is kept: a slot of the cache is a distance.

Source: PrefixGuard 4.4 (causal, pre-norm, two layers). Ours: the window, and with it blank steps instead of a mask.
Shared keys and values: Shazeer 2019. Bias by distance: Press, Smith and Lewis 2021, learned here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prefixguard.learn.config import TrainConfig
from prefixguard.learn.graph import Graph, Matrix
from prefixguard.learn.head import FitMaterial
from prefixguard.learn.network import StepNetwork, array
from prefixguard.learn.neural_heads import NetworkHead, fit_members

_HEAD = 16  # width of a query, key or value: what a session keeps a layer is 2 * 16 floats a step of the window
_HIDDEN = 2  # width of the feed-forward half, in widths of the stream
_SLOPES = 4.0  # heads start between forgetting by a factor e a step and by e^(1/16): from the last step to the window


class Layer(nn.Module):
    """x (B, T, q) -> (B, T, q). enter: to queries (H * 16), key, value, feed-forward; leave: back, without bias."""

    def __init__(self, width: int, heads: int, window: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.parts = [heads * _HEAD, 2 * _HEAD, _HIDDEN * width]
        self.enter = nn.Linear(width, sum(self.parts))
        self.leave = nn.Linear(heads * _HEAD + _HIDDEN * width, width, bias=False)
        nn.init.normal_(self.leave.weight, std=0.02)  # a layer begins as nearly nothing beside what goes past it
        slopes = torch.exp2(-_SLOPES * torch.arange(heads) / max(heads - 1, 1))
        self.bias = nn.Parameter(-slopes[:, None] * torch.arange(window - 1, -1, -1.0))  # (H, window), oldest first
        self.drop = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        q, kv, f = torch.split(self.enter(F.layer_norm(x, x.shape[-1:])), self.parts, dim=-1)
        y: Tensor = x + self.leave(self.drop(torch.cat((self.attend(q, kv), F.gelu(f)), dim=-1)))
        return y

    def attend(self, q: Tensor, kv: Tensor) -> Tensor:
        """(B, T, H * 16), (B, T, 32) -> (B, T, H * 16).

        In blocks of at most a window, each against its own steps and the window - 1 before: time and memory grow with
        T * window however long runs are.
        """
        size, steps, _ = q.shape
        block = min(self.window, steps)
        n = -(-steps // block)
        seen = block + self.window - 1
        rows = F.pad(q, (0, 0, 0, n * block - steps)).view(size, n, block * self.heads, _HEAD)
        kv = F.pad(kv, (0, 0, self.window - 1, n * block - steps))  # blanks before the first step
        k, v = torch.split(kv.unfold(1, seen, block), _HEAD, dim=2)  # (B, n, 16, seen)
        scores = rows @ k * _HEAD**-0.5 + self._band(block, seen)  # (B, n, block * H, seen)
        found: Tensor = scores.softmax(-1) @ v.transpose(2, 3)  # (B, n, block * H, 16)
        return found.view(size, n * block, -1)[:, :steps]

    def _band(self, block: int, seen: int) -> Tensor:
        """(block * H, seen): the bias by distance inside the window, minus infinity outside."""
        device = self.bias.device
        slot = torch.arange(seen, device=device) - torch.arange(block, device=device)[:, None]  # (block, seen)
        inside = (slot >= 0) & (slot < self.window)
        band = self.bias[:, slot.clamp(0, self.window - 1)].masked_fill(~inside, -torch.inf)  # (H, block, seen)
        return band.transpose(0, 1).flatten(0, 1)


class TransformerNetwork(StepNetwork):
    """State: keys and values of the last window - 1 steps, (layers, window - 1, 32), oldest first; zeros are blanks."""

    def make_sequence(self, config: TrainConfig) -> None:
        self.window = config.window
        dropout = 0.0 if self.symbols_only else config.dropout
        self.layers = nn.ModuleList(
            Layer(self.width, config.attention_heads, config.window, dropout) for _ in range(config.layers)
        )

    def sequence(self, z: Tensor) -> Tensor:
        x = z
        for layer in self.layers:
            x = layer(x)
        return F.layer_norm(x, x.shape[-1:])

    @property
    def state_width(self) -> int:
        return len(self.layers) * (self.window - 1) * 2 * _HEAD

    @classmethod
    def step_in_graph(cls, g: Graph, prefix: str, members: Sequence[Any], z: str, state: str) -> tuple[str, str]:
        """Members are an axis of their own, so that the number of nodes does not grow with theirs."""
        m, width, kept = len(members), members[0].width, members[0].window - 1
        stacks = list(zip(*(member.layers for member in members), strict=True))  # a layer of all members each
        heads, parts = stacks[0][0].heads, stacks[0][0].parts
        variants = g.node("Shape", z, start=1, end=2)  # (1,): N
        x = z
        past = g.node("Reshape", state, g.integers(m, 1, len(stacks) * kept, 2 * _HEAD))
        past = g.node("Expand", past, g.concat([g.integers(1), variants, g.integers(1, 1)], axis=0))
        caches = g.nodes(
            "Split", len(stacks), past, g.integers(*[kept] * len(stacks)), axis=2
        )  # each (M, N, window - 1, 32)
        ones = g.constant(f"{prefix}ones", np.ones(width, dtype=np.float32))
        after = []
        for i, (layers, cache) in enumerate(zip(stacks, caches, strict=True)):
            read = g.node(
                "MatMul", g.node("LayerNormalization", x, ones), _stack(g, f"{prefix}enter{i}", layers, _enter)
            )
            read = g.node("Add", read, _stack(g, f"{prefix}enter_bias{i}", layers, _enter_bias))
            q, kv, f = g.split(read, parts)
            window = g.concat(
                [cache, g.node("Reshape", kv, g.integers(0, 0, 1, 2 * _HEAD))], axis=2
            )  # (M, N, window, 32)
            k, v = g.split(window, [_HEAD, _HEAD])
            queries = g.node("Reshape", q, g.integers(0, 0, heads, _HEAD))  # (M, N, H, 16)
            scores = g.node("MatMul", queries, g.node("Transpose", k, perm=[0, 1, 3, 2]))  # (M, N, H, window)
            scores = g.node("Add", scores, _stack(g, f"{prefix}distance{i}", layers, lambda x: array(x.bias)[None]))
            found = g.node("MatMul", g.node("Softmax", scores, axis=-1), v)  # (M, N, H, 16)
            both = g.concat([g.node("Reshape", found, g.integers(0, 0, heads * _HEAD)), g.node("Gelu", f)])
            leave = _stack(g, f"{prefix}leave{i}", layers, lambda x: array(x.leave.weight).T)
            x = g.node("Add", x, g.node("MatMul", both, leave))
            after.append(g.node("Slice", window, g.integers(1), g.integers(kept + 1), g.integers(2)))
        states = g.node("Transpose", g.concat(after, axis=2), perm=[1, 0, 2, 3])  # (N, M, layers * (window - 1), 32)
        return g.node("LayerNormalization", x, ones), g.node("Reshape", states, g.integers(0, -1))


def _stack(g: Graph, name: str, layers: Sequence[Layer], weight: Callable[[Layer], Matrix]) -> str:
    """One array a member, under an axis of members."""
    return g.constant(name, np.stack([weight(layer) for layer in layers]))


def _enter(layer: Layer) -> Matrix:
    """(q, all parts), the scale of scores in the queries' columns."""
    return np.asarray(array(layer.enter.weight).T * _scale(layer), dtype=np.float32)


def _enter_bias(layer: Layer) -> Matrix:
    """(1, all parts), scaled likewise."""
    return np.asarray(array(layer.enter.bias)[None] * _scale(layer), dtype=np.float32)


def _scale(layer: Layer) -> Matrix:
    queries, *others = layer.parts
    return np.repeat(np.array([_HEAD**-0.5, 1], dtype=np.float32), [queries, sum(others)])


def fit(m: FitMaterial) -> NetworkHead:
    """Fit the head: members on slices of the runs."""
    return fit_members("transformer", TransformerNetwork, m)
