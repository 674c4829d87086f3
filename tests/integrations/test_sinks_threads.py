"""Between a host and its sinks: every reading is counted once, and no sink is felt by the host or by another sink."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack

import pytest
from http_receiver import HttpReceiver, answer, close_half_way, hang, trickle
from watched import fail, watched

from prefixguard import WebhookSink
from prefixguard.integrations import Guard, WatchedReading
from prefixguard.integrations.sinks import SinkThreads, queue
from prefixguard.integrations.sinks.queue import UndeliveredError
from prefixguard.runtime import Monitor


class Collecting:
    def __init__(self) -> None:
        self.readings: list[WatchedReading] = []
        self.closed = 0

    def emit(self, watched: WatchedReading) -> None:
        self.readings.append(watched)

    def close(self) -> None:
        self.closed += 1


class Dead(Collecting):
    def emit(self, watched: WatchedReading) -> None:
        raise SystemExit("no route\x1b[31m")  # what would end a thread in silence


class Stalled(Collecting):
    def emit(self, watched: WatchedReading) -> None:
        time.sleep(60)


class Partly(Collecting):
    """Takes batches, and loses one reading of each."""

    def emit_all(self, batch: Sequence[WatchedReading]) -> None:
        self.readings += batch
        raise UndeliveredError("one is lost", 1)


def test_every_reading_is_counted_once_and_in_order(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For each sink: put = emitted + failed + dropped + waiting; what fails is said once; a dead one stops no other."""
    monkeypatch.setattr(queue, "MOST_WAITING", 50)
    monkeypatch.setattr(queue, "MOST_AT_ONCE", 10)
    monkeypatch.setattr(queue, "GATHERED", 0.01)
    alive, partly = Collecting(), Partly()
    sinks = alive, Dead(), Stalled(), partly
    threads = SinkThreads(sinks)
    for n in range(100):
        threads.put(watched(step=n))
        time.sleep(0.002)
    threads.close(0.5)
    assert (
        [one.reading.step for one in alive.readings] == [one.reading.step for one in partly.readings] == [*range(100)]
    )
    counted = threads.counters
    dropped, lost = counted.pop("dropped.Stalled"), counted.pop("failed.Partly")
    assert counted == {"emitted.Collecting": 100, "failed.Dead": 100, "emitted.Partly": 100 - lost}
    assert 40 <= dropped < 50 and 10 <= lost < 100
    assert [sink.closed for sink in sinks] == [1, 1, 0, 1]
    said = r"Dead cannot take readings (SystemExit: no route\x1b[31m); further failures are only counted"
    assert [m for m in caplog.messages if "Dead" in m] == [said]
    assert [m for m in caplog.messages if "Stalled" in m] == [
        "Stalled is too slow: 50 readings wait; further readings are dropped and counted",
        f"Stalled did not take all readings within 0.5 s: {100 - dropped} are lost where the process ends now",
    ]
    threads.put(watched())
    assert threads.counters["dropped.Collecting"] == 1
    assert "Collecting is closed; further readings are dropped and counted" in caplog.messages


def test_closing_many_stalled_sinks_takes_no_longer_than_asked(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor, sinks=[Stalled() for _ in range(30)])
    fail(guard.run("x"))
    began = time.monotonic()
    guard.close(0.5)
    assert time.monotonic() - began < 10, "one after the other they take 15 seconds"


def test_a_child_process_has_sinks_of_its_own() -> None:
    """What waits in the parent is sent by the parent; the child's readings are sent by the child."""
    sink = Collecting()
    threads = SinkThreads([sink])
    threads.put(watched(step=1))
    while not sink.readings:
        time.sleep(0.001)
    child = os.fork()
    if child == 0:
        threads.put(watched(step=2))
        threads.close(5)
        os._exit(0 if [one.reading.step for one in sink.readings] == [1, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    threads.close(5)
    assert threads.counters == {"emitted.Collecting": 1}


def test_a_host_does_not_feel_dead_receivers(events_monitor: Monitor) -> None:
    """`feed` with six receivers that hang, trickle, refuse, fail, redirect or go away takes about as long as with none.

    Measured alternately, in processor time of the host's thread and on the wall, as ratios of the least times.
    """
    with ExitStack() as stack:
        plays = (hang, trickle, answer(500), answer(302, Location="http://localhost/"), close_half_way)
        urls = [stack.enter_context(HttpReceiver(play)).url for play in plays]
        with socket.create_server(("127.0.0.1", 0)) as refusing:
            urls.append(f"http://127.0.0.1:{refusing.getsockname()[1]}")
        sinks = [WebhookSink(url, all_readings=True, timeout=2) for url in urls]
        guards = [Guard(events_monitor), Guard(events_monitor, sinks=sinks)]
        took: list[list[list[float]]] = [[], []]
        for n in range(40):
            for guard, times in zip(guards, took, strict=True):
                with guard.run("x", run_id=f"r{n}") as run:
                    began = time.perf_counter(), time.thread_time()
                    fail(run, 10)
                    times.append([time.perf_counter() - began[0], time.thread_time() - began[1]])
        wall, processor = (min(one[i] for one in took[1]) / min(one[i] for one in took[0]) for i in (0, 1))
        assert wall < 3 and processor < 2, (wall, processor)
        assert "internal_errors" not in guards[1].counters and guards[1].counters["readings"] == 400
        guards[1].close(0.1)
    assert sum(thread.name.startswith("prefixguard-Webhook") for thread in threading.enumerate()) <= 6
