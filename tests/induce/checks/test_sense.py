"""Adapters that read everything and are useless all the same: what is refused, what is only said, what may be so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prefixguard.induce.checks import CheckReport, check_adapter
from prefixguard.induce.checks.sense import _cut_up
from prefixguard.stepview import Adapter

Runs = list[dict[str, Any]]
Check = Callable[..., CheckReport]
Chats = Callable[..., Runs]


def sense(report: CheckReport) -> dict[str, str]:
    """Kind of finding to severity."""
    return {finding.check: finding.severity for finding in report.of("sense")}


def folder(tmp_path: Path, spec: dict[str, Any], files: dict[str, Any]) -> CheckReport:
    """Check a spec on files: text as it is, other values as JSON."""
    for name, value in files.items():
        text = value if isinstance(value, str) else json.dumps(value)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return check_adapter(Adapter(spec), tmp_path, processes=False)


def test_a_right_adapter_makes_sense(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    report = check(spec, make_chats())
    assert not sense(report)
    assert report.figures["runs_succeeded"] == report.figures["runs_failed"] == 20


def test_arguments_without_a_tool(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    del spec["rules"][2]["tool"]
    report = check(spec, make_chats())
    assert sense(report)["sense.no_tool"] == "error" and not report.ok
    spec["waived"] = [{"path": "tool", "reason": "it has one tool, which nothing names"}]
    assert sense(check(spec, make_chats()))["sense.no_tool"] == "note"


def test_calls_taken_for_talk_and_plain_chat(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    spec["rules"] = [rule for rule in spec["rules"] if rule["emit"] in ("skip", "observe", "say")]
    runs = make_chats()
    for run in runs:
        for message in run["messages"]:
            for call in message.pop("tool_calls", []):
                message["content"] += f"\ncalling {call['name']} with {json.dumps(call['arguments'])}"
        run["messages"] = [one for one in run["messages"] if one["role"] != "tool"]
    assert sense(check(spec, runs)) == {"sense.no_tool": "error"}
    for run in runs:
        for message in run["messages"]:
            message["content"] = message["content"].partition("\ncalling")[0]
    report = check(spec, runs)
    assert sense(report) == {"sense.no_tool": "warning"} and report.ok, "an agent may do nothing but talk"


@pytest.mark.parametrize(("tool", "right"), [("Thought", False), ("Action 2:", False), ("think", True), ("ls", True)])
def test_a_part_of_a_step_is_no_tool(
    tool: str, right: bool, spec: dict[str, Any], check: Check, make_chats: Chats
) -> None:
    runs = make_chats()
    for run in runs:
        for message in run["messages"]:
            for call in message.get("tool_calls", ()):
                call["name"] = tool
    found = sense(check(spec, runs))
    assert found.get("sense.tool") == (None if right else "error")
    for run in runs:
        for n, message in enumerate(run["messages"]):
            for call in message.get("tool_calls", ()):
                call["name"] = tool if n % 4 else "ls"
    if not right and (mixed := sense(check(spec, runs)).get("sense.tool")) is not None:
        assert mixed == "warning", "beside real tools it may name a kind of speech"


def test_results_that_belong_to_no_call(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    spec["rules"][2]["call_id"] = "@.name"
    assert sense(check(spec, make_chats()))["sense.no_result"] == "error"
    spec["rules"].pop()
    report = check(spec, make_chats())
    assert sense(report)["sense.no_result"] == "warning", "a format may record no results"


def test_little_of_the_text(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats()
    for run in runs:
        for message in run["messages"]:
            message["more"] = "words that no rule takes " * 60
    assert sense(check(spec, runs)) == {"sense.text": "error"}


def test_one_run_of_many_files(tmp_path: Path, spec: dict[str, Any], make_chats: Chats) -> None:
    spec["container"] = {"format": "json", "runs": "$.all[*]"}
    runs = make_chats(6)
    files: dict[str, Any] = {f"{i}.json": {"all": []} for i in range(6)}
    files["0.json"] = {"all": [{**runs[0], "messages": [m for run in runs for m in run["messages"]]}]}
    assert sense(folder(tmp_path, spec, files))["sense.one_run"] == "error"


def test_transcripts_taken_for_events(tmp_path: Path, spec: dict[str, Any]) -> None:
    log = "\n".join(f"Thought {k}: look\nAction {k}: find[x{k}]" for k in range(5))
    rows = [{"uid": f"q{i}", "log": f"{i} {log}"} for i in range(8)]
    spec |= {
        "container": {"format": "json"},
        "run": {"id": {"file": "stem"}},
        "events": "$[*]",
        "rules": [{"emit": "say", "action": {"text": "@.log"}}],
        "hidden": [],
    }
    assert sense(folder(tmp_path, spec, {"a.json": rows}))["sense.one_run"] == "error"
    for row in rows:
        row["log"] = row["log"][:20]
    assert "sense.one_run" not in sense(folder(tmp_path, spec, {"a.json": rows})), "short events of one run"


def test_a_heading_taken_for_a_run() -> None:
    """Counted by hand: the reader of text is not what is tested here."""

    def evidence(sizes: list[int], files: int = 4) -> Any:
        seen = [
            SimpleNamespace(run=SimpleNamespace(source=f"{i}.md run {k}"), events=range(size))
            for i in range(files)
            for k, size in enumerate(sizes, 1)
        ]
        events = SimpleNamespace(split=object())
        adapter = SimpleNamespace(program=SimpleNamespace(events=events))
        return SimpleNamespace(adapter=adapter, report=SimpleNamespace(runs=len(seen)), seen=tuple(seen))

    assert [one.severity for one in _cut_up(evidence([2, 9]))] == ["error"]
    assert [one.severity for one in _cut_up(evidence([8, 9]))] == ["warning"]
    assert not list(_cut_up(evidence([9]))) and not list(_cut_up(evidence([2, 9], files=2)))
