"""Runs as padded batches of symbols, and the loss that sequence models of symbols are fitted by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from prefixguard.automata.strings import Strings
from prefixguard.bundle import N_RISKS

_BATCH = 64
_MOST_STEPS = 40_000


@dataclass(frozen=True, slots=True)
class SymbolBatch:
    """Runs side by side. symbols: int64 (B, T). target: float32 (B, T, 2). mask: bool (B, T).

    steps: int64 (B, T), positions in the strings; of padding, 0.
    """

    symbols: Tensor
    target: Tensor
    mask: Tensor
    steps: NDArray[np.int64]


def few_enough(strings: Strings, seed: int) -> tuple[Strings, tuple[str, ...]]:
    """So many of the runs, drawn by seed, that every step can be weighed against every state; and what to note."""
    drawn = np.random.default_rng(seed).permutation(len(strings))
    n = max(int(np.searchsorted(np.cumsum(strings.lengths[drawn]), _MOST_STEPS, side="right")), 1)
    if n >= len(strings):
        return strings, ()
    return strings.of(np.sort(drawn[:n])), (f"learned from {n} of {len(strings)} runs, drawn by seed",)


def batches(strings: Strings, rng: np.random.Generator | None) -> Iterator[SymbolBatch]:
    """Runs of like length together; shuffled where a generator is given. Targets are half labels, half teacher."""
    order = np.argsort(strings.lengths, kind="stable")
    starts = np.arange(0, len(order), _BATCH)
    if rng is not None:
        rng.shuffle(starts)
    target = ((strings.labels + strings.teacher) / 2).astype(np.float32)
    for start in starts.tolist():
        runs = order[start : start + _BATCH]
        lengths = strings.lengths[runs]
        t = np.arange(int(lengths.max()))
        mask = t[None, :] < lengths[:, None]
        steps = np.where(mask, strings.first[runs][:, None] + t[None, :], 0)
        yield SymbolBatch(
            torch.from_numpy(strings.symbols[steps].astype(np.int64)),
            torch.from_numpy(target[steps]),
            torch.from_numpy(mask),
            steps,
        )


def fit(
    model: nn.Module,
    strings: Strings,
    seed: int,
    epochs: int,
    rate: float,
    temperatures: tuple[float, ...],
    importance: NDArray[np.float64] | None = None,
) -> None:
    """Fit `model` (called with symbols (B, T) and a temperature, giving logits (B, T, 2)) in place.

    Loss: mean over runs of the mean over their steps, as networks on records are fitted. temperatures: one an epoch.
    importance: float64 (2,), what each risk counts for; None: alike.
    """
    counts = torch.ones(N_RISKS) if importance is None else torch.from_numpy(importance.astype(np.float32))
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - 0.9 * epoch / max(epochs - 1, 1))
        for batch in batches(strings, rng):
            logits = model(batch.symbols, temperatures[epoch])
            each = F.binary_cross_entropy_with_logits(logits, batch.target, reduction="none") @ counts
            weight = batch.mask / batch.mask.sum(1, keepdim=True)
            optimizer.zero_grad()
            ((each * weight).sum() / len(weight)).backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
