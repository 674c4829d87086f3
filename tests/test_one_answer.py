"""One run, one answer: live event by event, from a file, and as the trainer saw it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import prefixguard
from prefixguard import context
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.learn import TrainConfig, featurise, train_corpus
from prefixguard.runtime import OnnxModel
from prefixguard.stepview import load_adapter, read_runs, serialize

TRACES = Path(os.environ.get("PREFIXGUARD_TRACES", ".traces"))


def _live(monitor, run: dict) -> list[prefixguard.Reading]:
    session = monitor.start({k: v for k, v in run.items() if k == "run_id"})
    readings = [r for message in run["messages"] for r in session.observe(message)]
    return readings + [r for r in session.end() if r.level != "UNKNOWN"]


def test_live_events_equal_the_file(lab_bundle, lab_file):
    """Records equal exactly; risks too, since both go through one step path."""
    monitor = prefixguard.load(lab_bundle)
    raw = {r["run_id"]: r for r in map(json.loads, lab_file.read_text().splitlines())}
    for run in list(read_runs(lab_file, monitor.bundle.adapter))[:40]:
        parser = monitor.bundle.adapter.parser({"run_id": run.run_id})
        records = [r for m in raw[run.run_id]["messages"] for r in parser.observe(m)] + parser.end()
        assert tuple(records) == run.records
        whole, live = monitor.score_run(run.records), _live(monitor, raw[run.run_id])
        assert [(r.outcome_risk, r.imminent_risk, r.level, r.symbol) for r in live] == [
            (r.outcome_risk, r.imminent_risk, r.level, r.symbol) for r in whole
        ]


def _check_features_and_logits(bundle_path, source, adapter, runs: int, *, signals: bool = False) -> None:
    """What the trainer stored is what a session computes: context and rows exactly, risks within 1e-6."""
    monitor = prefixguard.load(bundle_path)
    parsed = [r for r in read_runs(source, load_adapter(adapter)) if r.outcome != "unknown"][:runs]
    corpus = featurise(parsed)
    corpus, functions = (corpus, context.signals) if signals else (corpus.without_signals(), context)
    rows = corpus.encode(monitor.bundle.vocabulary)
    model = OnnxModel(monitor.bundle)
    calibration = monitor.bundle.calibration
    for i, run in enumerate(parsed):
        state, numbers = functions.start(), []
        model_state = model.initial
        indices, values, counts = rows.run(i)
        ends = np.cumsum(counts)
        readings = monitor.score_run(run.records)
        for t, record in enumerate(run.records):
            tokens = tokenize(serialize(record))
            numbers.append(functions.update(state, record, tokens))
            row = monitor.bundle.vocabulary.encode(tokens)
            stored = SparseRow(indices[ends[t] - counts[t] : ends[t]], values[ends[t] - counts[t] : ends[t]])
            np.testing.assert_array_equal(row.indices, stored.indices)
            np.testing.assert_array_equal(row.values, stored.values)
            said = model.step(record.tool, stored, corpus.context[corpus.first[i] + t], model_state)
            imminent, outcome, model_state = said.imminent, said.outcome, said.state
            assert readings[t].outcome_risk == pytest.approx(calibration.outcome(outcome), abs=1e-6)
            assert readings[t].imminent_risk == pytest.approx(calibration.imminent(imminent), abs=1e-6)
        np.testing.assert_array_equal(np.stack(numbers), corpus.context[corpus.first[i] : corpus.first[i + 1]])


def test_the_trainer_s_features_are_the_session_s(lab_bundle, lab_file):
    _check_features_and_logits(lab_bundle, lab_file, "openai_chat", 25)


@pytest.mark.slow
def test_training_twice_gives_the_same_bundle(lab_file, tmp_path):
    """Same runs, configuration and seed: the same id, which covers every byte but the training time."""
    adapter = load_adapter("openai_chat")
    corpus = featurise(read_runs(lab_file, adapter))
    config = TrainConfig(epochs=1, symbol_epochs=1, members=1, max_features=128, budget=0.25)
    one = train_corpus(corpus, adapter, out=tmp_path / "one", config=config)
    two = train_corpus(corpus, adapter, out=tmp_path / "two", config=config)
    assert one.id == two.id
    for name in ("model.onnx", "reasons.onnx", "vocabulary.bin", "context.npz", "calibration.json", "CARD.md"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.skipif(not (TRACES / "tau2").is_dir(), reason="real runs are not unpacked (PREFIXGUARD_TRACES)")
@pytest.mark.parametrize("signals", [False, True])
def test_real_runs_have_one_answer(signals, tmp_path):
    adapter = load_adapter("tau2")
    corpus = featurise(read_runs(TRACES / "tau2", adapter))
    config = TrainConfig(epochs=1, symbol_epochs=1, members=1, max_features=512, teacher=0.0, signals=signals)
    result = train_corpus(corpus, adapter, out=tmp_path / "m", config=config)
    _check_features_and_logits(result.path, TRACES / "tau2", "tau2", 40, signals=signals)
