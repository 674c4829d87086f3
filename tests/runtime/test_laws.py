"""Laws that every monitor obeys, whatever it is made of; each is one test over the list MONITORS."""

import copy
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import tiny_automaton
import tiny_monitor
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.bundle import write_bundle
from prefixguard.runtime import Level, Monitor, Reading, Session, load

Events = list[dict[str, Any]]


def watch(session: Session, events: list[Any]) -> list[dict[str, Any]]:
    """Readings of a run, times left out."""
    readings = [reading for event in events for reading in session.observe(event)]
    return [reading.to_json() for reading in readings + session.end()]


MONITORS = {
    "by hand": tiny_monitor.parts,
    "without reasons": lambda: tiny_monitor.parts(reasons=None),
    **{name: lambda name=name: tiny_automaton.variants()[name] for name in tiny_automaton.variants()},
}


@pytest.fixture(scope="module", params=list(MONITORS))
def any_monitor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    """MONITORS: every kind of monitor there is."""
    path = tmp_path_factory.mktemp("any") / "b"
    write_bundle(path, MONITORS[request.param]())
    return load(path)


RUNS: list[Callable[[], Events]] = [tiny_monitor.failing_run, tiny_monitor.calm_run, lambda: tiny_monitor.calm_run(30)]
WORDS = st.sampled_from(["error", "not found", "ok", "sorry", "id 77", "\x00\x07", "żółć", "\ud800", ""])
RUN = st.lists(st.tuples(st.sampled_from(["find", "look", "", "respond"]), WORDS, WORDS), min_size=1, max_size=12)


def as_events(run: list[tuple[str, str, str]]) -> Events:
    events: Events = [tiny_monitor.user("go")]
    for i, (tool, argument, result) in enumerate(run):
        if tool:
            events += [tiny_monitor.call(i, tool, json.dumps({"q": argument})), tiny_monitor.result(i, result)]
        else:
            events += [tiny_monitor.say(argument), tiny_monitor.user(result)]
    return events


@pytest.mark.parametrize("run", RUNS)
def test_the_future_does_not_leak(any_monitor: Monitor, run: Callable[[], Events]) -> None:
    """Readings of a prefix do not depend on what came after it."""
    events = run()
    whole = [r.to_json() for s in [any_monitor.start()] for e in events for r in s.observe(e)]
    for stop in range(len(events)):
        part = [r.to_json() for s in [any_monitor.start()] for e in events[:stop] for r in s.observe(e)]
        assert part == whole[: len(part)]


@pytest.mark.parametrize("run", RUNS)
def test_a_new_session_is_a_fresh_start(any_monitor: Monitor, run: Callable[[], Events]) -> None:
    """A run is judged alike whatever the monitor watched before; and twice alike."""
    first = watch(any_monitor.start(), run())
    watch(any_monitor.start(), tiny_monitor.failing_run())
    assert watch(any_monitor.start(), run()) == first


def test_a_monitor_opened_again_judges_alike(bundle_path: Path, monitor: Monitor) -> None:
    events = tiny_monitor.failing_run()
    assert watch(load(bundle_path).start(), events) == watch(monitor.start(), events)


@settings(max_examples=10, deadline=None)
@given(one=RUN, two=RUN, data=st.data())
def test_sessions_do_not_see_each_other(
    any_monitor: Monitor, one: list[tuple[str, str, str]], two: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """Two runs, their events shuffled into each other, are judged as each alone."""
    runs = [as_events(one), as_events(two)]
    alone = [watch(any_monitor.start(), events) for events in runs]
    sessions, told = [any_monitor.start(), any_monitor.start()], [[], []]  # type: ignore[var-annotated]
    queues = [list(events) for events in runs]
    while any(queues):
        i = data.draw(st.sampled_from([i for i in (0, 1) if queues[i]]))
        told[i] += [r.to_json() for r in sessions[i].observe(queues[i].pop(0))]
    for i in (0, 1):
        told[i] += [r.to_json() for r in sessions[i].end()]
    assert told == alone


@pytest.mark.parametrize("run", RUNS)
def test_events_stay_unchanged(any_monitor: Monitor, run: Callable[[], Events]) -> None:
    events = run()
    before = copy.deepcopy(events)
    watch(any_monitor.start(), events)
    assert events == before


def test_the_first_record_gives_a_reading(any_monitor: Monitor) -> None:
    session = any_monitor.start()
    assert session.observe(tiny_monitor.user("hello")) == []
    (reading,) = session.observe(tiny_monitor.say("hello, how can I help?"))
    assert reading.step == 1
    assert reading.level is not Level.UNKNOWN


@pytest.mark.parametrize("run", RUNS)
def test_a_whole_run_is_scored_as_it_is_watched(any_monitor: Monitor, run: Callable[[], Events]) -> None:
    """The same numbers to the last bit: thresholds are set on one path and met on the other."""
    parser = any_monitor.bundle.adapter.parser(None)
    records = [record for event in run() for record in parser.observe(event)] + list(parser.end())
    scored = [reading.to_json() for reading in any_monitor.score_run(records)]
    assert scored == watch(any_monitor.start(), run())


def test_threads_judge_as_one_thread_does(any_monitor: Monitor) -> None:
    """8 threads, 160 sessions at once on one monitor, each session's events in order."""
    runs = [tiny_monitor.calm_run(n % 7 + 1) if n % 3 else tiny_monitor.failing_run()[: n % 11 + 1] for n in range(160)]
    serial = [watch(any_monitor.start(), events) for events in runs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda events: watch(any_monitor.start(), events), runs)) == serial


def test_one_session_used_by_many_threads_stays_whole(monitor: Monitor) -> None:
    """Their order is open, but no step is lost or counted twice."""
    session = monitor.start()
    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(session.observe, [tiny_monitor.say("the same words")] * 200))
    assert sorted(reading.step for readings in told for reading in readings) == list(range(1, 201))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["role", "content", "tool_calls", "function", "name", "arguments", "id", "tool_call_id"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)
NEARLY = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "other"]) | JSON},
    optional={"content": JSON, "tool_calls": JSON | st.lists(JSON, max_size=3), "tool_call_id": JSON},
)


@settings(max_examples=40, deadline=None)
@given(events=st.lists(JSON | NEARLY, max_size=8))
def test_no_event_makes_it_raise(any_monitor: Monitor, events: list[Any]) -> None:
    """Whatever comes, the host gets readings; and each is a judgement or says why there is none."""
    session = any_monitor.start()
    readings = [reading for event in events for reading in session.observe(event)] + session.end()
    assert readings
    for reading in readings:
        assert isinstance(reading, Reading)
        if reading.level is Level.UNKNOWN:
            assert reading.unknown_reason
            assert reading.imminent_risk is reading.outcome_risk is reading.symbol is reading.state is None
        else:
            assert reading.unknown_reason is None
            assert (reading.state is None) == (any_monitor.bundle.kind == "onnx")
            assert 0.0 <= reading.imminent_risk <= 1.0  # type: ignore[operator]
            assert 0.0 <= reading.outcome_risk <= 1.0  # type: ignore[operator]
    judged = sum(reading.level is not Level.UNKNOWN for reading in readings)
    assert judged == session.counters["steps"] - session.counters["unjudged_steps"]
    json.dumps([reading.to_json() for reading in readings])
    assert dict(session.counters)
