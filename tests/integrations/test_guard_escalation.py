"""The auditor behind a guard, over real HTTP: verdicts come later, to sinks, function and counters; nobody waits."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from model_server import Play, at_most, fails, model_server, says, silent
from watched import SECRET, fail

from prefixguard import Endpoint, EscalationPolicy, Escalator
from prefixguard.errors import ConfigError
from prefixguard.escalate import VerdictOutcome, model_escalator
from prefixguard.integrations import Alarm, Guard, WatchedReading
from prefixguard.runtime import Level, Monitor

pytest.importorskip("openai")
BLAMES = says(json.dumps({"thinking": "", "answer": 1, "agent": "boss", "reason": "It asks again.", "quote": None}))
SAFE = says(json.dumps({"thinking": "", "answer": "SAFE", "agent": None, "reason": "All is well.", "quote": None}))


class Collecting:
    def __init__(self) -> None:
        self.told: list[WatchedReading] = []
        self.verdict = threading.Event()

    def emit(self, watched: WatchedReading) -> None:
        self.told.append(watched)
        if watched.verdict is not None:
            self.verdict.set()


def endpoint(url: str) -> Endpoint:
    return Endpoint("m", url, max_retries=0, timeout=30)


def held(play: Play) -> tuple[Play, threading.Event]:
    """Answers as soon as the event is set."""
    goes = threading.Event()

    def wait(exchange: Any) -> None:
        goes.wait(30)
        play(exchange)

    return wait, goes


def test_a_verdict_comes_later(events_monitor: Monitor, caplog: pytest.LogCaptureFixture) -> None:
    """The alarm sounds at once; the verdict makes a second call of the function, and is the sinks' and the counters'.
    What leaves the machine has its secrets masked."""
    play, goes = held(BLAMES)
    sink, alarms = Collecting(), list[Alarm]()

    def on_alarm(alarm: Alarm) -> str:
        alarms.append(alarm)
        return "nudge"

    with model_server(play) as server:
        guard = Guard(events_monitor, escalate=endpoint(server.url), on_alarm=on_alarm, sinks=[sink])
        with guard.run(f"Where is A1? key {SECRET}", run_id="r", agent="boss") as run:
            fail(run)
            first = run.nudge()
            assert first is not None and "auditor" not in first
            assert run.reading is not None and run.reading.level is Level.ALARM
            assert [alarm.verdict for alarm in alarms] == [None]
            goes.set()
            assert sink.verdict.wait(20)
            assert "went wrong at step 1 (by boss). It says: 'It asks again.'" in str(run.nudge())
        guard.close()
        assert all(SECRET not in json.dumps(body) for body in server.requests)
    assert [(a.verdict.step, a.verdict.agent) for a in alarms if a.verdict is not None] == [(1, "boss")]
    assert len(alarms) == 2
    news = next(one for one in sink.told if one.verdict is not None)
    assert (news.run, news.verdict and news.verdict.outcome, news.acted, news.is_alarm) == (
        "r", VerdictOutcome.ALARM, "nudge", False
    )  # fmt: skip
    assert news.to_json()["verdict"]["step"] == 1
    counted = guard.counters
    assert counted["escalation.offered"] == counted["escalation.answered"] + counted.get("escalation.cached", 0)
    assert counted["verdicts.alarm"] >= 1
    assert (counted["readings"], counted["alarms"]) == (4, 1)
    assert sum(one.verdict is None for one in sink.told) == 4


def test_a_verdict_sounds_the_alarm_that_the_monitor_does_not(events_monitor: Monitor) -> None:
    """At WATCH a verdict ALARM confirms: the alarm sounds with it, once, and the run is stopped; also after the last
    event."""
    sink = Collecting()
    with (
        model_server(BLAMES) as server,
        Guard(events_monitor, escalate=endpoint(server.url), on_alarm="stop", sinks=[sink]) as guard,
        guard.run("x", agent="boss") as run,
    ):
        run.returned(run.called("find", {"id": "A1"}), "error: not found", is_error=True)
        assert sink.verdict.wait(20)
        assert run.stopped is not None and run.alarmed
    assert [(one.reading.level.value, one.is_alarm, one.acted) for one in sink.told] == [
        ("WATCH", False, ""), ("ALARM", True, "stop"),
    ]  # fmt: skip


def test_a_run_that_is_over_gets_its_verdict(events_monitor: Monitor) -> None:
    play, goes = held(SAFE)
    sink = Collecting()
    with model_server(play) as server:
        guard = Guard(events_monitor, escalate=endpoint(server.url), sinks=[sink])
        with guard.run("x") as run:
            fail(run, 1)
        assert guard.open_runs == 0 and not sink.verdict.is_set()
        goes.set()
        guard.close(20)
    assert [one.verdict.outcome.value for one in sink.told if one.verdict is not None] == ["safe"]
    assert guard.counters["verdicts.safe"] == 1


@pytest.mark.parametrize("play", [silent, fails(500), fails(401)])
def test_a_dead_endpoint_costs_nothing(events_monitor: Monitor, play: Play, caplog: pytest.LogCaptureFixture) -> None:
    """Readings are those of the monitor alone, the host is held up nowhere, and it is said once and counted."""
    alone = Guard(events_monitor)
    with alone.run("x") as run:
        expected = [r.to_json() for r in _readings(run)]
    with model_server(play) as server, at_most(6):
        guard = Guard(events_monitor, escalate=endpoint(server.url))
        for n in range(20):
            with guard.run("x", run_id=f"r{n}") as run:
                assert [r.to_json() for r in _readings(run)] == expected
        guard.close(0.5)
    counted = guard.counters
    assert counted["escalation.offered"] == counted.get("escalation.dropped", 0) + counted["escalation.failed"]
    assert sum("the auditor is silent" in message for message in caplog.messages) <= 1
    if play is not silent:
        assert any("the monitor goes on alone" in message for message in caplog.messages)


def _readings(run: Any) -> list[Any]:
    found = []
    for n in range(4):
        found += run.returned(run.called("find", {"id": "A1"}, call_id=f"{n}"), "error: not found", is_error=True)
    return found


def test_what_is_refused(events_monitor: Monitor, tmp_path: Any) -> None:
    def other(**policy: Any) -> Callable[[], Guard]:
        escalator = model_escalator(events_monitor, endpoint("http://localhost:1/v1"), **policy)
        return lambda: Guard(events_monitor, escalate=escalator)

    for make, why in (
        (lambda: Guard.recording(tmp_path, escalate=endpoint("http://localhost:1/v1")), "needs a monitor"),
        (lambda: Guard(events_monitor, escalate="qwen"), "give an Endpoint"),  # type: ignore[arg-type]
        (other(mode="block"), "never waits for the auditor"),
        (other(intervention="stop"), "by its own on_alarm"),
    ):
        with pytest.raises(ConfigError, match=why):
            make()


def test_a_policy_of_ones_own_and_a_run_that_goes_on_elsewhere(events_monitor: Monitor) -> None:
    """An Escalator brings its policy and its cache; a run that is resumed goes on without the auditor."""
    from scripted_auditor import ScriptedAuditor

    auditor = ScriptedAuditor(lambda records: 1)
    with Guard(
        events_monitor, escalate=Escalator(events_monitor, auditor, EscalationPolicy(calls_a_run=1, gap=1, every=1))
    ) as guard:
        run = guard.run("x", run_id="r", agent="boss")
        fail(run, 3)
        kept = guard.save_run("r")
    assert (len(auditor.asked), guard.counters["escalation.dropped"]) == (1, 2)
    with Guard(events_monitor) as other:
        other.resume_run(kept)
        assert other.feed({"run": "r", "kind": "said", "text": "x"})[0].level is not Level.UNKNOWN


def test_a_guard_that_nobody_holds_takes_its_threads_with_it(events_monitor: Monitor) -> None:
    def names() -> int:
        return sum(
            thread.name in ("prefixguard-verdicts", "prefixguard-escalation") for thread in threading.enumerate()
        )

    before = names()
    with model_server(BLAMES) as server:
        guard = Guard(events_monitor, escalate=endpoint(server.url))
        fail(guard.run("x", agent="boss"))
        assert names() > before
        del guard
        until = time.monotonic() + 20
        while names() > before and time.monotonic() < until:
            gc.collect()
            time.sleep(0.05)
    assert names() == before
