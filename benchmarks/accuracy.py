"""How accurate is the monitor on real runs, beside what else one could do?

    python benchmarks/accuracy.py .traces --out benchmarks/results/accuracy

Repeated task-grouped cross-validation. Every fold is kept in the output folder as it is done, so that an interrupted
benchmark goes on where it stopped. Prints a table a set and writes accuracy.json and accuracy.md. Each figure is the
mean over folds and repeats; intervals are 95 % over a bootstrap of tasks, paired where rows are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import probes

from prefixguard.encoder import fit_vocabulary
from prefixguard.evaluation import stuck_scores
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor
from prefixguard.learn.corpus import labels as step_labels
from prefixguard.learn.head import held_out
from prefixguard.learn.scaling import fit_scale
from prefixguard.learn.teacher import run_weights, steps_of
from prefixguard.metrics import Prefixes, Ranking, Resamples, at_index, at_remaining, end_oracle, interval, step_index
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

#: set -> (folder, adapter, runs taken, group within which agents are compared)
SETS = {
    "tau_bench": ("tau_bench", "tau_bench", None),
    "tau2": ("tau2", "tau2", None),
    "webshop_react": ("webshop_react", "webshop_react", None),
    "minisweagent": ("minisweagent", "mini_swe_agent", None),
    "intercode": ("intercode", "intercode", 2500),
}
TRAINED = ("monitor", "paper's setting", "boosting", "LR last step", "LR prefix")
HORIZON = 3
RESAMPLES = 500
FIGURES = ("auprc", "rem_imminent", "rem_outcome", "idx_outcome", "within_outcome")


def read(traces: Path, name: str) -> tuple[Corpus, list[NDArray[np.float64]]]:
    """The featurised runs of a set, and the incumbent rule's scores of each."""
    folder, adapter, limit = SETS[name]
    stuck: list[NDArray[np.float64]] = []

    def runs() -> Iterator[Run[StepRecord]]:
        source: Iterator[Run[StepRecord]] = read_runs(traces / folder, load_adapter(adapter))
        if limit is not None:
            known = [r for r in source if r.outcome is not Outcome.UNKNOWN]
            known.sort(key=lambda r: hashlib.sha256(f"13:{r.run_id}".encode()).hexdigest())
            source = iter(sorted(known[:limit], key=lambda r: r.run_id))
        for run in source:
            if run.outcome is not Outcome.UNKNOWN:
                stuck.append(stuck_scores(run.records))
            yield run

    corpus = featurise(runs())
    return corpus, stuck


def folds_of(corpus: Corpus, folds: int, repeat: int) -> NDArray[np.int64]:
    """Fold of each run: tasks dealt out in the order of their hash."""
    tasks = sorted(set(corpus.task_ids), key=lambda t: hashlib.sha256(f"{repeat}:{t}".encode()).hexdigest())
    fold = {t: i % folds for i, t in enumerate(tasks)}
    return np.array([fold[t] for t in corpus.task_ids])


def run_fold(corpus: Corpus, train: NDArray[np.int64], test: NDArray[np.int64], seed: int) -> dict[str, NDArray]:
    """Scores of every trained row on the test runs, (steps, 2) each, and seconds."""
    config = TrainConfig(seed=seed, horizon=HORIZON)
    targets = step_labels(corpus, HORIZON)
    y, weight = targets[steps_of(corpus, train)], run_weights(corpus, train)
    out: dict[str, NDArray] = {}
    began = time.monotonic()
    vocabulary = fit_vocabulary(corpus.texts(train.tolist()), max_features=4096, min_tasks=config.min_tasks)
    rows = corpus.encode(vocabulary[0])
    fitted = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    out["monitor"] = np.concatenate(fitted.logits(corpus, rows, test))
    out["seconds"] = np.array([time.monotonic() - began])
    out["boosting"] = probes.boosting(corpus, rows, train, test, targets, seed)
    for name, text in (("LR last step", probes.last_step_text), ("LR prefix", probes.prefix_text)):
        out[name] = probes.logistic(text(corpus, rows, train), y, weight, text(corpus, rows, test))
    scale = fit_scale(
        corpus.context[steps_of(corpus, train)], corpus.lengths[train], corpus.failed[train], horizon=HORIZON, bins=16
    )
    chosen = held_out(corpus, train, seed, 8, 0)
    out["paper's setting"] = probes.papers_setting(
        corpus, rows, scale, train[~chosen], train[chosen], test, targets, seed
    )
    return out


def measure(
    corpus: Corpus, test: NDArray[np.int64], scores: NDArray, group: list[str] | None, weights: NDArray | None
) -> dict[str, NDArray]:
    """Figures of one row on one fold: plain, then under each set of task weights. weights: (R, all tasks)."""
    codes = {t: i for i, t in enumerate(sorted(set(corpus.task_ids)))}
    prefixes = Prefixes.of(
        corpus.lengths[test].tolist(), corpus.failed[test].tolist(), [corpus.task_ids[r] for r in test.tolist()]
    )
    local = [codes[t] for t in dict.fromkeys(corpus.task_ids[r] for r in test.tolist())]
    w = None if weights is None else weights[:, local]
    groups = None if group is None else [group[r] for r in test.tolist()]

    def both(ranking: Ranking, kind: str) -> NDArray:
        compute = ranking.average_precision if kind == "ap" else ranking.auroc
        plain = np.atleast_1d(compute())
        return plain if w is None else np.concatenate((plain, compute(w)))

    found = {
        "auprc": both(Ranking(prefixes.imminent_labels(HORIZON), scores[:, 0], units=prefixes.units), "ap"),
        "rem_imminent": both(at_remaining(prefixes, scores[:, 0]), "auc"),
        "rem_outcome": both(at_remaining(prefixes, scores[:, 1]), "auc"),
        "idx_outcome": both(at_index(prefixes, scores[:, 1]), "auc"),
    }
    if groups is not None:
        found["within_outcome"] = both(at_remaining(prefixes, scores[:, 1], groups=groups), "auc")
    return found


