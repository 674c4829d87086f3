"""The figures of one score over a set of runs, with intervals over tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from prefixguard.metrics import (
    Prefixes,
    Ranking,
    Reliability,
    Resamples,
    at_index,
    at_remaining,
    interval,
    paired_difference,
    ratio,
)
from prefixguard.results import fields_of

Float = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Difference:
    """Monitor minus baseline in one figure, over the same resamples. value may be NaN; interval None where unknown."""

    value: float
    interval: tuple[float, float] | None


#: Names of the figures, in order.
FIGURES = (
    "auprc",
    "auroc",
    "prevalence",
    "brier",
    "ece",
    "outcome_auroc_at_remaining",
    "outcome_auroc_at_index",
    "outcome_auroc_within_groups",
)


@dataclass(frozen=True, slots=True)
class RiskFigures:
    """Figures of one risk. NaN: it does not exist here (one class only, no groups, no probability).

    auprc, auroc: over all prefixes, against this risk's own labels. prevalence: share of positive prefixes.
    brier, ece: errors of the risk as a probability; NaN for scores that are none.
    outcome_auroc_at_remaining, outcome_auroc_at_index: does the score tell failed from successful runs where equally
        many steps remain (0 to 10), or have passed (1 to 30)?
    outcome_auroc_within_groups: the former, among runs of the same agent or file only.
    intervals: 95 %, by name of a figure above.
    differences: monitor minus this row, by name; empty for the monitor itself.
    """

    auprc: float
    auroc: float
    prevalence: float
    brier: float
    ece: float
    outcome_auroc_at_remaining: float
    outcome_auroc_at_index: float
    outcome_auroc_within_groups: float
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None; `differences` only where there are any."""
        found = fields_of(self)
        if not self.differences:
            del found["differences"]
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures with the resamples behind them.

    judged: bool (N,), the prefixes they rest on; two rows are compared only where these are the same.
    samples: float (R,) by name.
    """

    figures: RiskFigures
    judged: npt.NDArray[np.bool_]
    samples: Mapping[str, Float]


def measure(
    prefixes: Prefixes,
    scores: Float,
    labels: npt.NDArray[np.uint8],
    resamples: Resamples,
    *,
    probability: bool,
    groups: Sequence[str] | None,
) -> Measured:
    """All figures of a score.

    scores: (N,), NaN where a prefix was not judged; such prefixes are left out. labels: (N,), of this risk.
    probability: whether Brier and ECE mean something. groups: one name a run, or None.
    """
    judged = ~np.isnan(scores)
    kept, values, positive = prefixes.keep(judged), scores[judged], labels[judged]
    units = kept.units
    n = len(kept)
    ranking = Ranking(positive, values, units=units)
    mass = _ByTask(units, positive, prefixes.n_tasks)
    figures: dict[str, tuple[Callable[[Float], Float], int]] = {
        "auprc": (ranking.average_precision, n),
        "auroc": (ranking.auroc, n),
        "prevalence": (mass.share, prefixes.n_tasks),
        "outcome_auroc_at_remaining": (at_remaining(kept, values).auroc, n),
        "outcome_auroc_at_index": (at_index(kept, values).auroc, n),
    }
    if probability:
        reliability = Reliability(positive, values, units=units)
        figures["brier"] = (reliability.brier, prefixes.n_tasks)
        figures["ece"] = (reliability.ece, 20 * prefixes.n_tasks)
    if groups is not None:
        figures["outcome_auroc_within_groups"] = (at_remaining(kept, values, groups=groups).auroc, n)
    whole = np.ones(prefixes.n_tasks)
    value = dict.fromkeys(FIGURES, float("nan"))
    samples: dict[str, Float] = {}
    intervals: dict[str, tuple[float, float]] = {}
    for name in FIGURES:
        if name not in figures:
            continue
        figure, rows = figures[name]
        value[name] = float(figure(whole))
        samples[name] = resamples.figures(figure, rows)
        # One task has no spread to show; a figure that does not exist has no interval.
        found = interval(samples[name]) if prefixes.n_tasks > 1 and not np.isnan(value[name]) else None
        if found is not None:
            intervals[name] = found
    return Measured(RiskFigures(intervals=intervals, differences={}, **value), judged, samples)


def compared(monitor: Measured, baseline: Measured) -> RiskFigures:
    """The baseline's figures, with the monitor's lead over it in each figure that both have."""
    if not np.array_equal(monitor.judged, baseline.judged):
        return baseline.figures
    return replace(baseline.figures, differences=lead(monitor, baseline))


def lead(this: Measured, other: Measured) -> dict[str, Difference]:
    """This minus the other in each figure that both have, over the same resamples."""
    differences = {}
    for name in FIGURES:
        if name != "prevalence" and name in this.samples and name in other.samples:
            value = getattr(this.figures, name) - getattr(other.figures, name)
            known = name in this.figures.intervals and name in other.figures.intervals
            spread = paired_difference(this.samples[name], other.samples[name]) if known else None
            differences[name] = Difference(value, spread)
    return differences


class _ByTask:
    """Share of positive prefixes for each set of weights."""

    def __init__(self, units: npt.NDArray[np.int64], labels: npt.NDArray[np.uint8], n_tasks: int) -> None:
        self._positive = np.bincount(units, weights=labels.astype(np.float64), minlength=n_tasks)
        self._all = np.bincount(units, minlength=n_tasks).astype(np.float64)

    def share(self, weights: Float) -> Float:
        return ratio(weights @ self._positive, weights @ self._all)
