"""Fields that stop parsing while a run goes on become UNKNOWN with their name, never silence; normal runs never do."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import tiny_monitor
from processor_time import least_seconds
from tiny_monitor import call, result, say, user

from prefixguard.bundle import write_bundle
from prefixguard.encoder import tokenize
from prefixguard.errors import BundleError
from prefixguard.runtime import Level, Monitor, Reading, load
from prefixguard.runtime.field_dropout import LEAST, LEAST_EVENTS, LEAST_SKIPPED, Expected, FieldDropout
from prefixguard.stepview import (
    SERIES,
    Adapter,
    EventGaps,
    FillCounts,
    ReadReport,
    StepRecord,
    fill_marks,
    load_adapter,
    read_runs,
    serialize,
)

RECORD = StepRecord(1, "agent", "", "find", '{"id":1}', "seen", "I look", "found", "ok")
SPOKEN = replace(RECORD, tool="respond", arguments="", result="")


def normal(n: int) -> list[dict[str, Any]]:
    """n calls with their results, a word from the user before each and one of speech at the end."""
    events = []
    for i in range(n):
        events += [user(f"next {i}"), call(i, "look", json.dumps({"id": i}), f"I look {i}"), result(i, f"ok {i}")]
    return [*events, say("done")]


@pytest.fixture(scope="module")
def watching(tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    """The tiny monitor, with what reading 30 normal runs counted in its manifest."""
    folder = tmp_path_factory.mktemp("lapses")
    (folder / "runs.json").write_text(json.dumps([{"run_id": str(i), "messages": normal(4)} for i in range(30)]))
    report, counts = ReadReport(), FillCounts()
    for run in read_runs(folder / "runs.json", Adapter(tiny_monitor.CHAT), report=report):
        counts.add(run.records)
    parts = tiny_monitor.parts()
    write_bundle(folder / "m", replace(parts, info={**parts.info, "reading": report.reading(counts)}))
    return load(folder / "m")


def readings(monitor: Monitor, events: list[Any]) -> list[Reading]:
    session = monitor.start()
    return [reading for event in events for reading in session.observe(event)]


def renamed(events: list[Any], old: str, new: str, role: str | None = None, after: int = 0) -> list[Any]:
    """The events, with a key renamed from some event on, as a new version of a producer would."""
    changed = copy.deepcopy(events)
    for event in changed[after:]:
        if (role is None or event["role"] == role) and old in event:
            event[new] = event.pop(old)
    return changed


def test_normal_runs_are_judged(watching: Monitor) -> None:
    assert {reading.level for reading in readings(watching, normal(40))} <= {Level.OK, Level.WATCH, Level.ALARM}


@pytest.mark.parametrize(
    ("old", "new", "role", "said"),
    [
        (
            "content",
            "contents",
            "tool",
            "the results of calls: nothing for 7 steps in a row (training runs: 0 at most)",
        ),
        ("content", "text", "user", "the observation: nothing for 7 steps in a row (training runs: 1 at most)"),
        ("content", "text", "assistant", "the agent's text: nothing for 7 steps in a row"),
    ],
)
def test_a_key_renamed_in_mid_run_is_unknown_until_it_is_back(
    watching: Monitor, old: str, new: str, role: str, said: str
) -> None:
    events = renamed(normal(30), old, new, role, after=3 * 5)
    events[3 * 20 :] = normal(30)[3 * 20 :]
    found = readings(watching, events)
    assert len(found) == 31
    unknown = [reading.step for reading in found if reading.level is Level.UNKNOWN]
    assert unknown == list(range(6 + LEAST, 21)), "from the seventh step without it to the last"
    assert all(said.split(":")[0] in (found[step - 1].unknown_reason or "") for step in unknown)
    assert said in (found[unknown[0] - 1].unknown_reason or "")


def test_renamed_calls_are_no_silence(watching: Monitor) -> None:
    """Nothing becomes a call any more: the agent only seems to speak, and its results answer nothing."""
    found = readings(watching, renamed(normal(30), "tool_calls", "calls", after=9))
    assert found[-1].level is Level.UNKNOWN and "calls: nothing for" in (found[-1].unknown_reason or "")


def test_a_renamed_role_is_no_silence(watching: Monitor) -> None:
    """No event of the agent is taken, so no step comes at all: the session says so by itself."""
    events = normal(60)
    for event in events[9:]:
        event["role"] = {"assistant": "model", "tool": "function"}.get(event["role"], event["role"])
    found = readings(watching, events)
    assert [reading.level for reading in found[:3]] != [Level.UNKNOWN] * 3
    assert found[-1].level is Level.UNKNOWN
    said = {reading.unknown_reason.split(" ")[0] for reading in found if reading.unknown_reason}
    assert said == {"no"}, "no step came of the last ... events"
    assert len(found) > 100, "every further event says it"


def test_many_events_of_unknown_kinds_are_unknown(watching: Monitor) -> None:
    noise = {"role": "progress", "content": "..."}
    events = [one for event in normal(40) for one in (event, noise)]
    session = watching.start()
    found = [reading for event in events for reading in session.observe(event)]
    first = next(reading for reading in found if reading.level is Level.UNKNOWN)
    assert f"{LEAST_SKIPPED + 1} of the last 64 events are of no kind" in (first.unknown_reason or "")
    assert session.drift.skipped_share == pytest.approx(0.5, abs=0.01)
    calm = [reading for event in normal(30) for reading in session.observe(event)]
    assert calm[-1].level is not Level.UNKNOWN, "it recovers"


def test_drift_names_what_has_lapsed(watching: Monitor) -> None:
    session = watching.start()
    for event in renamed(normal(12), "content", "contents", "tool"):
        session.observe(event)
    assert session.drift.lapsed == ("the results of calls",)
    assert session.counters["lapsed_steps"] == 12 - LEAST
    session = watching.start()
    session.observe_record(RECORD)
    assert session.drift.lapsed == ()


def test_records_lapse_as_events_do(watching: Monitor) -> None:
    """`score` reads the same records, so it says the same."""
    found = watching.score_run([replace(RECORD, index=i, result="") for i in range(1, 12)])
    assert [reading.level for reading in found].index(Level.UNKNOWN) == LEAST


def test_old_bundles_say_nothing_and_check_nothing(monitor: Monitor) -> None:
    assert monitor.expected is None
    assert readings(monitor, renamed(normal(30), "content", "contents", "tool"))[-1].level is not Level.UNKNOWN
    golden = load(Path(__file__).parents[1] / "golden" / "bundle_v1")
    assert golden.expected is None


def test_what_applies_where() -> None:
    assert dict(zip(SERIES, fill_marks(RECORD), strict=True)) == dict.fromkeys(SERIES, True) | {
        "the agent's text where it speaks": None
    }
    spoken = dict(zip(SERIES, fill_marks(SPOKEN), strict=True))
    assert spoken["the results of calls"] is None and spoken["calls"] is False
    assert spoken["the agent's text where it speaks"] is True
    assert fill_marks(replace(RECORD, tool=""))[:3] == (False, False, None)


def test_a_short_run_without_a_field_says_so_at_its_end(watching: Monitor) -> None:
    """Too short to lapse; and what an ordinary run lacks is not named."""
    session = watching.start()
    for event in renamed(normal(4), "content", "contents", "tool"):
        assert all(reading.level is not Level.UNKNOWN for reading in session.observe(event))
    (last,) = session.end()
    assert last.level is Level.UNKNOWN
    assert "the results of calls: nothing in all 4 steps of the run" in (last.unknown_reason or "")
    assert "training runs: 100% of the steps" in (last.unknown_reason or "")
    for n in (1, 2, 5):
        session = watching.start()
        for event in normal(n):
            session.observe(event)
        assert session.end() == []


def test_finished_runs_are_compared_with_the_training_runs(watching: Monitor) -> None:
    fills = FillCounts()
    expected = watching.expected
    assert expected is not None
    for _ in range(30):
        fills.add([RECORD, replace(RECORD, result=""), SPOKEN])
    assert expected.missing(fills) == ()
    for _ in range(200):
        fills.add([replace(RECORD, result=""), SPOKEN])
    (one,) = expected.missing(fills)
    assert one.startswith(
        "the results of calls: empty in 230 of 260 steps; in the monitor's training runs it was filled"
    )
    assert "has changed" in one


def test_runs_of_one_step_are_told_where_training_runs_were_longer(watching: Monitor) -> None:
    expected = watching.expected
    assert expected is not None
    fills = FillCounts()
    fills.add([RECORD])
    assert expected.missing(fills) == (), "one run may be short"
    fills.add([RECORD])
    (one,) = expected.missing(fills)
    assert one.startswith("2 of 2 runs have one step; the monitor's training runs had 5.0 on average. A whole run may")
    assert "prefixguard parse" in one
    fills.add([RECORD] * 5)
    assert expected.missing(fills) == ()
    short = FillCounts()
    short.add([RECORD])
    told = Expected.of({"reading": short.to_json()}, "m")
    assert told is not None and told.missing(short) == (), "training runs were as short"


def test_limits_follow_the_training_runs() -> None:
    counts = FillCounts()
    for i in range(40):
        stretch = 10 if i == 7 else 2
        counts.add([RECORD] * 6 + [replace(RECORD, observation="")] * stretch + [RECORD])
    fields = counts.to_json()["fields"]
    assert fields["the observation"] == {
        "steps": 368,
        "filled": pytest.approx(280 / 368, abs=1e-6),
        "longest_empty": 10,
    }
    expected = Expected.of({"reading": counts.to_json()}, "m")
    assert expected is not None
    limits = dict(zip(SERIES, expected.limits, strict=True))
    assert limits["the observation"] == 20 and limits["the tool"] == LEAST
    assert limits["the agent's text where it speaks"] is None, "it never applied"
    for _ in range(2000):
        counts.add([RECORD])
    assert counts.to_json()["fields"]["the observation"]["longest_empty"] == 2, "one run in a thousand is passed over"


def test_a_field_that_is_mostly_empty_is_not_watched() -> None:
    counts = FillCounts()
    for _ in range(30):
        counts.add([RECORD, replace(RECORD, observation=""), replace(RECORD, observation="")])
    lapses = FieldDropout(Expected.of({"reading": counts.to_json()}, "m"))  # type: ignore[arg-type]
    assert not any(lapses.step(replace(RECORD, observation="")) for _ in range(100))


@pytest.mark.parametrize(
    "reading", [3, {}, {"fields": {}}, {"fields": {name: {"filled": "x"} for name in SERIES}}, {"fields": None}]
)
def test_a_manifest_that_cannot_be_read_is_refused(reading: Any) -> None:
    with pytest.raises(BundleError, match="how training runs were read is damaged"):
        Expected.of({"reading": reading}, "m/manifest.json")


def test_gaps_count_events_between_records_and_skipped_ones() -> None:
    gaps = EventGaps()
    for index in (0, 0, 1, 1, 1, 1, 2):
        gaps.count(False, index)
    assert (gaps.events, gaps.without_step, gaps.longest_without_step, gaps.skipped) == (7, 0, 3, 0)
    for _ in range(100):
        gaps.count(True, 2)
    gaps.unread()
    assert (gaps.skipped, gaps.most_skipped, gaps.without_step) == (64, 64, 101)
    for _ in range(64):
        gaps.count(False, 2)
    assert (gaps.skipped, gaps.most_skipped) == (0, 64)
    assert LEAST_EVENTS > 1


def test_a_step_costs_little_more() -> None:
    """Less than cutting the step's text into words; in processor time, in turns, so that other work does not matter."""
    counts = FillCounts()
    counts.add([RECORD] * 60)
    lapses = FieldDropout(Expected.of({"reading": counts.to_json()}, "m"))  # type: ignore[arg-type]
    document = serialize(RECORD)

    def often(step: Callable[[], object]) -> Callable[[], object]:
        return lambda: [step() for _ in range(500)]

    lapse, words = least_seconds(often(lambda: lapses.step(RECORD)), often(lambda: tokenize(document)), times=20)
    assert lapse < words / 2, f"{lapse / 500e-6:.2f} microseconds a step, {words / 500e-6:.2f} for its words"


