"""A monitor that learns from successful runs alone: what it takes and refuses; failed runs teach it nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

import prefixguard
from prefixguard.alarm import Level
from prefixguard.context import N_FEATURES
from prefixguard.errors import ConfigError, DataError
from prefixguard.learn import TrainConfig, featurise, fit_monitor, train
from prefixguard.learn.healthy import HealthySteps
from prefixguard.metrics import auroc
from prefixguard.simulation import write_runs
from prefixguard.stepview import load_adapter, read_runs
from prefixguard.trace import Outcome

HEALTHY = TrainConfig(backend="healthy", budget=0.25, max_features=256)


@pytest.fixture(scope="module")
def lab_runs(tmp_path_factory):
    path = tmp_path_factory.mktemp("healthy") / "runs.jsonl"
    write_runs(path, 240, 5)
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(lab_runs, outcome):
    return [run for run in lab_runs if run["outcome"] == outcome]


def made(folder, runs, **options):
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    given = {"adapter": "openai_chat", "config": HEALTHY, "overwrite": True, **options}
    return train(folder / "runs.jsonl", out=folder / "m", **given)


@pytest.fixture(scope="module")
def trained(lab_runs, tmp_path_factory):
    return made(tmp_path_factory.mktemp("trained"), of(lab_runs, "success"))


def test_successful_runs_are_enough(trained, lab_runs, tmp_path):
    """Its bound is set as any monitor's, it tells failed runs from successful ones, and says why in words."""
    manifest = trained.manifest
    assert manifest["data"]["failed"] == 0 and manifest["heads"]["healthy"]["channels"][0] == "context"
    monitor = prefixguard.load(trained.path)
    thresholds = monitor.bundle.calibration.thresholds
    assert thresholds.alarm is not None and thresholds.n_runs >= 9
    failed, greatest, said = [], [], []
    write_runs(tmp_path / "other.jsonl", 120, 6)
    for run in read_runs(tmp_path / "other.jsonl", load_adapter("openai_chat")):
        readings = monitor.score_run(run.records)
        failed.append(run.outcome is Outcome.FAILURE)
        greatest.append(max(reading.outcome_risk for reading in readings))
        said += [reading.reasons for reading in readings if reading.level is Level.ALARM]
    assert auroc(np.array(failed), np.array(greatest)) > 0.6
    alarmed = np.array(greatest) > thresholds.alarm
    assert alarmed[~np.array(failed)].mean() < min(0.35, alarmed[failed].mean())
    assert said and all(reasons and reasons[0] for reasons in said)


def test_failed_runs_among_them_teach_it_nothing(trained, lab_runs, tmp_path):
    """The same model to the byte, whatever failed runs stand among the successful ones, which is said."""
    succeeded, failed = of(lab_runs, "success"), of(lab_runs, "failure")[:40]
    tasks = {run["task_id"] for run in succeeded}
    inside = [run for run in failed if run["task_id"] in tasks] or [
        {**run, "task_id": succeeded[i]["task_id"]} for i, run in enumerate(failed)
    ]
    again = made(tmp_path, [*succeeded, *inside])
    assert f"{len(inside)} runs failed: nothing is learned from them." in " ".join(again.notes)
    for file in ("model.onnx", "vocabulary.bin", "calibration.json"):
        assert (again.path / file).read_bytes() == (trained.path / file).read_bytes(), file


def test_unlabelled_runs_count_as_successful_and_the_assumption_is_said(trained, lab_runs, tmp_path):
    nameless = [{k: v for k, v in run.items() if k != "outcome"} for run in of(lab_runs, "success")]
    again = made(tmp_path, nameless, unlabelled=True)
    said = " ".join(again.notes)
    assert f"{len(nameless)} runs have no outcome and count as successful: assumed is that few of them failed." in said
    assert "one failed run in twenty cost at most .05 of AUROC, one in five up to .15." in said
    assert again.manifest["data"]["taken_as_successful"] == len(nameless)
    of_known, taken = (one.manifest["heads"]["healthy"]["healthy_runs"] for one in (trained, again))
    assert 0.85 * of_known < taken <= 0.9 * of_known  # without the most unusual tenth
    with pytest.raises(DataError, match=r"add one with --labels\. Or, where few of them failed, say --unlabelled\."):
        made(tmp_path, nameless)
    with pytest.raises(ConfigError, match=r"backend gbdt learns from outcomes\. For unlabelled runs say --backend h"):
        made(tmp_path, nameless, unlabelled=True, config=TrainConfig(backend="gbdt"))


