"""What a guard does at an alarm, what it refuses, and that nothing of it disturbs the host."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.errors import AgentStopped, ConfigError, OtherAdapterError, OutputError, UsageError
from prefixguard.integrations import Alarm, Event, Guard, WatchedReading, WatchedRun
from prefixguard.runtime import Level, Monitor


def fail(run: WatchedRun) -> WatchedRun:
    """The same call fails again and again: WATCH, then ALARM."""
    for n in range(4):
        run.returned(run.called("find", {"id": "A1"}, call_id=f"{n}"), "error: not found", is_error=True)
    return run


class Collecting:
    def __init__(self) -> None:
        self.readings: list[WatchedReading] = []

    def emit(self, watched: WatchedReading) -> None:
        self.readings.append(watched)

    def close(self) -> None:
        pass


def test_warn(events_monitor: Monitor, caplog: pytest.LogCaptureFixture) -> None:
    sink = Collecting()
    with Guard(events_monitor, sinks=[sink]) as guard, guard.run("x", run_id="r1") as run:
        fail(run)
        assert run.alarmed
        assert run.nudge() is None
        assert run.stopped is None
    alarm = sink.readings[1].reading
    assert alarm.reasons[0].startswith("The same call gave the same result again") and alarm.outcome_risk is not None
    assert [message for message in caplog.messages if "ALARM" in message] == [
        f"run r1, agent main, step 2: ALARM, {alarm.outcome_risk:.0%} risk of failure ({alarm.reasons[0]})"
    ]
    assert [(w.run, w.agent_path, w.reading.step, w.reading.level.value, w.acted) for w in sink.readings] == [
        ("r1", "main", 1, "WATCH", ""), ("r1", "main", 2, "ALARM", "warn"), ("r1", "main", 3, "ALARM", ""),
        ("r1", "main", 4, "ALARM", ""),
    ]  # fmt: skip
    assert guard.counters == {"events": 10, "readings": 4, "alarms": 1, "sinks.emitted.Collecting": 4}


def test_nudge_once_and_recorded(events_monitor: Monitor, tmp_path: Path) -> None:
    guard = Guard(events_monitor, on_alarm="nudge", record=tmp_path)
    with guard.run("x") as run:
        fail(run)
        text = run.nudge()
        assert text is not None and "step 2" in text
        assert run.nudge() is None
        assert run.stopped is None
    assert '"kind":"injected"' in (tmp_path / f"{run.id}.jsonl").read_text()


def test_stop(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor, on_alarm="stop")
    with guard.run("x", run_id="mine") as run:
        run.check()
        with pytest.raises(AgentStopped, match=r"run mine, step 2: stopped at 97% risk of failure"):
            fail(run).check()
    with guard.run("x") as other:
        other.check()


@pytest.mark.parametrize(
    ("answer", "nudged", "stopped"),
    [
        ("nudge", True, False),
        ("stop", False, True),
        ("Look at the id.", True, False),
        (None, False, False),
        (7, False, False),
    ],
)
def test_a_function_decides(events_monitor: Monitor, answer: Any, nudged: bool, stopped: bool) -> None:
    alarms: list[Alarm] = []

    def decide(alarm: Alarm) -> Any:
        alarms.append(alarm)
        return answer

    async def decide_later(alarm: Alarm) -> Any:
        return decide(alarm)

    for function in (decide, decide_later):
        guard = Guard(events_monitor, on_alarm=function)
        with guard.run("x", run_id="r", agent="boss") as run:
            fail(run)
            assert (run.nudge() is not None, run.stopped is not None) == (nudged, stopped)
    assert [(a.run, a.agent_path, a.agent, a.reading.level) for a in alarms] == [("r", "main", "boss", Level.ALARM)] * 2


def test_a_function_that_raises_or_hangs(events_monitor: Monitor, caplog: pytest.LogCaptureFixture) -> None:
    def raises(alarm: Alarm) -> None:
        raise SystemExit(3)

    hang = threading.Event()
    for function, counted in ((raises, "failed_callbacks"), (lambda alarm: hang.wait(30), "slow_callbacks")):
        guard = Guard(events_monitor, on_alarm=function)
        began = time.monotonic()
        with guard.run("x") as run:
            fail(run)
            assert run.stopped is None
        assert time.monotonic() - began < 5
        assert guard.counters[counted] == 1
    hang.set()
    assert any("on_alarm raised SystemExit: 3; the agent goes on" in message for message in caplog.messages)


def test_shadow_mode_only_tells(events_monitor: Monitor) -> None:
    sink = Collecting()
    guard = Guard(events_monitor, on_alarm="stop", shadow=True, sinks=[sink])
    with guard.run("x") as run:
        fail(run)
        assert run.stopped is None
        assert run.alarmed
    guard.close()
    assert [w.acted for w in sink.readings] == [""] * 4


def test_what_is_refused(events_monitor: Monitor, tmp_path: Path) -> None:
    write_bundle(tmp_path / "chat", tiny_monitor.parts())
    with pytest.raises(OtherAdapterError, match=r"through adapter tiny_chat.* convert RUNS --adapter tiny_chat"):
        Guard(tmp_path / "chat")
    with pytest.raises(ConfigError, match="neither a monitor nor a folder"):
        Guard(None)
    with pytest.raises(ConfigError, match="say warn, nudge, stop"):
        Guard(events_monitor, on_alarm="halt")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="must be above 0"):
        Guard(events_monitor, max_open_runs=0)
    with pytest.raises(UsageError, match="give it record=FOLDER"):
        Guard(events_monitor).outcome("r", True)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be recorded there"):
        Guard.recording(tmp_path / "file")


def test_events_that_are_none(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor)
    for event, why in (
        ({"run": "r"}, "kind is None, and must be one of task, observed"),
        ({"run": "r", "kind": "shouted"}, "kind is 'shouted'"),
        ({"kind": "said"}, "it has no run"),
        ({"run": 7, "kind": "said"}, "run is 7, and must be a text"),
        ({"run": "r", "kind": "called", "turn": True}, "turn is True, and must be a whole number"),
        ({"run": "r", "kind": "said", "schema": "prefixguard/event/v9"}, "reads prefixguard/event/v1"),
        ([], "an event is a JSON object, not list"),
    ):
        (reading,) = guard.feed(event)  # type: ignore[arg-type]
        assert reading.level is Level.UNKNOWN and reading.unknown_reason is not None and why in reading.unknown_reason
    assert guard.counters == {"unread_events": 7}
    assert guard.open_runs == 0
    assert guard.feed({"run": "r", "kind": "said", "text": "x", "of_a_later_release": 1})[0].level is not Level.UNKNOWN


def test_events_late_twice_and_alone(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor)
    with guard.run("x", run_id="r") as run:
        run.called("find", {}, call_id="c1")
        assert len(run.returned("c1", "ok")) == 1
        assert guard.feed(Event("r", "task", text="x")) == []
        assert run.returned("c1", "ok again") == []
        assert run.returned("c9", "of no call") == []
    assert "came late" in str(run.said("after the end")[0].unknown_reason)
    assert guard.feed(Event("r", "observed", "main/new", text="x"))[0].level is Level.UNKNOWN
    counted = guard.counters
    assert (counted["second_results"], counted["results_without_call"], counted["late_events"]) == (1, 1, 2)
    assert counted["second_tasks"] == 1


def test_an_event_that_comes_twice_is_one_step(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor)
    said = Event("r", "said", text="hello", id="e1")
    assert [len(guard.feed(said)), len(guard.feed(said)), len(guard.feed(Event("r", "said", text="x", id="e2")))] == [
        1,
        0,
        1,
    ]


def test_open_runs_are_bounded(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor, max_open_runs=10)
    first = guard.run("x", run_id="first")
    for n in range(50):
        guard.feed(Event(f"r{n}", "said", text="x"))
    assert guard.open_runs == 10
    assert guard.counters["evicted_runs"] == 41
    assert (
        first.said("x")[0].unknown_reason
        == "the run is over; an event of it came late. Begin a new run under another id"
    )
    idle = Guard(events_monitor, idle_seconds=0.01)
    idle.run("x")
    time.sleep(0.02)
    idle.run("y")
    assert (idle.open_runs, idle.counters["evicted_runs"]) == (1, 1)
    idle.close()
    assert (idle.open_runs, idle.counters["closed_open"]) == (0, 1)


def test_runs_of_one_name_are_two(events_monitor: Monitor, tmp_path: Path) -> None:
    for record in (None, tmp_path):
        guard = Guard(events_monitor, record=record)
        with guard.run("x", run_id="r") as first, guard.run("x", run_id="r") as second:
            assert (first.id, second.id) == ("r", "r-2")
        assert guard.run("x", run_id="r").id == "r-3"
    assert Guard.recording(tmp_path).run("x", run_id="r").id == "r-4"  # of another process


def test_many_threads_and_two_guards(events_monitor: Monitor, tmp_path: Path) -> None:
    """Eight threads, two guards on the same agent: every run has its own readings, whatever the others do."""
    guards = [Guard(events_monitor, record=tmp_path / "a"), Guard(events_monitor, record=tmp_path / "b")]
    found: dict[str, list[Any]] = {}

    def work(n: int) -> None:
        for k in range(5):
            runs = [guard.run(f"task {n}", run_id=f"{n}-{k}") for guard in guards]
            for run in runs:
                fail(run)
                found.setdefault(run.id, []).append([run.reading.to_json() if run.reading else None])
                run.end()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 40
    assert all(one == [found["0-0"][0]] * 2 for one in found.values())
    assert all(guard.counters["alarms"] == 40 and "internal_errors" not in guard.counters for guard in guards)


def test_a_record_that_cannot_be_written_is_said_once(
    events_monitor: Monitor, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guard = Guard(events_monitor, record=tmp_path / "runs")
    run = guard.run("x", run_id="r")
    (tmp_path / "runs" / "r.jsonl").unlink()
    (tmp_path / "runs" / "r.jsonl").mkdir()
    with caplog.at_level(logging.WARNING):
        assert len(run.said("a")) == len(run.said("b")) == 1
        assert guard.outcome("r", True) is False
    assert guard.counters["unrecorded_events"] == 2
    assert sum("cannot be recorded" in message for message in caplog.messages) == 1
    assert guard.counters["outcomes_lost"] == 1


def test_outcomes(tmp_path: Path) -> None:
    from prefixguard import Outcome, parse

    guard = Guard.recording(tmp_path)
    with guard.run("x", run_id="r") as run:
        run.said("y")
    with (tmp_path / "r.jsonl").open("a") as file:
        file.write('{"schema":"prefixg')  # the process died here
    assert Guard.recording(tmp_path).outcome("r", False)
    assert Guard.recording(tmp_path).outcome("r", True)  # somebody looked again
    assert not guard.outcome("never", True)
    (read,) = parse(tmp_path, "events")
    assert (read.outcome, len(read.records)) == (Outcome.SUCCESS, 1)


def test_an_outcome_is_that_of_the_run_that_the_guard_began(tmp_path: Path) -> None:
    """An id that is used again, by the same program started twice, labels the new run and leaves the old one alone."""
    from prefixguard import parse

    for ended in (True, False, "success"):
        with Guard.recording(tmp_path) as guard:
            with guard.run("Book", run_id="run-1") as run:
                run.said("x")
            assert guard.outcome("run-1", ended)
            assert not guard.outcome("run-1", None)  # type: ignore[arg-type]
            assert not guard.outcome("run-1", 2)  # type: ignore[arg-type]
            assert guard.counters["outcomes_lost"] == 2
    found = {one.run_id: str(one.outcome) for one in parse(tmp_path, "events")}
    assert found == {"run-1/main": "success", "run-1-2/main": "failure", "run-1-3/main": "success"}


def test_each_guard_has_its_own_current_run(events_monitor: Monitor) -> None:
    from prefixguard.integrations.watched_run import current_run

    a, b = Guard(events_monitor), Guard(events_monitor)
    with a.run("planner") as outer, b.run("worker") as inner:
        assert (current_run(a), current_run(b)) == (outer, inner)
        with a.run("below") as below:
            assert (current_run(a), current_run(b)) == (below, inner)
        assert current_run(a) is outer
    assert current_run(a) is current_run(b) is None
    outer.__exit__(None, None, None)


def test_a_folder_that_is_gone_stops_no_judging(events_monitor: Monitor, tmp_path: Path) -> None:
    guard = Guard(events_monitor, record=tmp_path / "runs")
    (tmp_path / "runs").rmdir()
    with guard.run("Book") as run:
        assert fail(run).alarmed
    assert guard.counters["unrecorded_events"] == 11
    assert not guard.outcome(run.id, True)


def test_values_that_have_no_text(events_monitor: Monitor, tmp_path: Path) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    guard = Guard(events_monitor, record=tmp_path)
    with guard.run([{"type": "text", "text": "hi"}], run_id=7) as run:  # type: ignore[arg-type]
        for value in (10**5000, Mute(), {"a": Mute()}, object(), "\ud800", b"\xff"):
            run.returned(run.called("find", {"n": value}), value)
            run.said(value)
        run.delegate(5).end()  # type: ignore[arg-type]
        run.called(Mute(), {})  # type: ignore[arg-type]
    assert "internal_errors" not in guard.counters
    with pytest.raises(ConfigError, match="on_alarm is 3"):
        Guard(events_monitor, on_alarm=3)  # type: ignore[arg-type]


def test_a_function_that_hangs_holds_up_no_event_loop(events_monitor: Monitor) -> None:
    """While the function of one agent thinks, other tasks go on; the agent waits for the answer before it goes on."""
    ticks: list[float] = []

    async def decide(alarm: Alarm) -> str:
        await asyncio.sleep(0.3)
        return "stop"

    async def tick() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def host() -> tuple[int, str | None]:
        ticking = asyncio.create_task(tick())
        async with Guard(events_monitor, on_alarm=decide).run("x") as run:
            await asyncio.sleep(0.02)
            fail(run)
            before = len(ticks)
            await run.answered()
            ticking.cancel()
            return len(ticks) - before, run.stopped

    during, stopped = asyncio.run(host())
    assert during >= 3 and stopped is not None


def test_a_function_may_ask_its_guard(events_monitor: Monitor) -> None:
    """The function of the alarm looks at the run, and waits for nobody."""
    found: list[Any] = []

    def decide(alarm: Alarm) -> str:
        found.append((guard.stopped(alarm.run), guard.take_nudge(alarm.run)))
        return "stop"

    guard = Guard(events_monitor, on_alarm=decide)
    with guard.run("x") as run:
        assert fail(run).stopped is not None
    assert found == [(None, None)] and "slow_callbacks" not in guard.counters
