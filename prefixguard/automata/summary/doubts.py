"""States whose risks are not what test runs did there."""

from __future__ import annotations

import numpy as np
from scipy.special import betainc
from scipy.stats import false_discovery_control

from prefixguard.automata.span_pools import design_effects
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.wording import share_text

#: Test runs that a state needs to be tested: of fewer hardly any outcome is unlikely enough.
_FEWEST = 5
#: Of the states whose risks are called in doubt, so many at most are expected to be so by chance.
_BY_CHANCE = 0.1


def risks_in_doubt(walks: Walks, n_states: int) -> dict[int, str]:
    """Of each state whose risks are not what test runs there did, a sentence: states with enough test runs are tested
    together, both ways, runs of one task counting as fewer than they are.

    Source: Benjamini, Hochberg 1995.
    """
    strings = walks.strings
    pairs = np.repeat(np.arange(len(strings)), strings.lengths) * n_states + walks.states
    pairs, at, steps = np.unique(pairs, return_inverse=True, return_counts=True)
    run, state = np.divmod(pairs, n_states)
    failed = strings.failed[run].astype(np.float64)
    runs, failures, risks = (
        np.bincount(state, of, n_states)
        for of in (None, failed, np.bincount(at, walks.risks[:, 1], len(pairs)) / steps)
    )
    there = np.flatnonzero(runs >= _FEWEST)
    if not len(there):
        return {}
    design = design_effects(run, strings.tasks[run], state, failed, n_states)[there]
    risk = risks[there] / runs[there]
    n, k = runs[there] / design, failures[there] / design
    few = np.where(k < n, betainc(np.maximum(n - k, 1e-9), k + 1, 1 - risk), 1.0)  # the binomial's, of any n
    many = np.where(k > 0, betainc(np.maximum(k, 1e-9), n - k + 1, risk), 1.0)
    chances = false_discovery_control(np.minimum(2 * np.minimum(few, many), 1.0))
    return {
        s: f"{share_text(failures[s] / runs[s])} of the {runs[s]:,} test runs that came here failed; by its risks "
        f"{share_text(risks[s] / runs[s])} would."
        for s, chance in zip(there.tolist(), chances.tolist(), strict=True)
        if chance <= _BY_CHANCE
    }
