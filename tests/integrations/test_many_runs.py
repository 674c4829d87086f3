"""Guards among many: thousands of open runs, forks, events in any order, and events that no monitor was made from."""

from __future__ import annotations

import os
import random
import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import tiny_monitor
from watched import fail

from prefixguard import parse
from prefixguard.bundle import write_bundle
from prefixguard.integrations import Guard
from prefixguard.runtime import Level, Monitor, load
from prefixguard.stepview import FillCounts, ReadReport, load_adapter, read_runs


def test_ten_thousand_open_runs(events_monitor: Monitor) -> None:
    """Each is judged by itself; one more closes the one that was idle longest, and no other."""
    guard = Guard(events_monitor, max_open_runs=10_000)
    called = {"kind": "called", "call_id": "c", "tool": "find", "arguments": {"id": "A1"}}
    for n in range(10_001):
        guard.feed({"run": f"r{n}", **called})
    assert (guard.open_runs, guard.counters["evicted_runs"]) == (10_000, 1)
    back = {"kind": "returned", "call_id": "c", "text": "error: not found", "is_error": True}
    assert "run is over" in str(guard.feed({"run": "r0", **back})[0].unknown_reason)
    assert {guard.feed({"run": f"r{n}", **back})[0].level for n in (1, 5_000, 10_000)} == {Level.WATCH}


def test_children_of_forks_have_guards_of_their_own(events_monitor: Monitor) -> None:
    """Whatever a thread of the parent does as it forks, runs of the child are watched."""
    guard, stop = Guard(events_monitor, on_alarm="nudge"), threading.Event()  # what is logged waits for stderr's lock

    def work() -> None:
        while not stop.is_set():
            with guard.run("x") as run:
                fail(run)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(15):
            child = os.fork()
            if child == 0:
                signal.alarm(20)  # a lock that nobody gives back
                with guard.run("x") as run:
                    os._exit(0 if fail(run).alarmed else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_events_in_any_order_twice_and_without_end(events_monitor: Monitor, tmp_path: Path) -> None:
    """Events of ten runs that come mixed, some twice, some never: no run has a step of another one."""
    rng, guard = random.Random(3), Guard(events_monitor, record=tmp_path)
    mixed: list[dict[str, Any]] = []
    for run in range(10):
        for n in range(6):
            call = {"run": f"r{run}", "call_id": f"{n}", "agent_path": f"main{f'/a#{run}' if n > 3 else ''}"}
            mixed.append({**call, "kind": "called", "tool": "find", "arguments": {"of": run}})
            mixed.append({**call, "kind": "returned", "text": f"of {run}"})
        mixed.append({"run": f"r{run}", "kind": "ended"})
    rng.shuffle(mixed)
    for event in mixed + rng.sample(mixed, 60):
        guard.feed(event)
    guard.close()
    assert guard.counters.get("internal_errors", 0) == 0
    for run in parse(tmp_path, "events"):
        mine = run.run_id.partition("/")[0].removeprefix("r")
        for step in run.records:
            assert step.arguments in ("", f'{{"of":{mine}}}') and step.result in ("", f"of {mine}")


def test_what_a_monitor_was_made_from_and_does_not_come_is_named(tmp_path: Path) -> None:
    """Without the results of calls readings are UNKNOWN and name the field; with the next result they are back."""
    guard = Guard.recording(tmp_path / "runs")
    for n in range(30):
        with guard.run(f"task {n}") as run:
            for k in range(4):
                run.returned(run.called("find", {"id": f"A{k}"}, text="I look."), "it is in Bern")
    report, counts = ReadReport(), FillCounts()
    for read in read_runs(tmp_path / "runs", load_adapter("events"), report=report):
        counts.add(read.records)
    parts = tiny_monitor.parts(adapter=load_adapter("events").to_bytes())
    write_bundle(tmp_path / "m", replace(parts, info={**parts.info, "reading": report.reading(counts)}))
    watching = Guard(load(tmp_path / "m"))
    with watching.run("x") as run:
        found = []
        for n in range(12):
            found += run.returned(run.called("find", {"id": f"A{n}"}, text="I look."), "")
        assert found[0].level is not Level.UNKNOWN
        assert found[-1].level is Level.UNKNOWN and "the results of calls: nothing for" in str(found[-1].unknown_reason)
        (back,) = run.returned(run.called("find", {}, text="I look."), "it is in Bern")
        assert back.level is not Level.UNKNOWN
