"""The factory in worlds of others, without a model; the figures go into factory_replay.json and its page.

    python benchmarks/factory_worlds.py --tau2 INTERPRETER --results RESULTS [--textworld INTERPRETER] [--out FOLDER]

tau2-bench retail: recorded runs (RESULTS: a file or folder) executed again: how many drift, agree with their record,
and get a losing write, the first one after which the reference writes that were not made yet no longer reach the goal.
TextWorld: walkthroughs, and with a fault of each kind at each command. A command that was left out can still be made,
so it loses with the next one; after the last there is none, and replay abstains.
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
from prefixguard.factory import LabelledRun, Skips
from prefixguard.factory.contrast import candidates, first_cause
from prefixguard.factory.environments import open_environment, recorded_runs
from prefixguard.trace import Outcome


def tau2(results: Path, python: str) -> dict[str, Any]:
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
        found[f"recorded {run.run['outcome']}, environment says {world.verify()}"] += 1
        if run.run["outcome"] == world.verify() == "failure":
            cause = first_cause(candidates(world, run, world.corrections(run), rolls=1, salt="b"), 0.5)
            found["losing write" if cause else "no write loses (an omission)"] += 1
            if cause is not None:
                places.append(cause.step / len(run.records()))
    world.close()
    left = {f"left out: {reason}": count for reason, count in skips.counts.items()}
    middle = round(statistics.median(places), 3) if places else None
    seconds = round(time.perf_counter() - begin)
    return {**found, **left, "median position of the losing write": middle, "seconds": seconds}


def textworld(python: str, games: int) -> dict[str, Any]:
    world, found = open_environment("textworld", python), Counter[str]()
    begin = time.perf_counter()
    for task in world.tasks(games):
        world.reset(task, "0")
        found["games"] += 1
        found["won by the walkthrough"] += world.continuation("") is Outcome.SUCCESS
        run = LabelledRun(world.trace(), "safe", provenance=world.provenance())
        world.replay(run, len(world.decisions(run)))
        found["played again without drift"] += 1
        for place, decision in enumerate(world.decisions(run)):
            for kind, action in sorted((decision.faults or {}).items()):
                world.replay(run, place)
                world.step(action)
                lost = world.continuation("") is Outcome.FAILURE
                found[f"{kind}: put in"] += 1
                found[f"{kind}: lost"] += lost
                if lost and kind == "left_out":  # it can be done until the next command was made
                    wrong = LabelledRun(world.trace(), "natural", provenance=world.provenance())
                    played = candidates(world, wrong, world.corrections(wrong), rolls=1, salt="b")
                    cause = first_cause(played, 0.5)
                    found["left_out: replay names the next command"] += cause is not None and cause.place == place + 1
    world.close()
    return {**found, "seconds": round(time.perf_counter() - begin)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tau2", metavar="INTERPRETER")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--textworld", metavar="INTERPRETER")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    measured = {}
    if options.tau2:
        measured["tau2"] = tau2(options.results, options.tau2)
    if options.textworld:
        measured["textworld"] = textworld(options.textworld, options.games)
    path = options.out / "factory_replay.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **measured}, indent=1) + "\n")
    write_page(options.out)


if __name__ == "__main__":
    main()
