"""The factory in worlds of others, without a model.

    python benchmarks/factory_worlds.py --tau2 INTERPRETER --results RESULTS [--read STEPS] [--textworld INTERPRETER]

tau2-bench retail: recorded runs (RESULTS: a file or folder) executed again: how many drift, agree with their record,
and get a losing write, the first one after which the reference writes that were not made yet no longer reach the goal.
Beside it, what is right without any work: the first write of a run, and the last. STEPS: JSON lines {"run_id", "step"}
of what a reader held for the decisive step of some of these runs, without the label.
TextWorld: walkthroughs, and with a fault of each kind at each command. A command that was left out can still be made,
so it loses with the next one; after the last there is none, and replay abstains.
Writes factory_worlds.json and its page; what is not measured is kept as it was.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import Any

from prefixguard.errors import ReplayDrift
from prefixguard.factory import LabelledRun, Skips
from prefixguard.factory.contrast import candidates, point_of_no_return
from prefixguard.factory.environments import RemoteEnvironment, open_environment, recorded_runs
from prefixguard.trace import Outcome


def tau2(results: Path, python: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The counts, and the step of each losing write by run."""
    world, skips, found, places = open_environment("tau2-retail", python), Skips(), Counter[str](), list[float]()
    assert isinstance(world, RemoteEnvironment)
    steps, begin = dict[str, int](), time.perf_counter()
    for run in recorded_runs(results, world, skips):
        found["runs"] += 1
        try:
            world.replay(run, len(world.decisions(run)))
        except ReplayDrift as exc:
            found["drift"] += 1
            print(exc, flush=True)
            continue
        outcome = world.verify()
        found["agree with their record"] += run.run["outcome"] == outcome
        found[f"recorded {run.run['outcome']}, environment says {outcome}"] += 1
        if run.run["outcome"] == outcome == "failure":
            last = point_of_no_return(candidates(world, run, world.corrections(run), rolls=1, salt="b"))
            found["losing write" if last else "no write loses (an omission)"] += 1
            if last is not None:
                steps[run.run_id] = last.step
                places.append(last.step / len(run.records()))
                writes = [one.step for one in world.decisions(run) if is_write(one.action)]
                found["of those the first write of the run"] += last.step == writes[0]
                found["of those the last write of the run"] += last.step == writes[-1]
                found["of those the only write of the run"] += len(writes) == 1
    world.close()
    left = {f"left out: {reason}": count for reason, count in skips.counts.items()}
    middle = round(statistics.median(places), 3) if places else None
    seconds = round(time.perf_counter() - begin)
    return {**found, **left, "median position of the losing write": middle, "seconds": seconds}, steps


def is_write(action: Any) -> bool:
    """Whether it is a tool of retail that changes orders or users."""
    return str(action.get("tool", "")).startswith(("cancel_", "exchange_", "modify_", "return_"))


def reader(path: Path, steps: dict[str, int]) -> dict[str, Any]:
    """How far what a reader named is from the losing write, in steps."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    off = [row["step"] - steps[row["run_id"]] for row in rows]
    return {
        "runs read": len(off),
        "the same step": sum(one == 0 for one in off),
        "at most one step away": sum(abs(one) <= 1 for one in off),
        "earlier": sum(one < 0 for one in off),
        "later": sum(one > 0 for one in off),
        "most steps away": max(map(abs, off)),
        "median of the steps away": statistics.median(map(abs, off)),
        "named it first or as another candidate": sum(
            steps[row["run_id"]] in (row["step"], *row.get("also", ())) for row in rows
        ),
    }


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
                    last = point_of_no_return(candidates(world, wrong, world.corrections(wrong), rolls=1, salt="b"))
                    found["left_out: replay names the next command"] += last is not None and last.place == place + 1
    world.close()
    return {**found, "seconds": round(time.perf_counter() - begin)}


def write_page(out: Path, found: dict[str, Any]) -> None:
    """The tables of all that was measured."""
    lines = [
        "# The factory in worlds of others", "",
        "Made by `python benchmarks/factory_worlds.py`; no model takes part but in the reading. Two cores.",
    ]  # fmt: skip
    titles = {
        "tau2": "tau2-bench retail: recorded runs, executed again",
        "reader": "A reader of the transcripts, beside the losing write",
        "textworld": "TextWorld: games, and faults put into them",
    }
    for name, title in titles.items():
        if name in found:
            rows = [f"| {key} | {value} |" for key, value in found[name].items()]
            lines += ["", f"## {title}", "", *NOTES.get(name, ()), "| | |", "| --- | ---: |", *rows]
    (out / "factory_worlds.md").write_text("\n".join(lines) + "\n")


NOTES = {
    "tau2": [
        "A run is held against the reference that it was judged by. Runs that were lost and end in the right state",
        "were lost for what the agent did not say; where the environment calls a recorded success a failure, the",
        "record does not say what it was judged by.",
        "",
    ],
    "reader": [
        "Drawn with seed 23 of the runs with a losing write. The reader, a capable language model, saw what `replay`",
        "sends to a proposer (steps, texts and results of tools; not the shop's policy, the reference or the label),",
        "and wrote down a step and others that it thought of before it saw any label. The tasks are public, and the",
        "reader may know some. Ten runs by one reader: a look, not a rate. The same steps, each with a correction",
        "that the reader wrote for it afterwards, were then given to `replay` and `annotate` through an endpoint.",
        "`annotate`, with this reader as proposer and verifier, kept the steps that were named first. `replay` gave",
        "eight of the ten the label that the environment gives, and abstained from two, where the reader's correction",
        "did not reach the goal either (another payment method; another action). In two runs the write is what the",
        "simulated customer asked for, and the reference has another reason of the cancellation: such a label blames",
        "the agent for the customer's words.",
        "",
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tau2", metavar="INTERPRETER")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--read", type=Path, metavar="STEPS")
    parser.add_argument("--textworld", metavar="INTERPRETER")
    parser.add_argument("--games", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    path = options.out / "factory_worlds.json"
    measured = json.loads(path.read_text()) if path.exists() else {}
    if options.tau2:
        measured["tau2"], steps = tau2(options.results, options.tau2)
        if options.read:
            measured["reader"] = reader(options.read, steps)
    if options.textworld:
        measured["textworld"] = textworld(options.textworld, options.games)
    path.write_text(json.dumps(measured, indent=1) + "\n")
    write_page(options.out, measured)


if __name__ == "__main__":
    main()
