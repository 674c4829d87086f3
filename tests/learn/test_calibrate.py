from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from finished_run import summarise_records
from sklearn.linear_model import LogisticRegression

from prefixguard.alarm import draw_one_per_task
from prefixguard.learn import Corpus, draw_drift_runs, drift_reference
from prefixguard.learn.calibrate import fit_platt
from prefixguard.runtime import DriftReference, load
from prefixguard.stepview import read_runs
from prefixguard.trace import Side, task_hash


def test_recovers_the_map_that_made_the_labels():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 20_000)
    target = (rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * logits - 1)))).astype(float)
    fitted = fit_platt(logits, target)
    assert fitted.a == pytest.approx(0.5, abs=0.03) and fitted.b == pytest.approx(-1, abs=0.05)


def test_agrees_with_logistic_regression_but_for_smoothed_targets():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, 3000)
    target = (rng.random(3000) < 1 / (1 + np.exp(-logits))).astype(float)
    theirs = LogisticRegression(C=1e9).fit(logits[:, None], target)
    mine = fit_platt(logits, target)
    assert mine.a == pytest.approx(theirs.coef_[0, 0], rel=0.02)
    assert mine.b == pytest.approx(theirs.intercept_[0], abs=0.02)


def test_separable_data_give_finite_parameters():
    fitted = fit_platt(np.array([-1.0, -0.5, 0.5, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite([fitted.a, fitted.b]).all() and fitted.a > 0


@pytest.mark.parametrize("target", [np.zeros(50), np.ones(50)])
def test_one_class_gives_about_the_base_rate(target):
    fitted = fit_platt(np.linspace(-1, 1, 50), target)
    assert fitted(0.0) == pytest.approx(target[0], abs=0.03)


def test_a_map_that_would_fall_becomes_nearly_flat():
    logits = np.linspace(-3, 3, 200)
    fitted = fit_platt(logits, (logits < 0).astype(float))
    assert fitted.a > 0 and fitted(3.0) - fitted(-3.0) < 0.01 and fitted(0.0) == pytest.approx(0.5, abs=0.02)


def test_training_keeps_how_one_run_of_every_task_of_the_alarm_side_looks(lab_bundle: Path, lab_file: Path) -> None:
    monitor = load(lab_bundle)
    manifest = monitor.bundle.manifest
    tasks = set(manifest["tasks"][Side.ALARM.value])
    runs = [run for run in read_runs(lab_file, monitor.bundle.adapter) if task_hash(run.task_id) in tasks]
    drawn = draw_one_per_task([r.task_id for r in runs], [r.run_id for r in runs], seed=manifest["seed"])
    looks = [summarise_records(monitor, runs[i].records) for i in drawn]
    assert manifest["drift"] == DriftReference.of(looks).to_json()
    assert manifest["drift"]["runs"] == len(tasks) > 5


def test_runs_are_drawn_whatever_their_outcome(lab_corpus: Corpus) -> None:
    side = np.arange(60, 120)
    drawn = draw_drift_runs(lab_corpus, 13, side)
    assert len(drawn) == len({lab_corpus.task_ids[r] for r in side}) == len({lab_corpus.task_ids[r] for r in drawn})
    assert set(drawn.tolist()) <= set(side.tolist())
    assert len(set(lab_corpus.failed[drawn].tolist())) == 2
    assert (
        drawn.tolist()
        == draw_drift_runs(lab_corpus, 13, side).tolist()
        != draw_drift_runs(lab_corpus, 14, side).tolist()
    )


def test_without_a_run_there_is_no_reference(lab_corpus: Corpus, lab_bundle: Path) -> None:
    rows = lab_corpus.encode(load(lab_bundle).bundle.vocabulary)
    assert drift_reference(lab_corpus, rows, np.empty(0, np.int64), {}) is None
