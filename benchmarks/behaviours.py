"""What do behaviours alone tell of a run, beside the 46 context features; and how often does each hold?

    python benchmarks/behaviours.py .traces

Boosting, three folds that never split a task. Of each behaviour: how often it held so far (at most 6), whether it held
at each of the last three steps, and for how many steps in a row (at most 6). The limit of steps is unknown but in one
row: there it is the 99th percentile of the lengths of training runs. Writes behaviours.json and behaviours.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy

from prefixguard import behaviours, context
from prefixguard.behaviours import BY_NAME
from prefixguard.encoder import tokenize
from prefixguard.learn import featurise
from prefixguard.learn.corpus import labels
from prefixguard.learn.teacher import boost, run_weights, steps_of
from prefixguard.stepview import StepRecord, load_adapter, read_runs, serialize
from prefixguard.trace import Outcome, Run

PLACES = {name: place for place, name in enumerate(BY_NAME)}
FIGURES = ("auprc", "rem_outcome", "idx_outcome")
MOST = 6
CAPPED = "behaviours, cap known"
SEED = 13


def held(records: list[StepRecord]) -> NDArray[np.int8]:
    """Which behaviours hold at each step of a run, (T, behaviours)."""
    tracker, state = behaviours.start(), context.start()
    out = np.zeros((len(records), len(PLACES)), dtype=np.int8)
    for row, record in zip(out, records, strict=True):
        tokens = tokenize(serialize(record))
        numbers = context.update(state, record, tokens)
        for finding in behaviours.update(tracker, record, tokens, state, numbers):
            row[PLACES[finding.behaviour.name]] = 1
    return out


def features(holds: NDArray[np.int8]) -> NDArray[np.float32]:
    """Of each behaviour at each step of a run: times so far, the last three steps, steps in a row."""
    streak = np.zeros_like(holds)
    for t in range(len(holds)):
        streak[t] = np.minimum((streak[t - 1] if t else 0) + 1, MOST) * holds[t]
    before = [np.vstack((np.zeros((k, holds.shape[1]), np.int8), holds))[: len(holds)] for k in (1, 2)]
    so_far = np.minimum(np.cumsum(holds, axis=0, dtype=np.int64), MOST)
    return np.hstack((so_far, holds, *before, streak)).astype(np.float32)


def run_set(name: str, traces: Path, folds: int) -> dict[str, Any]:
    """The rows of a set, and how often each behaviour holds."""
    folder, adapter, limit = accuracy.SETS[name]
    of_runs: list[NDArray[np.int8]] = []

    def runs() -> Iterator[Run[StepRecord]]:
        known = [r for r in read_runs(traces / folder, load_adapter(adapter)) if r.outcome is not Outcome.UNKNOWN]
        if limit is not None:
            known.sort(key=lambda r: hashlib.sha256(f"{SEED}:{r.run_id}".encode()).hexdigest())
            known = sorted(known[:limit], key=lambda r: r.run_id)
        for run in known:
            if run.records:
                of_runs.append(held(list(run.records)))
            yield run

    corpus = featurise(runs())
    assert [len(one) for one in of_runs] == corpus.lengths.tolist()
    behaviour = np.vstack([features(one) for one in of_runs])
    clock = np.concatenate([np.arange(n, dtype=np.float32) for n in corpus.lengths.tolist()])[:, None]
    given = {
        "46 context features": corpus.context,
        "behaviours": behaviour,
        "behaviours and a clock": np.hstack((behaviour, clock)),
        "clock": clock,
    }
    targets, fold = labels(corpus, accuracy.HORIZON), accuracy.folds_of(corpus, folds, 0)
    gathered: dict[str, dict[str, list[float]]] = {row: {figure: [] for figure in FIGURES} for row in (*given, CAPPED)}
    for k in range(folds):
        train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        steps, weight = steps_of(corpus, train), run_weights(corpus, train)
        cap = np.quantile(corpus.lengths[train], 0.99)
        near = (clock + 1 >= 0.9 * cap).astype(np.float32)  # `near_step_cap`, the cap told by the training runs
        for row, x in {**given, CAPPED: np.hstack((behaviour, near))}.items():
            z = x[steps_of(corpus, test)]
            scores = np.stack([boost(x[steps], targets[steps, risk], weight, SEED)(z) for risk in range(2)], axis=1)
            for figure, value in accuracy.measure(corpus, test, scores, None, None).items():
                if figure in FIGURES:
                    gathered[row][figure].append(float(value[0]))
        print(f"{name}: fold {k + 1} of {folds}", file=sys.stderr, flush=True)
    ever = np.array([one.any(axis=0) for one in of_runs])
    return {
        "set": name,
        "runs": len(corpus),
        "failed": int(corpus.failed.sum()),
        "rows": {row: {f: round(float(np.mean(v)), 4) for f, v in found.items()} for row, found in gathered.items()},
        "runs_with": {
            behaviour: [round(float(ever[corpus.failed == failed, place].mean()), 4) for failed in (True, False)]
            for behaviour, place in PLACES.items()
        },
        "steps_with": dict(zip(PLACES, np.vstack(of_runs).mean(axis=0).round(4).tolist(), strict=True)),
    }


def text(results: list[dict[str, Any]]) -> str:
    """Both tables as Markdown."""
    names = [f"{r['set']} ({r['runs']:,}, {r['failed'] / r['runs']:.0%} failed)" for r in results]
    lines = ["AUPRC of the imminent risk, outcome AUROC at matched remaining steps, the same at a matched step:", ""]
    lines += [f"| | {' | '.join(names)} |", f"| --- {'| --- ' * len(results)}|"]
    for row in results[0]["rows"]:
        cells = [", ".join(f"{r['rows'][row][figure]:.3f}" for figure in FIGURES) for r in results]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    lines += ["", "Share of failed runs and of successful runs in which a behaviour holds at least once:", ""]
    lines += [f"| | | {' | '.join(r['set'] for r in results)} |", f"| --- | --- {'| --- ' * len(results)}|"]
    for name, behaviour in BY_NAME.items():
        shares = [r["runs_with"][name] for r in results]
        if any(map(any, shares)):
            cells = [f"{failed:.0%}, {succeeded:.0%}" for failed, succeeded in shares]
            lines.append(f"| {name} | {behaviour.kind} | {' | '.join(cells)} |")
    silent = [name for name in BY_NAME if not any(any(r["runs_with"][name]) for r in results)]
    return "\n".join([*lines, "", f"Never seen here: {', '.join(silent) or 'none'}.", ""])


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(accuracy.SETS), default=list(accuracy.SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    results = [run_set(name, args.traces, args.folds) for name in args.sets]
    (args.out / "behaviours.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "behaviours.md").write_text(text(results))
    print(text(results))


if __name__ == "__main__":
    main()
