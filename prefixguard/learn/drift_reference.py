"""What a drift signal compares later runs with: how runs of the alarm side look to the bundle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import draw_one_per_task
from prefixguard.encoder import tokenize
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.runtime import DriftReference, summarise_steps


def draw_drift_runs(corpus: Corpus, seed: int, side: NDArray[np.int64]) -> NDArray[np.int64]:
    """One run a task of the alarm side, whatever its outcome: later runs are watched before theirs is known."""
    drawn = draw_one_per_task(
        [corpus.task_ids[r] for r in side.tolist()], [corpus.run_ids[r] for r in side.tolist()], seed=seed
    )
    return side[drawn]


def drift_reference(
    corpus: Corpus,
    rows: Rows,
    runs: NDArray[np.int64],
    outcome_risks: Mapping[int, NDArray[np.float64]],
    unseen_transitions: Mapping[int, float] | None = None,
) -> dict[str, Any] | None:
    """What a manifest keeps under `drift`; None where there is no run.

    rows: under the bundle's vocabulary. runs: see `draw_drift_runs`. outcome_risks: by run, of each of its steps, by
    the bundle's own steps and map. unseen_transitions: by run, see `RunSummary`; None where there is no automaton.
    No step counts as one that could not be judged: what a monitor refuses to judge is set by these runs too
    (`runtime.lapses`), so that none of them is refused, but for at most one run in a thousand.
    """
    if len(runs) == 0:
        return None
    summaries = []
    for r in runs.tolist():
        first, stop = int(corpus.first[r]), int(corpus.first[r + 1])
        words = [len(tokenize(document).hashes) for document in corpus.documents.each(first, stop)]
        unseen = None if unseen_transitions is None else unseen_transitions[r]
        summaries.append(summarise_steps(outcome_risks[r], rows.counts[first:stop], words, unseen))
    return DriftReference.of(summaries).to_json()
