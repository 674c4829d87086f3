"""Every backend and every automaton beside each other on real runs.

    python benchmarks/backends.py .traces --out benchmarks/results/backends

Three task-grouped folds, each with a seed of its own, the same for all rows of a set. Folds are kept in the output
folder as they are done, so that an interrupted benchmark goes on where it stopped. Prints a table a set and writes
NAME.json and backends.md. Figures are means over the folds; intervals are 95 % over a bootstrap of tasks, paired where
rows are compared. ECE: after a Platt map fitted on one half of the test tasks and measured on the other, both ways.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
from accuracy import HORIZON, RESAMPLES, SETS, agent_groups, cross_calibrated, folds_of, measure, read
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import BundleParts, Calibration, Platt, open_bundle, write_bundle
from prefixguard.context import FEATURES
from prefixguard.encoder import SparseRow, fit_vocabulary
from prefixguard.learn import Corpus, Rows, TrainConfig, fit_monitor, labels, out_of_fold
from prefixguard.learn.compile import compile_monitor
from prefixguard.metrics import Resamples, ece, interval
from prefixguard.runtime import open_model
from prefixguard.stepview import load_adapter

BACKENDS = ("gru", "transformer", "fsm", "gbdt")
SEEDS = (13, 14, 15)
LATENCY_STEPS = 2000
Floats = NDArray[np.float64]


def split(corpus: Corpus, k: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Training and test runs of fold k."""
    fold = folds_of(corpus, len(SEEDS), 0)
    return np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def encode(corpus: Corpus, train: NDArray[np.int64]) -> tuple[tuple, Rows]:
    """The vocabulary of a fold, and all rows under it."""
    vocabulary = fit_vocabulary(corpus.texts(train.tolist()), max_features=4096, min_tasks=TrainConfig().min_tasks)
    return vocabulary, corpus.encode(vocabulary[0])


def fit(corpus: Corpus, adapter: str, k: int, backend: str, vocabulary: tuple, rows: Rows) -> dict[str, NDArray]:
    """Scores on the test runs, seconds of training, bytes of the bundle, microseconds a compiled step (median)."""
    train, test = split(corpus, k)
    config = TrainConfig(seed=SEEDS[k], horizon=HORIZON, backend=backend)
    began = time.process_time()
    fitted = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    seconds = time.process_time() - began
    scores = np.concatenate(fitted.logits(corpus, rows, test))
    model, reasons = compile_monitor(fitted)
    arrays = {"typical": fitted.scale.typical, "names": np.array([f.name for f in FEATURES])}
    calibration = Calibration(Platt(1, 0), Platt(1, 0), Thresholds(None, 1.0, 0, 0, 22, "not set"), AlarmPolicy())
    parts = BundleParts(
        load_adapter(adapter).to_bytes(), fitted.vocabulary.to_bytes(), arrays, model, reasons, calibration
    )
    with tempfile.TemporaryDirectory() as folder:
        write_bundle(Path(folder) / "b", parts)
        size = sum(path.stat().st_size for path in (Path(folder) / "b").iterdir())
        opened = open_model(open_bundle(Path(folder) / "b"))
    times = []
    for row, context, _, first in steps(corpus, rows, test):
        if first:
            state = opened.initial
        start = time.perf_counter_ns()
        state = opened.step("", row, context, state).state
        times.append((time.perf_counter_ns() - start) / 1000)
        if len(times) == LATENCY_STEPS:
            break
    made = {"scores": scores, "seconds": np.array(seconds), "bytes": np.array(size), "us": np.array(median(times))}
    if backend == "gru":  # what its symbols-only network says of every step, for automata
        symbols = np.empty(int(corpus.first[-1]), dtype=np.int32)
        for row, context, step, _ in steps(corpus, rows, np.arange(len(corpus))):
            symbols[step] = opened.step("", row, context, opened.initial).symbol
        made["symbols"] = symbols
    return made


def steps(corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> Iterator[tuple[SparseRow, NDArray, int, bool]]:
    """Row, context, position and whether a run begins, of every step."""
    for r in runs.tolist():
        indices, values, counts = rows.run(r)
        start = 0
        for t, end in enumerate(np.cumsum(counts).tolist()):
            step = int(corpus.first[r]) + t
            yield SparseRow(indices[start:end], values[start:end]), corpus.context[step], step, t == 0
            start = end


def cached(path: Path, make) -> dict[str, NDArray]:
    """The arrays at `path`, made where they are not there."""
    if path.exists():
        with np.load(path) as data:
            return dict(data)
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **made)
    print(f"{path.name} done", file=sys.stderr, flush=True)
    return made


def cross_calibrated_ece(corpus: Corpus, test: NDArray[np.int64], scores: Floats) -> float:
    """Mean of both risks' ECE, after `cross_calibrated`."""
    prefixes, risks = corpus.prefixes(test), cross_calibrated(corpus, test, scores)
    labels_of = (prefixes.imminent_labels(HORIZON), prefixes.outcome_labels)
    return float(np.mean([ece(y, risks[:, i]) for i, y in enumerate(labels_of)]))


