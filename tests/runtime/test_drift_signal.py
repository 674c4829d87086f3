"""The drift signal: silent while runs are exchangeable, as rarely wrong as it says, given when runs change."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_automaton
from finished_run import summarise_records
from tiny_monitor import call, calm_run, failing_run, result, say

from prefixguard.alarm import binomial_cdf
from prefixguard.bundle import write_bundle
from prefixguard.encoder import tokenize
from prefixguard.errors import BundleError, ConfigError, DataError
from prefixguard.runtime import Monitor, load
from prefixguard.runtime.drift import RunSummary, summarise_steps
from prefixguard.runtime.drift_signal import CELLS, SERIES, DriftReference, DriftSignal
from prefixguard.stepview import serialize

SIMULATED_RUNS = 200


def summary(rng: np.random.Generator, shift: float = 0.0) -> RunSummary:
    """Series that hang together, one of them mostly zero and one always."""
    risk = 1 / (1 + math.exp(-rng.normal() - shift))
    return RunSummary(
        largest_risk=risk,
        mean_risk=0.8 * risk,
        known_terms=0.5 + 0.1 * math.tanh(rng.normal() + risk),
        unknown_steps=0.0 if rng.random() < 0.9 else 0.2 * rng.random(),
        unjudged_steps=0.0,
    )


def fill(n: int, seed: int = 0, shift: float = 0.0) -> list[RunSummary]:
    rng = np.random.default_rng(seed)
    return [summary(rng, shift) for _ in range(n)]


def first_signal(signal: DriftSignal, stream: list[RunSummary]) -> int | None:
    return next((i for i, run in enumerate(stream, 1) if signal.observe_run(run)), None)


def most_false(rounds: int, rate: float) -> int:
    """As many signals of `rounds` as a true rate of `rate` would exceed with probability 1/1,000 at most."""
    return next(k for k in range(rounds + 1) if 1 - binomial_cdf(k, rounds, rate) <= 1e-3)


@pytest.fixture(scope="module")
def fresh_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of fresh tasks of the simulation, one a task."""
    from prefixguard.simulation import generate

    path = tmp_path_factory.mktemp("drift") / "drift.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in generate(SIMULATED_RUNS, 77, trials=1)))
    return path


@pytest.fixture(scope="module")
def lab(lab_bundle: Path, fresh_tasks: Path) -> list[RunSummary]:
    """`fresh_tasks` as a monitor trained on other tasks sees them."""
    from prefixguard.runtime import load
    from prefixguard.stepview import load_adapter, read_runs

    monitor = load(lab_bundle)
    return [summarise_records(monitor, run.records) for run in read_runs(fresh_tasks, load_adapter("openai_chat"))]


def test_exchangeable_lab_runs_signal_no_more_often_than_stated(lab: list[RunSummary]) -> None:
    rng, rate, rounds = np.random.default_rng(1), 0.2, 60
    false = 0
    for seed in range(rounds):
        mixed = [lab[i] for i in rng.permutation(len(lab))]
        false += first_signal(DriftSignal(DriftReference.of(mixed[:80]), rate, seed=seed), mixed[80:]) is not None
    assert false <= most_false(rounds, rate)


@pytest.mark.parametrize(("n_reference", "n_stream"), [(1, 80), (15, 60), (60, 120)])
def test_exchangeable_runs_signal_no_more_often_than_stated(n_reference: int, n_stream: int) -> None:
    """Also with a reference of a single run: the stream then is its own."""
    rate, rounds = 0.2, 80
    false = sum(
        first_signal(
            DriftSignal(DriftReference.of(fill(n_reference, 2 * seed)), rate, seed=seed), fill(n_stream, 2 * seed + 1)
        )
        is not None
        for seed in range(rounds)
    )
    assert false <= most_false(rounds, rate)


