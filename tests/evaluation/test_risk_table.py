"""Columns and cells of a risk's figures belong together, whatever is left out."""

from __future__ import annotations

import math

import pytest

from prefixguard.evaluation.tables.figures import Difference, RiskFigures, lead_cell, risk_cells, risk_columns
from prefixguard.results import Cell

FIGURES = RiskFigures(
    auprc=0.51, auroc=0.62, prevalence=0.2, brier=0.13, ece=0.04, outcome_auroc_at_remaining=0.75,
    outcome_auroc_at_index=math.nan, outcome_auroc_within_groups=0.87, skill=0.12,
    intervals={"auprc": (0.4, 0.6), "brier": (0.1, 0.2)},
)  # fmt: skip
SHOWN = {
    "auprc": ("AUPRC", Cell(".510", "[.400, .600]")),
    "auroc": ("AUROC", Cell(".620")),
    "outcome_auroc_at_index": ("idx", Cell("–")),
    "outcome_auroc_at_remaining": ("rem", Cell(".750")),
    "outcome_auroc_within_groups": ("group", Cell(".870")),
    "skill": ("skill", Cell(".120")),
    "brier": ("Brier", Cell(".130", "[.100, .200]")),
    "ece": ("ECE", Cell(".040")),
}


@pytest.mark.parametrize("leave_out", [(), ("auroc",), ("outcome_auroc_within_groups",), ("auprc", "ece")])
def test_every_figure_is_under_its_name(leave_out: tuple[str, ...]) -> None:
    columns, cells = risk_columns("agent", leave_out), risk_cells(FIGURES, leave_out)
    found = [(column.short or column.name, cell) for column, cell in zip(columns, cells, strict=True)]
    assert found == [shown for name, shown in SHOWN.items() if name not in leave_out]


def test_a_difference_without_an_interval() -> None:
    assert lead_cell(Difference(-0.02, None)) == Cell("-.020")
    assert lead_cell(Difference(math.nan, None)) == Cell("–")
