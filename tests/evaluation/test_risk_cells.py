"""Heads stand above their figures, whatever is left out."""

from __future__ import annotations

import math

import pytest

from prefixguard.evaluation.figures import Difference, RiskFigures
from prefixguard.evaluation.risk_cells import ahead_by, risk_cells, risk_head

FIGURES = RiskFigures(
    auprc=0.51, auroc=0.62, prevalence=0.2, brier=0.13, ece=0.04, outcome_auroc_at_remaining=0.75,
    outcome_auroc_at_index=math.nan, outcome_auroc_within_groups=0.87,
    intervals={"auprc": (0.4, 0.6), "brier": (0.1, 0.2)},
)  # fmt: skip


@pytest.mark.parametrize("leave_out", [(), ("auroc",), ("outcome_auroc_within_groups",), ("auprc", "ece")])
def test_every_figure_is_under_its_head(leave_out: tuple[str, ...]) -> None:
    head, cells = risk_head(leave_out), risk_cells(FIGURES, leave_out)
    assert len(head) == len(cells)
    shown = {name: cell for name, cell in zip(head, cells, strict=True) if name}
    all_shown = {
        "AUPRC": ".510",
        "AUROC": ".620",
        "Brier": ".130",
        "ECE": ".040",
        "rem": ".750",
        "idx": "–",
        "within": ".870",
    }
    heads = {"auprc": "AUPRC", "auroc": "AUROC", "ece": "ECE", "outcome_auroc_within_groups": "within"}
    for name in leave_out:
        del all_shown[heads[name]]
    assert shown == all_shown


def test_intervals_stand_behind_their_figures() -> None:
    assert risk_cells(FIGURES)[:3] == [".510", "[.400, .600]", ".620"]
    assert "[.100, .200]" not in risk_cells(FIGURES)


def test_a_difference_without_an_interval_has_no_blank_behind_it() -> None:
    assert ahead_by(Difference(-0.02, None)) == "-.020"
