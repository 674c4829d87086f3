"""What does a monitor know that saw successful runs alone?

    python benchmarks/healthy.py .traces --out benchmarks/results

On `sentinel`: the protocol of its authors (healthy runs 60 / 20 / 20 by run, threshold at a budget of 5 %) and splits
by task, beside the figures that they publish; by fault, delay after the onset, at equal length, and with failed runs
among those that are taken for healthy. On the sets with outcomes: beside the committed figures of monitors that saw
labels, on the same folds. The channels and their constants were chosen on `DEVELOPED`; the other corpora were looked at
once, here.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy

import prefixguard
from prefixguard.alarm import Level
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor
from prefixguard.metrics import auroc
from prefixguard.stepview import load_adapter, read_runs
from prefixguard.trace import Outcome

DEVELOPED = ("ollama7b", "real_research7b")
#: AUROC, detected, false alarms, as published: echo-state CUSUM, difference Mahalanobis, its best hybrid by AUROC.
PUBLISHED = {
    "ollama7b": ((0.994, 0.96, 0.00), (0.895, 0.29, 0.00), (0.997, 0.96, 0.00)),
    "langgraph7b": ((0.828, 0.51, 0.00), (0.885, 0.74, 0.14), (0.906, 0.56, 0.05)),
    "autogen7b": ((0.833, 0.51, 0.08), (0.774, 0.39, 0.08), (0.822, 0.51, 0.08)),
    "real_research7b": ((0.777, 0.37, 0.08), (0.848, 0.42, 0.04), (0.849, 0.26, 0.04)),
    "real_gemini_long": ((0.794, 0.38, 0.17), (0.804, 0.09, 0.00), (0.824, 0.38, 0.17)),
    "ollama_llama8b": ((0.885, 0.77, 0.13), (0.893, 0.92, 0.31), (0.925, 0.97, 0.31)),
}
CONTAMINATION = (0.0, 0.05, 0.1, 0.2)
_CONFIG = TrainConfig(backend="healthy", teacher=0.0)


@dataclass(frozen=True)
class Faults:
    """A corpus of sentinel. fault: of each run, "" where it is healthy. onset: step of the fault, from 1; 0 where none.
    ruled: whether rules alarm. jump: greatest ratio of a line's latency to that of the line before."""

    corpus: Corpus
    fault: NDArray[np.str_]
    onset: NDArray[np.int64]
    ruled: NDArray[np.bool_]
    jump: NDArray[np.float64]


def read(folder: Path) -> Faults:
    """One corpus, read once."""
    rules, found = prefixguard.load("rules", adapter="sentinel"), []
    classes = {one["file"]: one["failure_class"] for one in json.loads((folder / "manifest.json").read_text())}

    def runs() -> Any:
        for run in read_runs(folder, load_adapter("sentinel")):
            if run.outcome is not Outcome.UNKNOWN:
                name = Path(run.run_id).name
                lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
                waits = [max(line["latency_s"] or 0.0, 1e-4) for line in lines]
                jump = max((b / a for a, b in pairwise(waits)), default=1.0)
                alarmed = any(reading.level is Level.ALARM for reading in rules.score_run(run.records))
                step = 0 if run.mistake is None else run.mistake.step or 0
                found.append((classes[name] or "", step, alarmed, jump))
            yield run

    corpus = featurise(runs()).without_signals()
    fault, onset, ruled, jump = (np.array(column) for column in zip(*found, strict=True))
    return Faults(corpus, fault, onset, ruled, jump)


def peaks(faults: Faults, fit: NDArray[np.int64], of: NDArray[np.int64], seed: int) -> list[NDArray[np.float64]]:
    """Running evidence of each step of the runs `of`, by a monitor fitted on the runs `fit`, taken for healthy."""
    corpus = faults.corpus
    taken = Corpus(**{name: getattr(corpus, name) for name in corpus.__slots__})
    taken.failed = np.zeros(len(corpus), np.bool_)  # whatever they are
    taken.unlabelled = int(corpus.failed[fit].any())
    fitted = fit_monitor(taken, fit, TrainConfig(backend="healthy", teacher=0.0, seed=seed))
    return [one[:, 1] for one in fitted.logits(taken, taken.encode(fitted.vocabulary), of)]


