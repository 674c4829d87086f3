"""A run's shares are what its session counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tiny_automaton
from finished_run import summarise_records
from tiny_monitor import call, calm_run, failing_run, result, say

from prefixguard.bundle import write_bundle
from prefixguard.encoder import tokenize
from prefixguard.errors import DataError
from prefixguard.runtime import Monitor, load
from prefixguard.runtime.drift import RunSummary, summarise_steps
from prefixguard.stepview import serialize


def live(monitor: Monitor, events: list[object]) -> tuple[RunSummary, list[float]]:
    session = monitor.start()
    readings = [reading for event in events for reading in session.observe(event)] + session.end()
    return session.summary(readings), [r.outcome_risk for r in readings if r.outcome_risk is not None]


def test_a_live_run(monitor: Monitor) -> None:
    found, risks = live(monitor, failing_run())
    assert len(risks) == 5
    assert found.largest_risk == max(risks)
    assert found.mean_risk == pytest.approx(sum(risks) / 5)
    assert (found.unknown_steps, found.unread_events, found.unjudged_steps) == (0.0, 0.0, 0.0)
    assert 0 < found.known_terms < 1
    assert found.unseen_transitions is None


def test_records_give_the_same_but_nothing_of_events(monitor: Monitor) -> None:
    parser = monitor.bundle.adapter.parser(None)
    records = [record for event in failing_run() for record in parser.observe(event)] + parser.end()
    found, (of_events, _) = summarise_records(monitor, records), live(monitor, failing_run())
    assert found.unread_events is None and found.skipped_events is None
    for name in ("largest_risk", "mean_risk", "known_terms", "unknown_steps", "unjudged_steps"):
        assert getattr(found, name) == getattr(of_events, name)


def test_numbers_give_the_same_as_a_session(monitor: Monitor) -> None:
    parser = monitor.bundle.adapter.parser(None)
    records = [record for event in failing_run() for record in parser.observe(event)] + parser.end()
    tokens = [tokenize(serialize(record)) for record in records]
    risks = [reading.outcome_risk for reading in monitor.score_run(records)]
    terms = [len(monitor.bundle.vocabulary.encode(one).indices) for one in tokens]
    words = [len(one.hashes) for one in tokens]
    assert summarise_steps(risks, terms, words) == summarise_records(monitor, records)
    half = summarise_steps([0.5, np.nan], [0, 3], [4, 4])
    assert (half.unjudged_steps, half.unknown_steps, half.known_terms, half.mean_risk) == (0.5, 0.5, 0.0, 0.5)
    with pytest.raises(DataError, match="a run of 1 risks, 1 and 2 counts"):
        summarise_steps([0.5], [1], [1, 2])


def test_events_that_nobody_reads_are_counted(monitor: Monitor) -> None:
    broken, _ = live(monitor, [*calm_run(2), 3.5, ["?"], {"role": "tool", "tool_call_id": 7}])
    other, _ = live(monitor, [*calm_run(2), *[{"kind": "heartbeat"}] * 5])
    clean, _ = live(monitor, calm_run(2))
    assert clean.unread_events == 0.0
    assert broken.unread_events > 0 or broken.skipped_events > clean.skipped_events
    assert other.skipped_events > clean.skipped_events


def test_words_that_training_never_had(monitor: Monitor) -> None:
    found, _ = live(monitor, [say("qwzx vvkt"), call(1, "zzgh", '{"jjw": "kkp"}'), result(1, "ggrf hhtz")])
    calm, _ = live(monitor, calm_run())
    assert found.unknown_steps > calm.unknown_steps
    assert found.known_terms < calm.known_terms


def test_transitions_of_an_automaton(tmp_path: Path) -> None:
    """From state 2 no training run came back: a call that works is unseen there."""
    write_bundle(tmp_path / "b", tiny_automaton.parts())
    monitor = load(tmp_path / "b")
    assert live(monitor, failing_run())[0].unseen_transitions == 0.0
    found, _ = live(monitor, [*failing_run(), call(9, "look", '{"id": 5}'), result(9, "ok")])
    assert found.unseen_transitions == pytest.approx(1 / 6)


def test_a_run_without_a_step_has_no_risk(monitor: Monitor) -> None:
    found, risks = live(monitor, [])
    assert risks == []
    assert found.largest_risk is found.mean_risk is found.known_terms is found.unjudged_steps is None
