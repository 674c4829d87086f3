"""A bundle tells its monitor how calibration runs look: written, read back, silent on like runs, given on others."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import tiny_monitor
from finished_run import summarise_records

import prefixguard
from prefixguard.alarm import draw_one_per_task
from prefixguard.bundle import write_bundle
from prefixguard.errors import BundleError, ConfigError
from prefixguard.runtime import DriftReference, DriftSignal, Monitor, NewTasks, load, score
from prefixguard.simulation import generate
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run, run_digest, task_hash

GOLDEN = Path(__file__).parents[1] / "golden"
#: Of the simulated tasks the first 40 made the bundle, the next 40 calibrate it anew: nine are too few to compare with.
MADE, CALIBRATED = 40, 80
_OTHER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")


def written(path: Path, runs: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    return path


def lab_runs(first: int, stop: int) -> list[dict[str, Any]]:
    """One run of each of these tasks."""
    return list(islice(generate(stop, 5, trials=1), first, None))


def translated(run: dict[str, Any]) -> dict[str, Any]:
    """The run in words that no training run had."""
    said = [
        {**m, "content": m["content"].lower().translate(_OTHER)} if isinstance(m.get("content"), str) else m
        for m in run["messages"]
    ]
    return {**run, "messages": said}


def fed(monitor: Monitor, path: Path) -> DriftSignal:
    """The signal after all runs of a file, or once it is given."""
    signal, new = monitor.drift_signal(), NewTasks(monitor.bundle.manifest)
    for one in score(monitor, path):
        if new.take(one.run) and signal.observe_run(one.summary) is not None:
            break
    return signal


@pytest.fixture(scope="module")
def calibrated(lab_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    folder = tmp_path_factory.mktemp("calibrated")
    runs = written(folder / "runs.jsonl", lab_runs(MADE, CALIBRATED))
    return load(prefixguard.calibrate(lab_bundle, runs, out=folder / "lab").path)


def test_new_runs_of_the_same_world_give_no_signal(lab_bundle: Path, calibrated: Monitor, tmp_path: Path) -> None:
    path = written(tmp_path / "r.jsonl", lab_runs(CALIBRATED, CALIBRATED + 60))
    for monitor in (load(lab_bundle), calibrated):
        signal = fed(monitor, path)
        assert signal.runs == 60 and signal.report is None


def test_runs_in_other_words_give_a_signal_within_100_runs(calibrated: Monitor, tmp_path: Path) -> None:
    runs = [translated(run) for run in lab_runs(CALIBRATED, CALIBRATED + 100)]
    signal = fed(calibrated, written(tmp_path / "r.jsonl", runs))
    assert signal.report is not None and 1 < signal.runs <= 100
    assert "known_terms" in {one.name for one in signal.report.drifted}


def test_what_made_the_monitor_is_not_watched(lab_bundle: Path, lab_file: Path) -> None:
    """Of its own 160 runs, those of the test side are left: one a task."""
    monitor = load(lab_bundle)
    assert fed(monitor, lab_file).runs == len(monitor.bundle.manifest["tasks"]["test"]) > 0


def run(name: str, task: str | None, outcome: Outcome, salt: int, errors: int = 0) -> Run[StepRecord]:
    steps = tuple(
        StepRecord(
            t + 1, "agent", "", "find", f'{{"id":{1000 * salt + t}}}', "", "",
            "Error: order not found" if t < errors else "ok", "error" if t < errors else "ok",
        )
        for t in range(4)
    )  # fmt: skip
    return Run(name, task, outcome, steps, f"{name}.json", {})


def runs_of(n_tasks: int) -> list[Run[StepRecord]]:
    """Of each task one that succeeded, one that failed, one that nobody knows of."""
    outcomes = (Outcome.SUCCESS, Outcome.FAILURE, Outcome.UNKNOWN)
    return [
        run(f"r{i}-{k}", f"t{i}", o, 3 * i + k, (i + k) % 4) for i in range(n_tasks) for k, o in enumerate(outcomes)
    ]


def test_only_one_run_a_task_and_none_of_used_ones_counts() -> None:
    runs = runs_of(4)
    new = NewTasks({"tasks": {"train": [task_hash("t0")], "test": [task_hash("t3")]}, "runs": {"alarm": []}})
    assert [r.run_id for r in runs if new.take(r)] == ["r1-0", "r2-0", "r3-0"]
    twin = {"runs": {"calibration": [run_digest(runs[0].records)]}}
    assert [r.run_id for r in runs if NewTasks(twin).take(r)] == [r.run_id for r in runs[1:]]
    nameless = [replace(r, task_id=None) for r in (runs[0], runs[1], replace(runs[0], run_id="again"))]
    new = NewTasks({})
    assert [r.run_id for r in nameless if new.take(r)] == ["r0-0", "r0-1"], "a log that stands there twice is one"


def test_calibration_sets_the_reference_anew(monitor: Monitor, tmp_path: Path) -> None:
    runs = runs_of(30)
    made = load(prefixguard.calibrate(monitor, runs, out=tmp_path / "a", seed=4).path)
    drawn = draw_one_per_task([r.task_id for r in runs], [r.run_id for r in runs], seed=4)
    assert {runs[i].outcome for i in drawn} == set(Outcome), "whatever their outcome"
    expected = DriftReference.of(summarise_records(monitor, runs[i].records) for i in drawn)
    assert made.bundle.manifest["drift"] == expected.to_json()
    assert made.drift_signal().reference.to_json() == expected.to_json()
    again = load(prefixguard.calibrate(made, runs_of(25), out=tmp_path / "b").path)
    assert again.bundle.manifest["drift"]["runs"] == 25


def test_runs_the_monitor_was_made_from_are_no_reference(monitor: Monitor, tmp_path: Path) -> None:
    parts = tiny_monitor.parts()
    tasks = {"train": [task_hash(f"t{i}") for i in range(30)]}
    old = DriftReference.of(summarise_records(monitor, r.records) for r in runs_of(3)).to_json()
    made = _tiny(tmp_path / "made", replace(parts, info={**parts.info, "tasks": tasks, "drift": old}))
    assert made.drift_signal().reference.runs == 9
    some = prefixguard.calibrate(made, runs_of(35), out=tmp_path / "some", all=True)
    assert some.manifest["drift"]["runs"] == 5
    none = prefixguard.calibrate(made, runs_of(30), out=tmp_path / "none", all=True)
    assert "drift" not in none.manifest
    with pytest.raises(BundleError, match="does not say how its calibration runs look"):
        load(none.path).drift_signal()


def _tiny(path: Path, parts: Any) -> Monitor:
    write_bundle(path, parts)
    return load(path)


@pytest.mark.parametrize("name", ["bundle_v1", "bundle_v2", "bundle_v3"])
def test_older_bundles_say_what_to_do(name: str) -> None:
    monitor = load(GOLDEN / name)
    with pytest.raises(BundleError, match=rf"{name}: does not say .* prefixguard calibrate .*{name} RUNS; or make it"):
        monitor.drift_signal()


def test_a_rate_out_of_range_and_a_reference_that_is_none(lab_bundle: Path, tmp_path: Path) -> None:
    monitor = load(lab_bundle)
    assert monitor.drift_signal(0.2).rate == 0.2
    with pytest.raises(ConfigError, match="drift rate 1"):
        monitor.drift_signal(1)
    parts = tiny_monitor.parts()
    for i, bad in enumerate(([], {"runs": 3}, "x", {"runs": 0, "cells": {"mean_risk": [[1, 1]]}})):
        broken = _tiny(tmp_path / str(i), replace(parts, info={**parts.info, "drift": bad}))
        with pytest.raises(BundleError, match=r"manifest\.json: its reference for drift cannot be read"):
            broken.drift_signal()