def test_the_game_is_fair() -> None:
    """What the bets hold after some runs is worth 1 on average: nothing given away (power), nothing made up (proof)."""
    values = []
    for seed in range(600):
        rng = np.random.default_rng(seed)
        reference = DriftReference.of([RunSummary(largest_risk=float(v)) for v in rng.random(12)])
        signal = DriftSignal(reference, 0.01, seed=seed)
        for v in rng.random(4):
            signal.observe_run(RunSummary(largest_risk=float(v)))
        # The heavy tail of the bets is cut: a mean of 600 would hang on a few.
        values.append(min(signal.evidence["largest_risk"], 50.0))
    assert 0.75 < np.mean(values) < 1.1


def test_a_change_of_risk_is_found_and_told() -> None:
    signal = DriftSignal(DriftReference.of(fill(100)), 0.01)
    assert first_signal(signal, fill(60, seed=1)) is None
    at = first_signal(signal, fill(60, seed=2, shift=2.5))
    assert at is not None
    report = signal.report
    assert report is not None and report.run == 60 + at
    risk = report.drifted[0]
    assert risk.name in ("largest_risk", "mean_risk")
    assert risk.higher and risk.since == 60 + at
    assert risk.recent > risk.reference + 0.05
    assert "no longer like the calibration runs" in report.to_text()
    assert f"since run {risk.since}" in report.to_text()
    json.dumps(report.as_json(), allow_nan=False)


def test_a_fall_of_risk_is_found_too() -> None:
    signal = DriftSignal(DriftReference.of(fill(100)), 0.01)
    assert first_signal(signal, fill(80, seed=2, shift=-2.5)) is not None
    assert signal.report is not None
    assert not signal.report.drifted[0].higher


def test_a_signal_stands() -> None:
    signal = DriftSignal(DriftReference.of(fill(100)), 0.01)
    first_signal(signal, fill(80, seed=2, shift=3))
    since = signal.report.drifted[0].since
    for run in fill(300, seed=3):
        report = signal.observe_run(run)
        assert report is not None
        assert report.drifted[0].since == since


@pytest.mark.parametrize(
    ("name", "change", "drifts"),
    [
        ("unknown_steps", 0.7, True),
        ("unseen_transitions", 0.5, True),
        ("unread_events", 0.3, True),
        ("skipped_events", 0.6, True),
        ("unjudged_steps", 0.9, True),
        ("known_terms", 0.05, True),
        ("known_terms", 0.95, False),
    ],
)
def test_every_series_finds_its_change_and_only_in_the_direction_that_matters(
    name: str, change: float, drifts: bool
) -> None:
    rng = np.random.default_rng(4)

    def run(middle: float) -> RunSummary:
        return RunSummary(**{name: float(np.clip(rng.normal(middle, 0.05), 0, 1))})

    signal = DriftSignal(DriftReference.of([run(0.4 if name == "known_terms" else 0.02) for _ in range(60)]), 0.01)
    at = first_signal(signal, [run(change) for _ in range(60)])
    assert (at is not None) == drifts
    if drifts:
        assert [one.name for one in signal.report.drifted] == [name]


def test_a_lab_monitor_that_meets_another_language_signals(
    lab: list[RunSummary], lab_bundle: Path, fresh_tasks: Path
) -> None:
    """The words of every record replaced: known terms fall."""
    import dataclasses

    from prefixguard.runtime import load
    from prefixguard.stepview import load_adapter, read_runs

    monitor = load(lab_bundle)
    other = str.maketrans("abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba")

    def translated(text: str) -> str:
        return text.lower().translate(other)

    signal = DriftSignal(DriftReference.of(lab[:100]), 0.01)
    assert first_signal(signal, lab[100:150]) is None
    for run in list(read_runs(fresh_tasks, load_adapter("openai_chat")))[150:180]:
        records = [
            dataclasses.replace(
                r,
                observation=translated(r.observation),
                action=translated(r.action),
                result=translated(r.result),
                arguments=translated(r.arguments),
            )
            for r in run.records
        ]
        signal.observe_run(summarise_records(monitor, records))
    assert signal.report is not None
    assert "known_terms" in {one.name for one in signal.report.drifted}


