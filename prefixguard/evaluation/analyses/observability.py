"""AUPRC on the scale of observability: how much of the failures would have to be visible for a figure such as this.

If a share q of the positives can be told from every negative and the others are distributed like negatives, the best
AUPRC is `metrics.phi(prevalence, q)`. Read backwards that is a scale from 0 (knows nothing) to 1 (knows all), on which
figures of different prevalence can stand side by side. It is a scale and no more: the q at which phi passes a monitor's
AUPRC is not the share of failures that it sees, for a monitor is not the best score and its hidden positives need not
look like negatives.

The scale is laid on where the premise can hold:
- the outcome label over all prefixes, unless run length tells the outcome. The clock (step index) stands beside the
  monitor for that: where it is up the scale, as with a step cap, phi is no bound either;
- the imminent label among prefixes of one step index. Over all prefixes it is never laid on: there a bare clock can
  be far up the scale though nothing is observable, since positives sit at the ends of runs.

Source: PrefixGuard 3.1 and its appendix G.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import Prefixes, average_precision, phi, phi_inverse, ratio, step_index
from prefixguard.results import Block, Result, TableBlock, Text, number, plain_value

Float = npt.NDArray[np.float64]

#: Step indices at which the imminent label is looked at.
STEPS = (1, 2, 3, 5, 8, 12, 16, 20, 25, 30)
#: Prefixes of each class that a place needs: AUPRC over fewer is too high by chance.
LEAST = 20
#: From here on the clock's crossing is worth a sentence.
TELLING = 0.05
#: Shares for which the scale is printed.
SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)

WARNING = (
    "phi is the AUPRC of the best score where a share q of the positives can be told from all negatives and the others "
    "from none. The place of a figure on this scale (crossing) is the q at which phi equals its AUPRC. It is not an "
    "estimate of q, the share of failures that can be seen."
)


@dataclass(frozen=True, slots=True)
class ScalePlace:
    """One set of prefixes, and where the monitor and the clock stand among them. NaN: it does not exist.

    step: the step index of the prefixes; None: all prefixes.
    prefixes, positives: how many there are, and of them labelled 1. prevalence: positives / prefixes.
    monitor, clock: AUPRC; the clock's is NaN at one step index, where it says nothing.
    monitor_crossing, clock_crossing: in [0, 1], the q at which phi equals the AUPRC.
    """

    step: int | None
    prefixes: int
    positives: int
    prevalence: float
    monitor: float
    clock: float
    monitor_crossing: float
    clock_crossing: float


@dataclass(frozen=True, slots=True)
class Observability(Result):
    """Both labels on the scale.

    outcome: the outcome label over all prefixes. scale: (q, phi) at its prevalence, ascending; empty with one class.
    imminent: the imminent label at each step index that has enough of both classes, ascending.
    too_few: step indices that runs reach and that have not.
    """

    horizon: int
    outcome: ScalePlace
    scale: tuple[tuple[float, float], ...]
    imminent: tuple[ScalePlace, ...]
    too_few: tuple[int, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None; the warning goes with the numbers."""
        return {
            "horizon": self.horizon,
            "outcome": plain_value(self.outcome),
            "scale": [{"observable": q, "phi": value} for q, value in self.scale],
            "imminent_at_step": plain_value(self.imminent),
            "too_few_at_step": list(self.too_few),
            "warning": WARNING,
        }

    def blocks(self) -> tuple[Block, ...]:
        """The places on the scale, the scale, and what they say."""
        head = ["", "positives", "share", "AUPRC", "crossing", "clock's AUPRC", "crossing"]
        rows = [_cells("outcome, all steps", self.outcome)]
        rows += [_cells(f"imminent, step {place.step}", place) for place in self.imminent]
        lines = []
        if self.scale:
            steps = ", ".join(f"{number(value)} at q = {q:g}" for q, value in self.scale)
            lines.append(f"phi of the outcome label at prevalence {number(self.outcome.prevalence)}: {steps}.")
        if self.too_few:
            lines.append(
                f"At step {', '.join(map(str, self.too_few))} fewer than {LEAST} prefixes of a class: no figure for "
                f"the imminent label (fails, and ends within {self.horizon} more steps)."
            )
        lines += [WARNING, *self.remarks()]
        return (TableBlock.of("Observability: AUPRC against phi of its prevalence", head, rows), *map(Text, lines))

    def remarks(self) -> list[str]:
        """What the numbers say, a sentence each."""
        place = self.outcome
        if math.isnan(place.monitor):
            return ["The prefixes do not hold both classes, so the outcome label has no place on this scale."]
        found = []
        if place.clock_crossing >= TELLING:
            found.append(
                f"The clock alone stands at {number(place.clock_crossing)}: run length tells the outcome here, and phi "
                "is no bound for scores that know it."
            )
        if place.clock_crossing >= place.monitor_crossing > 0.0:
            found.append(
                f"The monitor stands no higher than the clock ({number(place.monitor_crossing)}): run length may be "
                "all that it sees."
            )
        if place.monitor_crossing == 0.0:
            found.append("The monitor's AUPRC is no higher than the share of positives: the foot of the scale.")
        return found


def observability(
    row: ScoreRow, prefixes: Prefixes, lengths: Sequence[int], horizon: int, *, steps: Sequence[int] = STEPS
) -> Observability:
    """The places of a row of scores and of the clock on the scale of observability.

    row : the monitor's scores. Prefixes without a score for either risk are left out, for the clock too.
    prefixes : the prefixes of all runs. lengths : the number of steps of each run.
    horizon : H of the imminent label. steps : step indices, 1 or more, at which the imminent label is measured.
    Raises DataError where a run does not have one score per step, ConfigError for a step below 1.
    """
    if any(step < 1 for step in steps):
        raise ConfigError(f"observability: step {min(steps)} does not exist: steps count from 1.")
    imminent, outcome = row.flat(lengths)
    judged = ~(np.isnan(imminent) | np.isnan(outcome))
    clock = step_index(prefixes)
    whole = _place(None, prefixes.outcome_labels[judged], outcome[judged], clock[judged])
    scale: tuple[tuple[float, float], ...] = ()
    if not math.isnan(whole.monitor):
        scale = tuple((q, phi(whole.prevalence, q)) for q in SHARES)
    labels = prefixes.imminent_labels(horizon)
    places, too_few = [], []
    for step in sorted(set(steps)):
        rows = judged & (prefixes.step == step)
        positives = int(labels[rows].sum())
        if min(positives, int(rows.sum()) - positives) >= LEAST:
            places.append(_place(step, labels[rows], imminent[rows], None))
        elif rows.any():
            too_few.append(step)
    return Observability(horizon, whole, scale, tuple(places), tuple(too_few))


def _place(step: int | None, labels: npt.NDArray[np.uint8], scores: Float, clock: Float | None) -> ScalePlace:
    n, positives = len(labels), int(labels.sum())
    prevalence, monitor = float(ratio(positives, n)), average_precision(labels, scores)
    by_clock = math.nan if clock is None else average_precision(labels, clock)
    crossings = phi_inverse(prevalence, monitor), phi_inverse(prevalence, by_clock)
    return ScalePlace(step, n, positives, prevalence, monitor, by_clock, *crossings)


def _cells(name: str, place: ScalePlace) -> list[str]:
    cells = [name, f"{place.positives:,} of {place.prefixes:,}", number(place.prevalence)]
    cells += [number(place.monitor), number(place.monitor_crossing)]
    # At one step every clock shows the same time: no figure, rather than that of a constant.
    return cells if place.step is not None else [*cells, number(place.clock), number(place.clock_crossing)]
