"""Audits of many runs: order, resumption, settings, and an endpoint where nobody answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from model_server import model_server, says
from walking_auditor import WalkingScript, steps_of

from prefixguard.errors import ConfigError, EndpointError, TraceError
from prefixguard.escalate.audit_line import AuditLine
from prefixguard.escalate.auditing import LINES, audit
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.hypotheses import MODES
from prefixguard.escalate.inspectors import HypothesisInspector, Inspected, WalkInspector
from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.stepview import StepRecord
from prefixguard.trace import Fault, Mistake, Outcome, Run


def run_of(i: int, n: int = 4) -> Run[StepRecord]:
    return Run(
        f"r{i}", f"t{i // 2}", Outcome.FAILURE, steps_of(n, name=f"run {i}"), "here", {"folder": "x"},
        Mistake(2, "a0"), (Fault("a0", "FM-1.1"),),
    )  # fmt: skip


def script(says: Callable[[int, object], Verdict]) -> WalkingScript:
    return WalkingScript(PromptKind.ONLINE, says)


def alarm_at_two(prefix: int, _: object) -> Verdict:
    return Verdict(VerdictOutcome.ALARM, step=2, agent="a0") if prefix >= 2 else Verdict(VerdictOutcome.SAFE)


def test_lines_come_in_the_order_of_the_runs_and_say_what_was_asked() -> None:
    asked = script(alarm_at_two)
    lines = audit((run_of(i) for i in range(7)), WalkInspector(asked), workers=3)
    assert [line.run_id for line in lines] == [f"r{i}" for i in range(7)]
    assert all(len(line.calls) == 2 and line.possible_calls == 4 for line in lines)
    assert asked.closed
    line = lines[0]
    assert (line.gold_step, line.gold_agent, line.faults) == (2, "a0", (("a0", "FM-1.1"),))


def test_a_line_is_the_same_after_json() -> None:
    line = audit([run_of(0)], WalkInspector(script(alarm_at_two)))[0]
    again = AuditLine.from_json(json.loads(json.dumps(line.as_json())), "here")
    assert again.as_json() == line.as_json()


@pytest.mark.parametrize("value", [None, [], {}, {"run_id": "r"}, {"label": {"outcome": "lost"}}])
def test_what_is_no_line_is_refused(value: object) -> None:
    with pytest.raises(TraceError, match="no line of an audit"):
        AuditLine.from_json(value, "file:3")


def test_an_audit_goes_on_where_it_stopped(tmp_path: Path) -> None:
    audit([run_of(i) for i in range(3)], WalkInspector(script(alarm_at_two)), out=tmp_path, settings={"model": "m"})
    with (tmp_path / LINES).open("a") as file:
        file.write('{"run_id": "r3", "cut')  # as a crash leaves it
    second = script(alarm_at_two)
    lines = audit([run_of(i) for i in range(5)], WalkInspector(second), out=tmp_path, settings={"model": "m"})
    assert len(lines) == 5 and len(second.prefixes) == 4  # two runs of two questions
    kept = [json.loads(text)["run_id"] for text in (tmp_path / LINES).read_text().splitlines()]
    assert kept == ["r0", "r1", "r2", "r3", "r4"]


def test_runs_with_errors_are_asked_again(tmp_path: Path) -> None:
    failing = WalkInspector(script(lambda *_: Verdict(VerdictOutcome.ERROR, fault="malformed")))
    assert all(line.has_errors for line in audit([run_of(0), run_of(1)], failing, out=tmp_path))
    again = WalkInspector(script(alarm_at_two))
    lines = audit([run_of(0), run_of(1)], again, out=tmp_path)
    assert [line.verdict["outcome"] for line in lines] == ["alarm", "alarm"]
    assert len((tmp_path / LINES).read_text().splitlines()) == 2


def test_other_settings_are_refused(tmp_path: Path) -> None:
    audit([run_of(0)], WalkInspector(script(alarm_at_two)), out=tmp_path, settings={"model": "a"})
    with pytest.raises(ConfigError, match="model: a there, b here"):
        audit([run_of(0)], WalkInspector(script(alarm_at_two)), out=tmp_path, settings={"model": "b"})


def test_where_nobody_answers_the_audit_ends_early_and_keeps_what_it_has(tmp_path: Path) -> None:
    dead = script(lambda *_: Verdict(VerdictOutcome.ERROR, fault="no-answer", detail="gone."))
    with pytest.raises(EndpointError, match=r"nobody answers: gone\."):
        audit([run_of(i) for i in range(50)], WalkInspector(dead), out=tmp_path, workers=2)
    assert len(dead.prefixes) < 40 and dead.closed


def test_workers_are_at_least_one() -> None:
    with pytest.raises(ConfigError, match="workers 0"):
        audit([run_of(0)], WalkInspector(script(alarm_at_two)), workers=0)


def test_labels_never_reach_who_inspects() -> None:
    class Looking:
        protocol = "looking"

        async def inspect(self, run: Run[StepRecord]) -> Inspected:
            assert (run.outcome, run.mistake, run.faults) == (Outcome.UNKNOWN, None, ())
            return Inspected(Verdict(VerdictOutcome.SAFE), None, (), 0)

        async def aclose(self) -> None:
            pass

    line = audit([run_of(0)], Looking())[0]
    assert (line.outcome, line.gold_step) == (Outcome.FAILURE, 2)


def test_hypotheses_give_pairs_and_modes_and_what_they_cost() -> None:
    with model_server(says('{"label": "entail", "agents": ["a1"]}')) as server:
        endpoint = Endpoint("m", server.url, price_in=1.0, price_out=1.0)
        line = audit([run_of(0)], HypothesisInspector(AsyncClient(endpoint)))[0]
    assert line.modes is not None and len(line.modes) == len(MODES) == len(line.calls)
    assert line.pairs is not None and {agent for agent, _ in line.pairs} == {"a1"}
    assert line.verdict["outcome"] == "alarm" and line.verdict["step"] is None
    assert sum(call["tokens_in"] for call in line.calls) == 14 * 1000
    assert sum(call["cost"] for call in line.calls) == pytest.approx(14 * 1100 / 1e6)
