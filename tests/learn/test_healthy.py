"""A monitor that learns from successful runs alone: what it takes and refuses; failed runs teach it nothing."""

from __future__ import annotations

import json

import numpy as np
import pytest

import prefixguard
from prefixguard.alarm import Level
from prefixguard.errors import ConfigError, DataError
from prefixguard.learn import TrainConfig, featurise, train
from prefixguard.learn.healthy import ChannelEvidence, fit_evidence
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


def test_evidence_rises_with_every_channel_and_the_running_sum_forgets():
    rng = np.random.default_rng(0)
    runs = [rng.exponential(size=(6, 4)).astype(np.float32) for _ in range(50)]
    found = fit_evidence(runs)
    at = np.linspace(0, 50, 200, dtype=np.float32)
    for channel in range(4):
        values = np.full((200, 4), np.float32(0.5))
        values[:, channel] = at
        assert (np.diff(found.of(values)) >= 0).all() and found.of(values)[-1] > found.of(values)[0] + 10
    mean = np.concatenate([found.of(run) for run in runs]).mean()
    assert found.drift == pytest.approx(1.3 * mean, rel=1e-4)
    short = ChannelEvidence(found.channel, found.low, found.width, found.height, drift=1.0)
    assert short.running(np.array([3, 0, 0, 0, 5], np.float32)).tolist() == [2, 1, 0, 0, 4]
    assert short.running(np.full(9, 1e9, np.float32))[-1] == 1e4


def test_a_corpus_keeps_unlabelled_runs_only_when_asked(lab_runs, tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "outcome"}) + "\n" for r in lab_runs[:5]))
    adapter = load_adapter("openai_chat")
    left, kept = featurise(read_runs(path, adapter)), featurise(read_runs(path, adapter), unlabelled=True)
    assert (len(left), left.unknown, left.unlabelled) == (0, 5, 0)
    assert (len(kept), kept.unknown, kept.unlabelled, int(kept.failed.sum())) == (5, 0, 5, 0)
