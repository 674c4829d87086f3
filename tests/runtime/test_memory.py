"""Memory of sessions, measured: the allocator's and the system's own counts, not a sum of parts."""

import gc
import os
import sys
import tracemalloc
from pathlib import Path

import pytest
from tiny_monitor import call, failing_run, result

from prefixguard.runtime import Level, Monitor

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


@pytest.mark.parametrize("steps", [30, 150])
def test_a_long_run_needs_no_more(monitor: Monitor, steps: int) -> None:
    """Many calls, all different, with new words and failing tools: everything that a session remembers is full."""
    sessions = 3
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        kept = [monitor.start() for _ in range(sessions)]
        for session in kept:
            for i in range(steps):
                session.observe(call(i, f"tool{i}", f'{{"id": {i}}}', f"text {i}"))
                session.observe(result(i, " ".join(f"word{i}x{j}" for j in range(80))))
        mean = (tracemalloc.get_traced_memory()[0] - before) / sessions
    finally:
        tracemalloc.stop()
    print(f"{mean:,.0f} bytes a session after {steps} steps")  # noqa: T201
    assert mean <= LIMIT
