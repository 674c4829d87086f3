"""The figures of one score over a set of runs, with intervals over tasks, and their columns in tables.

A figure is added in three places of this file: a field of `RiskFigures`, what computes it in `Basis`, its column.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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
    log_losses,
    paired_difference,
    ratio,
)
from prefixguard.results import Cell, Column, Plot, TableBlock, Text, fields_of, number, signed, spread

Float = npt.NDArray[np.float64]
Interval = tuple[float, float]
RISKS = ("imminent", "outcome")


@dataclass(frozen=True, slots=True)
class Difference:
    """Monitor minus baseline in one figure, over the same resamples. value may be NaN; interval None where unknown."""

    value: float
    interval: Interval | None


@dataclass(frozen=True, slots=True)
class RiskFigures:
    """Figures of one risk. NaN: it does not exist here (one class only, no groups, no probability).

    auprc, auroc: over all prefixes, against this risk's own labels. prevalence: share of positive prefixes.
    brier, ece: errors of the risk as a probability; NaN for scores that are none.
    skill: share of the log-loss of a clock, fitted on training runs, that the risk takes away; 0 for the clock itself,
        below 0 for what is worse; NaN for scores that are no probabilities, and where no clock was fitted.
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
    skill: float
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    differences: Mapping[str, Difference] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain values, NaN as None; `differences` only where there are any."""
        found = fields_of(self)
        if not self.differences:
            del found["differences"]
        return found


#: Names of the figures, in order.
FIGURES = tuple(one.name for one in dataclasses.fields(RiskFigures))[:-2]


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures with the resamples behind them.

    judged: bool (N,), the prefixes they rest on; two rows are compared only where these are the same.
    samples: float (R,) by name.
    """

    figures: RiskFigures
    judged: npt.NDArray[np.bool_]
    samples: Mapping[str, Float]

    @classmethod
    def of(
        cls,
        values: Mapping[str, float],
        intervals: Mapping[str, Interval],
        samples: Mapping[str, Float],
        judged: npt.NDArray[np.bool_],
    ) -> Measured:
        """From what was computed; what is not among the values does not exist."""
        every = dict.fromkeys(FIGURES, math.nan) | dict(values)
        return cls(RiskFigures(**every, intervals=intervals, differences={}), judged, samples)


@dataclass(frozen=True, slots=True)
class Basis:
    """What scores are measured on: prefixes of runs, the horizon of imminent, resamples of tasks, groups of runs.

    groups: one name a run, within which runs are compared; None: there are none.
    clock: risks of a clock that was fitted on training runs, float64 (N, 2), which skill is over; None: there is none.
    """

    prefixes: Prefixes
    horizon: int
    resamples: Resamples
    groups: Sequence[str] | None = None
    clock: Float | None = None

    def measure(self, scores: Sequence[Float], *, probability: bool) -> dict[str, Measured]:
        """All figures of a score, by risk.

        scores: imminent and outcome, (N,) each, NaN where a prefix was not judged; such prefixes are left out.
        probability: whether Brier and ECE mean something.
        """
        labels = self.prefixes.imminent_labels(self.horizon), self.prefixes.outcome_labels
        clock = (None, None) if self.clock is None or not probability else self.clock.T
        every = zip(RISKS, scores, labels, clock, strict=True)
        return {risk: self._measure(score, label, probability, own) for risk, score, label, own in every}

    def _measure(
        self, scores: Float, labels: npt.NDArray[np.uint8], probability: bool, clock: Float | None
    ) -> Measured:
        judged = ~np.isnan(scores)
        kept, values, positive = self.prefixes.keep(judged), scores[judged], labels[judged]
        units, n, n_tasks = kept.units, len(kept), self.prefixes.n_tasks
        ranking = Ranking(positive, values, units=units)
        positives = np.bincount(units, weights=positive.astype(np.float64), minlength=n_tasks)
        every = np.bincount(units, minlength=n_tasks).astype(np.float64)
        # By name: the figure for weights of tasks, and how many rows it spreads them over.
        figures: dict[str, tuple[Callable[[Float], Float], int]] = {
            "auprc": (ranking.average_precision, n),
            "auroc": (ranking.auroc, n),
            "prevalence": (lambda weights: ratio(weights @ positives, weights @ every), n_tasks),
        }
        if probability:
            reliability = Reliability(positive, values, units=units)
            figures["brier"] = (reliability.brier, n_tasks)
            figures["ece"] = (reliability.ece, 20 * n_tasks)
        if clock is not None:
            own, its = (
                np.bincount(units, weights=log_losses(positive, said), minlength=n_tasks)
                for said in (values, clock[judged])
            )
            figures["skill"] = (lambda weights: 1.0 - ratio(weights @ own, weights @ its), n_tasks)
        figures["outcome_auroc_at_remaining"] = (at_remaining(kept, values).auroc, n)
        figures["outcome_auroc_at_index"] = (at_index(kept, values).auroc, n)
        if self.groups is not None:
            figures["outcome_auroc_within_groups"] = (at_remaining(kept, values, groups=self.groups).auroc, n)
        found = self.resamples.estimate(figures)
        intervals = found.intervals if n_tasks > 1 else {}  # one task has no spread to show
        return Measured.of(found.values, intervals, found.samples, judged)


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
            ends = paired_difference(this.samples[name], other.samples[name]) if known else None
            differences[name] = Difference(value, ends)
    return differences


