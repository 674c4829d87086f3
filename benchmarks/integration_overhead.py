"""What a guard costs its host: processor time a step, and how long the event loop is held up.

    python benchmarks/integration_overhead.py

32 runs at once in one event loop, 60 steps each, without a guard, with one that records, and with two that record and
judge: by a network of a few weights that nobody trained, and by boosted trees trained on 160 recorded practice runs;
five rounds, the order turned each time. Differences are those of one round, medians over rounds. The lag is how
late a task that sleeps 1 ms wakes, 99th percentile.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support"), str(ROOT / "examples" / "model")]

import practice
import tiny_monitor

import prefixguard
from prefixguard.bundle import write_bundle
from prefixguard.integrations import Guard
from prefixguard.runtime import load
from prefixguard.stepview import load_adapter

RUNS, STEPS = 32, 60
RESULT = json.dumps({"orders": [{"id": f"A{n}", "city": "Bern", "price": 17.5 * n} for n in range(12)]})


async def agent(guard: Guard | None, number: int) -> None:
    """What an agent does between two calls of a model: nothing but waiting."""
    run = None if guard is None else guard.run(f"task {number}")
    for step in range(STEPS):
        await asyncio.sleep(0.002)
        if run is not None:
            call = run.called("find_orders", {"customer": number, "page": step}, text="I look at the next page.")
            run.returned(call, RESULT)
    if run is not None:
        run.end()


async def lags(found: list[float], stop: asyncio.Event) -> None:
    while not stop.is_set():
        began = time.perf_counter()
        await asyncio.sleep(0.001)
        found.append(time.perf_counter() - began - 0.001)


async def once(guard: Guard | None) -> tuple[float, float]:
    """Processor seconds, and the lag's 99th percentile in seconds."""
    found: list[float] = []
    stop = asyncio.Event()
    watcher = asyncio.create_task(lags(found, stop))
    began = time.process_time()
    await asyncio.gather(*(agent(guard, number) for number in range(RUNS)))
    spent = time.process_time() - began
    stop.set()
    await watcher
    return spent, statistics.quantiles(found, n=100)[98]


def trained(folder: Path) -> prefixguard.Monitor:
    """Boosted trees, trained on practice runs that a guard recorded."""
    with Guard.recording(folder / "runs") as guard:
        for one in practice.practice_runs(160):
            with guard.run(one.task, run_id=one.task_id, task_id=one.task_id) as run:
                for reply in one.script:
                    for tool, given in reply["calls"]:
                        try:
                            result: object = getattr(practice, tool)(**given)
                        except LookupError as exc:
                            result = exc
                        run.returned(run.called(tool, given, text=reply["text"]), result)
                    if not reply["calls"]:
                        run.said(reply["text"])
            guard.outcome(one.task_id, success=one.success)
    config = prefixguard.TrainConfig(backend="gbdt", budget=0.2)
    return load(prefixguard.train(folder / "runs", out=folder / "trained", config=config).path)


def measure(rounds: int) -> dict[str, Any]:
    """Medians over rounds: microseconds of processor time a step more than without, and lags in ms."""
    found: dict[str, list[tuple[float, float]]] = {"without": [], "recording": [], "judging": [], "trained": []}
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "m", tiny_monitor.parts(adapter=load_adapter("events").to_bytes()))
        monitors = {"judging": load(Path(folder) / "m"), "trained": trained(Path(folder))}
        for n in range(rounds):
            names = list(found) if n % 2 else list(found)[::-1]
            for name in names:
                guard = None if name == "without" else Guard(monitors.get(name), record=f"{folder}/{name}-{n}")
                found[name].append(asyncio.run(once(guard)))
    rows = {}
    for name, each in found.items():
        more = [1e6 * (a[0] - b[0]) / (RUNS * STEPS) for a, b in zip(each, found["without"], strict=True)]
        rows[name] = {
            "processor_us_a_step": round(statistics.median(more), 1),
            "lag_p99_ms": round(1000 * statistics.median(lag for _, lag in each), 2),
        }
    return {"runs": RUNS, "steps": STEPS, "rounds": rounds, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "integration_overhead.json")
    given = parser.parse_args()
    found = measure(given.rounds)
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
