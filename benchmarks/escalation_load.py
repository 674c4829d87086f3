"""What the escalation tier costs `observe` when its endpoint is down: many sessions at once, with it and without.

    python benchmarks/escalation_load.py [MONITOR] [--sessions 10000] [--events 16] [--rounds 3] [--json out.json]

All sessions are open at once, on one thread, and take their events in turn (session 1 its first event, session 2 its
first event, ...). They are runs of the simulated shop. Rows, each played `--rounds` times in turn:

    without escalation    the monitor alone
    default policy        asks where the risk passes the watch mark
    every step            a question at every step of every run, budgets off: the worst a policy can do

"around" is the part of an observe that is not the monitor's own work, by the latency that its readings state: what the
tier does in the caller's thread, measured within the same call, so that other work on the machine disturbs it least.

The endpoint is a real one that is dead: a loopback port where nobody listens, asked by the real client with its
retries and its circuit breaker; or (`--silent`) one that takes connections and never answers.
"""

from __future__ import annotations

import argparse
import gc
import json
import socket
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import perf_counter, perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
from latency import machine
from memory import resident
from numpy.typing import NDArray

from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.client import AsyncClient
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.llm_auditor import LlmAuditor
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.session import Escalator
from prefixguard.runtime import Monitor, load
from prefixguard.simulation import generate

MONITOR = Path(__file__).parent.parent / "monitors" / "lab"
DISTINCT_RUNS = 400
EVERY_STEP = EscalationPolicy(mark=1e-9, every=1, gap=1, calls_a_run=None, calls_a_minute=None)
Start = Callable[[], Any]


def played(start: Start, runs: list[list[Any]], sessions: int, events: int) -> NDArray[np.float64]:
    """Microseconds of every observe that gave a reading, on the clock, of the processor, and what of the clock is
    not the monitor's own (its readings say that): float (n, 3)."""
    opened = [start() for _ in range(sessions)]
    times = []
    gc.collect()
    for place in range(events):
        for number, session in enumerate(opened):
            run = runs[number % len(runs)]
            if place >= len(run):
                continue
            event = run[place]
            own, began = thread_time_ns(), perf_counter_ns()
            readings = session.observe(event)
            took = (perf_counter_ns() - began, thread_time_ns() - own)
            if readings:
                monitors = sum(getattr(reading, "reading", reading).latency_us for reading in readings)
                times.append((*took, took[0] - 1000 * monitors))
    return np.array(times, np.float64) / 1000


def summary(times: list[NDArray[np.float64]]) -> dict[str, Any]:
    """Quantiles of all rounds together, and p99 of each. The processor's time is what the thread itself did; other work
    on the machine does not lengthen it as much."""
    each = [float(np.percentile(one[:, 0], 99)) for one in times]
    (p50, p99, p999), (own_p50, own_p99, _), (around_p50, around_p99, _) = np.percentile(
        np.concatenate(times), [50, 99, 99.9], axis=0
    ).T
    return {
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "p999_us": round(float(p999), 1),
        "cpu_p50_us": round(float(own_p50), 1),
        "cpu_p99_us": round(float(own_p99), 1),
        "around_p50_us": round(float(around_p50), 1),
        "around_p99_us": round(float(around_p99), 1),
        "p99_us_of_rounds": [round(one, 1) for one in each],
        "n": sum(map(len, times)),
    }


def escalated(
    monitor: Monitor, policy: EscalationPolicy, url: str, runs: list[list[Any]], sessions: int, events: int
) -> tuple[NDArray[np.float64], dict[str, Any]]:
    """One round with the tier, and its ledger after the close."""
    breaker = CircuitBreaker()
    client = AsyncClient(Endpoint("nobody", base_url=url, timeout=5.0), breaker=breaker)
    escalator = Escalator(monitor, LlmAuditor(client), policy, breaker=breaker)
    times = played(escalator.start, runs, sessions, events)
    counts = escalator.close(drain=False).as_json()
    if counts["offered"] != counts["answered"] + counts["cached"] + counts["dropped"] + counts["failed"]:
        raise SystemExit(f"questions were lost or counted twice: {counts}")
    return times, counts


