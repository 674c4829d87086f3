"""The figures of a risk as columns and cells of a table, the same wherever they are shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from prefixguard.evaluation.figures import Difference, RiskFigures
from prefixguard.results import Cell, Column, Plot, Text, number, signed, spread

#: Figures in the order of their columns: name, name in the terminal, whether the terminal shows its interval.
_COLUMNS = {
    "auprc": ("AUPRC", "", True),
    "auroc": ("AUROC", "", False),
    "outcome_auroc_at_remaining": ("at equal steps left", "rem", True),
    "outcome_auroc_at_index": ("at equal steps passed", "idx", False),
    "outcome_auroc_within_groups": ("within the same {group}", "group", False),
    "brier": ("Brier", "", False),
    "ece": ("ECE", "", False),
}


def risk_columns(grouped_by: str | None, leave_out: Collection[str] = ()) -> list[Column]:
    """Columns of `risk_cells`. grouped_by: what runs are compared within. leave_out: names of figures."""
    return [
        Column(title.format(group=grouped_by or "group"), "number", short, brief=not interval)
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
    Cell(text='+.100', small='[-.010, +.200]', svg='')
    """
    if difference is None:
        return Cell()
    text = signed(difference.value) if math.isfinite(difference.value) else number(difference.value)
    return Cell(text, spread(difference.interval, with_sign=True))


def reading_help(grouped_by: str | None, *, oracles: bool, more: Sequence[str] = ()) -> list[Text]:
    """How to read the columns, a sentence each. oracles: whether a row is marked *."""
    group = grouped_by or "agent"
    lines = [
        "In brackets, or small: 95 % intervals, from resampling tasks.",
        *more,
        "At equal steps left (rem; 0 to 10) or passed (idx; 1 to 30): AUROC of failed against successful runs at the "
        "same place, which a clock cannot earn.",
        f"Within the same {group} (group): the former among runs of the same {group} only, so that knowing the {group} "
        "does not help." + ("" if grouped_by else " These runs name none, or only one."),
        *(["* knows what no monitor can know; it is there for comparison only."] if oracles else []),
    ]
    return [Text(" ".join(lines), "faint")]


def whisker(figures: RiskFigures, prevalence: float, oracle: bool) -> Cell:
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
