"""Memory of sessions, measured: the allocator's and the system's own counts, not a sum of parts."""

import gc
import os
import sys
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from tiny_monitor import call, failing_run, result, user

from prefixguard.bundle import write_bundle
from prefixguard.runtime import Level, Monitor, Session, load

LIMIT = 32 * 1024


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_ten_thousand_sessions_at_once(monitor: Monitor) -> None:
    """All have taken a step, and each still judges for itself; the process grows by no more than they may take."""
    n = 10_000
    events = failing_run()[:3]
    before = resident()
    sessions = [monitor.start() for _ in range(n)]
    for session in sessions:
        for event in events:
            session.observe(event)
    mean = (resident() - before) / n
    print(f"{mean:,.0f} resident bytes a session, {n:,} open")  # noqa: T201
    assert mean <= 1.1 * LIMIT  # the allocator rounds up
    for i in (0, n // 2, n - 1):
        levels = [r.level for e in failing_run()[3:] for r in sessions[i].observe(e)]
        assert levels == [Level.WATCH, Level.ALARM, Level.ALARM, Level.ALARM]


def resident() -> int:
    """Bytes of memory that the process holds now."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def own_bytes(session: Session, shared: object) -> int:
    """Bytes of all objects that only the session leads to; what `shared` leads to is not counted."""
    seen = set(map(id, reachable(shared)))
    return sum(size(thing) for thing in reachable(session, seen))


def reachable(start: object, seen: set[int] | None = None) -> list[object]:
    """All objects that the collector finds from `start` on, classes, modules and functions left out."""
    seen = set() if seen is None else set(seen)
    found, waiting = [], [start]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or isinstance(thing, type | ModuleType | FunctionType):
            continue
        seen.add(id(thing))
        found.append(thing)
        waiting += gc.get_referents(thing)
    return found


def size(thing: object) -> int:
    borrowed = isinstance(thing, np.ndarray) and thing.base is not None
    return sys.getsizeof(thing) + (thing.nbytes if borrowed else 0)  # type: ignore[attr-defined]


def test_the_measure_sees_arrays_and_texts(monitor: Monitor) -> None:
    """So that the tests below cannot pass by measuring nothing."""
    session = monitor.start()
    small = own_bytes(session, monitor)
    assert small > 15_872  # the filter of words alone
    session.observe(user("x" * 1500))
    assert own_bytes(session, monitor) >= small + 1500


@pytest.fixture(params=["onnx", *tiny_automaton.variants()])
def any_monitor(request: pytest.FixtureRequest, tmp_path: Path) -> Monitor:
    parts = {"onnx": tiny_monitor.parts(), **tiny_automaton.variants()}
    write_bundle(tmp_path / "b", parts[request.param])
    return load(tmp_path / "b")


@pytest.mark.parametrize("steps", [1, 30, 300])
def test_a_long_run_needs_no_more(any_monitor: Monitor, steps: int) -> None:
    """Many calls, all different, with new words and failing tools: everything that a session remembers is full."""
    session = any_monitor.start()
    for i in range(steps):
        session.observe(call(i, f"tool{i}", f'{{"id": {i}}}', f"text {i}"))
        session.observe(result(i, "Error: " + " ".join(f"word{i}x{j}" for j in range(80))))
    taken = own_bytes(session, any_monitor)
    print(f"{taken:,} bytes after {steps} steps")  # noqa: T201
    assert taken <= LIMIT
