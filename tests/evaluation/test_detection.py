"""Time to detection: what an onset is, and where first alarms stand to it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import tiny_monitor

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.bundle import write_bundle
from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation import evaluate
from prefixguard.evaluation.analyses import detection, known_onsets, onset_of
from prefixguard.metrics import Resamples
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run

AT = {0.1: Thresholds(0.5, 0.2, 40, 1, 22, None), 0.01: Thresholds(None, 0.2, 40, 0, 230, "too few")}


def measured(alarms: list[int | None], onsets: list[int | None], failed: list[bool] | None = None):
    """Runs of ten steps that alarm at the given step."""
    scores = [np.where(np.arange(1, 11) == alarm, 0.9, 0.1) for alarm in alarms]
    tasks = np.arange(len(alarms), dtype=np.int64)
    drawn = Resamples.draw(len(alarms), n=200)
    return detection(scores, onsets, failed or [True] * len(alarms), tasks, AT, AlarmPolicy(), resamples=drawn)


def test_every_run_with_an_onset_is_detected_early_or_missed() -> None:
    found = measured([5, 3, 9, 2, None, 4, None], [5, 1, 4, 3, 6, None, None], [True] * 5 + [False, True])
    (row,) = found.rows  # the refused budget has none
    assert (found.runs, found.without, found.without_failed) == (5, 2, 1)
    assert (row.detected, row.early, row.missed, row.alarmed_without) == (0.6, 0.2, 0.2, 0.5)
    assert row.detected + row.early + row.missed == pytest.approx(1.0)
    assert row.delays == (0, 2, 5), "an alarm at the onset itself is no late one"
    low, high = row.intervals["detected"]
    assert low < 0.6 < high
    low, high = measured([5] * 8, [5] * 8).rows[0].intervals["missed"]
    assert low == 0.0 < high < 0.4, "none of eight is not none at all"


def test_what_is_shown() -> None:
    text = measured([5, 3, None], [5, 1, None]).to_text()
    assert "2 runs with an onset, 1 without (1 of them failed)" in text and "100.0 %" in text
    nothing = detection(
        [np.ones(2)], [1], [True], np.zeros(1, np.int64), {}, AlarmPolicy(), resamples=Resamples.draw(1)
    )
    said = " ".join(nothing.to_text().split())
    assert said.startswith(
        "Time to detection: 1 runs have an onset, and no alarm is in force: its budget was refused. "
    )
    assert said.endswith("Train with a larger --budget, or calibrate on more successful runs.")
    row = json.loads(measured([None], [3]).to_json())["rows"][0]
    assert (row["missed"], row["alarmed_without"], row["delays"]) == (1.0, None, [])


def record(index: int, status: str) -> StepRecord:
    return StepRecord(index, "agent", "", "search", "{}", "", "", "", status)


RUN = Run("r", "t", Outcome.FAILURE, (record(1, "ok"), record(2, "error"), record(3, "error")), "x")


@pytest.mark.parametrize(
    ("change", "name", "step"),
    [
        ({}, "status=error", 2),
        ({}, "tool=buy", None),
        ({}, "mistake_step", None),
        ({"mistake": Mistake(3, None)}, "mistake_step", 3),
        ({"mistake": Mistake(None, "planner")}, "mistake_step", None),
        ({"groups": {"fault_at": " 2 "}}, "fault_at", 2),
        ({"groups": {"fault_at": ""}}, "fault_at", None),
        ({}, "fault_at", None),
        ({"groups": {"fault_at": "4"}}, "fault_at", 0),
        ({"groups": {"fault_at": "-1"}}, "fault_at", 0),
        ({"groups": {"fault_at": "٣"}}, "fault_at", 0),
        ({"groups": {"fault_at": "9" * 5000}}, "fault_at", 0),
    ],
)
def test_the_onset_of_a_run(change: dict[str, object], name: str, step: int | None) -> None:
    assert onset_of(replace(RUN, **change), name) == step


def test_onsets_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"onset 'risk=1': records have no field 'risk'. Choose from: actor, tool"):
        onset_of(RUN, "risk=1")
    with pytest.raises(
        DataError, match=r"onset 'x': no run has one. Name mistake_step .*\(of these runs: agent, file\)"
    ):
        known_onsets("x", [None, None], {"file", "agent"})
    with pytest.raises(DataError, match="2 runs name something else than the number of one of their steps"):
        known_onsets("x", [0, 0], ())
    assert known_onsets("x", [0, 3, None], ()) == (
        [None, 3, None],
        ["1 runs name an onset that is no step of theirs; they count among those without an onset."],
    )


def test_evaluate_measures_it(tmp_path) -> None:
    write_bundle(tmp_path / "m", tiny_monitor.parts(info={"horizon": 3, "seed": 13}))
    messages = [tiny_monitor.failing_run() if i % 3 == 0 else tiny_monitor.calm_run(4) for i in range(9)]
    raw = [
        {"run_id": f"r{i}", "task_id": f"t{i}", "reward": float(i % 3 > 0), "messages": one}
        for i, one in enumerate(messages)
    ]
    (tmp_path / "runs.json").write_text(json.dumps(raw))
    table = evaluate(tmp_path / "m", tmp_path / "runs.json", onset="status=error", resamples=20)
    found = table.sections["detection"]
    assert (found.runs, found.without, found.without_failed) == (3, 6, 0)
    assert found.rows and found.rows[0].detected == 1.0 and math.isfinite(found.rows[0].alarmed_without)
    assert table.as_json()["detection"]["runs"] == 3 and "Time to detection" in table.to_text()
    assert "detection" not in evaluate(tmp_path / "m", tmp_path / "runs.json", resamples=20).sections
    with pytest.raises(DataError, match="onset 'mistake_step': no run has one"):
        evaluate(tmp_path / "m", tmp_path / "runs.json", onset="mistake_step")


def test_runs_keep_their_labels_for_it(tmp_path) -> None:
    """Labels beside the runs name the step, as those of attribution sets do."""
    write_bundle(tmp_path / "m", tiny_monitor.parts(info={"horizon": 3, "seed": 13}))
    (tmp_path / "runs.json").write_text(
        json.dumps([{"run_id": f"r{i}", "messages": tiny_monitor.failing_run()} for i in range(4)])
    )
    (tmp_path / "labels.csv").write_text(
        "run_id,outcome,mistake_step\n" + "".join(f"r{i},failure,2\n" for i in range(3)) + "r3,success,\n"
    )
    table = evaluate(
        tmp_path / "m", tmp_path / "runs.json", labels=tmp_path / "labels.csv", onset="mistake_step", resamples=5
    )
    assert (table.sections["detection"].runs, table.sections["detection"].without) == (3, 1)
