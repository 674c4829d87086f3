"""Runs with an auditor behind the monitor: what readings say, what changes, and what never does."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tiny_monitor
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_auditor import ScriptedAuditor, nothing_wrong
from tiny_monitor import call, calm_run, failing_run, result

from prefixguard.alarm import Level
from prefixguard.bundle import write_bundle
from prefixguard.errors import ConfigError
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.llm_auditor import LlmAuditor
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.session import EscalatedReading, EscalatedSession, Escalator
from prefixguard.escalate.verdict import Auditor, AuditResult, Verdict, VerdictCache, VerdictOutcome
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import StepRecord

PATIENT = 20.0
BLOCK = EscalationPolicy(mode="block", deadline=PATIENT, every=1, gap=1, calls_a_run=None, calls_a_minute=None)
ASYNC = replace(BLOCK, mode="async")


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    path = tmp_path_factory.mktemp("monitors") / "tiny"
    write_bundle(path, tiny_monitor.parts())
    return load(path)


@pytest.fixture
def made(monitor: Monitor) -> Iterator[Any]:
    escalators: list[Escalator] = []

    def make(auditor: Auditor, policy: EscalationPolicy = BLOCK, **more: Any) -> Escalator:
        escalators.append(Escalator(monitor, auditor, policy, **more))
        return escalators[-1]

    yield make
    for escalator in escalators:
        escalator.close(drain=False)


def observe_all(session: EscalatedSession, events: list[Any]) -> list[EscalatedReading]:
    return [told for event in events for told in session.observe(event)] + session.end()


def levels(told: Sequence[EscalatedReading]) -> list[str]:
    return [reading.level.value for reading in told]


def test_without_a_question_readings_are_the_monitors(monitor: Monitor, made: Any) -> None:
    auditor = ScriptedAuditor()
    told = observe_all(made(auditor).start(), calm_run(6))
    plain = monitor.start()
    alone = [reading for event in calm_run(6) for reading in plain.observe(event)]
    assert [reading.reading.to_json() for reading in told] == [reading.to_json() for reading in alone]
    assert auditor.asked == []
    assert {(r.escalation, r.verdict, r.note, r.message, r.stop) for r in told} == {(None, None, None, None, False)}


def test_the_auditor_sees_the_prefix_and_nothing_after_it(made: Any) -> None:
    seen: list[list[StepRecord]] = []

    def truth(records: Sequence[StepRecord]) -> int:
        seen.append(list(records))
        return 2

    told = observe_all(made(ScriptedAuditor(truth)).start(), failing_run())
    assert levels(told) == ["OK", "ALARM", "ALARM", "ALARM", "ALARM"]  # alone, step 2 is WATCH
    assert [reading.escalation for reading in told] == [None] + ["answered"] * 4
    assert [[record.index for record in records] for records in seen] == [list(range(1, n + 1)) for n in (2, 3, 4, 5)]
    assert "order not found" in seen[0][1].result
    assert [(reading.about, reading.news) for reading in told[1:]] == [(n, True) for n in (2, 3, 4, 5)]
    assert told[1].verdict is not None and told[1].verdict.step == 2


def test_a_verdict_that_comes_later_is_applied_then(made: Any) -> None:
    release = threading.Event()

    def truth(records: Sequence[StepRecord]) -> int:
        release.wait(PATIENT)
        return 2

    events = failing_run()
    session = made(ScriptedAuditor(truth), replace(ASYNC, every=None)).start()
    told = [reading for event in events[:5] for reading in session.observe(event)]
    assert (told[-1].escalation, told[-1].level, told[-1].verdict, session.pending) == ("asked", Level.WATCH, None, 1)
    assert session.poll() is None
    release.set()
    later = session.wait(PATIENT)
    assert later is not None
    assert (later.reading, later.level, later.news, later.about) == (told[-1].reading, Level.ALARM, True, 2)
    assert later.escalation == "answered"
    assert later.again and later.to_json()["again"] and not told[-1].again
    assert session.poll() is None  # once
    after = [reading for event in events[5:7] for reading in session.observe(event)]
    assert [(r.news, r.about, r.level) for r in after] == [(False, 2, Level.ALARM)]


def test_a_wait_without_end_is_no_error(made: Any) -> None:
    session = made(ScriptedAuditor(), ASYNC).start()
    observe_all(session, failing_run())
    last = session.wait(float("inf"))
    assert session.pending == 0 and (last is None or last.again)


def test_the_next_reading_takes_it_in_without_a_poll(made: Any) -> None:
    session = made(ScriptedAuditor(), replace(ASYNC, every=None)).start()
    events = failing_run()
    told = [reading for event in events[:5] for reading in session.observe(event)]
    assert told[-1].escalation in ("asked", "answered")
    session._open[0].result(PATIENT) if session._open else None
    assert session.observe(events[5]) == []  # an event that is no step: the news waits
    (after,) = session.observe(events[6])
    assert after.news or told[-1].news
    assert after.about == 2


def test_safe_clears_for_some_steps_and_hides_no_alarm(made: Any) -> None:
    safe = ScriptedAuditor(nothing_wrong)
    policy = replace(BLOCK, every=None, clear_steps=1)
    assert levels(observe_all(made(safe, policy).start(), failing_run())) == ["OK", "OK", "ALARM", "ALARM", "ALARM"]
    policy = replace(policy, may_clear_alarm=True)
    assert levels(observe_all(made(safe, policy).start(), failing_run())) == ["OK", "OK", "WATCH", "ALARM", "ALARM"]
    policy = replace(policy, clear_steps=0)
    assert levels(observe_all(made(safe, policy).start(), failing_run())) == ["OK", "WATCH", *["ALARM"] * 3]


@pytest.mark.parametrize("outcome", [VerdictOutcome.ERROR, VerdictOutcome.ABSTAIN])
def test_no_verdict_changes_no_level(monitor: Monitor, made: Any, outcome: VerdictOutcome) -> None:
    class Same(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
            answer = await super().judge(records, seconds=seconds)
            return replace(answer, verdict=Verdict(outcome, fault="truncated" * (outcome is VerdictOutcome.ERROR)))

    policy = replace(BLOCK, on_alarm="raise", clear_steps=9, may_clear_alarm=True)
    told = observe_all(made(Same(), policy).start(), failing_run())
    assert [reading.level for reading in told] == [reading.reading.level for reading in told]
    silent = outcome is VerdictOutcome.ERROR
    assert told[-1].note == ("no verdict on step 5 (truncated)" if silent else None)
    assert told[-1].escalation == ("failed: truncated" if silent else "answered")


def test_an_endpoint_that_is_down_is_said_and_costs_nothing_else(monitor: Monitor, made: Any) -> None:
    breaker = CircuitBreaker(failures=1, reset_seconds=1000)
    breaker.ended(breaker.admit(), True)
    told = observe_all(made(ScriptedAuditor(), breaker=breaker).start(), failing_run())
    plain = monitor.start()
    alone = [reading for event in failing_run() for reading in plain.observe(event)]
    assert [reading.reading.to_json() for reading in told] == [reading.to_json() for reading in alone]
    assert levels(told) == [reading.level.value for reading in alone]
    assert told[1].escalation == "dropped: circuit open"
    assert told[1].note == "endpoint down; no verdict on step 2 (circuit open)"


def test_a_dead_endpoint_over_http(monitor: Monitor, made: Any) -> None:
    """The real client against a port where nobody listens: monitors go on, readings say why nobody answers."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{port.getsockname()[1]}/v1"
        breaker = CircuitBreaker(failures=2, reset_seconds=1000)
        client = AsyncClient(Endpoint("nobody", base_url=url, max_retries=0), breaker=breaker)
        escalator = made(LlmAuditor(client), breaker=breaker)
        told = observe_all(escalator.start(), failing_run())
        counts = escalator.close()
    plain = monitor.start()
    alone = [reading for event in failing_run() for reading in plain.observe(event)]
    assert [reading.reading.to_json() for reading in told] == [reading.to_json() for reading in alone]
    assert [reading.level for reading in told] == [reading.level for reading in alone]
    assert [r.escalation for r in told[1:]] == ["failed: unreached"] * 2 + ["dropped: circuit open"] * 2
    assert all(str(reading.note).startswith("endpoint down; no verdict on step") for reading in told[1:])
    assert (counts.offered, counts.n_failed, counts.n_dropped, counts.attempts) == (4, 2, 2, 2)


