"""Which prefixes a judge is asked about: all with the same probability, spread over classes, tasks and runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.metrics import Prefixes


def draw_prefixes(
    prefixes: Prefixes, eligible: npt.NDArray[np.bool_], n: int, *, horizon: int, seed: int
) -> npt.NDArray[np.int64]:
    """Rows of the prefixes that are drawn, int64 (n,), ascending; all that are eligible where there are no more.

    Prefixes stand in a ring: those of an imminent failure, earlier ones of failed runs, those of successful runs; in
    each class task by task, run by run. The ring is cut at a random place into n arcs, equally long to within one
    prefix, and one prefix is drawn from each. So every eligible prefix is drawn with probability n / N exactly (figures
    need no weights); both prevalences in the sample are those of all prefixes to within rounding; and a run gets no
    more than its share of arcs: one or two prefixes, unless n is large beside the number of runs. (A stratified sample
    with one unit a stratum: Cochran, Sampling Techniques, 5A.)

    eligible: bool (N,), prefixes that may be drawn. horizon: H of the imminent label. seed: of the draw.
    Raises ConfigError for n below 1.
    """
    if n < 1:
        raise ConfigError(f"a sample of {n} prefixes: draw 1 or more.")
    rows = np.flatnonzero(eligible)
    if n >= len(rows):
        return rows
    rng = np.random.default_rng(seed)
    place_of_task = rng.permutation(prefixes.n_tasks)
    strata = 2 - prefixes.outcome_labels.astype(np.int64) - prefixes.imminent_labels(horizon)
    run = prefixes.run[rows]
    order = np.lexsort((prefixes.step[rows], run, place_of_task[prefixes.task[run]], strata[rows]))
    ring = np.roll(rows[order], int(rng.integers(len(rows))))
    ends = np.arange(n + 1, dtype=np.int64) * len(ring) // n
    drawn = rng.integers(ends[:-1], ends[1:])
    return np.sort(ring[drawn])
