"""Save and restore at any step: nothing that comes later differs, and what is damaged is refused by one error type."""

import hashlib
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tiny_automaton
import tiny_monitor
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_monitor import calm_run, failing_run, say

from prefixguard.alarm import AlarmPolicy, Thresholds
from prefixguard.behaviours import TRACKER_BYTES
from prefixguard.bundle import Calibration, Platt, write_bundle
from prefixguard.context import PACKED_BYTES
from prefixguard.errors import SavedSessionError
from prefixguard.runtime import Level, Monitor, Reading, Session, load
from prefixguard.runtime.saved_session import MOST_BYTES
from prefixguard.stepview import StepRecord, load_adapter

HEAD = 8 + 32
POLICY = AlarmPolicy(consecutive=2, cooldown=2, release=0.5)


def with_release() -> Calibration:
    thresholds = Thresholds(alarm=0.3, watch=0.2, n_runs=40, allowed=1, needed=22, reason=None)
    return Calibration(imminent=Platt(1.0, 0.0), outcome=Platt(1.0, 0.0), thresholds=thresholds, policy=POLICY)


MONITORS = {
    "by hand": tiny_monitor.parts,
    "alarm with memory": lambda: tiny_monitor.parts(calibration=with_release()),
    "fields watched": lambda: tiny_monitor.parts(info=watched()),
    **{name: lambda name=name: tiny_automaton.variants()[name] for name in tiny_automaton.variants()},
}


def watched() -> dict[str, Any]:
    """A manifest that says how training runs filled their fields."""
    from prefixguard.runtime.field_dropout import SERIES

    fields = {name: {"steps": 500, "filled": 0.9, "longest_empty": 1} for name in SERIES}
    events = {"longest_without_step": 2, "most_skipped_of_64": 1}
    return {**tiny_monitor.parts().info, "reading": {"runs": 60, "fields": fields, "events": events}}


@pytest.fixture(scope="module", params=list(MONITORS))
def any_monitor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    path = tmp_path_factory.mktemp("any") / "b"
    write_bundle(path, MONITORS[request.param]())
    return load(path)


def facts(session: Session, readings: list[Reading]) -> Any:
    """All that a host sees of a session, times left out."""
    return [reading.to_json() for reading in readings], dict(session.counters), session.drift


def assert_restored_alike(monitor: Monitor, events: list[Any], *, saves: set[int] | None = None) -> None:
    """Fed to one session, and to one that is saved and restored before each event (or those of `saves`)."""
    whole, moved = monitor.start(), monitor.start()
    for i, event in enumerate(events):
        if saves is None or i in saves:
            data = moved.save()
            assert len(data) <= MOST_BYTES + monitor.model.state_bytes
            moved = monitor.restore(data)
            assert moved.save() == data  # nothing is lost on the way, and saving changes nothing
        assert facts(moved, moved.observe(event)) == facts(whole, whole.observe(event)), f"event {i}"
    moved = monitor.restore(moved.save())
    assert facts(moved, moved.end()) == facts(whole, whole.end())
    moved = monitor.restore(moved.save())
    assert facts(moved, moved.observe(events[0])) == facts(whole, whole.observe(events[0]))


@pytest.mark.parametrize("run", [failing_run, lambda: calm_run(6), lambda: [*calm_run(9), *[say("")] * 9, {}]])
def test_restored_before_every_event_it_goes_on_alike(any_monitor: Monitor, run: Any) -> None:
    assert_restored_alike(any_monitor, run())


WORDS = st.sampled_from(["error", "not found", "ok", "sorry", "id 77", "\x00\x07", "żółć", "\ud800", "🛒" * 90, ""])
EVENT = st.one_of(
    st.builds(say, WORDS),
    st.builds(tiny_monitor.user, WORDS),
    st.builds(tiny_monitor.call, st.integers(0, 5), st.sampled_from(["find", "look"]), WORDS, WORDS),
    st.builds(tiny_monitor.result, st.integers(0, 5), WORDS),
    st.sampled_from([None, 5, {"role": "odd"}, []]),
)


@settings(max_examples=25)
@given(events=st.lists(EVENT, min_size=1, max_size=12))
def test_any_events(any_monitor: Monitor, events: list[Any]) -> None:
    assert_restored_alike(any_monitor, events)


LOG = "Thought 1: look\nAction 1: Search[x]\nObservation 1: nothing\nThought 2: again\nAction 2: Search[x]\n"


