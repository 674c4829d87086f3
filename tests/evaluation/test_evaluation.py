"""`evaluate` with the hand-made monitor: which runs count, and that nothing else happens to them."""

import json

import numpy as np
import pytest
import tiny_monitor

from prefixguard.alarm import AlarmPolicy, alarm_table, table_to_json
from prefixguard.bundle import write_bundle
from prefixguard.errors import BundleError, DataError
from prefixguard.evaluation import alarm_thresholds, evaluate, evaluate_scores, stuck_scores
from prefixguard.runtime import load
from prefixguard.stepview import read_runs, serialize
from prefixguard.trace import Outcome, Run, run_digest, task_hash

TABLE = alarm_table(np.linspace(0.2, 0.9, 60), AlarmPolicy())


def write(folder, **info):
    return write_bundle(folder, tiny_monitor.parts(info={"horizon": 3, "seed": 13} | info))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """Twelve runs of six tasks in the tiny chat format; even tasks fail in their first run."""
    runs = []
    for i in range(12):
        fails = i % 4 == 0
        messages = tiny_monitor.failing_run() if fails else tiny_monitor.calm_run(2 + i % 5)
        messages[0] = tiny_monitor.user(f"Request {i}")
        runs.append({"run_id": f"r{i}", "task_id": f"t{i // 2}", "reward": 0.0 if fails else 1.0, "messages": messages})
    path = tmp_path_factory.mktemp("runs") / "runs.json"
    path.write_text(json.dumps(runs))
    return path


@pytest.fixture(scope="module")
def monitor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("m") / "plain"
    write(folder, tasks={"train": [task_hash("elsewhere")], "test": [task_hash("t0")]})
    return load(folder)


@pytest.fixture(scope="module")
def runs(source, monitor):
    return list(read_runs(source, monitor.bundle.adapter))


def test_it_is_score_run_and_evaluate_scores_and_nothing_else(monitor, runs):
    table = evaluate(monitor, runs, resamples=50)
    readings = [monitor.score_run(run.records) for run in runs]
    plain = evaluate_scores(
        [[reading.imminent_risk for reading in run] for run in readings],
        [[reading.outcome_risk for reading in run] for run in readings],
        [run.outcome is Outcome.FAILURE for run in runs],
        [run.task_id for run in runs],
        policy=monitor.bundle.calibration.policy,
        thresholds=alarm_thresholds(monitor.bundle),
        resamples=50,
        sizes=[[len(serialize(record)) for record in run.records] for run in runs],
    )
    mine, other = table.as_json(), plain.as_json()
    for key in ("runs", "failed_runs", "prefixes", "imminent", "outcome", "first_alert", "verdict"):
        assert mine[key] == other[key], key
    assert (table.runs, table.failed_runs) == (12, 3)


def test_a_folder_and_a_file_will_do(monitor, runs, source):
    table = evaluate(str(monitor.bundle.path), source, resamples=20)
    assert table.to_json() == evaluate(monitor, runs, resamples=20).to_json()


def test_the_incumbent_rule_is_a_row(monitor, runs):
    row = evaluate(monitor, runs, resamples=20).baselines["incumbent rule"]
    assert row.first_alert[0].budget is None
    assert row.first_alert[0].alerts.alerted == 1.0, "the failing runs repeat one failing call"
    assert row.first_alert[0].alerts.false_alarm_rate == 0.0
    assert stuck_scores(runs[0].records).max() == 1.0


def test_tasks_it_was_made_from_are_left_out(tmp_path, runs):
    write(
        tmp_path / "m",
        tasks={
            "train": [task_hash("t0"), task_hash("t1")],
            "calibration": [task_hash("t2")],
            "alarm": [task_hash("t3")],
            "test": [task_hash("t4")],
        },
    )
    table = evaluate(tmp_path / "m", runs, resamples=20)
    assert table.runs == 4
    assert dict(table.left_out.by_use) == {"train": 4, "validation": 0, "calibration": 2, "alarm": 2}
    assert json.loads(table.to_json())["left_out"] == 8


def test_all_counts_them_and_says_so(tmp_path, runs):
    write(tmp_path / "m", tasks={"train": [task_hash("t0")]})
    table = evaluate(tmp_path / "m", runs, all=True, resamples=20)
    assert (table.runs, table.left_out.runs, table.left_out.in_sample) == (12, 0, 2)
    assert "IN SAMPLE: 2 runs" in table.to_text()
    nothing_used = evaluate(tmp_path / "m", [run for run in runs if run.task_id != "t0"], all=True, resamples=20)
    assert nothing_used.left_out.in_sample == 0


def test_a_repeat_of_a_training_run_is_left_out_under_any_name(tmp_path, runs):
    repeated = runs[3]
    write(tmp_path / "m", tasks={"train": [task_hash("x")]}, runs={"train": [run_digest(repeated.records)]})
    renamed = Run("new name", "new task", repeated.outcome, repeated.records, "elsewhere")
    table = evaluate(tmp_path / "m", [*(run for run in runs if run is not repeated), renamed], resamples=20)
    assert (table.runs, table.left_out.by_use["train"]) == (11, 1)


