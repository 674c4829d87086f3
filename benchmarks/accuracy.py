"""How accurate is every backend on real runs, beside what else one could do?

    python benchmarks/accuracy.py .traces --out benchmarks/results/accuracy

Repeated task-grouped cross-validation. Every fit is kept in the output folder as it is done, so that an interrupted
benchmark goes on where it stopped. Prints a table a set and writes accuracy.json and accuracy.md. Each figure is the
mean over folds and repeats; intervals are 95 % over a bootstrap of tasks, paired where rows are compared.

Skill is over a clock fitted on the training runs. It takes probabilities: the log-odds of every fitted row, the clock's
among them, are mapped by Platt's method on one half of the test tasks and measured on the other, both ways.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import probes

from prefixguard.bundle import apply_map
from prefixguard.encoder import fit_vocabulary
from prefixguard.evaluation import stuck_scores
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor, fit_platt
from prefixguard.learn.corpus import labels as step_labels
from prefixguard.learn.head import held_out
from prefixguard.learn.scaling import fit_scale
from prefixguard.learn.teacher import run_weights, steps_of
from prefixguard.learn.trees import ROUNDS_IN_BLEND, fit_trees
from prefixguard.metrics import (
    Ranking,
    ReferenceRisks,
    Resamples,
    at_index,
    at_remaining,
    end_oracle,
    interval,
    log_losses,
    ratio,
    step_index,
)
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
#: The first is the default, which the others are compared with.
BACKENDS = ("gru", "transformer", "fsm", "gbdt")
TREES_IN_BLEND = "trees in a blend"
PROBES = ("paper's setting", "LR last step", "LR prefix")
HORIZON = 3
RESAMPLES = 500
SHARES, FEWEST_STEPS = (0.25, 0.5, 0.75, 1.0), 4


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


def fit(
    row: str, corpus: Corpus, train: NDArray[np.int64], test: NDArray[np.int64], seed: int, vocabulary, rows
) -> NDArray:
    """What a fitted row says of the test runs, log-odds, (steps, 2)."""
    if row in BACKENDS:
        config = TrainConfig(seed=seed, horizon=HORIZON, backend=row)
        fitted = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
        return np.concatenate(fitted.logits(corpus, rows, test))
    targets = step_labels(corpus, HORIZON)
    if row == TREES_IN_BLEND:
        head = fit_trees(corpus, rows, train, targets, seed, rounds=ROUNDS_IN_BLEND)
        return np.concatenate(head.logits(corpus, rows, test))
    if row == "paper's setting":
        scale = fit_scale(
            corpus.context[steps_of(corpus, train)],
            corpus.lengths[train],
            corpus.failed[train],
            horizon=HORIZON,
            bins=16,
        )
        chosen = held_out(corpus, train, seed, 8, 0)
        return probes.papers_setting(corpus, rows, scale, train[~chosen], train[chosen], test, targets, seed)
    text = probes.last_step_text if row == "LR last step" else probes.prefix_text
    y, weight = targets[steps_of(corpus, train)], run_weights(corpus, train)
    return probes.logistic(text(corpus, rows, train), y, weight, text(corpus, rows, test))


def fold_scores(
    name: str, corpus: Corpus, sides: tuple[NDArray, NDArray], repeat: int, k: int, out: Path, wanted: list[str]
) -> dict[str, NDArray]:
    """Log-odds of every fitted row on the test runs of a fold, kept or made; a row that failed in its file is made."""
    train, test = sides
    found: dict[str, NDArray] = {}
    material: tuple = ()
    for row in [*wanted, *([TREES_IN_BLEND] if "gru" in wanted else [])]:
        path = out / f"{name}-{repeat}-{k}-{row.replace(' ', '_').replace(chr(39), '')}.npz"
        if not path.exists():
            if not material:
                texts = corpus.texts(train.tolist())
                vocabulary = fit_vocabulary(texts, max_features=4096, min_tasks=TrainConfig().min_tasks)
                material = vocabulary, corpus.encode(vocabulary[0])
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez_compressed(path, scores=fit(row, corpus, train, test, 13 + repeat, *material))
            print(f"{path.name} done", file=sys.stderr, flush=True)
        with np.load(path) as data:
            found[row] = data["scores"]
    if TREES_IN_BLEND in found:
        found["blend"] = (found.pop(TREES_IN_BLEND) + found["gru"]) / 2  # as the backend blend averages log-odds
    reference = ReferenceRisks.fit(corpus.prefixes(train), corpus.sizes(train), HORIZON)
    step = corpus.prefixes(test).step
    for row, risks in (
        ("size spline", reference.by_size(step, corpus.sizes(test))),
        ("fitted clock", reference.by_step(step)),
    ):
        found[row] = np.log(risks) - np.log1p(-np.clip(risks, 0, 1 - 1e-12))
    return found


def cross_calibrated(corpus: Corpus, test: NDArray[np.int64], scores: NDArray) -> NDArray:
    """Risks of log-odds, (steps, 2); each half of the test tasks is mapped by what the other half says."""
    prefixes = corpus.prefixes(test)
    half = np.repeat([hashlib.sha256(f"half:{corpus.task_ids[r]}".encode()).digest()[0] & 1 for r in test.tolist()],
                     corpus.lengths[test])  # fmt: skip
    risks = np.empty(scores.shape)
    for risk, y in enumerate((prefixes.imminent_labels(HORIZON), prefixes.outcome_labels)):
        for side in (0, 1):
            platt = fit_platt(scores[half != side, risk], y[half != side].astype(np.float64))
            risks[half == side, risk] = apply_map(platt, scores[half == side, risk].tolist())
    return risks


def measure(
    corpus: Corpus, test: NDArray[np.int64], scores: NDArray, group: list[str] | None, weights: NDArray | None
) -> dict[str, NDArray]:
    """Figures of one row on one fold: plain, then under each set of task weights. weights: (R, all tasks)."""
    codes = {t: i for i, t in enumerate(sorted(set(corpus.task_ids)))}
    prefixes = corpus.prefixes(test)
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


def forecasts(
    corpus: Corpus, test: NDArray[np.int64], scores: NDArray, clock: NDArray | None, weights: NDArray
) -> dict[str, NDArray]:
    """Skill over the clock, and AUROC of the outcome at shares of a run; plain, then under each set of task weights.

    clock: its risks, mapped as all rows are; None: the scores are no log-odds, and there is no skill.
    """
    prefixes, codes = corpus.prefixes(test), {t: i for i, t in enumerate(sorted(set(corpus.task_ids)))}
    local = [codes[t] for t in dict.fromkeys(corpus.task_ids[r] for r in test.tolist())]
    w = np.concatenate((np.ones((1, len(local))), weights[:, local]))
    found = {}
    if clock is not None:
        risks = cross_calibrated(corpus, test, scores)
        for i, (risk, y) in enumerate(
            (("imminent", prefixes.imminent_labels(HORIZON)), ("outcome", prefixes.outcome_labels))
        ):
            own, its = (np.bincount(prefixes.units, weights=log_losses(y, r[:, i])) for r in (risks, clock))
            found[f"skill_{risk}"] = 1 - ratio(w @ own, w @ its)
    lengths = corpus.lengths[test]
    long, last = np.flatnonzero(lengths >= FEWEST_STEPS), np.cumsum(lengths) - 1
    for share in SHARES:
        places = (last - lengths)[long] + np.ceil(share * lengths[long]).astype(np.int64)
        ranking = Ranking(prefixes.failed[long], scores[places, 1], units=prefixes.task[long])
        found[f"outcome_{100 * share:.0f}"] = ranking.auroc(w)
    return found


def agent_groups(corpus: Corpus) -> list[str] | None:
    """Who acted, where the set says it: the first of agent, model and file with two values."""
    for key in ("agent", "model", "file"):
        values = [g.get(key, "") for g in corpus.groups]
        if len(set(values)) > 1:
            return values
    return None


def run_set(name: str, traces: Path, out: Path, repeats: int, folds: int, wanted: list[str]) -> dict:
    """All folds of a set, then its table."""
    print(f"{name}: reading", file=sys.stderr, flush=True)
    corpus, stuck = read(traces, name)
    group = agent_groups(corpus)
    weights = Resamples.draw(len(set(corpus.task_ids)), n=RESAMPLES, seed=13).weights
    gathered: dict[str, dict[str, list[NDArray]]] = {}
    prevalence = []
    for repeat in range(repeats):
        fold = folds_of(corpus, folds, repeat)
        for k in range(folds):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            fitted = fold_scores(name, corpus, (train, test), repeat, k, out, wanted)
            prefixes = corpus.prefixes(test)
            prevalence.append(float(prefixes.imminent_labels(HORIZON).mean()))
            clock = cross_calibrated(corpus, test, fitted["fitted clock"])
            untrained = {
                "constant": np.zeros((len(prefixes), 2)),
                "step index": np.stack([step_index(prefixes)] * 2, axis=1),
                "incumbent rule": np.stack([np.concatenate([stuck[r] for r in test.tolist()])] * 2, axis=1),
                "end oracle (not causal)": np.stack([end_oracle(prefixes)] * 2, axis=1),
            }
            for row, values in {**fitted, **untrained}.items():
                figures = measure(corpus, test, values, group, weights)
                figures |= forecasts(corpus, test, values, clock if row in fitted else None, weights)
                for figure, value in figures.items():
                    gathered.setdefault(row, {}).setdefault(figure, []).append(value)
    return summarise(name, corpus, gathered, prevalence, repeats, folds)


def summarise(name, corpus, gathered, prevalence, repeats, folds) -> dict:
    """Means over folds, intervals, and each row's paired lead over the first."""
    mean = {row: {f: np.nanmean(np.stack(v), axis=0) for f, v in figures.items()} for row, figures in gathered.items()}
    first = next(iter(mean))
    table: dict[str, dict] = {}
    for row, figures in mean.items():
        table[row] = {}
        for figure, values in figures.items():
            lead = values - mean[first][figure]
            table[row][figure] = {
                "value": round(float(values[0]), 4),
                "interval": _rounded(interval(values[1:])),
                "lead": round(float(lead[0]), 4),
                "lead_interval": _rounded(interval(lead[1:])) if row != first else None,
            }
    return {
        "set": name,
        "runs": len(corpus),
        "failed": int(corpus.failed.sum()),
        "tasks": len(set(corpus.task_ids)),
        "steps": int(corpus.first[-1]),
        "prevalence": round(float(np.mean(prevalence)), 4),
        "protocol": f"{repeats} x {folds} task-grouped folds",
        "rows": table,
    }


