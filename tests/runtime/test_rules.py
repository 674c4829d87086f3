"""Rules without training: opened by a word, read like any monitor, saved, bounded; a level and no risk."""

import json
from pathlib import Path
from typing import Any

import pytest
import tiny_monitor
from behaving import call, found_in

import prefixguard
from prefixguard.alarm import rule_level
from prefixguard.errors import BundleError, UsageError
from prefixguard.runtime import Level, Monitor, load


@pytest.fixture(scope="module")
def rules() -> Monitor:
    return load("rules", adapter="openai_chat")


def chat(n: int, result: str = "pending") -> list[dict[str, Any]]:
    """The same call n times, each with its result."""
    events: list[dict[str, Any]] = [{"role": "user", "content": "Is it done?"}]
    for i in range(n):
        function = {"name": "job_status", "arguments": '{"job": 81}'}
        called = [{"id": f"c{i}", "type": "function", "function": function}]
        events.append({"role": "assistant", "content": None, "tool_calls": called})
        events.append({"role": "tool", "tool_call_id": f"c{i}", "content": result})
    return events


def test_a_loop_alarms_with_its_reason_and_without_a_risk(rules: Monitor) -> None:
    session = rules.start()
    readings = [reading for event in chat(7) for reading in session.observe(event)]
    assert [r.level for r in readings] == [Level.OK] * 2 + [Level.WATCH] * 3 + [Level.ALARM] * 2
    last = readings[-1]
    assert (last.imminent_risk, last.outcome_risk, last.unknown_reason, last.symbol) == (None,) * 4
    assert last.reasons[0] == (
        "The same call gave the same result again, and nothing had changed in between: 7 times since step 1 "
        '(job_status {"job":81}). Stop equal calls after the second equal result, or tell the agent that its call '
        "changes nothing"
    )
    assert last.behaviours[0].behaviour.name == "same_call_same_result"
    assert list(last.to_json()) == [
        "step", "imminent_risk", "outcome_risk", "level", "symbol", "state", "reasons", "unknown_reason",
        "behaviours",
    ]  # fmt: skip


def test_a_level_is_that_of_the_behaviours(rules: Monitor) -> None:
    run = [call("get", '{"id":1}', "open")] * 9
    assert [r.level for r in rules.score_run(run)] == [rule_level(findings) for findings in found_in(run)]


def test_live_and_file_are_the_same(rules: Monitor, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps({"run_id": "r", "messages": chat(7)}))
    (scored,) = prefixguard.score("rules", path, adapter="openai_chat")
    session = rules.start()
    live = [r.to_json() for event in chat(7) for r in session.observe(event)]
    assert [r.to_json() for r in scored.readings] == live


def test_saved_before_every_event_it_goes_on_alike(rules: Monitor) -> None:
    whole, moved = rules.start(), rules.start()
    for event in chat(9):
        moved = rules.restore(moved.save())
        told = [[r.to_json() for r in session.observe(event)] for session in (whole, moved)]
        assert told[0] == told[1]


def test_a_file_of_behaviours_counts_too(tmp_path: Path) -> None:
    one = {
        "name": "asks", "kind": "fault", "sentence": "The agent asks.", "nudge": "Wait.", "advice": "Wait.",
        "when": {"tool": "job_status"}, "watch": 1, "alarm": 2,
    }  # fmt: skip
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"schema": "prefixguard/behaviours/v1", "name": "mine", "behaviours": [one]}))
    monitor = load("rules", adapter="openai_chat", behaviours=path)
    session = monitor.start()
    levels = [r.level for event in chat(2, "x") for r in session.observe(event)]
    assert levels == [Level.WATCH, Level.ALARM]
    assert monitor.bundle.id != load("rules", adapter="openai_chat").bundle.id
    assert monitor.bundle.id == load("rules", adapter="openai_chat", behaviours=path).bundle.id


def test_what_needs_risks_says_so(rules: Monitor, tmp_path: Path, bundle_path: Path) -> None:
    with pytest.raises(BundleError, match="An evaluation needs risks, and rules have none"):
        prefixguard.evaluate(rules, tmp_path)
    with pytest.raises(BundleError, match="Calibration needs risks"):
        prefixguard.calibrate(rules, tmp_path)
    with pytest.raises(UsageError, match="trust goes with a bundle"):
        load("rules", trust=[b"key"])
    with pytest.raises(UsageError, match="a file of behaviours goes with rules"):
        load(bundle_path, behaviours=tmp_path / "mine.json")


def test_without_an_adapter_events_are_read() -> None:
    assert load("rules").bundle.adapter.name == "events"


def test_a_folder_of_that_name_is_a_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from prefixguard.bundle import write_bundle

    monkeypatch.chdir(tmp_path)
    write_bundle(tmp_path / "rules", tiny_monitor.parts())
    assert load("./rules").rules is None
    assert load("rules").rules is not None
