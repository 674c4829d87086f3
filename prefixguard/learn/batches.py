"""Runs as padded batches: bucketed by length, shuffled by seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from prefixguard.learn.corpus import Corpus, Rows

_JITTER = 3.0  # steps by which runs of like length change places from epoch to epoch


@dataclass(frozen=True, slots=True)
class Batch:
    """Runs side by side, padded to the longest.

    runs: int64 (B,), their numbers in the corpus.
    indices, values, offsets: the sparse rows of all B * T cells, run by run, as `embedding_bag` takes them.
    context: float32 (B, T, d). mask: bool (B, T), True where a step is.
    """

    runs: NDArray[np.int64]
    indices: Tensor
    values: Tensor
    offsets: Tensor
    context: Tensor
    mask: Tensor

    def to(self, device: torch.device) -> Batch:
        """The same batch on another device."""
        moved = (t.to(device) for t in (self.indices, self.values, self.offsets, self.context, self.mask))
        return Batch(self.runs, *moved)


def collate(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> Batch:
    """One batch of these runs."""
    lengths = corpus.lengths[runs]
    n, longest = len(runs), int(lengths.max())
    context = np.zeros((n, longest, corpus.context.shape[1]), dtype=np.float32)
    mask = np.zeros((n, longest), dtype=np.bool_)
    counts = np.zeros((n, longest), dtype=np.int64)
    indices, values = [], []
    for j, r in enumerate(runs.tolist()):
        length = int(lengths[j])
        i, v, k = rows.run(r)
        indices.append(i)
        values.append(v)
        counts[j, :length] = k
        mask[j, :length] = True
        context[j, :length] = corpus.context[corpus.first[r] : corpus.first[r + 1]]
    offsets = np.concatenate(([0], np.cumsum(counts.ravel())[:-1]))
    return Batch(
        runs,
        torch.from_numpy(np.concatenate(indices)),
        torch.from_numpy(np.concatenate(values)),
        torch.from_numpy(offsets),
        torch.from_numpy(context),
        torch.from_numpy(mask),
    )


def epoch(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], size: int, seed: tuple[int, ...] | None
) -> Iterator[Batch]:
    """The runs in batches of like length.

    seed: shuffles runs of like length and the order of batches; None: neither.
    """
    lengths = corpus.lengths[runs].astype(np.float64)
    rng = np.random.default_rng(seed) if seed is not None else None
    if rng is not None:
        lengths += rng.uniform(0, _JITTER, len(runs))
    ordered = runs[np.argsort(lengths, kind="stable")]
    starts = np.arange(0, len(ordered), size)
    if rng is not None:
        rng.shuffle(starts)
    for start in starts:
        yield collate(corpus, rows, ordered[start : start + size])
