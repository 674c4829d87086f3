"""Lines of a finished audit become rows: outcome, labels, calls and money, and nothing invented."""

from __future__ import annotations

from typing import Any

from prefixguard.auditor import AuditLine, audited_lines, fault_lines
from prefixguard.metrics import attribution, fault_set_figures
from prefixguard.stepview import StepRecord
from prefixguard.trace import Fault, Mistake, Outcome, Run


def call(outcome: str = "safe", cost: float | None = 0.25) -> dict[str, Any]:
    return {"outcome": outcome, "fault": "", "tokens_in": 100, "tokens_out": 10, "cost": cost, "seconds": 2.0}


def run(name: str, outcome: Outcome, mistake: Mistake | None = None, *faults: Fault) -> Run[StepRecord]:
    records = tuple(StepRecord(k, "agent", "Coder", "run", "", "", "", "", "ok", k) for k in range(1, 7))
    return Run(name, "task", outcome, records, "made.json", mistake=mistake, faults=faults)


def line(name: str, outcome: Outcome, said: dict[str, Any], **rest: Any) -> AuditLine:
    facts = {"gold_step": None, "gold_agent": None, "alarm_step": None, "calls": (call(), call()), **rest}
    verdict = {"outcome": "safe", "step": None, "agent": None, **said}
    return AuditLine(name, "task", outcome, 6, protocol="online", verdict=verdict, possible_calls=6, **facts)


HIT = {"outcome": "alarm", "step": 2, "agent": "Coder"}
FAILED, SAFE = Outcome.FAILURE, Outcome.SUCCESS


def test_a_line_is_a_row() -> None:
    runs = [
        run("a", FAILED, Mistake(2, "Coder")),
        run("b", SAFE, Mistake(1, "Web")),  # a label of a run that succeeded says nothing
        run("c", SAFE),
        run("d", Outcome.UNKNOWN),
        run("not audited", FAILED),
    ]
    lines = [
        line("a", FAILED, HIT, alarm_step=4),
        line("b", SAFE, {}),
        line("c", SAFE, {"outcome": "error"}, calls=(call("error"),)),
        line("d", Outcome.UNKNOWN, HIT),
    ]
    system = audited_lines("mine", runs, lines)
    assert (system.name, [row.run_id for row in system.rows]) == ("mine", ["a", "b", "c"])
    first, second, third = system.rows
    assert (first.step, first.agent, first.alarm_step, first.gold_step) == (2, "Coder", 4, 2)
    assert (first.calls, first.tokens_in, first.tokens_out, first.cost, first.seconds) == (2, 200, 20, 0.5, 4.0)
    assert (second.gold_step, second.outcome) == (None, "safe")
    assert (third.outcome, third.failed_calls) == ("error", 1)
    found = attribution(system.rows, n_resamples=0)
    assert (found.exact_f1, found.false_alarm_rate, found.delay.median, found.lead.median) == (1.0, 0.0, 2, 2)


def test_a_call_of_unknown_cost_makes_the_cost_unknown_and_no_call_costs_nothing() -> None:
    lines = [line("a", SAFE, {}, calls=(call(), call(cost=None))), line("b", SAFE, {}, calls=())]
    unknown, free = audited_lines("mine", [run("a", SAFE), run("b", SAFE)], lines).rows
    assert unknown.cost is None
    assert (free.cost, free.calls) == (0.0, 0)


def test_sets_of_faults() -> None:
    faults = (Fault("Coder", "FM-1.1"), Fault(None, "FM-2.1"))
    runs = [run(name, FAILED, None, *faults) for name in "abc"] + [run("d", FAILED)]
    lines = [
        line("a", FAILED, HIT, modes=("FM-1.1", "FM-2.1"), pairs=(("Coder", "FM-1.1"),)),
        line("b", FAILED, {"outcome": "error"}, modes=(), pairs=()),
        line("c", FAILED, {}),  # asked for no faults
        line("d", FAILED, {}, modes=("FM-1.1",), pairs=()),  # its label names none
    ]
    rows = fault_lines(runs, lines)
    assert [(row.run_id, row.predicted is None) for row in rows] == [("a", False), ("b", True), ("c", True)]
    found = fault_set_figures(rows, "error", n_resamples=0)
    assert (found.hits, found.missed, found.failed_audits) == (2, 4, 2)