def test_a_text_cut_anywhere(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", tiny_monitor.parts(adapter=load_adapter("react_log").to_bytes()))
    assert_restored_alike(load(tmp_path / "b"), list(LOG))


def test_a_session_of_records(monitor: Monitor) -> None:
    record = StepRecord(1, "agent", "", "find", "{}", "", "", "error", "error")
    whole, moved = Session(monitor, None), Session(monitor, None)
    for _ in range(5):
        moved = monitor.restore(moved.save())
        assert moved.observe_record(record).to_json() == whole.observe_record(record).to_json()


def test_thresholds_by_group_stay(tmp_path: Path) -> None:
    from prefixguard.alarm.threshold import GroupThresholds

    def row(alarm: float) -> Thresholds:
        return Thresholds(alarm=alarm, watch=0.1, n_runs=40, allowed=1, needed=22, reason=None)

    calibration = Calibration(
        imminent=Platt(1.0, 0.0),
        outcome=Platt(1.0, 0.0),
        thresholds=row(0.9),
        policy=AlarmPolicy(),
        groups=GroupThresholds("tier", {"gold": row(0.2)}),
    )
    write_bundle(tmp_path / "b", tiny_monitor.parts(calibration=calibration))
    monitor = load(tmp_path / "b")
    for group, level in (("gold", Level.ALARM), ("tin", Level.WATCH), (None, Level.WATCH)):
        session = monitor.start(group=group)
        for event in failing_run()[:4]:
            session.observe(event)
        (reading,) = monitor.restore(session.save()).observe(failing_run()[4])
        assert reading.level is level


def test_the_keeper_is_given_anew(monitor: Monitor) -> None:
    kept: list[StepRecord] = []
    session = monitor.start(keep=kept.append)
    session.observe(say("one"))
    monitor.restore(session.save()).observe(say("two"))
    monitor.restore(session.save(), keep=kept.append).observe(say("three"))
    assert [record.action for record in kept] == ["one", "three"]


def test_a_session_that_judges_no_more_stays_so(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefixguard import context

    session = monitor.start()
    with monkeypatch.context() as patched:
        patched.setattr(context, "update", lambda *_: 1 / 0)
        session.observe(say("x"))
    (reading,) = monitor.restore(session.save()).observe(say("y"))
    assert reading.unknown_reason == "step 1 could not be judged, and what follows rests on it"


def test_in_another_process(bundle_path: Path, monitor: Monitor, tmp_path: Path) -> None:
    session = monitor.start()
    told = [r.to_json() for e in failing_run()[:5] for r in session.observe(e)]
    (tmp_path / "saved").write_bytes(session.save())
    program = """
import json, pathlib, sys
import prefixguard
session = prefixguard.load(sys.argv[1]).restore(pathlib.Path(sys.argv[2]).read_bytes())
print(json.dumps([r.to_json() for e in json.load(sys.stdin) for r in session.observe(e)]))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(bundle_path), str(tmp_path / "saved")],
        input=json.dumps(failing_run()[5:]),
        capture_output=True,
        text=True,
        check=True,
    )
    whole = [r.to_json() for s in [monitor.start()] for e in failing_run() for r in s.observe(e)]
    assert told + json.loads(done.stdout) == whole


def test_another_monitor_refuses_it(monitor: Monitor, tmp_path: Path) -> None:
    data = monitor.start().save()
    write_bundle(tmp_path / "same size", tiny_monitor.parts(model=tiny_monitor.model(scale=2.0)))
    with pytest.raises(SavedSessionError, match=r"saved by another monitor \('[0-9a-f]{12}', and.*Restore it with"):
        load(tmp_path / "same size").restore(data)
    write_bundle(tmp_path / "another size", tiny_automaton.parts())
    with pytest.raises(SavedSessionError, match="of another monitor than"):
        load(tmp_path / "another size").restore(data)


def test_what_is_refused_says_so(monitor: Monitor) -> None:
    data = monitor.start().save()
    for given_, sentence in {
        b"": "These 0 bytes are no saved session",
        b"x" * 5000: "These 5,000 bytes are no saved session",
        data[:-1]: "damaged: its checksum does not match. Save it again",
        data[:6] + b"\x00\x03" + data[8:]: "has version 3, and this release reads up to 2. Upgrade prefixguard",
        data + bytes(200_000): r"at most 131,104 bytes, and this has",
        "text": "A saved session is bytes, not str",
        None: "A saved session is bytes, not NoneType",
    }.items():
        with pytest.raises(SavedSessionError, match=sentence):
            monitor.restore(given_)  # type: ignore[arg-type]


def sealed(body: bytes) -> bytes:
    return b"PGSESS\x00\x02" + hashlib.sha256(body).digest() + body


def assert_harmless(monitor: Monitor, data: bytes) -> bool:
    """Refused by our error, or a session that answers whatever comes; whether it was taken."""
    try:
        session = monitor.restore(data)
    except SavedSessionError:
        return False
    for event in [*failing_run()[:5], 5]:
        for reading in session.observe(event):
            assert (reading.level is Level.UNKNOWN) == (reading.unknown_reason is not None)
    dict(session.counters), session.drift, session.end()
    monitor.restore(session.save())
    return True


def saved(monitor: Monitor, n: int = 10) -> bytes:
    session = monitor.start()
    for event in failing_run()[:n]:  # the last call waits for its result, and faults are kept
        session.observe(event)
    return session.save()


def test_what_an_earlier_release_saved_goes_on(any_monitor: Monitor) -> None:
    """Version 1 holds no behaviours: risks and levels go on alike, and behaviours are those from here on."""
    body = saved(any_monitor)[HEAD:]
    fixed = PACKED_BYTES + TRACKER_BYTES + any_monitor.model.state_bytes
    rest = json.loads(body[fixed:])
    assert rest.pop("faults")
    older = body[:PACKED_BYTES] + body[PACKED_BYTES + TRACKER_BYTES : fixed] + json.dumps(rest).encode()
    session = any_monitor.restore(b"PGSESS\x00\x01" + hashlib.sha256(older).digest() + older)
    whole = any_monitor.restore(saved(any_monitor))
    for event in failing_run()[10:]:
        for told, mine in zip(whole.observe(event), session.observe(event), strict=True):
            assert (mine.step, mine.outcome_risk, mine.level) == (told.step, told.outcome_risk, told.level)
            assert {one.since for one in mine.behaviours} == {mine.step}


def test_flipped_bits_are_found(any_monitor: Monitor) -> None:
    data = saved(any_monitor)
    chosen = random.Random(5)
    for _ in range(200):
        at = chosen.randrange(len(data))
        with pytest.raises(SavedSessionError):
            any_monitor.restore(data[:at] + bytes([data[at] ^ 1 << chosen.randrange(8)]) + data[at + 1 :])


def test_forged_bytes_are_harmless(any_monitor: Monitor) -> None:
    """With a right checksum: random bytes anywhere in the context and the model's state, cuts and insertions."""
    body = saved(any_monitor)[HEAD:]
    chosen = random.Random(7)
    taken = 0
    for _ in range(300):
        at = chosen.randrange(len(body) if chosen.random() < 0.5 else 400)
        n = chosen.choice([1, 1, 2, 8])
        what = chosen.choice([bytes([255]) * n, bytes(n), chosen.randbytes(n)])
        forged = body[:at] + what + body[at + chosen.choice([n, n, n, 0, n + 1]) :]
        taken += assert_harmless(any_monitor, sealed(forged))
    assert taken  # some of it means something


ODD = [None, True, -1, 1 << 70, 1.5, "", "x" * 5000, [], {}, [1, 2, 3], "NaN", [[[[]]]], {"a": 1}]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def test_forged_values_are_harmless(any_monitor: Monitor) -> None:
    """Every value of the JSON part, replaced by every odd one; and every key taken away."""
    body = saved(any_monitor)[HEAD:]
    fixed = PACKED_BYTES + TRACKER_BYTES + any_monitor.model.state_bytes
    document = json.loads(body[fixed:])
    chosen = random.Random(11)
    for place in places(document):
        for odd in [*chosen.sample(ODD, 5), ...]:
            forged = json.loads(body[fixed:])
            if not place:
                forged = odd
            else:
                holder = forged
                for key in place[:-1]:
                    holder = holder[key]
                if odd is ...:
                    del holder[place[-1]]
                else:
                    holder[place[-1]] = odd
            text = json.dumps(forged if forged is not ... else 0).encode()
            assert_harmless(any_monitor, sealed(body[:fixed] + text))
    for text in (b"[" * 50_000, b'{"bundle": NaN}', b"9" * 5000, b"\xff\xfe", b"", b"null"):
        assert not assert_harmless(any_monitor, sealed(body[:fixed] + text))