def run_set(name: str, traces: Path, out: Path, backends: list[str], automata: bool) -> dict:
    """All rows of a set."""
    print(f"{name}: reading", file=sys.stderr, flush=True)
    corpus, _ = read(traces, name)
    folder = out / "folds"
    rows_of: dict[str, list[dict[str, NDArray]]] = {}
    for k in range(len(SEEDS)):
        lazily: list[tuple] = []

        def material(k: int = k, lazily: list = lazily) -> tuple:
            if not lazily:
                lazily.append(encode(corpus, split(corpus, k)[0]))
            return lazily[0]

        for backend in backends:
            path = folder / f"{name}-{k}-{backend}.npz"
            made = cached(path, lambda b=backend, k=k, m=material: fit(corpus, SETS[name][1], k, b, *m()))
            rows_of.setdefault(backend, []).append(made)
        if {"gbdt", "gru"} <= set(backends):
            trees, gru = rows_of["gbdt"][k], rows_of["gru"][k]
            blend = {"scores": (trees["scores"] + gru["scores"]) / 2, "seconds": trees["seconds"] + gru["seconds"]}
            rows_of.setdefault("blend", []).append(blend)
        if automata:
            from backends_automata import automata_rows

            def teacher(k: int = k, m=material) -> dict[str, NDArray]:
                train = split(corpus, k)[0]
                return {"risk": out_of_fold(corpus, m()[1], train, labels(corpus, HORIZON), SEEDS[k])}

            taught = cached(folder / f"{name}-{k}-teacher.npz", teacher)["risk"]
            for row, made in automata_rows(corpus, folder, name, k, split(corpus, k), taught, material, SEEDS[k]):
                rows_of.setdefault(row, []).append(made)
    return summarise(name, corpus, rows_of)


def summarise(name: str, corpus: Corpus, rows_of: dict[str, list[dict[str, NDArray]]]) -> dict:
    """Means over folds, intervals, and each row's paired difference to the blend."""
    group = agent_groups(corpus)
    weights = Resamples.draw(len(set(corpus.task_ids)), n=RESAMPLES, seed=13).weights
    measured: dict[str, dict[str, NDArray]] = {}
    for row, folds in rows_of.items():
        each: dict[str, list[NDArray]] = {}
        for k, fold in enumerate(folds):
            test = split(corpus, k)[1]
            for figure, value in measure(corpus, test, fold["scores"], group, weights).items():
                each.setdefault(figure, []).append(value)
            each.setdefault("ece", []).append(np.array([cross_calibrated_ece(corpus, test, fold["scores"])]))
        measured[row] = {figure: np.nanmean(np.stack(values), axis=0) for figure, values in each.items()}
    reference = measured.get("blend")
    table = {}
    for row, figures in measured.items():
        table[row] = {figure: round(float(values[0]), 4) for figure, values in figures.items()}
        table[row]["interval"] = rounded(interval(figures["auprc"][1:]))
        if reference is not None and row != "blend":
            lead = figures["auprc"] - reference["auprc"]
            table[row]["to_blend"] = [round(float(lead[0]), 4), *(rounded(interval(lead[1:])) or ())]
            table[row]["of_blend"] = round(float(figures["auprc"][0] / reference["auprc"][0]), 4)
        for fact in ("seconds", "bytes", "us", "states", "symbols", "unseen", "fidelity"):
            values = [float(fold[fact]) for fold in rows_of[row] if fact in fold and fold[fact].ndim == 0]
            if values:
                table[row][fact] = round(median(values), 3)
    runs = {"runs": len(corpus), "tasks": len(set(corpus.task_ids)), "steps": int(corpus.first[-1])}
    return {"set": name, **runs, "failed": int(corpus.failed.sum()), "rows": table}


def rounded(pair: tuple[float, float] | None) -> list[float] | None:
    """An interval to four places."""
    return None if pair is None else [round(pair[0], 4), round(pair[1], 4)]


COLUMNS = (
    ("auprc", "AUPRC imminent", "{:.3f}"),
    ("of_blend", "of the blend's", "{:.0%}"),
    ("rem_imminent", "rem: imminent", "{:.3f}"),
    ("rem_outcome", "rem: outcome", "{:.3f}"),
    ("idx_outcome", "idx: outcome", "{:.3f}"),
    ("within_outcome", "within agents", "{:.3f}"),
    ("ece", "ECE", "{:.3f}"),
    ("states", "states", "{:.0f}"),
    ("unseen", "unseen", "{:.1%}"),
    ("fidelity", "agreement", "{:.2f}"),
    ("seconds", "seconds", "{:.2f}"),
    ("bytes", "bundle KB", None),
    ("us", "step us", "{:.1f}"),
)


def text(result: dict) -> str:
    """A set's table as Markdown."""
    lines = [
        f"### {result['set']}: {result['runs']:,} runs of {result['tasks']:,} tasks, {result['steps']:,} steps",
        "",
        "| row | " + " | ".join(head for _, head, _ in COLUMNS) + " | AUPRC minus the blend's |",
        "| --- " * (len(COLUMNS) + 2) + "|",
    ]
    for row, figures in result["rows"].items():
        cells = []
        for key, _, form in COLUMNS:
            value = figures.get(key)
            missing = value is None or value != value
            cells.append("" if missing else f"{value / 1024:,.0f}" if form is None else form.format(value))
        lead = figures.get("to_blend", [])
        lines.append(
            f"| {row} | " + " | ".join(cells) + " | "
            + ("{:+.3f} ({:+.3f}, {:+.3f})".format(*lead) if len(lead) == 3 else "") + " |"
        )  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", type=Path, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    parser.add_argument("--backends", nargs="*", choices=BACKENDS, default=list(BACKENDS))
    parser.add_argument("--no-automata", action="store_true", help="backends only")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/backends"))
    args = parser.parse_args()
    results = []
    for name in args.sets:
        result = run_set(name, args.traces, args.out, args.backends, not args.no_automata)
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
        print(text(result) + "\n", flush=True)
        results.append(result)
    (args.out / "backends.md").write_text("\n\n".join(text(r) for r in results) + "\n")


if __name__ == "__main__":
    main()
