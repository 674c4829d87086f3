"""What a session says, step by step, and how it answers what it cannot judge."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_monitor
from tiny_monitor import call, calm_run, failing_run, result, say, user

from prefixguard import context
from prefixguard.bundle import write_bundle
from prefixguard.errors import AdapterError, PrefixGuardError, TraceError
from prefixguard.runtime import MAX_STEP_BYTES, Level, Monitor, Reading, Session, Step, load
from prefixguard.runtime import session as session_module
from prefixguard.runtime.session import PATIENCE
from prefixguard.stepview import StepRecord, load_adapter


def observe_all(session: Session, events: list[Any]) -> list[Reading]:
    return [reading for event in events for reading in session.observe(event)]


def record(i: int = 1, **changes: Any) -> StepRecord:
    return replace(StepRecord(i, "agent", "", "find", "{}", "", "", "ok", "ok"), **changes)


def test_the_alarm_sounds_before_the_run_is_over(monitor: Monitor) -> None:
    """The failing run: calm while things work, WATCH at the first error, ALARM when the call is repeated."""
    readings = observe_all(monitor.start(), failing_run())
    assert [r.step for r in readings] == [1, 2, 3, 4, 5]
    assert [r.level for r in readings] == [Level.OK, Level.WATCH, Level.ALARM, Level.ALARM, Level.ALARM]
    risks = [r.outcome_risk for r in readings]
    assert risks == sorted(risks)  # type: ignore[type-var]
    assert {r.level for r in observe_all(monitor.start(), calm_run(8))} == {Level.OK}


def test_the_numbers_are_those_of_the_formula(monitor: Monitor) -> None:
    """Step 1 of a run without known words: logits are the bias plus what `step` adds, and what its state echoes."""
    reading = monitor.start().observe_record(record(tool="zzz", result="zzz"))
    rng = np.random.default_rng(7)
    enter, leave = rng.normal(size=(2, 8)) * 0.1, rng.normal(size=(8, 2)) * 0.1
    evidence = np.array([0.05, 0.01])
    logits = np.array(tiny_monitor.BIAS) + evidence + np.tanh(evidence @ enter) @ leave
    assert reading.imminent_risk == pytest.approx(1 / (1 + math.exp(-logits[0])), abs=1e-6)  # float32 in the graph
    assert reading.outcome_risk == pytest.approx(1 / (1 + math.exp(-logits[1])), abs=1e-6)


def test_reasons_say_on_request_which_features_moved_the_risk(bundle_path: Path) -> None:
    readings = observe_all(load(bundle_path, reasons="features").start(), failing_run())
    assert readings[0].reasons == ()
    assert readings[1].reasons == (
        "word `error` in the result",
        "failed steps so far: 1 (usually 0)",
        "words `not found` in the result",
    )
    assert readings[4].reasons[0] == "times this very call was made before: 3 (usually 0)"


def test_a_failure_of_the_reasons_costs_the_reasons_only(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no words")

    good = observe_all(monitor.start(), failing_run())
    monkeypatch.setattr(session_module, "behaviour_reasons", fail)
    session = monitor.start()
    told = observe_all(session, failing_run())
    assert [r.outcome_risk for r in told] == [r.outcome_risk for r in good]
    assert {r.reasons for r in told} == {()}
    assert session.counters["reasons_failed"] == 4


def test_an_open_call_is_judged_at_the_end(monitor: Monitor) -> None:
    session = monitor.start()
    assert observe_all(session, [user("go"), call(1)]) == []
    (reading,) = session.end()
    assert (reading.step, reading.level) == (1, Level.OK)


LOG = "Thought 1: look\nAction 1: Search[x]\nObservation 1: nothing\nThought 2: look again\nAction 2: Search[x]\n"


@pytest.fixture(scope="module")
def log_monitor(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    """The tiny monitor behind an adapter for text."""
    path = tmp_path_factory.mktemp("log") / "b"
    write_bundle(path, tiny_monitor.parts(adapter=load_adapter("react_log").to_bytes()))
    return load(path)


@pytest.mark.parametrize("event", [5, None, [], math.nan, {"role": "user"}, object()])
def test_an_unreadable_event_is_unknown_and_the_session_goes_on(log_monitor: Monitor, event: Any) -> None:
    """An adapter for text is given something else in the middle of a run."""
    session = log_monitor.start()
    before = observe_all(session, [LOG])
    assert len(before) == 1
    (reading,) = session.observe(event)
    assert (reading.level, reading.step) == (Level.UNKNOWN, 1)
    assert str(reading.unknown_reason).startswith("the event could not be read: ")
    assert "this adapter reads text" in str(reading.unknown_reason)
    after = observe_all(session, ["Observation 2: nothing\n"]) + session.end()
    alone = log_monitor.start()
    assert [r.outcome_risk for r in before + after] == [
        r.outcome_risk for r in [*observe_all(alone, [LOG + "Observation 2: nothing\n"]), *alone.end()]
    ]
    assert (session.counters["unread_events"], session.drift.unread_share) == (1, 1 / 3)


def test_text_may_be_cut_anywhere(log_monitor: Monitor) -> None:
    whole = log_monitor.start()
    told = observe_all(whole, [LOG]) + whole.end()
    letters = log_monitor.start()
    assert [r.to_json() for r in observe_all(letters, list(LOG)) + letters.end()] == [r.to_json() for r in told]


@pytest.mark.parametrize("event", [5, None, "text", [], math.nan, b"\xff", object()])
def test_an_event_that_no_rule_takes_is_counted(monitor: Monitor, event: Any) -> None:
    """As in a file; the readings of the others are what they would be without it."""
    session = monitor.start()
    told = observe_all(session, [*failing_run()[:5], event, *failing_run()[5:]])
    assert [r.to_json() for r in told] == [r.to_json() for r in observe_all(monitor.start(), failing_run())]
    assert sum(n for name, n in session.counters.items() if name.startswith("adapter.skipped")) == 1


def test_after_the_end_there_are_only_unknowns(monitor: Monitor) -> None:
    session = monitor.start()
    observe_all(session, calm_run(2))
    assert session.end() == []
    for (reading,) in (session.observe(say("more")), session.end(), [session.observe_record(record())]):
        assert (reading.level, reading.unknown_reason) == (Level.UNKNOWN, "the session has ended")
    assert session.counters["steps"] == 2


def test_an_empty_run_says_so(monitor: Monitor) -> None:
    (reading,) = monitor.start().end()
    assert (reading.step, reading.level, reading.unknown_reason) == (0, Level.UNKNOWN, "the run ended without a step")


def test_a_run_of_another_format_says_so(monitor: Monitor) -> None:
    session = monitor.start()
    told = [session.observe({"kind": "span", "name": f"s{i}"}) for i in range(PATIENCE + 3)]
    assert [len(readings) for readings in told] == [0] * (PATIENCE - 1) + [1] * 4
    assert told[-1][0].level is Level.UNKNOWN
    (last,) = session.end()
    assert "none of the run's 13 events is a step to the adapter tiny_chat" in str(last.unknown_reason)


def test_a_slow_start_is_not_another_format(monitor: Monitor) -> None:
    """Many things arrive before the agent acts: nothing to judge, nothing to complain about."""
    session = monitor.start()
    assert observe_all(session, [user("wait")] * 30) == []
    assert observe_all(session, [say("here I am")])[0].level is Level.OK


@pytest.mark.parametrize("bad", [None, 5, "record", {"tool": "x"}])
def test_what_is_no_record_is_unknown(monitor: Monitor, bad: Any) -> None:
    session = monitor.start()
    reading = session.observe_record(bad)
    assert reading.level is Level.UNKNOWN
    assert "the step could not be read" in str(reading.unknown_reason)
    assert session.observe_record(record()).level is Level.OK


def test_wrong_types_in_a_record_are_unknown(monitor: Monitor) -> None:
    for name in ("actor", "tool", "arguments", "observation", "action", "result", "status"):
        reading = monitor.start().observe_record(record(**{name: 5}))
        assert reading.level is Level.UNKNOWN, name


def test_a_step_too_large_is_unknown(monitor: Monitor) -> None:
    session = monitor.start()
    assert session.observe_record(record(result="x" * (MAX_STEP_BYTES - 100))).level is Level.OK
    reading = session.observe_record(record(result="x" * 50_000_000))
    assert reading.level is Level.UNKNOWN
    assert "more than the 1,048,576 that are read" in str(reading.unknown_reason)
    assert session.counters["unjudged_steps"] == 1


@pytest.mark.parametrize("text", ["\ud800", "\x00\x01\x07\x1b[31m", "é" * 1000, "\u202eabc", "NaN", "\r\n" * 100])
def test_odd_text_is_judged(monitor: Monitor, text: str) -> None:
    readings = observe_all(monitor.start(), [user(text), call(1, text, text, text), result(1, text), say(text)])
    assert {r.level for r in readings} == {Level.OK}


def test_a_failure_inside_stops_all_judgement(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a step that was half taken in, later ones would be guesses."""
    session = monitor.start()
    assert observe_all(session, failing_run()[:5])[-1].level is Level.WATCH

    def fail(*_: object) -> None:
        raise RuntimeError("broken\x1b[31m")

    with monkeypatch.context() as patched:
        patched.setattr(context, "update", fail)
        (reading,) = observe_all(session, failing_run()[5:7])
    assert reading.level is Level.UNKNOWN
    assert reading.unknown_reason == "step 3 could not be judged (RuntimeError: broken\\x1b[31m)"
    (later,) = observe_all(session, failing_run()[7:9])
    assert (later.step, later.level) == (4, Level.UNKNOWN)
    assert later.unknown_reason == "step 3 could not be judged, and what follows rests on it"
    assert session.counters["unjudged_steps"] == 2


