"""A monitor in front of an auditor, and a monitor alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from walking_auditor import WalkingScript

from prefixguard.auditor.auditing import audit
from prefixguard.auditor.protocols import MonitorProtocol, WalkProtocol
from prefixguard.auditor.trigger import EscalationTrigger
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.runtime import Level, load
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Run


@pytest.fixture(scope="module")
def runs(fresh_lab_file: Path) -> list[Run[StepRecord]]:
    return list(read_runs(fresh_lab_file, load_adapter("openai_chat")))


@pytest.fixture(scope="module")
def gate(lab_bundle: Path, runs: list[Run[StepRecord]]) -> EscalationTrigger:
    """Half of the runs come above its mark at some step."""
    monitor = load(lab_bundle)
    highest = sorted(max(r.outcome_risk or 0.0 for r in monitor.score_run(run.records)) for run in runs)
    return EscalationTrigger(monitor, EscalationPolicy(mark=highest[len(highest) // 2], every=3, gap=2, calls_a_run=2))


def test_only_prefixes_above_the_mark_are_asked_about(gate: EscalationTrigger, runs: list[Run[StepRecord]]) -> None:
    asked = {run.run_id: gate.steps(run) for run in runs}
    assert any(asked.values()) and not all(asked.values())
    for run in runs:
        risks = [reading.outcome_risk for reading in gate.readings(run)]
        assert all((risks[step - 1] or 0) > gate.mark(run) for step in asked[run.run_id])
        assert len(asked[run.run_id]) <= 2


def test_an_audit_behind_a_gate_sends_what_the_gate_lets_through(
    gate: EscalationTrigger, runs: list[Run[StepRecord]]
) -> None:
    script = WalkingScript(PromptKind.ONLINE, lambda *_: Verdict(VerdictOutcome.SAFE))
    lines = audit(runs, WalkProtocol(script, gate), workers=1)
    assert script.prefixes == [step for run in runs for step in gate.steps(run)]
    assert sum(line.possible_calls for line in lines) > len(script.prefixes)
    quiet = [line for line in lines if not line.calls]
    assert quiet and all(line.verdict["notes"] == ["never asked"] for line in quiet)


def test_alone_it_alarms_where_its_alarm_sounds(gate: EscalationTrigger, runs: list[Run[StepRecord]]) -> None:
    alarmed = 0
    for run in runs:
        levels = [reading.level for reading in gate.readings(run)]
        found = gate.alone(run)
        if Level.ALARM in levels:
            alarmed += 1
            assert found.alarm_step == levels.index(Level.ALARM) + 1
            assert found.verdict.step is not None and found.verdict.step <= found.alarm_step
        else:
            assert found.verdict.outcome is VerdictOutcome.SAFE
    assert alarmed


def test_of_a_failed_run_it_blames_some_step_in_any_case(gate: EscalationTrigger, runs: list[Run[StepRecord]]) -> None:
    for line in audit(runs, MonitorProtocol(gate, known_failed=True)):
        assert line.verdict["outcome"] == "alarm" and 1 <= line.verdict["step"] <= line.n_steps
        assert line.verdict["agent"] == "agent" and line.alarm_step is None and line.calls == ()