def test_what_the_reference_lacks_is_not_watched() -> None:
    signal = DriftSignal(DriftReference.of([RunSummary(largest_risk=0.2), RunSummary(largest_risk=0.3)]))
    assert list(signal.evidence) == ["largest_risk"]
    assert signal.needed == pytest.approx(100)
    assert signal.observe_run(RunSummary(unread_events=1.0)) is None
    assert signal.evidence == {"largest_risk": 1.0}


def test_same_runs_same_signal_whatever_else_there_is() -> None:
    """The tie-breaking numbers hang on seed, run and series alone."""
    reference, stream = DriftReference.of(fill(20)), fill(30, seed=1)
    one, other = DriftSignal(reference, seed=3), DriftSignal(reference, seed=3)
    for run in stream:
        one.observe_run(run)
        other.observe_run(run)
    assert one.evidence == other.evidence
    alone = DriftSignal(DriftReference.of([RunSummary(mean_risk=r.mean_risk) for r in fill(20)]), seed=3)
    for run in stream:
        alone.observe_run(run)
    assert alone.evidence["mean_risk"] == one.evidence["mean_risk"]
    assert sum(reference.cells["mean_risk"]) == 20  # the reference is not written to


def test_reference_and_state_come_back_from_json() -> None:
    reference = DriftReference.of(fill(40))
    back = DriftReference.from_json(json.loads(json.dumps(reference.to_json())))
    assert back.to_json() == reference.to_json()
    whole, half = DriftSignal(reference, 0.05, seed=7), DriftSignal(reference, 0.05, seed=7)
    stream = [*fill(30, seed=1), *fill(40, seed=2, shift=3)]
    for run in stream[:50]:
        whole.observe_run(run)
        half.observe_run(run)
    resumed = DriftSignal.resume(back, json.loads(json.dumps(half.to_json())))
    for run in stream[50:]:
        assert whole.observe_run(run) == resumed.observe_run(run)
    assert whole.report is not None
    assert whole.to_json() == resumed.to_json()


def test_evidence_stays_finite_however_long_the_drift() -> None:
    """Values that never tie rise and rise; the stake is capped, not infinite."""
    signal = DriftSignal(DriftReference.of([RunSummary(mean_risk=0.0)] * 5000))
    for i in range(CELLS):
        signal.observe_run(RunSummary(mean_risk=i / CELLS))
    assert math.isfinite(signal.evidence["mean_risk"])
    assert signal.report is not None
    json.dumps(signal.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda: DriftReference.of([]), DataError, "0 runs give no reference"),
        (lambda: DriftReference.of([RunSummary()]), DataError, "1 runs give no reference"),
        (lambda: DriftSignal(DriftReference.of(fill(3)), 0.0), ConfigError, "drift rate 0"),
        (lambda: DriftReference.from_json({"runs": 3}, "here"), BundleError, "here: its reference"),
        (
            lambda: DriftReference.from_json({"runs": 3, "cells": {"mean_risk": [[CELLS, 3]]}}),
            BundleError,
            "cell 1024 with count 3",
        ),
        (lambda: DriftReference.from_json({"runs": 3, "cells": {"mean_risk": 5}}), BundleError, "cannot be read"),
        (lambda: DriftSignal.resume(DriftReference.of(fill(3)), {}), DataError, "kept state"),
        (lambda: RunSummary(mean_risk=float("nan")), DataError, "mean_risk is nan"),
        (lambda: RunSummary(unread_events=1.2), DataError, "a share"),
    ],
)
def test_what_it_refuses(call: Callable[[], object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_series_are_the_fields_of_a_summary() -> None:
    assert tuple(series.name for series in SERIES) == RunSummary.__slots__


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