#: Figures in the order of their columns: name, name in the terminal, whether the terminal shows its interval; an AUROC
#: over all steps has no room there.
_COLUMNS = {
    "auprc": ("AUPRC", "", True),
    "auroc": ("AUROC", "", False),
    "outcome_auroc_at_index": ("at equal steps passed", "idx", True),
    "outcome_auroc_at_remaining": ("at equal steps left", "rem", False),
    "outcome_auroc_within_groups": ("within the same {group}", "group", False),
    "skill": ("skill over a clock", "skill", False),
    "brier": ("Brier", "", False),
    "ece": ("ECE", "", False),
}


def risk_columns(grouped_by: str | None, leave_out: Collection[str] = ()) -> list[Column]:
    """Columns of `risk_cells`. grouped_by: what runs are compared within. leave_out: names of figures."""
    return [
        Column(title.format(group=grouped_by or "group"), "number", short, brief=not interval, hidden=name == "auroc")
        for name, (title, short, interval) in _COLUMNS.items()
        if name not in leave_out
    ]


def risk_cells(figures: RiskFigures, leave_out: Collection[str] = ()) -> list[Cell]:
    """One row of figures, each with its interval."""
    return [
        Cell(number(getattr(figures, name)), spread(figures.intervals.get(name)))
        for name in _COLUMNS
        if name not in leave_out
    ]


def lead_cell(difference: Difference | None) -> Cell:
    """A difference with its interval; an empty cell where there is none.

    >>> lead_cell(Difference(0.1, (-0.01, 0.2)))
    Cell(text='+.100', small='[-.010, +.200]', svg='', why='')
    """
    if difference is None:
        return Cell()
    text = signed(difference.value) if math.isfinite(difference.value) else number(difference.value)
    return Cell(text, spread(difference.interval, with_sign=True))


def risk_table(
    caption: str,
    rows: Iterable[tuple[str, RiskFigures, bool]],
    *,
    ahead: str,
    grouped_by: str | None = None,
    leave_out: Collection[str] = (),
    drawn: str = "",
) -> TableBlock:
    """A score above all that it is compared with, one risk.

    rows: name, figures, and whether it knows what no monitor can know, which marks it *; the first is what others are
    compared with. ahead: head of the column of its lead in AUPRC. drawn: head of a column that draws AUPRC; "": none.
    """
    cells: list[list[str | Cell]] = []
    listed = list(rows)
    for name, figures, oracle in listed:
        auprc, *rest = risk_cells(figures, leave_out)
        whisker = [_whisker(figures, listed[0][1].prevalence, oracle)] if drawn else []
        leads = lead_cell(figures.differences.get("auprc"))
        cells.append([f"{name} *" if oracle else name, auprc, *whisker, leads, *rest])
    first, *others = risk_columns(grouped_by, leave_out)
    head = ["Scores by" if drawn else "", first, *([Column(drawn)] if drawn else []), Column(ahead, "number", "ahead")]
    return TableBlock.of(caption, [*head, *others], cells, marked={0})


#: What rows marked * are, a clause each.
_ORACLES = (
    "* knows what no monitor can know; it is there for comparison only: the end oracle when a run ends, the outcome "
    "oracle how, the half oracle both of half of the tasks, the blurred oracle how and about when."
)


def reading_help(grouped_by: str | None, *, oracles: bool, more: str) -> Text:
    """How to read the columns, a sentence each. oracles: whether a row is marked *. more: a further sentence."""
    group = grouped_by or "agent"
    lines = [
        "In brackets, or small: 95 % intervals, from resampling tasks.",
        more,
        "At equal steps passed (idx; 1 to 30) or left (rem; 0 to 10): AUROC of failed against successful runs at the "
        "same place. At equal steps passed a clock has .500; at equal steps left it has more where failed runs are "
        "longer, though nobody knows the steps left. Skill: the share of the log-loss of a clock, fitted on training "
        "runs, that the risk takes away.",
        f"Within the same {group} (group): rem among runs of the same {group} only, so that knowing the {group} "
        "does not help." + ("" if grouped_by else " These runs name none, or only one."),
        *([_ORACLES] if oracles else []),
    ]
    return Text(" ".join(lines), "faint")


def _whisker(figures: RiskFigures, prevalence: float, oracle: bool) -> Cell:
    """AUPRC as a dot, its interval as a line, the prevalence as a tick; the same scale in every row."""
    plot = Plot((0.0, 1.0), (0.0, 1.0), width=132, height=18, margins=(5, 0, 5, 0))
    plot.line([(0.0, 0.5), (1.0, 0.5)], "rail")
    if math.isfinite(prevalence):
        plot.line([(prevalence, 0.05), (prevalence, 0.95)], "chance")
    if math.isfinite(figures.auprc):
        low, high = figures.intervals.get("auprc", (figures.auprc, figures.auprc))
        plot.line([(low, 0.5), (high, 0.5)], "spread")
        plot.dot((figures.auprc, 0.5), "point oracle" if oracle else "point", 4)
    return Cell(svg=plot.svg("whisker"))
