"""AUROC of the final outcome when a share of each run is seen: what others publish.

Whoever takes a quarter of a run knows how long the run is, which no live monitor does; so these figures are for setting
beside others', and no aim.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import Prefixes, Ranking, Resamples
from prefixguard.results import Block, Cell, Result, TableBlock, Text, number, percent, spread

SHARES = (0.25, 0.5, 0.75, 1.0)
#: Steps of the shortest run that counts, so that each share ends at a step of its own.
FEWEST_STEPS = 4
#: Beside the first row, what is shown; JSON has all.
_SHOWN = ("step index", "fitted clock", "size spline")

CAUTION = (
    f"Of runs of at least {FEWEST_STEPS} steps, as others publish it. To take a quarter of a run is to know its "
    "length, which a live monitor does not: set these beside the figures of others on the same folds, and aim at the "
    "AUROC at equal steps passed and at the skill over a clock. A clock can stand below .500 here: fitted to the runs "
    "that still go on at a step, it does not know that the same share of a shorter run is an earlier step."
)


@dataclass(frozen=True, slots=True)
class SharesSeenRow:
    """auroc: of the outcome score by share of the run, NaN where one class is missing. intervals: 95 % over tasks, by
    share; empty where there is one task."""

    name: str
    auroc: Mapping[float, float]
    intervals: Mapping[float, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class SharesSeen(Result):
    """runs, failed_runs: those that are long enough. rows: the monitor's first, and no oracle's."""

    runs: int
    failed_runs: int
    rows: tuple[SharesSeenRow, ...]
    caution: str = CAUTION

    def blocks(self) -> tuple[Block, ...]:
        """A table of the first row and of those that read nothing; none where no run is long enough."""
        if not self.runs:
            return ()
        cells = [
            [Cell(row.name), *(Cell(number(row.auroc[s]), spread(row.intervals.get(s))) for s in SHARES)]
            for row in self.rows
            if row is self.rows[0] or row.name in _SHOWN
        ]
        caption = (
            f"Outcome risk: AUROC when a share of each run is seen ({self.runs:,} runs, "
            f"{percent(self.failed_runs / self.runs)} failed)"
        )
        head = ["", *(f"{100 * share:g} %" for share in SHARES)]
        return TableBlock.of(caption, head, cells, marked={0}), Text(CAUTION)


def shares_seen(
    rows: Sequence[ScoreRow], prefixes: Prefixes, lengths: Sequence[int], *, resamples: Resamples
) -> SharesSeen:
    """AUROC of each row's outcome score at the step where each share of the run is done, rounded up.

    rows : the monitor's first; a run that it did not judge at a step is left out there of every row.
    prefixes, lengths : of all runs. resamples : over tasks.
    """
    length = np.asarray(lengths, dtype=np.int64)
    last = np.cumsum(length) - 1
    runs = np.flatnonzero(length >= FEWEST_STEPS)
    flat = {row.name: row.flat(lengths)[1] for row in rows if not row.oracle}
    auroc: dict[str, dict[float, float]] = {name: {} for name in flat}
    intervals: dict[str, dict[float, tuple[float, float]]] = {name: {} for name in flat}
    for share in SHARES:
        places = (last - length)[runs] + np.ceil(share * length[runs]).astype(np.int64)
        judged = ~np.isnan(next(iter(flat.values()))[places])
        labels, units = prefixes.failed[runs[judged]], prefixes.task[runs[judged]]
        rankings = {
            name: Ranking(labels, scores[places[judged]], units=units)
            for name, scores in flat.items()
            if not np.isnan(scores[places[judged]]).any()
        }
        found = resamples.estimate({name: (ranking.auroc, len(labels)) for name, ranking in rankings.items()})
        spreads = found.intervals if prefixes.n_tasks > 1 else {}
        for name in flat:
            auroc[name][share] = found.values.get(name, math.nan)
            intervals[name].update({share: spreads[name]} if name in spreads else {})
    each = tuple(SharesSeenRow(name, auroc[name], intervals[name]) for name in flat)
    return SharesSeen(len(runs), int(prefixes.failed[runs].sum()), each)