def test_runs_without_outcome_or_steps_are_counted_apart(monitor, runs):
    unknown = Run("u", "t9", Outcome.UNKNOWN, runs[0].records, "x")
    empty = Run("e", "t9", Outcome.FAILURE, (), "x")
    table = evaluate(monitor, [*runs, unknown, empty], resamples=20)
    assert (table.runs, table.left_out.without_outcome, table.left_out.empty) == (12, 1, 1)


def test_what_the_bundle_does_not_say_is_said(tmp_path, runs):
    write(tmp_path / "m")
    nameless = [Run(run.run_id, None, run.outcome, run.records, run.source) for run in runs]
    table = evaluate(tmp_path / "m", nameless, resamples=20)
    assert any("does not say which tasks it was made from" in note for note in table.notes)
    assert any("12 runs name no task" in note for note in table.notes)
    assert table.tasks == 12


def test_repeats_among_the_runs_are_counted(monitor, runs):
    distinct = len({run_digest(run.records) for run in runs})
    again = Run("again", "t77", runs[0].outcome, runs[0].records, "x")
    table = evaluate(monitor, [*runs, again], resamples=20)
    assert f"{13 - distinct} runs say word for word what another run says." in table.notes


def test_nothing_left_says_why(tmp_path, runs, monitor):
    write(tmp_path / "m", tasks={"train": [task_hash(f"t{i}") for i in range(6)]})
    with pytest.raises(DataError, match=r"12 belong to tasks the monitor was made from \(12 train\).*--all"):
        evaluate(tmp_path / "m", runs)
    unknown = [Run(run.run_id, run.task_id, Outcome.UNKNOWN, run.records, run.source) for run in runs]
    with pytest.raises(DataError, match=r"none of 12 has an outcome. Give a labels file"):
        evaluate(monitor, unknown)
    with pytest.raises(DataError, match=r"there is no run to evaluate\. See what the adapter reads with"):
        evaluate(monitor, [])


def test_labels_beside_the_runs(tmp_path, monitor, source):
    """Outcomes of a companion file have the last word."""
    labels = tmp_path / "labels.jsonl"
    labels.write_text("".join(json.dumps({"run_id": f"r{i}", "outcome": "failure"}) + "\n" for i in range(12)))
    assert evaluate(monitor, source, labels=labels, resamples=20).failed_runs == 12


def test_groups_that_say_who_acted(monitor, runs):
    def grouped(name, values):
        return [
            Run(run.run_id, run.task_id, run.outcome, run.records, run.source, {name: values[i % len(values)]})
            for i, run in enumerate(runs)
        ]

    table = evaluate(monitor, grouped("agent", ["a", "b"]), resamples=20)
    assert table.grouped_by == "agent"
    assert evaluate(monitor, grouped("agent", ["a"]), resamples=20).grouped_by is None
    assert evaluate(monitor, grouped("domain", ["a", "b"]), resamples=20).grouped_by is None
    assert evaluate(monitor, grouped("domain", ["a", "b"]), group_by="domain", resamples=20).grouped_by == "domain"
    with pytest.raises(DataError, match=r"no run has a group 'tier'\. Groups of these runs: domain"):
        evaluate(monitor, grouped("domain", ["a"]), group_by="tier")


def test_thresholds_come_from_the_bundle(tmp_path, runs):
    write(tmp_path / "m", alarm_table=table_to_json(TABLE), alarm_lengths=[4] * 60)
    opened = load(tmp_path / "m")
    marks = alarm_thresholds(opened.bundle)
    assert list(marks) == [0.01, 0.05, 0.10]
    assert marks[0.05] == TABLE[0.05]
    assert marks[0.10] == opened.bundle.calibration.thresholds, "the one it goes by has the last word"
    table = evaluate(opened, runs, resamples=20)
    assert [row.budget for row in table.first_alert] == [0.01, 0.05, 0.10]
    assert table.baselines["step index"].first_alert[2].thresholds.alarm == 4.0


def test_a_bundle_with_an_unreadable_table_is_refused(tmp_path, runs):
    write(tmp_path / "m", alarm_table=[{"budget": 0.1}])
    with pytest.raises(BundleError, match=r"manifest.json: its alarm table cannot be read"):
        evaluate(tmp_path / "m", runs)


def test_progress_is_told(monitor, runs):
    seen = []
    evaluate(monitor, runs, resamples=0, progress=seen.append)
    assert seen == list(range(1, 13))


def test_rules_are_tuned_by_the_runs_that_set_the_alarm_one_a_task(tmp_path, runs):
    """Those runs are left out of every figure, and their successful ones give the rules their numbers."""
    alarm = ["t1", "t2", "t3"]
    write(tmp_path / "m", tasks={"alarm": [task_hash(t) for t in alarm], "train": [task_hash("elsewhere")]})
    table = evaluate(load(tmp_path / "m"), runs, resamples=20)
    succeeded = {run.task_id for run in runs if run.task_id in alarm and run.outcome is Outcome.SUCCESS}
    (alert,) = table.baselines["errors in a row"].first_alert[:1]
    assert alert.thresholds.n_runs == len(succeeded) == 3
    assert "needs at least" in alert.reason
    write(tmp_path / "none", tasks={"train": [task_hash("elsewhere")]})
    assert "errors in a row" not in evaluate(load(tmp_path / "none"), runs, resamples=20).baselines
