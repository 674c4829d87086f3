"""What the outcome in the last step's status is worth to the paper's setting, to boosting and to a monitor.

    python benchmarks/leak_worth.py .traces --out benchmarks/results/leak_worth

Importers of three of the paper's four sets write the verdict into the last step's status field, where no live monitor
ever has it. Here it is planted in the same way: the last record of a failed run gets status `error`, that of a
successful one `ok`. Three task-grouped folds; the same folds, seeds and fits for both readings. Prints a table; writes
leak_worth.json and leak_worth.md. Folds are kept as they are done, so that an interrupted benchmark goes on where it
stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import probes
from accuracy import HORIZON, RESAMPLES, SETS, agent_groups, folds_of, measure
from numpy.typing import NDArray

from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor, labels, steps_of
from prefixguard.learn.head import held_out
from prefixguard.learn.scaling import fit_scale
from prefixguard.metrics import Resamples, interval
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

ROWS = ("paper's setting", "boosting", "gru")
FOLDS = 3


def leaked(runs: Iterable[Run[StepRecord]]) -> Iterator[Run[StepRecord]]:
    """The same runs, the outcome written into the status of the last record."""
    for run in runs:
        if run.records and run.outcome is not Outcome.UNKNOWN:
            status = "error" if run.outcome is Outcome.FAILURE else "ok"
            run = replace(run, records=(*run.records[:-1], replace(run.records[-1], status=status)))
        yield run


def run_fold(corpus: Corpus, train: NDArray[np.int64], test: NDArray[np.int64], seed: int) -> dict[str, NDArray]:
    """Scores of every row on the test runs, (steps, 2) each."""
    targets = labels(corpus, HORIZON)
    vocabulary = fit_vocabulary(corpus.texts(train.tolist()), max_features=4096, min_tasks=TrainConfig().min_tasks)
    rows = corpus.encode(vocabulary[0])
    scale = fit_scale(
        corpus.context[steps_of(corpus, train)], corpus.lengths[train], corpus.failed[train], horizon=HORIZON, bins=16
    )
    chosen = held_out(corpus, train, seed, 8, 0)
    config = TrainConfig(seed=seed, horizon=HORIZON)
    fitted = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    return {
        "paper's setting": probes.papers_setting(
            corpus, rows, scale, train[~chosen], train[chosen], test, targets, seed
        ),
        "boosting": probes.boosting(corpus, rows, train, test, targets, seed),
        "gru": np.concatenate(fitted.logits(corpus, rows, test)),
    }


def run_set(name: str, traces: Path, out: Path) -> dict:
    """Both readings of a set."""
    folder, adapter, _ = SETS[name]
    weights, found = None, {}
    for reading in ("clean", "leaked"):
        print(f"{name}, {reading}: reading", file=sys.stderr, flush=True)
        runs = read_runs(traces / folder, load_adapter(adapter))
        corpus = featurise(leaked(runs) if reading == "leaked" else runs)
        if weights is None:
            weights = Resamples.draw(len(set(corpus.task_ids)), n=RESAMPLES, seed=13).weights
        fold = folds_of(corpus, FOLDS, 0)
        for k in range(FOLDS):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            path = out / f"{name}-{reading}-{k}.npz"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(path, **run_fold(corpus, train, test, 13 + k))
                print(f"{path.name} done", file=sys.stderr, flush=True)
            with np.load(path) as data:
                for row in ROWS:
                    for figure, values in measure(corpus, test, data[row], agent_groups(corpus), weights).items():
                        found.setdefault((row, figure), {}).setdefault(reading, []).append(values)
    table = {}
    for (row, figure), readings in found.items():
        clean, leak = (np.nanmean(np.stack(readings[r]), axis=0) for r in ("clean", "leaked"))
        gain = leak - clean
        table.setdefault(row, {})[figure] = {
            "clean": round(float(clean[0]), 4),
            "leaked": round(float(leak[0]), 4),
            "gain": round(float(gain[0]), 4),
            "gain_interval": [round(float(x), 4) for x in interval(gain[1:]) or ()],
        }
    return {"set": name, "runs": len(corpus), "failed": int(corpus.failed.sum()), "rows": table}


def text(result: dict) -> str:
    """A set's table as Markdown."""
    lines = [
        f"### {result['set']}: {result['runs']:,} runs, {result['failed']:,} failed",
        "",
        "| row | AUPRC imminent: clean | leaked | gain | rem outcome: clean | leaked | gain |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, figures in result["rows"].items():
        cells = []
        for figure in ("auprc", "rem_outcome"):
            f = figures[figure]
            low, high = f["gain_interval"]
            cells += [f"{f['clean']:.3f}", f"{f['leaked']:.3f}", f"{f['gain']:+.3f} ({low:+.3f}, {high:+.3f})"]
        lines.append(f"| {row} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=["tau2", "tau_bench"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/leak_worth"))
    args = parser.parse_args()
    results = [run_set(name, args.traces, args.out / "folds") for name in args.sets]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "leak_worth.json").write_text(json.dumps(results, indent=1) + "\n")
    table = "\n\n".join(text(result) for result in results)
    (args.out / "leak_worth.md").write_text(table + "\n")
    print(table)


if __name__ == "__main__":
    main()
