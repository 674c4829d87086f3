"""Memory of a monitor and its sessions.

    python benchmarks/memory.py MONITOR [--sessions 10000] [--json out.json]

Each figure is measured, not added up: bytes that the interpreter's allocator hands out for sessions (tracemalloc, which
sees numpy's arrays too), and how much the process grows (resident set) with all sessions open at once.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tracemalloc
from pathlib import Path
from time import perf_counter
from typing import Any

from prefixguard.runtime import Monitor, Session, load
from prefixguard.stepview import StepRecord

LIMIT = 32 * 1024


def step(session: Session, i: int) -> None:
    """One step of 200 words, most of them new."""
    words = " ".join(f"word{i}x{j}" for j in range(200))
    session.observe_record(
        StepRecord(i + 1, "agent", "", f"tool{i % 40}", f'{{"id":"A{i}"}}', "", f"text {i}", words, "error")
    )


def resident() -> int:
    """Bytes of memory the process holds."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def traced(monitor: Monitor, sessions: int, steps: int) -> float:
    """Mean bytes a session after `steps` steps, by the allocator's count."""
    for _ in range(2):  # numpy keeps some freed blocks; let it fill its shelves first
        warm = monitor.start()
        for i in range(steps):
            step(warm, i)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [monitor.start() for _ in range(sessions)]
    for session in kept:
        for i in range(steps):
            step(session, i)
    gc.collect()
    taken = (tracemalloc.get_traced_memory()[0] - before) / sessions
    tracemalloc.stop()
    return taken


def measure(path: Path, sessions: int) -> dict[str, Any]:
    before = resident()
    began = perf_counter()
    monitor = load(path)
    load_ms = (perf_counter() - began) * 1000
    opened = resident() - before
    by_steps = {str(steps): round(traced(monitor, 400 if steps < 20 else 100, steps)) for steps in (0, 1, 5, 40)}
    before = resident()
    began = perf_counter()
    kept = [monitor.start() for _ in range(sessions)]
    start_us = (perf_counter() - began) / sessions * 1e6
    for session in kept:
        step(session, 0)
    grown = resident() - before
    return {
        "monitor": monitor.bundle.id,
        "adapter": monitor.bundle.adapter.name,
        "state_floats": monitor.model.state_size,
        "load_ms": round(load_ms, 1),
        "monitor_bytes_resident": opened,
        "session_bytes_by_steps": by_steps,
        "limit": LIMIT,
        "open_at_once": sessions,
        "start_us": round(start_us, 1),
        "resident_bytes_a_session": round(grown / sessions),
    }


def to_text(result: dict[str, Any]) -> str:
    lines = [
        f"monitor opened in {result['load_ms']} ms, {result['monitor_bytes_resident'] / 2**20:.1f} MiB resident",
        f"{'steps taken':>12} {'bytes a session':>16}   (limit {result['limit']:,})",
    ]
    lines += [f"{steps:>12} {taken:>16,}" for steps, taken in result["session_bytes_by_steps"].items()]
    lines.append(
        f"{result['open_at_once']:,} sessions open at once, each with a step taken: "
        f"{result['resident_bytes_a_session']:,} resident bytes each; {result['start_us']} us to start one"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    result = measure(options.monitor, options.sessions)
    print(to_text(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
