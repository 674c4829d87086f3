"""Strings of symbols made by hand."""

from __future__ import annotations

import numpy as np

from prefixguard.automata.strings import Strings


def strings_of(words: list[tuple[int, ...]], n_symbols: int = 3, failed: list[bool] | None = None) -> Strings:
    """Runs that are tasks of their own, every other one failed unless said; labels are how they ended."""
    lengths = [len(word) for word in words]
    first = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    ends = failed if failed is not None else [i % 2 == 1 for i in range(len(words))]
    outcome = np.repeat(np.array(ends, dtype=np.float32), lengths)
    steps = int(first[-1])
    return Strings(
        symbols=np.array([k for word in words for k in word], dtype=np.int32),
        n_symbols=n_symbols,
        first=first,
        failed=np.array(ends, dtype=np.bool_),
        tasks=np.arange(len(words), dtype=np.int64),
        labels=np.stack((outcome, outcome), axis=1).astype(np.float32).reshape(steps, 2),
        teacher=np.linspace(0.1, 0.9, 2 * steps, dtype=np.float32).reshape(steps, 2),
    )