def split(faults: Faults, seed: int, *, by_task: bool) -> tuple[NDArray[np.int64], ...]:
    """Healthy runs to fit, for the threshold and to test, and failed runs to test; numbers of runs."""
    corpus, rng = faults.corpus, np.random.default_rng(seed)
    key = np.array(corpus.task_ids if by_task else [str(i) for i in range(len(corpus))])
    healthy = np.flatnonzero(~corpus.failed)
    keys = np.unique(key[healthy])
    rng.shuffle(keys)
    sides = np.split(keys, [int(0.6 * len(keys)), int(0.8 * len(keys))])
    fit, threshold, test = (healthy[np.isin(key[healthy], side)] for side in sides)
    failed = np.flatnonzero(corpus.failed)
    return fit, threshold, test, failed[~np.isin(key[failed], np.concatenate(sides[:2]))]


def at_equal_length(lengths: NDArray[np.int64], failed: NDArray[np.bool_], score: NDArray[np.float64]) -> float:
    """AUROC over pairs of runs with as many steps."""
    total = pairs = 0.0
    for length in np.unique(lengths):
        own = lengths == length
        n = float(failed[own].sum() * (~failed[own]).sum())
        if n:
            total, pairs = total + n * auroc(failed[own], score[own]), pairs + n
    return total / pairs if pairs else float("nan")


def measure(faults: Faults, seed: int, *, by_task: bool, contamination: float = 0.0) -> dict[str, float]:
    """One split of one corpus."""
    fit, threshold, test, failed = split(faults, seed, by_task=by_task)
    if contamination:
        rng = np.random.default_rng(1000 + seed)
        mixed = rng.permutation(failed)[: round(contamination / (1 - contamination) * (len(fit) + len(threshold)))]
        at = round(len(mixed) * len(fit) / (len(fit) + len(threshold)))
        fit, threshold = np.concatenate((fit, mixed[:at])), np.concatenate((threshold, mixed[at:]))
        failed = np.setdiff1d(failed, mixed)
    runs = np.concatenate((threshold, test, failed))
    series = peaks(faults, fit, runs, seed)
    score = np.array([one.max() for one in series])
    over = float(np.quantile(score[: len(threshold)], 0.95))
    tested, scores, series = runs[len(threshold) :], score[len(threshold) :], series[len(threshold) :]
    is_failed, alarmed = faults.corpus.failed[tested], scores > over
    lengths = faults.corpus.lengths[tested]
    found = {
        "auroc": auroc(is_failed, scores),
        "equal_length": at_equal_length(lengths, is_failed, scores),
        "length_alone": auroc(is_failed, lengths.astype(np.float64)),
        "detected": float(alarmed[is_failed].mean()),
        "false_alarms": float(alarmed[~is_failed].mean()),
        "rules_detected": float(faults.ruled[tested][is_failed].mean()),
        "rules_false_alarms": float(faults.ruled[tested][~is_failed].mean()),
    }
    strict = scores > score[: len(threshold)].max()
    found["strict_detected"] = float(strict[is_failed].mean())
    found["strict_false_alarms"] = float(strict[~is_failed].mean())
    first = [int(np.argmax(one > over)) + 1 if (one > over).any() else 0 for one in series]
    delays = [a - faults.onset[r] for a, r in zip(first, tested.tolist(), strict=True) if a and faults.onset[r]]
    found["early"] = float(np.mean([delay < 0 for delay in delays])) if delays else float("nan")
    after = [delay for delay in delays if delay >= 0]
    found["delay"] = float(np.median(after)) if after else float("nan")
    for fault in sorted(set(faults.fault[tested[is_failed]].tolist())):
        own = (faults.fault[tested] == fault) & is_failed
        found[f"auroc:{fault}"] = auroc(is_failed[own | ~is_failed], scores[own | ~is_failed])
        found[f"detected:{fault}"] = float(alarmed[own].mean())
    return found