def measure(path: Path, sessions: int, events: int, rounds: int, silent: bool) -> dict[str, Any]:
    monitor = load(path)
    runs = [run["messages"] for run in islice(generate(DISTINCT_RUNS, seed=12), DISTINCT_RUNS)]
    policies = {"default policy": EscalationPolicy(), "every step": EVERY_STEP}
    times: dict[str, list[NDArray[np.float64]]] = {"without escalation": [], **{name: [] for name in policies}}
    ledgers: dict[str, list[dict[str, Any]]] = {name: [] for name in policies}
    began = perf_counter()
    with socket.create_server(("127.0.0.1", 0)) if silent else socket.socket() as port:
        if not silent:
            port.bind(("127.0.0.1", 0))  # taken, so that nobody else listens there either
        url = f"http://127.0.0.1:{port.getsockname()[1]}/v1"
        played(monitor.start, runs, min(sessions, 200), events)  # to warm up
        for _ in range(rounds):
            times["without escalation"].append(played(monitor.start, runs, sessions, events))
            for name, policy in policies.items():
                taken, ledger = escalated(monitor, policy, url, runs, sessions, events)
                times[name].append(taken)
                ledgers[name].append(ledger)
    rows: dict[str, dict[str, Any]] = {name: summary(taken) for name, taken in times.items()}
    base = rows["without escalation"]
    for name in policies:
        row = rows[name]
        row["p50_ratio"] = round(row["p50_us"] / base["p50_us"], 3)
        row["p99_ratio"] = round(row["p99_us"] / base["p99_us"], 3)
        row["p99_added_us"] = round(row["p99_us"] - base["p99_us"], 1)
        row["cpu_p99_added_us"] = round(row["cpu_p99_us"] - base["cpu_p99_us"], 1)
        row["ledgers"] = ledgers[name]
    return {
        "monitor": monitor.bundle.id,
        "endpoint": "takes connections, never answers" if silent else "connection refused",
        "machine": machine(),
        "sessions": sessions,
        "events_a_session": events,
        "rounds": rounds,
        "seconds": round(perf_counter() - began, 1),
        "resident_mib": round(resident() / 2**20),
        "rows": rows,
    }


def to_text(result: dict[str, Any]) -> str:
    on = result["machine"]
    lines = [
        f"{on['cpu']}, load {on['load']}, Python {on['python']}; endpoint: {result['endpoint']}",
        f"{result['sessions']:,} sessions open at once on one thread, {result['events_a_session']} events each, "
        f"{result['rounds']} rounds in turn; time of an `observe` that gives a reading",
        "",
        f"{'row':<20} {'p50 us':>9} {'p99 us':>9} {'p99.9 us':>9} {'cpu p50':>9} {'cpu p99':>9} {'around p50':>11} "
        f"{'around p99':>11} {'p50 ratio':>10} {'p99 ratio':>10} {'added at p99':>13} {'(cpu)':>9} {'n':>9}",
    ]
    for name, row in result["rows"].items():
        ratios = (
            f"{row['p50_ratio']:>10.3f} {row['p99_ratio']:>10.3f} {row['p99_added_us']:>10.1f} us "
            f"{row['cpu_p99_added_us']:>6.1f} us"
            if "p50_ratio" in row
            else f"{'1':>10} {'1':>10} {'':>23}"
        )
        lines.append(
            f"{name:<20} {row['p50_us']:>9.1f} {row['p99_us']:>9.1f} {row['p999_us']:>9.1f} {row['cpu_p50_us']:>9.1f} "
            f"{row['cpu_p99_us']:>9.1f} {row['around_p50_us']:>11.1f} {row['around_p99_us']:>11.1f} {ratios} "
            f"{row['n']:>9,}"
        )
    lines += ["", "ledgers, a round each: offered = answered + cached + dropped + failed, exactly"]
    for name, row in result["rows"].items():
        for told in row.get("ledgers", ()):
            why = {**told["dropped_by_reason"], **told["failed_by_reason"]}
            lines.append(
                f"{name:<20} {told['offered']:,} = {told['answered']} + {told['cached']} + {told['dropped']:,} + "
                f"{told['failed']}; " + ", ".join(f"{reason} {n:,}" for reason, n in why.items())
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitor", type=Path, nargs="?", default=MONITOR)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--events", type=int, default=16, help="events that each session takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--silent", action="store_true", help="an endpoint that takes connections and never answers")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    result = measure(options.monitor, options.sessions, options.events, options.rounds, options.silent)
    print(to_text(result))
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
