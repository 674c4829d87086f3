"""A monitor of runs that say what steps took: trained, saved, live as in a file; and as before where none say it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prefixguard.cli.information import info
from prefixguard.context import FEATURES, N_FEATURES, SIGNAL_FEATURES
from prefixguard.evaluation import evaluate
from prefixguard.learn import TrainConfig, featurise, train
from prefixguard.runtime import load
from prefixguard.simulation import write_runs
from prefixguard.stepview import ReadReport, load_adapter, read_runs

GBDT = TrainConfig(backend="gbdt", budget=0.25, max_features=300, signals=True)


def write_timed(path: Path, every: int = 1, unit: float = 1.0) -> Path:
    """Lab runs; of every so-manieth, messages have a time and a cost, and failures get slower."""
    write_runs(path, 160, 3)
    rng, lines = np.random.default_rng(5), []
    for i, line in enumerate(path.read_text().splitlines()):
        run, at = json.loads(line), 1_700_000_000.0
        for n, message in enumerate(run["messages"]):
            at += float(rng.exponential(2.0 + 4.0 * n * (run["outcome"] == "failure")))
            if i % every == 0:
                message |= {"timestamp": at * unit, "cost": 0.01, "usage": {"prompt_tokens": 100 + n}}
        lines.append(json.dumps(run))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def timed(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("timed")
    runs = write_timed(folder / "runs.jsonl")
    train(runs, adapter="openai_chat", out=folder / "monitor", config=GBDT)
    return folder / "monitor", runs


def corpus_of(runs: Path, **given):
    return featurise(read_runs(runs, load_adapter("openai_chat")), **given)


def test_it_is_a_bundle_that_knows_what_steps_took(timed) -> None:
    bundle = load(timed[0]).bundle
    assert bundle.features == (*FEATURES, *SIGNAL_FEATURES) and bundle.kind == "onnx" and bundle.reads_signals
    assert "It reads them, with what their steps took (seconds, tokens, dollars), through adapter" in bundle.card
    assert info(timed[0]).reads == "steps of an agent, with what they took (seconds, tokens, dollars)"
    assert bundle.manifest["reading"]["signals"]["seconds"] > 0.8 and bundle.manifest["config"]["signals"] is True


def test_live_is_file_and_a_saved_session_goes_on(timed) -> None:
    monitor = load(timed[0])
    runs = timed[1].read_text().splitlines()
    whole = {run.run_id: monitor.score_run(run.records) for run in read_runs(timed[1], load_adapter("openai_chat"))}
    for line in runs[:6]:
        run = json.loads(line)
        session, said = monitor.start(), []
        for n, message in enumerate(run["messages"]):
            if n == 5:
                session = monitor.restore(session.save())
            said += session.observe(message)
        said += session.end()
        expected = [(one.imminent_risk, one.outcome_risk, one.level) for one in whole[run["run_id"]]]
        assert [(one.imminent_risk, one.outcome_risk, one.level) for one in said] == expected


def test_what_steps_took_moves_the_risk(timed) -> None:
    monitor, changed = load(timed[0]), 0
    for line in timed[1].read_text().splitlines()[:20]:
        messages = json.loads(line)["messages"]
        risks = []
        for stretch in (1.0, 30.0):
            session = monitor.start()
            told = [{**one, "timestamp": 1.7e9 + stretch * (one["timestamp"] - 1.7e9)} for one in messages]
            risks.append([reading.outcome_risk for one in told for reading in session.observe(one)])
        changed += risks[0] != risks[1]
    assert changed > 10


def test_an_evaluation_says_what_signals_add(timed) -> None:
    table = evaluate(timed[0], timed[1], resamples=50)
    row = table.baselines["without signals"]
    assert table.outcome.auroc > row.outcome.auroc + 0.02  # failures get slower, and nothing else says so
    assert row.outcome.differences["auroc"].value == pytest.approx(table.outcome.auroc - row.outcome.auroc)
    assert "what signals add" in row.note and row.first_alert


def test_held_signals_say_nothing_and_live_sessions_are_as_before(timed) -> None:
    monitor = load(timed[0])
    run = next(iter(read_runs(timed[1], load_adapter("openai_chat"))))
    bare = [replace(record, signals=None) for record in run.records]
    held = [one.outcome_risk for one in monitor.without_signals().score_run(run.records)]
    assert held == [one.outcome_risk for one in monitor.without_signals().score_run(bare)]
    assert held != [one.outcome_risk for one in monitor.score_run(run.records)]
    saved = monitor.without_signals().start().save()
    assert monitor.without_signals().restore(saved)


def test_milliseconds_are_the_same_runs(timed, tmp_path: Path) -> None:
    other = corpus_of(write_timed(tmp_path / "ms.jsonl", unit=1000.0)).context
    assert np.allclose(other, corpus_of(timed[1]).context, atol=1e-4)


def test_without_the_option_and_for_healthy_runs_nothing_is_learned_of_it(timed, tmp_path: Path) -> None:
    for config in (
        TrainConfig(backend="gbdt", budget=0.25, max_features=300),
        TrainConfig(backend="healthy", budget=0.25, max_features=300, signals=True),
    ):
        out = tmp_path / config.backend
        train(timed[1], adapter="openai_chat", out=out, config=config)
        bundle = load(out).bundle
        assert not bundle.reads_signals and "what their steps took" not in bundle.card
        assert bundle.features == FEATURES and bundle.manifest["config"].get("signals", False) is config.signals


def test_runs_that_mostly_say_nothing_read_as_before_and_that_is_said(tmp_path: Path) -> None:
    plain, some = tmp_path / "plain.jsonl", write_timed(tmp_path / "some.jsonl", every=3)
    write_runs(plain, 160, 3)
    assert corpus_of(some).context.tobytes() == corpus_of(plain).context.tobytes()
    assert corpus_of(plain, signals=True).context.shape[1] == N_FEATURES + len(SIGNAL_FEATURES)
    result = train(some, adapter="openai_chat", out=tmp_path / "m", config=GBDT)
    assert any("106 of 160 runs do not say what their steps took" in note for note in result.notes)
    assert load(tmp_path / "m").bundle.features == FEATURES


def test_half_of_the_runs_are_enough(tmp_path: Path) -> None:
    corpus = corpus_of(write_timed(tmp_path / "half.jsonl", every=2))
    assert corpus.has_signals and corpus.with_signals == 80
    assert corpus.without_signals().context.shape[1] == N_FEATURES


def test_runs_that_lost_their_signals_are_told_of(timed, tmp_path: Path) -> None:
    plain, report = tmp_path / "plain.jsonl", ReadReport()
    write_runs(plain, 60, 4)
    monitor = load(timed[0])
    assert all(monitor.score_run(run.records) for run in read_runs(plain, load_adapter("openai_chat"), report=report))
    assert monitor.expected is not None
    assert any(
        said.startswith("seconds:") and "do not say it" in said for said in monitor.expected.missing(report.fills)
    )
