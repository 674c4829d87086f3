"""What is set on runs that nothing was trained on, by the bundle's own step: maps from logits to probabilities, the
thresholds of WATCH and ALARM, and what a drift signal compares later runs with.
"""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import (
    AlarmPolicy,
    Thresholds,
    alarm_table,
    alarm_threshold,
    draw_one_per_task,
    run_maximum,
    watch_threshold,
    watched,
)
from prefixguard.bundle import BundleParts, Platt, open_bundle, write_bundle
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.runtime import DriftReference, StepModel, open_model, summarise_steps


def bundle_logits(
    parts: BundleParts, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]
) -> dict[int, NDArray[np.float64]]:
    """Logits of every step of these runs, float64 (T, 2), by the bundle of these parts: written, opened and run."""
    folder = Path(tempfile.mkdtemp(prefix="prefixguard-"))
    try:
        write_bundle(folder / "bundle", parts)
        model = open_model(open_bundle(folder / "bundle"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {r: model_logits(model, corpus, rows, r) for r in runs.tolist()}


def model_logits(model: StepModel, corpus: Corpus, rows: Rows, run: int) -> NDArray[np.float64]:
    """Logits of every step of a run, float64 (T, 2): imminent, outcome."""
    indices, values, counts = rows.run(run)
    ends = np.cumsum(counts).tolist()
    state, start = model.initial, 0
    logits = np.empty((len(ends), 2))
    for t, end in enumerate(ends):
        step = int(corpus.first[run]) + t
        row = SparseRow(indices[start:end], values[start:end])
        said = model.step(corpus.tool(step), row, corpus.context[step], state, corpus.held_at(step))
        logits[t], state, start = (said.imminent, said.outcome), said.state, end
    return logits


_FLAT = 1e-3  # slope given to a map whose data say that higher logits mean less risk: (nearly) the base rate for all


def fit_platt(logits: NDArray[np.float64], target: NDArray[np.float64]) -> Platt:
    """Maximum-likelihood p = sigmoid(a * logit + b) with Platt's smoothed targets, by Newton steps.

    logits, target: float64 (n,), one for each step. A slope that would not be positive becomes nearly flat.
    Source: Platt 1999; Lin, Lin and Weng 2007.

    >>> fit_platt(np.array([-2.0, -1.0, 1.0, 2.0] * 50), np.array([0.0, 0.0, 1.0, 1.0] * 50)).a > 1
    True
    """
    positive, n = float(target.sum()), len(target)
    high, low = (positive + 1) / (positive + 2), 1 / (n - positive + 2)
    t = np.where(target > 0.5, high, low)
    base = math.log((positive + 1) / (n - positive + 1))
    theta = np.array([0.0, base])
    x = np.stack([logits, np.ones(n)])
    ridge = 1e-9 * np.eye(2)

    def cost(w: NDArray[np.float64]) -> float:
        z = w @ x
        return float((np.logaddexp(0, z) - t * z).sum())

    value = cost(theta)
    for _ in range(100):
        p = 1 / (1 + np.exp(-np.clip(theta @ x, -500, 500)))
        gradient = x @ (p - t)
        hessian = (x * (p * (1 - p))) @ x.T + ridge
        step = np.linalg.solve(hessian, gradient)
        scale = 1.0
        while scale > 1e-8 and cost(theta - scale * step) > value:
            scale /= 2
        theta = theta - scale * step
        new = cost(theta)
        if value - new < 1e-10 * max(1.0, abs(value)):
            break
        value = new
    a, b = theta.tolist()
    return Platt(a, b) if a > _FLAT else Platt(_FLAT, base)


def fit_share(values: NDArray[np.float64]) -> Platt:
    """The map from a value to the share of these values below it: the logistic distribution with their mean and
    deviation. values: (n,), at least one.

    >>> round(fit_share(np.array([0.2, 0.4]))(0.3), 3)
    0.5
    """
    slope = math.pi / (math.sqrt(3) * max(float(values.std()), 0.02))
    return Platt(slope, -slope * float(values.mean()))


def draw_alarm_runs(corpus: Corpus, seed: int, side: NDArray[np.int64]) -> NDArray[np.int64]:
    """The runs of the alarm side that set thresholds: one successful run a task."""
    return draw_drift_runs(corpus, seed, side[~corpus.failed[side]])


def set_thresholds(
    calibration: Sequence[NDArray[np.float64]],
    alarm: Sequence[NDArray[np.float64]],
    policy: AlarmPolicy,
    reachable: int = 0,
) -> tuple[Thresholds, dict[float, Thresholds]]:
    """Thresholds of the policy, and the table of other budgets.

    calibration: outcome risks of the runs of the calibration side, which set the watch threshold. alarm: of those that
    set the alarm, see `draw_alarm_runs`. reachable: as of `alarm_threshold`. Where the budget cannot be kept, the
    thresholds name the reason.
    """
    risks = [float(risk) for risks in calibration for risk in risks]
    maxima = [run_maximum([float(risk) for risk in risks], policy) for risks in alarm]
    thresholds = watched(alarm_threshold(maxima, policy, reachable=reachable), watch_threshold(risks))
    return thresholds, alarm_table(maxima, policy, watch=thresholds.watch)


def draw_drift_runs(corpus: Corpus, seed: int, side: NDArray[np.int64]) -> NDArray[np.int64]:
    """One run a task of the alarm side, whatever its outcome: later runs are watched before theirs is known."""
    drawn = draw_one_per_task(
        [corpus.task_ids[r] for r in side.tolist()], [corpus.run_ids[r] for r in side.tolist()], seed=seed
    )
    return side[drawn]


def drift_reference(
    corpus: Corpus,
    rows: Rows,
    runs: NDArray[np.int64],
    outcome_risks: Mapping[int, NDArray[np.float64]],
    unseen_transitions: Mapping[int, float] | None = None,
) -> dict[str, Any] | None:
    """What a manifest keeps under `drift`; None where there is no run.

    rows: under the bundle's vocabulary. runs: see `draw_drift_runs`. outcome_risks: by run, of each of its steps, by
    the bundle's own steps and map. unseen_transitions: by run, see `RunSummary`; None where there is no automaton.
    No step counts as one that could not be judged: what a monitor refuses to judge is set by these runs too
    (`runtime.field_dropout`), so that none of them is refused, but for at most one run in a thousand.
    """
    if len(runs) == 0:
        return None
    summaries = []
    for r in runs.tolist():
        first, stop = int(corpus.first[r]), int(corpus.first[r + 1])
        words = [len(tokenize(document).hashes) for document in corpus.documents.each(first, stop)]
        unseen = None if unseen_transitions is None else unseen_transitions[r]
        summaries.append(summarise_steps(outcome_risks[r], rows.counts[first:stop], words, unseen))
    return DriftReference.of(summaries).to_json()