def agent_groups(corpus: Corpus) -> list[str] | None:
    """Who acted, where the set says it: the first of agent, model and file with two values."""
    for key in ("agent", "model", "file"):
        values = [g.get(key, "") for g in corpus.groups]
        if len(set(values)) > 1:
            return values
    return None


def run_set(name: str, traces: Path, out: Path, repeats: int, folds: int) -> dict:
    """All folds of a set, then its table."""
    print(f"{name}: reading", file=sys.stderr, flush=True)
    corpus, stuck = read(traces, name)
    group = agent_groups(corpus)
    n_tasks = len(set(corpus.task_ids))
    weights = Resamples.draw(n_tasks, n=RESAMPLES, seed=13).weights
    gathered: dict[str, dict[str, list[NDArray]]] = {}
    seconds, prevalence = [], []
    for repeat in range(repeats):
        fold = folds_of(corpus, folds, repeat)
        for k in range(folds):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            path = out / f"{name}-{repeat}-{k}.npz"
            if path.exists():
                with np.load(path) as data:
                    scores = dict(data)
            else:
                scores = run_fold(corpus, train, test, 13 + repeat)
                path.parent.mkdir(parents=True, exist_ok=True)
                np.savez_compressed(path, **scores)
                print(f"{name}: repeat {repeat + 1} fold {k + 1} done", file=sys.stderr, flush=True)
            seconds.append(float(scores["seconds"][0]))
            prefixes = Prefixes.of(
                corpus.lengths[test].tolist(), corpus.failed[test].tolist(), [corpus.task_ids[r] for r in test.tolist()]
            )
            prevalence.append(float(prefixes.imminent_labels(HORIZON).mean()))
            n = len(prefixes)
            untrained = {
                "constant": np.zeros((n, 2)),
                "step index": np.stack([step_index(prefixes)] * 2, axis=1),
                "incumbent rule": np.stack([np.concatenate([stuck[r] for r in test.tolist()])] * 2, axis=1),
                "end oracle (not causal)": np.stack([end_oracle(prefixes)] * 2, axis=1),
            }
            for row, values in {**{r: scores[r] for r in TRAINED}, **untrained}.items():
                for figure, value in measure(corpus, test, values, group, weights).items():
                    gathered.setdefault(row, {}).setdefault(figure, []).append(value)
    return summarise(name, corpus, gathered, seconds, prevalence, repeats, folds)


def summarise(name, corpus, gathered, seconds, prevalence, repeats, folds) -> dict:
    """Means over folds, intervals, and the monitor's paired lead over each row."""
    mean = {row: {f: np.nanmean(np.stack(v), axis=0) for f, v in figures.items()} for row, figures in gathered.items()}
    table: dict[str, dict] = {}
    for row, figures in mean.items():
        table[row] = {}
        for figure, values in figures.items():
            lead = mean["monitor"][figure] - values
            table[row][figure] = {
                "value": round(float(values[0]), 4),
                "interval": _rounded(interval(values[1:])),
                "lead": round(float(lead[0]), 4),
                "lead_interval": _rounded(interval(lead[1:])) if row != "monitor" else None,
            }
    return {
        "set": name,
        "runs": len(corpus),
        "failed": int(corpus.failed.sum()),
        "tasks": len(set(corpus.task_ids)),
        "steps": int(corpus.first[-1]),
        "prevalence": round(float(np.mean(prevalence)), 4),
        "protocol": f"{repeats} x {folds} task-grouped folds",
        "fit_seconds_median": round(float(np.median(seconds)), 1),
        "rows": table,
    }


def _rounded(pair: tuple[float, float] | None) -> list[float] | None:
    return None if pair is None else [round(pair[0], 4), round(pair[1], 4)]


def text(result: dict) -> str:
    """A set's table as Markdown."""
    lines = [
        f"### {result['set']}: {result['runs']:,} runs of {result['tasks']} tasks, "
        f"{result['failed'] / result['runs']:.0%} failed, {result['steps']:,} steps, "
        f"prevalence {result['prevalence']:.3f}; {result['protocol']}",
        "",
        "| row | AUPRC imminent | monitor's lead | rem: imminent | rem: outcome | monitor's lead | idx: outcome "
        "| within agents |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, figures in result["rows"].items():

        def cell(name: str, key: str = "value", figures: dict = figures) -> str:
            value = figures.get(name, {}).get(key)
            return "" if value is None else f"{value:.3f}"

        def lead(name: str, figures: dict = figures) -> str:
            pair = figures[name]["lead_interval"]
            return "" if pair is None else f"{figures[name]['lead']:+.3f} ({pair[0]:+.3f}, {pair[1]:+.3f})"

        lines.append(
            f"| {row} | {cell('auprc')} | {lead('auprc')} | {cell('rem_imminent')} | {cell('rem_outcome')} "
            f"| {lead('rem_outcome')} | {cell('idx_outcome')} | {cell('within_outcome')} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/accuracy"))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    results = []
    for name in args.sets:
        result = run_set(name, args.traces, args.out / "folds", args.repeats, args.folds)
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(text(result) + "\n", flush=True)
        results.append(result)
    (args.out / "accuracy.md").write_text("\n\n".join(text(r) for r in results) + "\n")


if __name__ == "__main__":
    main()