def test_a_note_goes_when_the_auditor_speaks_again(made: Any) -> None:
    class Twice(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
            self.failing = 1.0 if len(self.asked) == 0 else 0.0
            return await super().judge(records, seconds=seconds)

    told = observe_all(made(Twice()).start(), failing_run())
    assert told[1].note == "endpoint down; no verdict on step 2 (server-error: the script says so)"
    assert [reading.note for reading in told[2:]] == [None] * 3


def test_block_waits_no_longer_than_the_deadline(made: Any) -> None:
    told = observe_all(
        made(ScriptedAuditor(stuck=True), replace(BLOCK, deadline=0.02, every=None)).start(), failing_run()
    )
    assert (told[1].escalation, told[1].note) == ("asked", "no verdict on step 2 within 0.02 s")
    assert told[1].level is Level.WATCH


def test_rungs(made: Any) -> None:
    auditor = ScriptedAuditor(lambda records: 2)
    policy = replace(BLOCK, every=None)
    warned = observe_all(made(auditor, policy).start(), failing_run())
    nudged = observe_all(made(auditor, replace(policy, intervention="nudge")).start(), failing_run())
    stopped = observe_all(made(auditor, replace(policy, intervention="stop")).start(), failing_run())
    assert {(reading.message, reading.stop) for reading in warned} == {(None, False)}
    assert [reading.message is not None for reading in nudged] == [False, True, False, False, False]
    assert nudged[1].message is not None and nudged[1].message.startswith(
        "Automatic check after step 2: an auditor finds that the run went wrong at step 2."
    )
    assert [reading.stop for reading in nudged] == [False] * 5
    assert [reading.stop for reading in stopped] == [False, True, True, True, True]
    assert stopped[1].message == nudged[1].message


def test_the_monitors_own_alarm_nudges_too(made: Any) -> None:
    policy = replace(BLOCK, calls_a_run=0, intervention="nudge")
    told = observe_all(made(ScriptedAuditor(), policy).start(), failing_run())
    assert [reading.message is not None for reading in told] == [False, False, True, False, False]
    assert "this run looks like runs that fail" in str(told[2].message)
    assert told[2].escalation == "dropped: calls a run"


def test_json_extends_the_readings(made: Any) -> None:
    (_, told, *_rest) = observe_all(made(ScriptedAuditor()).start(), failing_run())
    document = told.to_json()
    assert document.items() >= (told.reading.to_json() | {"level": "ALARM"}).items()
    assert (document["monitor_level"], document["escalation"], document["verdict"]["step"]) == ("WATCH", "answered", 2)
    assert (document["stop"], document["message"], document["escalation_note"], document["verdict_about"]) == (
        False,
        None,
        None,
        2,
    )


def test_open_calls_and_strange_events_are_no_trouble(made: Any) -> None:
    session = made(ScriptedAuditor()).start()
    strange: list[Any] = [None, 5, "x", [], {"role": "tool"}]
    for event in strange:
        session.observe(event)
    for bad in (None, "record", StepRecord(1, "agent", "", 5, "", "", "", "", "ok")):  # type: ignore[arg-type]
        assert session.observe_record(bad).level is Level.UNKNOWN
    told = observe_all(session, [*failing_run(), call(9)])  # a call that gets no result is a step at the end
    assert told[-1].reading.step == told[-2].reading.step + 1 and told[-1].level is Level.ALARM
    (after,) = session.end()
    assert (after.level, after.reading.unknown_reason) == (Level.UNKNOWN, "the session has ended")


def test_an_auditor_of_wrong_types_costs_the_escalation_only(made: Any) -> None:
    class Odd(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
            verdict = Verdict(VerdictOutcome.ALARM, 1, 5, None)  # type: ignore[arg-type]
            return AuditResult(verdict, "k", False, 1, 1, False, 0.0, 0.0, 1, "")

    told = observe_all(made(Odd(), replace(BLOCK, intervention="nudge")).start(), failing_run())
    assert [reading.reading.step for reading in told] == [1, 2, 3, 4, 5]
    assert told[1].note == "escalation failed (TypeError)" or told[1].note == "escalation failed (AttributeError)"
    assert told[1].level is Level.WATCH


def test_a_poll_survives_an_auditor_of_wrong_types(made: Any) -> None:
    """And says it once, so that whoever polls until there is nothing new comes to an end."""
    release = threading.Event()

    class Odd(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
            while not release.is_set():
                await asyncio.sleep(0.005)
            return AuditResult(Verdict(VerdictOutcome.ALARM, 1, None, 5), "k", False, 1, 1, False, 0.0, 0.0, 1, "")  # type: ignore[arg-type]

    session = made(Odd(), replace(ASYNC, intervention="nudge", on_alarm="raise")).start()
    told = observe_all(session, failing_run())
    release.set()
    late = session.wait(PATIENT)
    assert late is not None and (late.reading, late.level) == (told[-1].reading, told[-1].reading.level)
    assert late.note == "escalation failed (AttributeError)"
    assert session.pending == 0 and session.poll() is None


def test_the_mark_is_where_watch_begins(monitor: Monitor, made: Any) -> None:
    thresholds = monitor.bundle.calibration.thresholds
    assert thresholds.alarm is not None
    assert made(ScriptedAuditor()).mark_of() == min(thresholds.watch, thresholds.alarm)
    assert made(ScriptedAuditor(), replace(BLOCK, mark=0.9)).mark_of() == 0.9
    with pytest.raises(ConfigError, match="name a mark"):
        Escalator(monitor, ScriptedAuditor(), EscalationPolicy(risk="imminent"))
    told = observe_all(made(ScriptedAuditor(), replace(BLOCK, risk="imminent", mark=1.0)).start(), failing_run())
    assert {reading.escalation for reading in told} == {None}


def test_prompts_are_of_bounded_texts(made: Any) -> None:
    seen: list[int] = []

    def truth(records: Sequence[StepRecord]) -> None:
        assert [record.index for record in records] == list(range(1, len(records) + 1))
        seen.append(sum(len(record.result) for record in records))

    events = failing_run()
    for i in range(10, 60):
        events += [call(i), result(i, "Error: " + "x" * 1500)]
    observe_all(made(ScriptedAuditor(truth), replace(BLOCK, keep_texts=4096)).start(), events)
    assert len(seen) > 40 and max(seen) <= 4096


def test_the_cache_answers_a_run_that_is_run_again(made: Any, tmp_path: Path) -> None:
    first = made(ScriptedAuditor(), cache=VerdictCache(tmp_path))
    told = observe_all(first.start(), failing_run())
    silent = ScriptedAuditor()
    second = made(silent, replace(BLOCK, calls_a_run=1), cache=VerdictCache(tmp_path))
    again = observe_all(second.start(), failing_run())
    assert silent.asked == [] and [r.escalation for r in again] == [None] + ["cached"] * 4
    assert [(r.level, r.verdict) for r in again] == [(r.level, r.verdict) for r in told]
    assert second.counts.cached == 4 and second.counts.tokens_in == 0


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.booleans(), min_size=1, max_size=14),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 4)),
    st.integers(0, 4),
    st.sampled_from(["note", "confirm", "raise"]),
    st.integers(0, 3),
    st.booleans(),
    st.integers(0, 9),
)
def test_laws_of_a_run(
    monitor: Monitor,
    failures: list[bool],
    gap: int,
    every: int | None,
    calls: int,
    on_alarm: Any,
    clear: int,
    hide: bool,
    seed: int,
) -> None:
    """No more than the budget, no question within the gap nor below the mark, levels only as verdicts allow."""
    events: list[Any] = []
    for number, fails in enumerate(failures):
        events += [call(number), result(number, "Error: not found" if fails else "ok")]
    policy = EscalationPolicy(
        mode="block",
        deadline=PATIENT,
        gap=gap,
        every=every,
        calls_a_run=calls,
        calls_a_minute=None,
        on_alarm=on_alarm,
        clear_steps=clear,
        may_clear_alarm=hide,
    )
    auditor = ScriptedAuditor(skill=0.5, failing=0.3, seed=seed)
    with Escalator(monitor, auditor, policy) as escalator:
        told = observe_all(escalator.start(), events)
        mark = escalator.mark_of()
    asked = [reading for reading in told if reading.escalation is not None]
    steps = [reading.reading.step for reading in asked]
    assert all(later - earlier >= gap for earlier, later in pairwise(steps))
    assert all((reading.reading.outcome_risk or 0) > mark for reading in asked)
    assert len(auditor.asked) <= calls
    counts = escalator.counts
    assert counts.offered == len(asked) == counts.answered + counts.cached + counts.n_dropped + counts.n_failed
    verdicts: set[VerdictOutcome] = set()
    for reading in told:
        if reading.news and reading.verdict is not None:
            verdicts.add(reading.verdict.outcome)
        own, level = reading.reading.level, reading.level
        if own is Level.ALARM and level is not Level.ALARM:
            assert hide and VerdictOutcome.SAFE in verdicts
        if own is Level.WATCH and level is Level.OK:
            assert VerdictOutcome.SAFE in verdicts and clear > 0
        if level is Level.ALARM and own is not Level.ALARM:
            assert VerdictOutcome.ALARM in verdicts and on_alarm != "note"


