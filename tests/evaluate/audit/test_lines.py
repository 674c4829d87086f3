"""Lines of a finished audit become rows: outcome, labels, calls and money, and nothing invented."""

from __future__ import annotations

from typing import Any

from prefixguard.escalate import AuditLine
from prefixguard.evaluate.audit import audited_lines, fault_lines
from prefixguard.metrics import attribution, fault_set_figures
from prefixguard.trace import Outcome


def call(outcome: str = "safe", cost: float | None = 0.25) -> dict[str, Any]:
    return {"outcome": outcome, "fault": "", "tokens_in": 100, "tokens_out": 10, "cost": cost, "seconds": 2.0}


def line(name: str, outcome: Outcome, said: dict[str, Any], **rest: Any) -> AuditLine:
    facts = {"gold_step": None, "gold_agent": None, "alarm_step": None, "calls": (call(), call()), **rest}
    verdict = {"outcome": "safe", "step": None, "agent": None, **said}
    return AuditLine(name, "task", outcome, 6, protocol="online", verdict=verdict, possible_calls=6, **facts)


HIT = {"outcome": "alarm", "step": 2, "agent": "Coder"}
LINES = [
    line("a", Outcome.FAILURE, HIT, gold_step=2, gold_agent="Coder", alarm_step=4),
    line("b", Outcome.SUCCESS, {}, gold_step=1, gold_agent="Web"),  # a label of a run that succeeded says nothing
    line("c", Outcome.SUCCESS, {"outcome": "error"}, calls=(call("error"),), alarm_step=3),
    line("d", Outcome.UNKNOWN, HIT),
]


def test_a_line_is_a_row() -> None:
    rows = audited_lines(LINES)
    assert [row.run_id for row in rows] == ["a", "b", "c"]
    first = rows[0]
    assert (first.step, first.agent, first.alarm_step, first.gold_step) == (2, "Coder", 4, 2)
    assert (first.calls, first.tokens_in, first.tokens_out, first.cost, first.seconds) == (2, 200, 20, 0.5, 4.0)
    assert (rows[1].gold_step, rows[1].outcome) == (None, "safe")
    assert (rows[2].outcome, rows[2].failed_calls, rows[2].alarm_step) == ("error", 1, None)
    found = attribution(rows, n_resamples=0)
    assert (found.exact_f1, found.false_alarm_rate, found.delay.median, found.lead.median) == (1.0, 0.0, 2, 2)


def test_a_call_of_unknown_cost_makes_the_cost_unknown_and_no_call_costs_nothing() -> None:
    unknown, free = audited_lines(
        [line("a", Outcome.SUCCESS, {}, calls=(call(), call(cost=None))), line("b", Outcome.SUCCESS, {}, calls=())]
    )
    assert unknown.cost is None
    assert (free.cost, free.calls) == (0.0, 0)


def test_sets_of_faults() -> None:
    asked = {"faults": (("Coder", "FM-1.1"), (None, "FM-2.1")), "pairs": (("Coder", "FM-1.1"),)}
    rows = fault_lines(
        [
            line("a", Outcome.FAILURE, HIT, modes=("FM-1.1", "FM-2.1"), **asked),
            line("b", Outcome.FAILURE, {"outcome": "error"}, modes=(), faults=asked["faults"]),
            line("c", Outcome.FAILURE, {}, faults=asked["faults"]),
            line("d", Outcome.FAILURE, {}, modes=("FM-1.1",)),  # its label names no faults
        ]
    )
    assert [(row.run_id, row.predicted is None) for row in rows] == [("a", False), ("b", True), ("c", True)]
    found = fault_set_figures(rows, "error", n_resamples=0)
    assert (found.hits, found.missed, found.failed_audits) == (2, 4, 2)
