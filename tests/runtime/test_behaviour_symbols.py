"""An automaton over behaviours at run time: its symbols are those of the behaviours that a reading tells."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_automaton
from tiny_automaton import BEHAVIOURS, by_seed
from tiny_monitor import calm_run, failing_run

from prefixguard.behaviours import held
from prefixguard.bundle import write_bundle
from prefixguard.learn import featurise, model_logits
from prefixguard.runtime import Monitor, load, open_model
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    path: Path = tmp_path_factory.mktemp("bundles") / "behaviours"
    write_bundle(path, tiny_automaton.parts(by_seed(3, 7, BEHAVIOURS.n_symbols, (3,), unseen=0.1), BEHAVIOURS))
    return load(path)


def kept(monitor: Monitor, events: list[object]) -> tuple[list[StepRecord], list[object]]:
    records: list[StepRecord] = []
    session = monitor.start(keep=records.append)
    return records, [reading for event in events for reading in session.observe(event)]


def test_a_loop_of_failing_calls_has_the_loop_s_symbol(monitor: Monitor) -> None:
    _, readings = kept(monitor, failing_run())
    assert [r.symbol for r in readings][1:3] == [1, 0], "failed while it searched; then the same again"
    for reading in readings:
        row, counts = None, held(reading.behaviours)
        assert reading.symbol == BEHAVIOURS.symbol("", row, None, counts)  # type: ignore[arg-type]


def test_live_is_file_and_trainer(monitor: Monitor) -> None:
    """The trainer's stored behaviours give the risks of a session, and records those of events."""
    for events in (failing_run(), calm_run()):
        records, live = kept(monitor, events)
        assert [r.symbol for r in monitor.score_run(records)] == [r.symbol for r in live]
        corpus = featurise([Run("r", "t", Outcome.FAILURE, tuple(records), "here")])
        bundle = monitor.bundle
        logits = model_logits(open_model(bundle), corpus, corpus.encode(bundle.vocabulary), 0)
        outcome = [bundle.calibration.outcome(logit) for logit in logits[:, 1].tolist()]
        assert [r.outcome_risk for r in live] == pytest.approx(outcome, abs=1e-12)


def test_saved_before_every_event_it_goes_on_alike(monitor: Monitor) -> None:
    whole, moved = monitor.start(), monitor.start()
    for event in failing_run():
        moved = monitor.restore(moved.save())
        told = [[(r.to_json(), r.behaviours) for r in session.observe(event)] for session in (whole, moved)]
        assert told[0] == told[1]
