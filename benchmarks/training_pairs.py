"""The same monitor trained through two adapters on the same runs and folds, and the paired difference."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import accuracy
import numpy as np
from numpy.typing import NDArray

from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, TrainConfig, featurise, fit_monitor
from prefixguard.metrics import Resamples, interval
from prefixguard.stepview import FIELDS, StepRecord
from prefixguard.trace import Outcome, Run

_SEED = 13


def pairs_of(
    one: Sequence[Run[StepRecord]], other: Sequence[Run[StepRecord]], limit: int | None
) -> list[tuple[Run[StepRecord], Run[StepRecord]]]:
    """Runs that both adapters read, side by side, with the outcome, task and id that the first one tells: only the
    records differ. Matched by where they stand. At most so many, drawn by their id."""
    places = {run.source: run for run in other}
    found = [
        (
            run,
            replace(places[run.source], run_id=run.run_id, task_id=run.task_id, outcome=run.outcome, groups=run.groups),
        )
        for run in one
        if run.outcome is not Outcome.UNKNOWN and run.source in places
    ]
    if limit is not None:
        found.sort(key=lambda pair: hashlib.sha256(f"13:{pair[0].run_id}".encode()).hexdigest())
        found = sorted(found[:limit], key=lambda pair: pair[0].run_id)
    return found


def compare(
    name: str, first: Sequence[Run[StepRecord]], second: Sequence[Run[StepRecord]], kept: Path, repeats: int, folds: int
) -> dict[str, Any]:
    """AUPRC (imminent failure) of a monitor trained on each reading, on task-grouped folds, and second - first with a
    95 % interval over tasks. Scores are kept by the content of the readings, so an interrupted comparison goes on."""
    figures: list[list[NDArray[np.float64]]] = []
    n_tasks = len({run.task_id for run in first})
    weights = Resamples.draw(n_tasks, n=accuracy.RESAMPLES, seed=_SEED).weights
    for runs in (first, second):
        corpus = featurise(iter(runs))
        digest = _digest(runs)
        values = []
        for repeat in range(repeats):
            fold = accuracy.folds_of(corpus, folds, repeat)
            for k in range(folds):
                train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
                path = kept / f"{name}-{digest}-{repeat}-{k}-{folds}.npz"
                if path.exists():
                    with np.load(path) as data:
                        scores = data["scores"]
                else:
                    scores = _scores(corpus, train, test, _SEED + repeat)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    np.savez_compressed(path, scores=scores)
                    print(f"{name}: repeat {repeat + 1} fold {k + 1} of {digest} done", file=sys.stderr, flush=True)
                values.append(accuracy.measure(corpus, test, scores, None, weights)["auprc"])
        figures.append(values)
    one, two = (np.nanmean(np.stack(values), axis=0) for values in figures)
    low_high = interval((two - one)[1:])
    return {
        "runs": len(first),
        "tasks": n_tasks,
        "protocol": f"{repeats} x {folds} task-grouped folds",
        "first": round(float(one[0]), 4),
        "second": round(float(two[0]), 4),
        "difference": round(float(two[0] - one[0]), 4),
        "interval": None if low_high is None else [round(low_high[0], 4), round(low_high[1], 4)],
    }


def _digest(runs: Sequence[Run[StepRecord]]) -> str:
    digest = hashlib.sha256()
    for run in runs:
        digest.update(repr((run.run_id, run.task_id, run.outcome.value)).encode("utf-8", "replace"))
        for record in run.records:
            digest.update(repr([getattr(record, field) for field in FIELDS]).encode("utf-8", "replace"))
    return digest.hexdigest()[:16]


def _scores(
    corpus: Corpus, train: NDArray[np.int64], test: NDArray[np.int64], seed: int
) -> NDArray[np.float64]:  # fmt: skip
    """Imminent and outcome scores of the test runs' steps: the row "monitor" of accuracy.py."""
    config = TrainConfig(seed=seed, horizon=accuracy.HORIZON)
    vocabulary = fit_vocabulary(corpus.texts(train.tolist()), max_features=4096, min_tasks=config.min_tasks)
    rows = corpus.encode(vocabulary[0])
    fitted = fit_monitor(corpus, train, config, rows=rows, vocabulary=vocabulary)
    return np.concatenate(fitted.logits(corpus, rows, test))