def lab_runs(first: int, count: int) -> Iterator[dict[str, Any]]:
    from prefixguard.simulation import generate

    return islice(generate(first + count, 5), first, first + count)


def test_runs_of_the_lab_never_lapse(lab_bundle: Path) -> None:
    monitor = load(lab_bundle)
    assert monitor.expected is not None and monitor.expected.without_step is not None
    assert sum(limit is not None for limit in monitor.expected.limits) >= 5
    for run in lab_runs(200, 120):
        session = monitor.start({"run_id": run["run_id"]})
        for event in run["messages"]:
            for reading in session.observe(event):
                assert reading.level is not Level.UNKNOWN, reading.unknown_reason
        assert not any(r.level is Level.UNKNOWN for r in session.end()), "the end too"


def test_a_renamed_key_in_runs_of_the_lab_is_seen(lab_bundle: Path) -> None:
    monitor = load(lab_bundle)
    messages = [event for run in lab_runs(200, 6) for event in run["messages"]]
    assert load_adapter("openai_chat").sha256 == monitor.bundle.adapter.sha256
    assert not any("results" in (reading.unknown_reason or "") for reading in readings(monitor, messages))
    found = readings(monitor, renamed(messages, "content", "contents", "tool"))
    assert any("the results of calls" in (reading.unknown_reason or "") for reading in found)
    assert found[0].level is not Level.UNKNOWN
