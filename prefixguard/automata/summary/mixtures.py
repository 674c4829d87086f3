"""States that mix opposites: where runs end otherwise by the symbol that brought them there, no one risk fits all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from prefixguard.automata.span_pools import design_effects
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.wording import share_text

#: Runs that a symbol needs in a state, and how far apart the shares of two symbols must be.
_FEWEST, _APART = 10, 0.3
#: Of the intervals that must not meet.
_SURE = 0.99


def mixed_states(pool: Strings, states: NDArray[np.int32], n_states: int, glosses: Sequence[str]) -> dict[int, str]:
    """Of each state in which runs that read one symbol fail far more often than those that read another, a sentence:
    the two that lie furthest apart by the ends of their intervals (Jeffreys' prior; runs of one task count as fewer
    than they are). pool: training runs; states: after each of their steps."""
    n_symbols = pool.n_symbols
    run = np.repeat(np.arange(len(pool)), pool.lengths)
    cells = n_states * n_symbols
    pairs = np.unique(run * cells + states.astype(np.int64) * n_symbols + pool.symbols)
    run, cell = np.divmod(pairs, cells)
    failed = pool.failed[run].astype(np.float64)
    runs, failures = (np.bincount(cell, of, cells) for of in (None, failed))
    design = design_effects(run, pool.tasks[run], cell, failed, cells)
    n, k = runs / design, failures / design
    low, high = (betaincinv(k + 0.5, n - k + 0.5, end) for end in ((1 - _SURE) / 2, (1 + _SURE) / 2))
    found = {}
    for state in range(n_states):
        of = np.arange(state * n_symbols, (state + 1) * n_symbols)
        of = of[runs[of] >= _FEWEST]
        if not len(of):
            continue
        bad, good = int(of[np.argmax(low[of])]), int(of[np.argmin(high[of])])
        shares = failures[[bad, good]] / runs[[bad, good]]
        if low[bad] > high[good] and shares[0] - shares[1] >= _APART:
            worst, best = (
                f"({failures[at]:,.0f} of {runs[at]:,} failed, {share_text(share)})"
                for at, share in zip((bad, good), shares.tolist(), strict=True)
            )
            one, other = (f'"{glosses[at % n_symbols]}"' for at in (bad, good))
            found[state] = (
                f"This state mixes training runs that read {one} here {worst} with those that read {other} {best}."
            )
    return found
