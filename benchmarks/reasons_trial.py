"""Alarms for a reader who judges their reasons without knowing which monitor said them.

    python benchmarks/reasons_trial.py .traces trial.jsonl key.jsonl --seed 22

Boosted trees learn from half of the tasks of each set; of the runs of the other half that alarm, as many as are asked
for are drawn, but none that a reader has judged before (results/reasons_readers.json). An item has the steps up to the
first alarm, and the reasons at it twice, in an order that is drawn: of behaviours, the default, and of features. The
key says which is which, the run and how it ended. Where a budget of 10 % of false alarms is refused, or too few runs
alarm, 20 % and 30 % are tried.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from all_sets import SETS, runs_of

from prefixguard import load
from prefixguard.learn import TrainConfig, featurise, train_corpus
from prefixguard.stepview import StepRecord, load_adapter
from prefixguard.trace import Outcome, Run

BUDGETS = (0.1, 0.2, 0.3)
JUDGED = Path(__file__).parent / "results" / "reasons_readers.json"
#: What is shown of a step, where it is not empty.
SHOWN = ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status")
ORDERS = (("before", "after"), ("after", "before"))


def alarms_of(name: str, traces: Path, seed: int, n: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Items of a set with their keys, in the order in which they were drawn."""
    runs = [run for run in runs_of(traces, name) if run.outcome is not Outcome.UNKNOWN and run.records]
    told = {run.run_id: run.task_id or run.run_id for run in runs}
    tasks = sorted(set(told.values()), key=lambda task: hashlib.sha256(f"{seed}:{task}".encode()).hexdigest())
    taught = frozenset(tasks[: len(tasks) // 2])
    judged = {one["run"] for one in json.loads(JUDGED.read_text("utf-8")) if one["set"] == name}
    new = [run for run in runs if told[run.run_id] not in taught and run.run_id not in judged]
    corpus = featurise(run for run in runs if told[run.run_id] in taught)
    for budget in BUDGETS:
        config = TrainConfig(backend="gbdt", budget=budget)
        with tempfile.TemporaryDirectory() as folder:
            made = train_corpus(corpus, load_adapter(SETS[name]), out=Path(folder) / "m", config=config)
            after, before = load(made.path), load(made.path, reasons="features")
            found = []
            for run in new:
                readings = after.score_run(run.records)
                at = next((i for i, reading in enumerate(readings) if reading.level == "ALARM"), None)
                if at is not None:
                    found.append((run, at, readings[at].outcome_risk, readings[at].reasons))
            print(f"{name}: {len(found)} of {len(new)} runs alarm at {budget:.0%}", file=sys.stderr, flush=True)
            if len(found) < n:
                continue
            items = []
            for run, at, risk, reasons in random.Random(f"{seed}:{name}").sample(found, n):
                said = {"after": reasons, "before": before.score_run(run.records[: at + 1])[at].reasons}
                items.append(item_of(name, run, at, said, {"risk": risk, "budget": budget}, seed))
            return items
    return []


def item_of(
    name: str, run: Run[StepRecord], at: int, said: dict[str, Any], key: dict[str, Any], seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a reader is given of an alarm, and its key. at: place of the step of the alarm."""
    steps = []
    for number, record in enumerate(run.records[: at + 1], 1):
        shown = {field: value for field in SHOWN if (value := getattr(record, field))}
        steps.append({"step": number, **shown})
    order = random.Random(f"{seed}:{name}:{run.run_id}").choice(ORDERS)
    reasons = {f"reasons_{i}": list(said[one]) for i, one in enumerate(order, 1)}
    ended = {"set": name, "run": run.run_id, "outcome": run.outcome.name.lower(), **key}
    return {"alarm_at_step": at + 1, "steps": steps, **reasons}, {**ended, **dict(zip(reasons, order, strict=True))}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("trial", type=Path, help="written: the items")
    parser.add_argument("key", type=Path, help="written: what the items are")
    parser.add_argument("--sets", nargs="*", choices=list(SETS),
                        default=["tau_bench", "webshop_react", "minisweagent", "intercode", "tau2"])  # fmt: skip
    parser.add_argument("--each", type=int, default=4, help="alarms of each set")
    parser.add_argument("--seed", type=int, default=22)
    args = parser.parse_args()
    drawn = [one for name in args.sets for one in alarms_of(name, args.traces, args.seed, args.each)]
    random.Random(args.seed).shuffle(drawn)
    for path, place in ((args.trial, 0), (args.key, 1)):
        lines = [json.dumps({"item": i, **pair[place]}, ensure_ascii=False) for i, pair in enumerate(drawn, 1)]
        path.write_text("\n".join([*lines, ""]), "utf-8")


if __name__ == "__main__":
    main()