def over_splits(rows: list[dict[str, float]]) -> dict[str, list[float]]:
    """Mean, and the 2.5 and 97.5 % quantiles over splits."""
    out = {}
    for name in sorted({name for row in rows for name in row}):
        values = np.array([row.get(name, np.nan) for row in rows])
        if not np.isnan(values).all():
            low, high = np.nanquantile(values, (0.025, 0.975))
            out[name] = [round(float(v), 4) for v in (np.nanmean(values), low, high)]
    return out


def sentinel(folder: Path, splits: int) -> dict[str, Any]:
    """All corpora."""
    found: dict[str, Any] = {}
    for name in PUBLISHED:
        faults = read(folder / name)
        corpus = faults.corpus
        healthy = {corpus.digests[r] for r in np.flatnonzero(~corpus.failed)}
        twins = sum(corpus.digests[r] in healthy for r in np.flatnonzero(corpus.failed))
        found[name] = {
            "runs": len(corpus),
            "healthy": int((~corpus.failed).sum()),
            "twins_of_healthy_runs": twins,
            "latency_jump_auroc": round(float(auroc(corpus.failed, faults.jump)), 4),
            "by_run": over_splits([measure(faults, seed, by_task=False) for seed in range(splits)]),
            "by_task": over_splits([measure(faults, seed, by_task=True) for seed in range(splits)]),
            "contaminated": {
                str(share): over_splits(
                    [measure(faults, s, by_task=False, contamination=share) for s in range(max(splits // 2, 1))]
                )
                for share in CONTAMINATION[1:]
            },
        }
        print(f"{name}: {found[name]['by_run']['auroc']}", file=sys.stderr, flush=True)
    return found


def labelled(name: str, traces: Path, committed: Path, repeats: int, folds: int) -> dict[str, Any]:
    """A set with outcomes: the folds of `accuracy.py`, and its committed rows beside."""
    corpus, _ = accuracy.read(traces, name)
    found: list[dict[str, float]] = []
    for repeat in range(repeats):
        fold = accuracy.folds_of(corpus, folds, repeat)
        for k in range(folds):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            fitted = fit_monitor(corpus, train[~corpus.failed[train]], _CONFIG)
            scores = np.concatenate(fitted.logits(corpus, corpus.encode(fitted.vocabulary), test))
            figures = accuracy.measure(corpus, test, scores, None, None)
            found.append({figure: float(value[0]) for figure, value in figures.items()})
            print(f"{name}: repeat {repeat + 1} fold {k + 1}", file=sys.stderr, flush=True)
    rows = json.loads((committed / f"accuracy-{name}.json").read_text())["rows"]
    kept = ("gru", "gbdt", "step index", "incumbent rule")
    beside = {row: {f: rows[row][f]["value"] for f in ("auprc", "rem_outcome", "idx_outcome")} for row in kept}
    return {"healthy": over_splits(found), "protocol": f"{repeats} x {folds} task-grouped folds", "rows": beside}


def _cell(value: list[float] | None, *, share: bool = False) -> str:
    if value is None:
        return ""
    return f"{value[0]:.0%}" if share else f"{value[0]:.3f} ({value[1]:.3f}, {value[2]:.3f})"


def text(found: dict[str, Any]) -> str:
    """Both parts as Markdown."""
    lines = [
        "# Healthy runs are enough: the backend healthy, which sees no failed run",
        "",
        f"`sentinel`, {found['splits']} splits; in brackets 2.5 and 97.5 % quantiles over splits. Published figures "
        f"are of one split. Channels and constants were chosen on {' and '.join(DEVELOPED)}; the others are untouched. "
        "Threshold: the 95th percentile of healthy runs' greatest readings, or the greatest of them.",
        "",
        "| corpus | by run: AUROC | detected, false alarms | with the greatest as threshold | published: echo-state "
        "| best hybrid | by task: AUROC | at equal length | length alone "
        "| detected, false alarms | rules | latency jump | word for word healthy |",
        "| " + "--- | " * 13,
    ]
    for name, one in found["sentinel"].items():
        run, task = one["by_run"], one["by_task"]

        def both(figures: dict[str, Any], before: str = "") -> str:
            shares = (_cell(figures[f"{before}{key}"], share=True) for key in ("detected", "false_alarms"))
            return ", ".join(shares)

        (a, b, c), _, (d, e, f) = PUBLISHED[name]
        lines.append(
            f"| {name} | {_cell(run['auroc'])} | {both(run)} | {both(run, 'strict_')} | {a:.3f}, {b:.0%}, {c:.0%} | "
            f"{d:.3f}, {e:.0%}, {f:.0%} | {_cell(task['auroc'])} | {_cell(task['equal_length'])} | "
            f"{task['length_alone'][0]:.3f} | {both(task)} | {both(run, 'rules_')} | "
            f"{one['latency_jump_auroc']:.3f} | {one['twins_of_healthy_runs']} |"
        )
    lines += ["", "By fault, split by run: AUROC, detected.", ""]
    for name, one in found["sentinel"].items():
        run = one["by_run"]
        faults = [key.partition(":")[2] for key in run if key.startswith("auroc:")]
        said = "; ".join(f"{f} {run[f'auroc:{f}'][0]:.2f}, {run[f'detected:{f}'][0]:.0%}" for f in faults)
        early = f"{run['early'][0]:.0%} of alarms stand before the onset" if "early" in run else ""
        delay = f", the others {run['delay'][0]:.1f} steps after it (median)" if "delay" in run else ""
        lines.append(f"- {name}: {said}. {early}{delay}.")
    lines += ["", "Failed runs among those taken for healthy (fit and threshold): AUROC; detected, false alarms.", ""]
    lines += [
        "| corpus | none | " + " | ".join(f"{share:.0%}" for share in CONTAMINATION[1:]) + " |",
        "| --- " * 5 + "|",
    ]
    for name, one in found["sentinel"].items():
        cells = [
            f"{figures['auroc'][0]:.3f}; {figures['detected'][0]:.0%}, {figures['false_alarms'][0]:.0%}"
            for figures in (one["by_run"], *one["contaminated"].values())
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    lines += [
        "",
        "What labels are worth: sets with outcomes, the folds of `accuracy.py`. AUPRC imminent | outcome AUROC at ",
    ]
    lines[-1] += "matched remaining steps | at matched index. Committed rows: 2 x 3 folds; healthy only: "
    lines[-1] += f"{next(iter(found['labelled'].values()))['protocol']}."
    lines += ["", "| set | healthy only | gru | gbdt | clock | incumbent rule |", "| --- " * 6 + "|"]
    for name, one in found["labelled"].items():
        own = {figure: one["healthy"][figure][0] for figure in ("auprc", "rem_outcome", "idx_outcome")}
        cells = [" ".join(f"{value:.3f}" for value in row.values()) for row in (own, *one["rows"].values())]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--committed", type=Path, default=Path("benchmarks/results"), help="folder of accuracy-*.json")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--sets", nargs="*", choices=list(accuracy.SETS), default=list(accuracy.SETS))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--folds", type=int, default=3)
    args = parser.parse_args()
    path = args.out / "healthy.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"labelled": {}}
    if args.splits:  # 0: as they were measured before
        found |= {"splits": args.splits, "sentinel": sentinel(args.traces / "sentinel", args.splits)}
    for name in ("", *args.sets):
        if name:
            found["labelled"][name] = labelled(name, args.traces, args.committed, args.repeats, args.folds)
        path.write_text(json.dumps(found, indent=1) + "\n")
        (args.out / "healthy.md").write_text(text(found))
    print(text(found))


if __name__ == "__main__":
    main()
