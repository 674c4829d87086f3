"""The reference that training writes is what sessions of its bundle say of the drawn runs of the alarm side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from finished_run import summarise_records

from prefixguard.alarm import draw_one_per_task
from prefixguard.learn import Corpus, draw_drift_runs, drift_reference
from prefixguard.runtime import DriftReference, load
from prefixguard.stepview import read_runs
from prefixguard.trace import Side, task_hash


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
