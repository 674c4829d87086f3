"""Steps a second with one, two and eight threads on one monitor, each thread with runs of its own.

    python benchmarks/threads.py MONITOR [MONITOR ...] [--seconds 1.0] [--rounds 5] [--json out.json]

Each round measures every number of threads, one after the other, so that what else the machine does falls on all of
them alike; what is told is the median over rounds, and the ratio to one thread as the median of the rounds' ratios. A
step is a call and its result of about 50 words, as adapters for chat histories read them, with reasons where its level
asks for them. Under Python's global lock more threads cannot be faster in Python's own part; the law is that they are
not slower.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

from latency import RUN_LENGTH, events_for, machine, words_of

from prefixguard.runtime import Monitor, load

THREADS = (1, 2, 8)


def steps_a_second(monitor: Monitor, runs: list[list[Any]], n_threads: int, seconds: float) -> float:
    """Readings of all threads together, over the seconds that they ran."""
    done = [0] * n_threads
    ready = threading.Barrier(n_threads + 1)
    stop = threading.Event()

    def work(which: int) -> None:
        ready.wait()
        i = which
        while not stop.is_set():
            session = monitor.start()
            for event in runs[i % len(runs)]:
                done[which] += len(session.observe(event))
            i += n_threads

    threads = [threading.Thread(target=work, args=(which,)) for which in range(n_threads)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = perf_counter()
    stop.wait(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(done) / (perf_counter() - began)


def measure(monitor: Monitor, seconds: float, rounds: int) -> dict[str, Any]:
    way = events_for(monitor)
    if way is None:
        raise SystemExit(f"{monitor.bundle.adapter.name}: no way to say a step to this adapter is known here")
    draw = words_of(monitor.bundle.vocabulary)
    runs = [[event for i in range(RUN_LENGTH) for event in way(i, draw(50))] for _ in range(16)]
    told = [{n: steps_a_second(monitor, runs, n, seconds) for n in THREADS} for _ in range(rounds)]
    return {
        "monitor": monitor.bundle.id,
        "kind": monitor.bundle.kind,
        "steps_a_second": {n: round(statistics.median(one[n] for one in told)) for n in THREADS},
        "ratio_to_one_thread": {n: round(statistics.median(one[n] / one[1] for one in told), 3) for n in THREADS},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("monitors", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=1.0, help="a round's length for each number of threads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    options = parser.parse_args()
    results = [measure(load(path), options.seconds, options.rounds) for path in options.monitors]
    on = machine()
    print(f"{on['cpu']}, load {on['load']}, Python {on['python']}")
    print(f"{'kind':<10} {'threads':>7} {'steps/s':>9} {'ratio':>7}")
    for result in results:
        for n in THREADS:
            rate, ratio = result["steps_a_second"][n], result["ratio_to_one_thread"][n]
            print(f"{result['kind']:<10} {n:>7} {rate:>9,} {ratio:>7.2f}")
    if options.json:
        options.json.write_text(json.dumps({"machine": on, "monitors": results}, indent=2) + "\n")


if __name__ == "__main__":
    sys.exit(main())
