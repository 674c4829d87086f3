"""What a monitor and a model make of a run together."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_server import fails, model_server, says
from walking_auditor import WalkingScript, steps_of

from prefixguard.auditor.auditing import audit
from prefixguard.auditor.protocols import HypothesisProtocol, Inspection, WalkProtocol
from prefixguard.auditor.trigger import EscalationTrigger
from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.prompting import PromptKind
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.runtime import Level, load
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

WALKS = (PromptKind.ONLINE, PromptKind.STEP_BY_STEP)


@pytest.fixture(scope="module")
def gate(lab_bundle: Path) -> EscalationTrigger:
    """It escalates every step that it judges."""
    return EscalationTrigger(load(lab_bundle), EscalationPolicy(mark=1e-9, every=1, gap=1, calls_a_run=None))


def run_of(records: tuple[StepRecord, ...]) -> Run[StepRecord]:
    return Run("r", None, Outcome.UNKNOWN, records, "r.json")


def inspected(
    kind: PromptKind, gate: EscalationTrigger | None, run: Run[StepRecord]
) -> tuple[Inspection, WalkingScript]:
    script = WalkingScript(kind, lambda *_: Verdict(VerdictOutcome.SAFE))
    return asyncio.run(WalkProtocol(script, gate).inspect(run)), script


@settings(max_examples=25, deadline=None)
@given(kind=st.sampled_from(WALKS), n=st.integers(1, 12), others=st.sets(st.integers(1, 12)))
def test_a_monitor_in_front_never_asks_more_than_is_asked_without_one(
    gate: EscalationTrigger, kind: PromptKind, n: int, others: set[int]
) -> None:
    run = run_of(steps_of(n, others))
    behind, script = inspected(kind, gate, run)
    plain, every = inspected(kind, None, run)
    assert len(behind.calls) <= behind.possible_calls == plain.possible_calls == len(plain.calls)
    agents = set(every.prefixes)
    assert len(behind.calls) == len(agents), "every step is above this mark"
    assert kind is PromptKind.ONLINE or set(script.prefixes) == agents


@pytest.mark.parametrize("kind", WALKS)
def test_a_run_of_which_the_monitor_judges_nothing_is_not_safe(gate: EscalationTrigger, kind: PromptKind) -> None:
    huge = "x" * 1_100_000
    run = run_of(tuple(replace(record, result=huge) for record in steps_of(3)))
    assert {reading.level for reading in gate.readings(run)} == {Level.UNKNOWN}
    found, script = inspected(kind, gate, run)
    assert found.verdict == Verdict(VerdictOutcome.ABSTAIN, reason="the monitor judged no step")
    assert found.verdict == gate.alone(run).verdict
    assert (script.prefixes, found.calls, found.possible_calls) == ([], (), 3)


def test_a_run_without_steps_is_an_error_behind_a_monitor_too(gate: EscalationTrigger) -> None:
    assert inspected(PromptKind.ONLINE, gate, run_of(()))[0].verdict.fault == "no-steps"


def test_an_alarm_is_confirmed_only_where_a_step_is_asked_about_again() -> None:
    script = WalkingScript(PromptKind.STEP_BY_STEP, lambda *_: Verdict(VerdictOutcome.SAFE))
    with pytest.raises(ConfigError, match="confirm 2"):
        asyncio.run(WalkProtocol(script, confirm=2).inspect(run_of(steps_of(3))))


@pytest.mark.parametrize(("reply", "fault"), [("I would say that it holds.", "no-verdict"), ("", "empty")])
def test_a_verifier_whose_replies_hold_no_label_is_one_that_answers(reply: str, fault: str) -> None:
    """Its runs are errors of their own; the audit goes through all of them."""
    runs = [replace(run_of(steps_of(2, name=f"run {i}")), run_id=f"r{i}") for i in range(5)]
    with model_server(says(reply)) as server:
        lines = audit(runs, HypothesisProtocol(AsyncClient(Endpoint("m", server.url)), batch=True), workers=1)
    assert [line.verdict["outcome"] for line in lines] == ["error"] * 5
    assert {call["fault"] for line in lines for call in line.calls} == {fault}


def test_a_verifier_whose_endpoint_refuses_everything_answers_nobody() -> None:
    runs = [replace(run_of(steps_of(2, name=f"run {i}")), run_id=f"r{i}") for i in range(5)]
    with model_server(fails(401)) as server, pytest.raises(EndpointError, match="nobody answers"):
        audit(runs, HypothesisProtocol(AsyncClient(Endpoint("m", server.url)), batch=True), workers=1)