def test_what_cannot_be_learned_from_is_refused_with_the_remedy(lab_runs, tmp_path):
    with pytest.raises(DataError, match=r"10 successful runs of \d+ tasks are too few .* at least 20 successful runs"):
        made(tmp_path, of(lab_runs, "success")[:10])
    failed = of(lab_runs, "failure")
    with pytest.raises(DataError, match=rf"all {len(failed)} runs failed: the backend healthy learns from successful"):
        made(tmp_path, failed)
    with pytest.raises(DataError, match=r"ended in success: .* From successful runs alone learns --backend healthy\."):
        made(tmp_path, of(lab_runs, "success"), config=TrainConfig(backend="gbdt"))


def test_too_few_for_the_bound_is_a_monitor_without_alarm(lab_runs, tmp_path):
    few = made(tmp_path, of(lab_runs, "success")[:30], config=TrainConfig(backend="healthy", budget=0.01))
    assert any(note.startswith("no alarm: ") for note in few.notes)
    assert prefixguard.load(few.path).bundle.calibration.thresholds.alarm is None


@pytest.mark.parametrize("tool", ["only", ""])
def test_one_tool_or_none_is_enough(tmp_path, tool):
    """Runs of one tool, or of messages alone, without another word."""
    call = {"id": "c", "type": "function", "function": {"name": tool, "arguments": "{}"}}
    called = {"role": "assistant", "content": "", "tool_calls": [call]}
    step = [called, {"role": "tool", "tool_call_id": "c", "content": ""}]
    runs = [
        {
            "run_id": f"r{i}", "task_id": f"t{i}", "outcome": "success",
            "messages": [{"role": "user", "content": f"go {i}"}]
            + (step * (1 + i % 4) if tool else [{"role": "assistant", "content": "well"}] * (1 + i % 4)),
        }
        for i in range(40)
    ]  # fmt: skip
    monitor = prefixguard.load(made(tmp_path, runs).path)
    run = next(iter(read_runs(tmp_path / "runs.jsonl", load_adapter("openai_chat"))))
    assert all(0 < reading.outcome_risk < 1 for reading in monitor.score_run(run.records))


def test_a_step_is_as_far_as_the_nearest_healthy_one_and_the_run_forgets_it():
    steps = HealthySteps(
        table=np.eye(2, dtype=np.float32),
        deviation=np.full(N_FEATURES, 2, np.float32),
        prototypes=np.eye(2, N_FEATURES + 2, dtype=np.float32),
    )
    context, called = np.zeros((4, N_FEATURES + 3), np.float32), np.zeros((4, 2), np.float32)
    context[1:3, 0], context[2, 1] = 2, 2 * 7
    context[:, N_FEATURES:] = 1e6  # signals, which nothing is learned of
    called[3] = 0.1  # two tools in a step, however common their names are
    points = steps.points(called, context)
    assert steps.distances(points).tolist() == pytest.approx([1, 0, 37**0.5, 3**0.5], abs=1e-4)
    assert steps.running(np.array([3, 0, 0, 4], np.float32)).tolist() == [3, 1.5, 0.75, 4.375]


def test_healthy_steps_beyond_the_limit_are_kept_as_centres_and_the_same_again(lab_runs, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in of(lab_runs, "success")))
    corpus = featurise(read_runs(path, load_adapter("openai_chat")))
    fitted = [fit_monitor(corpus, np.arange(len(corpus)), HEALTHY).heads[0].steps for _ in range(2)]
    assert len(fitted[0].prototypes) == 256 < corpus.lengths.sum()
    assert fitted[0].prototypes.tobytes() == fitted[1].prototypes.tobytes()
    assert fitted[0].half == fitted[1].half > 1


def test_a_corpus_keeps_unlabelled_runs_only_when_asked(lab_runs, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "outcome"}) + "\n" for r in lab_runs[:5]))
    adapter = load_adapter("openai_chat")
    left, kept = featurise(read_runs(path, adapter)), featurise(read_runs(path, adapter), unlabelled=True)
    assert (len(left), left.unknown, left.unlabelled) == (0, 5, 0)
    assert (len(kept), kept.unknown, kept.unlabelled, int(kept.failed.sum())) == (5, 0, 5, 0)
