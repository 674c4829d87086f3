"""The figures of a risk as cells of a plain table, the same wherever they are shown."""

from __future__ import annotations

from collections.abc import Collection

from prefixguard.evaluation.figures import Difference, RiskFigures
from prefixguard.results import number, signed, spread

#: Figures in the order of their columns, with the columns' heads.
_HEADS = {
    "auprc": "AUPRC",
    "auroc": "AUROC",
    "brier": "Brier",
    "ece": "ECE",
    "outcome_auroc_at_remaining": "rem",
    "outcome_auroc_at_index": "idx",
    "outcome_auroc_within_groups": "within",
}
#: Those with a column for their interval behind them.
_WITH_INTERVAL = ("auprc", "outcome_auroc_at_remaining")


def risk_head(leave_out: Collection[str] = ()) -> list[str]:
    """Heads of the columns of `risk_cells`. leave_out: names of figures.

    >>> risk_head(leave_out=("auroc", "brier", "ece"))
    ['AUPRC', '', 'rem', '', 'idx', 'within']
    """
    cells = []
    for name, head in _HEADS.items():
        if name not in leave_out:
            cells += [head, ""] if name in _WITH_INTERVAL else [head]
    return cells


def risk_cells(figures: RiskFigures, leave_out: Collection[str] = ()) -> list[str]:
    """One row of figures, intervals behind those that show one."""
    cells = []
    for name in _HEADS:
        if name not in leave_out:
            cells.append(number(getattr(figures, name)))
            if name in _WITH_INTERVAL:
                cells.append(spread(figures.intervals.get(name)))
    return cells


def ahead_by(difference: Difference | None) -> str:
    """A difference with its interval; nothing where there is none.

    >>> ahead_by(Difference(0.1, (-0.01, 0.2))), ahead_by(None)
    ('+.100 [-.010, +.200]', '')
    """
    if difference is None:
        return ""
    return f"{signed(difference.value)} {spread(difference.interval, with_sign=True)}".rstrip()