def _rounded(pair: tuple[float, float] | None) -> list[float] | None:
    return None if pair is None else [round(pair[0], 4), round(pair[1], 4)]


#: Figure, its head, and whether its lead over the first row is shown.
COLUMNS = (
    ("auprc", "AUPRC imminent", True),
    ("idx_outcome", "idx: outcome", True),
    ("skill_outcome", "skill: outcome", True),
    ("skill_imminent", "skill: imminent", False),
    ("rem_outcome", "rem: outcome", False),
    ("within_outcome", "rem within agents", False),
    *((f"outcome_{100 * share:.0f}", f"{share:.0%} seen", False) for share in SHARES),
)


def text(result: dict) -> str:
    """A set's table as Markdown."""
    heads = [head for _, name, more in COLUMNS for head in ([name, "ahead of the first"] if more else [name])]
    lines = [
        f"### {result['set']}: {result['runs']:,} runs of {result['tasks']} tasks, "
        f"{result['failed'] / result['runs']:.0%} failed, {result['steps']:,} steps, "
        f"prevalence {result['prevalence']:.3f}; {result['protocol']}",
        "",
        f"| row | {' | '.join(heads)} |",
        "| --- " * (len(heads) + 1) + "|",
    ]
    for row, figures in result["rows"].items():
        cells = []
        for name, _, more in COLUMNS:
            found = figures.get(name)
            cells.append("" if found is None else f"{found['value']:.3f}")
            if more:
                pair = found and found["lead_interval"]
                cells.append(f"{found['lead']:+.3f} ({pair[0]:+.3f}, {pair[1]:+.3f})" if pair else "")
        lines.append(f"| {row} | {' | '.join(cells)} |")
    if missing := [row for row in BACKENDS if row not in result["rows"]]:
        lines += ["", f"Not measured here: {', '.join(missing)}; on three folds: [backends.md](backends/backends.md)."]
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/accuracy"))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--rows", nargs="*", choices=(*BACKENDS, *PROBES), default=[*BACKENDS, *PROBES])
    args = parser.parse_args()
    results = []
    for name in args.sets:
        result = run_set(name, args.traces, args.out / "folds", args.repeats, args.folds, args.rows)
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(text(result) + "\n", flush=True)
        results.append(result)
    (args.out / "accuracy.md").write_text("\n\n".join(text(r) for r in results) + "\n")


if __name__ == "__main__":
    main()