def test_500_sessions_on_8_threads_lose_nothing(monitor: Monitor) -> None:
    """Half of the questions fail; each session's own count, the readings and the statistics agree to the last one."""
    auditor = ScriptedAuditor(lambda records: 1, failing=0.4, raising=0.2, delay=0.0002)
    policy = replace(ASYNC, queue=64, calls_a_run=3)
    escalator = Escalator(monitor, auditor, policy)

    def run(number: int) -> list[str]:
        session = escalator.start()
        events = failing_run()
        events[2] = result(0, f"ok here it is {number % 400}")  # some runs are the same to the letter
        told = observe_all(session, events)
        session.wait(PATIENT)
        assert session.pending == 0
        assert sum(reading.escalation is not None for reading in told) == 4
        return [reading.escalation for reading in told if reading.escalation is not None]

    with ThreadPoolExecutor(8) as pool:
        endings = [ending for some in pool.map(run, range(500)) for ending in some]
    counts = escalator.close()
    assert len(endings) == counts.offered == 2000
    assert counts.offered == counts.answered + counts.cached + counts.n_dropped + counts.n_failed
    assert counts.pending == 0 and counts.answered > 0 and counts.n_failed > 0
    dropped = sum(counts.dropped.get(reason, 0) for reason in ("queue full", "calls a run"))
    assert dropped == counts.n_dropped == sum(ending.startswith("dropped") for ending in endings)
    raised = counts.failed.get("raised", 0)
    assert raised > 0 and counts.n_failed == raised + counts.failed.get("server-error", 0)
    assert counts.answered <= len(auditor.asked) <= counts.answered + counts.n_failed
