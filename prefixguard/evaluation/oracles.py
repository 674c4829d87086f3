"""Rows that know what no monitor can know: what a figure is worth to somebody who knows how, or when, a run ends.

The end oracle (`clock_rows`) knows when a run ends and nothing of how. Its siblings are here: one knows how and not
when, two know something of both. Between them a reader sees what an AUPRC of .6 can be made of on these runs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.rows import ScoreRow, cut
from prefixguard.metrics import Prefixes

Float = npt.NDArray[np.float64]


def oracle_rows(prefixes: Prefixes, lengths: Sequence[int], horizon: int, seed: int = 13) -> list[ScoreRow]:
    """The oracles beside the end oracle, in this order:

    - outcome oracle: 1 at every prefix of a failed run, else 0. Nothing of the end, so for the imminent risk it marks
      failed runs from their first step on. Its outcome figures are 1.
    - half oracle: outcome and end of every run of a seeded half of the tasks (the larger half where they are odd), of
      the other runs nothing. Known positives score 1, known negatives 0, all that is unknown .5 between them.
    - blurred oracle: every outcome, and every end within `horizon` steps: the end it believes in is off by a whole
      number of steps, drawn once a run from -H..H. Failed runs score minus the steps it believes are left, none once
      that end has passed; successful runs stand below all of them. Its outcome figures are 1.

    prefixes: of all runs, none left out. lengths: steps of each run. horizon: H, 0 or more.
    seed: of the half and of the blur; 0 or more. Tasks count in the order in which their first run comes.
    Raises ConfigError for a horizon or seed below 0, DataError where lengths are not the runs'.

    >>> one = Prefixes.of([2, 2], [True, False], ["a", "b"])
    >>> [scores.tolist() for scores in oracle_rows(one, [2, 2], horizon=0)[0].imminent]
    [[1.0, 1.0], [0.0, 0.0]]
    """
    if horizon < 0 or seed < 0:
        raise ConfigError(f"oracle rows: horizon {horizon} and seed {seed}: use 0 or more of each.")
    if len(lengths) != len(prefixes.failed) or sum(lengths) != len(prefixes):
        raise DataError(
            f"oracle rows: {len(lengths)} runs of {sum(lengths)} steps for {len(prefixes.failed)} runs of "
            f"{len(prefixes)} prefixes. Give all prefixes of the same runs."
        )
    rng = np.random.default_rng(seed)
    outcome = cut(prefixes.outcome_labels.astype(np.float64), lengths)
    known_tasks = rng.permutation(prefixes.n_tasks) < (prefixes.n_tasks + 1) // 2  # bool (U,)
    known = known_tasks[prefixes.units]
    half = [
        cut(np.where(known, labels, 0.5), lengths)
        for labels in (prefixes.imminent_labels(horizon), prefixes.outcome_labels)
    ]
    shift = rng.integers(-horizon, horizon + 1, size=len(prefixes.failed))  # int64 (R,)
    left = np.maximum(0, prefixes.remaining + shift[prefixes.run])
    below = -float(left.max(initial=0)) - 1.0
    blurred = cut(np.where(prefixes.failed[prefixes.run], -left.astype(np.float64), below), lengths)
    return [
        ScoreRow("outcome oracle", outcome, outcome, oracle=True, note="knows how the run ends, nothing of when"),
        ScoreRow(
            "half oracle",
            half[0],
            half[1],
            oracle=True,
            note="knows how and when the runs of half of the tasks end, nothing of the others",
        ),
        ScoreRow(
            "blurred oracle",
            blurred,
            outcome,
            oracle=True,
            note=f"knows how the run ends, and when to within {horizon} steps",
        ),
    ]
