"""Every frozen adapter on hand-written samples: records exact, nothing hidden in them, live equal to whole."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.stepview import StepRecord, list_adapters, load_adapter, read_runs
from prefixguard.trace.run import Outcome, Run

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
NAMES = list_adapters()
#: Stands in the samples wherever a live monitor would see nothing: rewards, verdicts, reference answers.
HIDDEN = "ZZHIDDEN"
#: Formats in which the outcome is printed in words between the steps.
PRINTED = {
    "webshop_react": ("Your score", "0.3333333333333333"),
    "react_log": (HIDDEN, "Answer is CORRECT", "Answer is INCORRECT", "HALTED AGENTS"),
    "terminal_log": (HIDDEN, "$9.7", "(step ", "Waiting for the LM", "LiteLLM"),
}

#: What turns the outcome of a sample: files, and replacements in their text.
TURNED = {
    "openai_chat": ("*", [('"outcome": "success"', '"outcome": "failure"'), ('"success": false', '"success": true')]),
    "tau_bench": ("*.json", [('"reward": 1.0', '"reward": 0.0')]),
    "tau2": ("*.json", [('"reward": 1.0', '"reward": 0.0')]),
    "sweagent": ("results.json", [('"resolved": [', '"resolved": ["acme__clock-2"], "was": [')]),
    "mini_swe_agent": ("report.json", [('"resolved": true', '"resolved": false')]),
    "terminal_log": ("results.json", [('"is_resolved": true', '"is_resolved": false')]),
    "webshop_react": ("*.ipynb", [("max 1.0): 1.0", "max 1.0): 0.25"), ("1 1.0 1.0 0.0", "1 0.25 0.0 0.0")]),
    "online_mind2web": ("result.json", [('"success"', '"error_max_turns"')]),
    "intercode": ("*.json", [('"max_reward": 1', '"max_reward": 0'), ("   1.0\n", "   0.3\n"), ("   1\n", "   0\n")]),
    "react_log": ("*.txt", [("BEGIN CORRECT", "BEGIN HALTED"), ("Answer is CORRECT", "Answer is INCORRECT")]),
    "whoandwhen": ("*.json", [('"is_correct": false', '"is_correct": true'), ('step": "2"', 'step": "4"')]),
    "whoandwhen_turns": (
        "*.json",
        [('"is_correct": false', '"is_correct": true'), ('step": "2"', 'step": "4"'), ('"Orchestrator",', '"Human",')],
    ),
    "aftraj": (
        "*.jsonl",
        [('"mistake_step": 2', '"mistake_step": -1'), ('"mistake_agent": "search_agent"', '"a": ""')],
    ),
    "tracertraj": ("*.jsonl", [('"mistake_step": "2"', '"mistake_step": "-1"'), ('"mistake_agent": "Arch', '"a": "')]),
    "aegis": ("*", [('"is_injection_successful": true', '"is_injection_successful": false'), ('"FM-', '"FM-x')]),
    "a2a": ("*.json", [("TASK_STATE_COMPLETED", "TASK_STATE_FAILED"), ('"rejected"', '"completed"')]),
    "anthropic_messages": ("*", [('"outcome": "success"', '"outcome": "failure"'), ('"reward": 1', '"reward": 0')]),
    "atif": ("result.json", [('"reward": 1.0', '"reward": 0.0')]),
    "autogen": ("*", [('"success": true', '"success": false')]),
    "events": ("*", [('"outcome": "success"', '"outcome": "failure"')]),
    "inspect_log": ("*.json", [('"value": "C"', '"value": "I"')]),
    "langgraph": ("*", [('"success": true', '"success": false'), ('"avg": 1.0', '"avg": 0.0')]),
    "openai_responses": ("*", [('"success": true', '"success": false'), ('"reward": 0', '"reward": 1')]),
    "openhands": ("*", [('"resolved": true', '"resolved": false')]),
    "otel_genai": ("*", [('"stringValue": "pass"', '"stringValue": "fail"')]),
    "pydantic_ai": ("*", [('"success": true', '"success": false')]),
    "scores": ("*.jsonl", [('"outcome": "success"', '"outcome": "failure"')]),
    "sentinel": ("manifest.json", [('"looping"', "null"), ('"healthy"', '"other"'), ('"tau": 1', '"tau": 2')]),
    "smolagents": ("*", [('"success": true', '"success": false'), ('"reward": 1', '"reward": 0')]),
}
#: Formats that tell no outcome: labels do.
TELL_NONE = (
    "claude_agent_sdk",
    "claude_code",
    "langgraph_stream",
    "mast",
    "mcp",
    "openai_agents",
    "openinference",
    "otel_genai_old",
)

LiveRuns = dict[str, Callable[[Path], Iterator[tuple[dict[str, Any], list[Any]]]]]


def lines_of(run: Run[StepRecord]) -> list[dict[str, Any]]:
    """The run in the stable line format of `parse --json`."""
    return [
        {
            "run_id": run.run_id, "task_id": run.task_id, "groups": dict(run.groups), "outcome": run.outcome.value,
            "step": record.index, "actor": record.actor, "agent": record.agent, "tool": record.tool,
            "arguments": record.arguments, "observation": record.observation, "action": record.action,
            "result": record.result, "status": record.status,
            **({} if record.score is None else {"score": record.score}),
            **({} if record.signals is None else {"signals": record.signals.to_json()}),
        }
        for record in run.records
    ]  # fmt: skip


def golden_runs(name: str) -> list[Run[StepRecord]]:
    return list(read_runs(GOLDEN / name / "runs", load_adapter(name), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_records_are_the_expected_ones(name: str) -> None:
    text = (GOLDEN / name / "expected.jsonl").read_text(encoding="utf-8")
    expected = [json.loads(line) for line in text.splitlines()]
    assert [line for run in golden_runs(name) for line in lines_of(run)] == expected


@pytest.mark.parametrize("name", NAMES)
def test_nothing_hidden_reaches_a_record_an_id_or_a_group(name: str) -> None:
    files = [path for path in (GOLDEN / name / "runs").rglob("*") if path.is_file()]
    raw = "".join(re.sub("\x1b.*?m", "", path.read_text(encoding="utf-8")) for path in files)
    runs = golden_runs(name)
    seen = "".join(repr((run.records, run.task_id, run.groups)) for run in runs)
    for text in PRINTED.get(name, (HIDDEN,)):
        assert text in raw, f"the sample does not hold {text!r}, so the test cannot fail"
        assert text not in seen


def test_every_adapter_reads_an_outcome_or_is_known_not_to() -> None:
    assert sorted([*TURNED, *TELL_NONE]) == list(NAMES)
    for name in TELL_NONE:
        assert "outcome" not in json.loads(load_adapter(name).to_bytes())["run"]
        assert "join a labels file" in load_adapter(name).description


@pytest.mark.parametrize("name", TURNED)
def test_another_outcome_changes_no_record(name: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / name / "runs", tmp_path / "runs")
    pattern, replacements = TURNED[name]
    for path in (tmp_path / "runs").rglob(pattern):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            for old, new in replacements:
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
    before = golden_runs(name)
    after = list(read_runs(tmp_path / "runs", load_adapter(name), strict=True))
    assert [run.outcome for run in after] != [run.outcome for run in before]
    assert [run.records for run in after] == [run.records for run in before]


@pytest.mark.parametrize("name", NAMES)
def test_event_by_event_is_the_same_as_whole_files(name: str, live_runs: LiveRuns) -> None:
    adapter = load_adapter(name)
    live = []
    for header, events in live_runs[name](GOLDEN / name / "runs"):
        parser = adapter.parser(header)
        records = [record for event in events for record in parser.observe(event)] + parser.end()
        if records:
            live.append(tuple(records))
    assert sorted(map(repr, live)) == sorted(repr(run.records) for run in golden_runs(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_golden_set_holds_both_outcomes(name: str) -> None:
    outcomes = {run.outcome for run in golden_runs(name)}
    if name in ("whoandwhen", "whoandwhen_turns", "tracertraj"):  # attribution sets: every run failed
        assert outcomes == {Outcome.FAILURE}
    elif name in TELL_NONE:
        assert outcomes == {Outcome.UNKNOWN}
    else:
        assert len(outcomes) > 1


@pytest.mark.parametrize("name", NAMES)
def test_an_adapter_says_what_it_reads_and_its_bytes_are_stable(name: str) -> None:
    adapter = load_adapter(name)
    assert adapter.name == name
    assert re.fullmatch(r"1\.\d\.0", adapter.version)
    assert "Live event:" in adapter.description
    again = type(adapter).from_bytes(adapter.to_bytes(), name)
    assert again.sha256 == adapter.sha256
