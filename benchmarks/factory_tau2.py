"""Real runs of tau2-bench retail, executed again: how many drift, agree with their record, and get a losing write.

    python benchmarks/factory_tau2.py RESULTS --python INTERPRETER [--out benchmarks/results]

RESULTS: a file or folder of results of tau2-bench. The figures go into factory_replay.json and its page. A losing write
is the first one after which the reference writes that were not made yet no longer reach the goal.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from factory_replay import write_page

from prefixguard.errors import ReplayDrift
from prefixguard.factory import Skips
from prefixguard.factory.contrast import candidates, first_cause
from prefixguard.factory.environments import open_environment, recorded_runs


def measure(results: Path, python: str) -> dict[str, Any]:
    world, skips, found, places = open_environment("tau2-retail", python), Skips(), Counter[str](), list[float]()
    begin = time.perf_counter()
    for run in recorded_runs(results, world, skips):  # type: ignore[arg-type]
        found["runs"] += 1
        try:
            world.replay(run, len(world.decisions(run)))
        except ReplayDrift as exc:
            found["drift"] += 1
            print(exc, flush=True)
            continue
        found[f"{run.run['outcome']}, environment says {world.verify()}"] += 1
        if run.run["outcome"] == world.verify() == "failure":
            cause = first_cause(candidates(world, run, world.corrections(run), rolls=1, salt="b"), 0.5)
            found["losing write" if cause else "no write loses (an omission)"] += 1
            if cause is not None:
                places.append(cause.step / len(run.records()))
        if found["runs"] % 50 == 0:
            print(found["runs"], round(time.perf_counter() - begin), flush=True)
    world.close()
    left = {f"left out: {reason}": count for reason, count in skips.counts.items()}
    middle = round(statistics.median(places), 3) if places else None
    seconds = round(time.perf_counter() - begin)
    return {**found, **left, "median position of the losing write": middle, "seconds": seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--python", required=True)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    path = options.out / "factory_replay.json"
    measured = measure(options.results, options.python)
    path.write_text(json.dumps({**json.loads(path.read_text()), "tau2": measured}, indent=1) + "\n")
    write_page(options.out)


if __name__ == "__main__":
    main()
