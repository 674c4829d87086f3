"""A monitor in front of an auditor, and a monitor alone."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from walking_auditor import WalkingScript

from prefixguard.auditor.auditing import audit
from prefixguard.auditor.protocols import MonitorProtocol, WalkProtocol
from prefixguard.auditor.trigger import EscalationTrigger, escalation_mark, questions
from prefixguard.errors import ConfigError, DataError
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


policies = st.builds(
    EscalationPolicy, every=st.one_of(st.none(), st.integers(1, 4)), gap=st.integers(1, 4), mark=st.just(None)
)
run = st.lists(st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0, math.nan]), max_size=12)


def total(runs: list[NDArray[np.float64]], mark: float, policy: EscalationPolicy) -> int:
    return sum(len(questions(risks, mark, policy)) for risks in runs)


@settings(max_examples=300, deadline=None)
@given(st.lists(run, min_size=1, max_size=6), st.sampled_from([0.0, 0.05, 0.1, 0.3, 0.5, 1.0]), policies)
def test_it_is_the_smallest_from_which_on_all_hold(
    told: list[list[float]], share: float, policy: EscalationPolicy
) -> None:
    runs = [np.array(risks, np.float64) for risks in told]
    steps = sum(map(len, runs))
    if steps == 0:
        with pytest.raises(DataError, match="no steps"):
            escalation_mark(runs, share, policy)
        return
    found = escalation_mark(runs, share, policy)
    assert 0 < found.mark <= 1
    assert found.asked == total(runs, found.mark, policy) <= share * steps + 1e-9
    grid = sorted({0.05, 0.1, 0.2, 0.25, 0.4, 0.5, 0.6, 0.75, 0.8, 0.9, 0.95, 1.0, found.mark})
    for mark in grid:
        if mark >= found.mark:
            assert total(runs, mark, policy) <= share * steps + 1e-9
    if found.mark > 1e-300:  # anything lower asks too much somewhere from there on
        assert total(runs, math.nextafter(found.mark, 0.0), policy) > share * steps
    assert escalation_mark(runs[::-1], share, policy) == found


def test_by_hand() -> None:
    """Two rises over 0.3, one over 0.5, one over 0.8; ten steps, two may be asked about."""
    runs = [np.array([0.1, 0.4, 0.9, 0.2, 0.1]), np.array([0.1, 0.6, 0.2, 0.4, 0.1])]
    found = escalation_mark(runs, 0.2, EscalationPolicy(every=None, gap=1))
    assert (found.mark, found.asked, found.steps, found.runs, found.asked_runs) == (0.4, 2, 10, 2, 2)
    assert found.error == 0.0  # both runs ask once in five steps
    assert "2 of 10 calibration steps in 2 of 2 runs are asked about: 20.0%" in found.remark
    assert "2 runs are few" in found.remark
    assert escalation_mark(runs[:1], 0.2, EscalationPolicy()).error is None


def test_a_mark_is_not_so_low_that_every_run_is_above_it_from_its_first_step() -> None:
    """Each run rises once over the lowest mark, which is a small share; marks between ask much more."""
    runs = [np.array([0.2] + [0.3, 0.6] * 10) for _ in range(5)]
    policy = EscalationPolicy(every=None, gap=1)
    assert total(runs, 0.1, policy) == 5 and total(runs, 0.4, policy) == 50
    found = escalation_mark(runs, 0.1, policy)
    assert (found.mark, found.asked) == (0.6, 0)


def test_the_share_of_new_runs_is_about_that_of_the_chosen() -> None:
    """Marks chosen on 200 runs, 20 times: on 200 new ones the share lies within three of the stated errors."""
    rng = np.random.default_rng(5)
    policy = EscalationPolicy()
    far = 0
    for _trial in range(20):
        draw = [np.clip(np.cumsum(rng.normal(0, 0.1, rng.integers(3, 30))) + 0.3, 0, 1) for _ in range(400)]
        found = escalation_mark(draw[:200], 0.1, policy)
        new = total(draw[200:], found.mark, policy) / sum(map(len, draw[200:]))
        assert found.error is not None
        far += abs(new - found.asked_share) > 3 * math.sqrt(2) * found.error
    assert far <= 1


@pytest.mark.parametrize(
    ("runs", "share", "sentence"),
    [
        ([], 0.1, "no calibration runs"),
        ([np.zeros(0)], 0.1, "have no steps"),
        ([np.zeros((2, 2))], 0.1, r"risks of run 1 have shape \(2, 2\)"),
        ([np.zeros(2), np.array([0.5, 1.5])], 0.1, "risks of run 2: a risk lies between 0 and 1"),
    ],
)
def test_runs_that_cannot_be_used_are_told(runs: list[NDArray[np.float64]], share: float, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        escalation_mark(runs, share)


def test_a_share_is_a_share() -> None:
    with pytest.raises(ConfigError, match="escalation share 2"):
        escalation_mark([np.zeros(2)], 2.0)