def test_a_risk_that_is_no_number_is_unknown(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    state = monitor.model.initial
    monkeypatch.setattr(type(monitor.model), "step", lambda *_: Step(math.nan, 0.0, 0, state))
    reading = monitor.start().observe_record(record())
    assert reading.level is Level.UNKNOWN
    assert "not finite" in str(reading.unknown_reason)


def test_an_error_that_cannot_be_printed_is_still_unknown(monitor: Monitor) -> None:
    class Rude(dict):  # type: ignore[type-arg]
        def __getattribute__(self, name: str) -> Any:
            raise _Unprintable

        def __getitem__(self, name: str) -> Any:
            raise _Unprintable

    class _Unprintable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    session = monitor.start()
    for event in (Rude(role="user"), [Rude(role="user")]):
        for reading in session.observe(event):
            assert reading.level is Level.UNKNOWN


def test_a_session_of_records_takes_no_events(monitor: Monitor) -> None:
    session = Session(monitor, None)
    (reading,) = session.observe(say("x"))
    assert reading.unknown_reason == "this session takes records, not events"
    assert session.end()[0].unknown_reason == "the run ended without a step"


def test_drift_counts_what_is_unlike_training(monitor: Monitor) -> None:
    session = monitor.start()
    assert session.drift.empty_row_share == 0.0
    observe_all(session, [say("zzz qqq"), say("sorry")])
    drift = session.drift
    assert (drift.steps, drift.empty_row_share, drift.unread_share) == (2, 0.5, 0.0)
    assert 0 < drift.terms_a_token < 1


def test_words_beyond_the_filter_are_counted(monitor: Monitor) -> None:
    session = monitor.start()
    for i in range(12):
        words = " ".join(f"w{j}" for j in range(i * 2000, i * 2000 + 2000))
        reading = session.observe_record(record(arguments=f'{{"n": "n{i}"}}', result=words))
    assert reading.level is Level.OK
    assert session.counters["saturated_words"] == session.drift.saturated_words > 3000


def test_a_latency_is_given(monitor: Monitor) -> None:
    for reading in observe_all(monitor.start(), failing_run()):
        assert 0 < reading.latency_us < 1e6


@pytest.mark.parametrize("header", [5, "task", [1]])
def test_only_start_raises_and_only_ours(monitor: Monitor, header: Any) -> None:
    """A header that the adapter does not read may be refused, never with a foreign error."""
    try:
        session = monitor.start(header)
    except PrefixGuardError as exc:
        assert isinstance(exc, (TraceError, AdapterError))
    else:
        assert session.observe(say("hello"))[0].level is Level.OK


def test_records_are_kept_one_for_each_reading(monitor: Monitor) -> None:
    """A host that needs the steps gets those the session parsed, in order, before their readings; nothing else."""
    kept: list[StepRecord] = []
    session = monitor.start(keep=kept.append)
    told = [(len(kept), reading) for event in [*failing_run(), 5, call(9)] for reading in session.observe(event)]
    assert [n for n, _ in told] == [reading.step for _, reading in told] == [1, 2, 3, 4, 5]
    assert [reading.step for reading in session.end()] == [6]
    assert [record.index for record in kept] == [1, 2, 3, 4, 5, 6]
    assert [record.result for record in kept[:2]] == ["ok here it is", "Error: order not found"]
    session.end()
    session.observe(say("late"))
    assert len(kept) == 6
    alone = monitor.start()
    assert [reading.to_json() for _, reading in told] == [r.to_json() for r in observe_all(alone, failing_run())]


def test_a_keeper_that_raises_is_not_called_again(monitor: Monitor) -> None:
    calls = 0

    def keep(_: StepRecord) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("full")

    told = observe_all(monitor.start(keep=keep), failing_run())
    assert calls == 1
    assert [r.to_json() for r in told] == [r.to_json() for r in observe_all(monitor.start(), failing_run())]


def test_two_runs_fed_to_one_session_are_unknown_from_then_on(monitor: Monitor) -> None:
    """The first run's opening comes a second time: from there on nothing is judged, and the remedy is said."""
    session = monitor.start()
    opening = {"role": "system", "content": "You help the customers of a shop, politely."}
    first = observe_all(session, [opening, *failing_run()])
    assert [r.level for r in first[:2]] == [Level.OK, Level.WATCH]
    told = observe_all(session, [opening, *calm_run(3)]) + session.end()
    assert len(told) >= 7
    for reading in told:
        assert reading.level is Level.UNKNOWN
        assert str(reading.unknown_reason) == (
            "the run begins a second time: its first event comes again after steps: the events are of more than one "
            "run. Start a session for each run"
        )
