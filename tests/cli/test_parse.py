from __future__ import annotations

import json
from pathlib import Path

import prefixguard


def test_json_lines_are_the_records(cli, fresh_lab_file: Path) -> None:
    said = cli("parse", fresh_lab_file, "--adapter", "openai_chat", "--json")
    assert said.code == 0
    assert list(said.lines[0]) == [
        "run_id", "task_id", "groups", "outcome", "step", "actor", "agent", "tool", "arguments", "observation",
        "action", "result", "status",
    ]  # fmt: skip
    runs = list(prefixguard.parse(fresh_lab_file, "openai_chat"))
    assert [(one["run_id"], one["step"], one["result"]) for one in said.lines] == [
        (run.run_id, record.index, record.result) for run in runs for record in run.records
    ]
    assert {one["outcome"] for one in said.lines} == {"success", "failure"}


def test_limit_counts_runs(cli, fresh_lab_file: Path) -> None:
    for limit in (1, 5):
        said = cli("parse", fresh_lab_file, "--adapter", "openai_chat", "--json", "--limit", limit)
        assert len({one["run_id"] for one in said.lines}) == limit


def test_side_by_side_shows_events_and_their_records(cli, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"at": "[bold]x"}'}}
    messages = [
        {"role": "user", "content": "Find \x1b[31mit"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "Error: nothing there"},
    ]
    path.write_text(json.dumps({"run_id": "only", "outcome": "failure", "messages": messages}))
    said = cli("parse", path, "--adapter", "openai_chat", env={"COLUMNS": "160"})
    assert (said.code, said.out) == (0, ""), "a table is for people"
    assert "run only" in said.err and "failure" in said.err
    (event_line,) = (row for row in said.err.splitlines() if '"role": "user"' in row)
    assert "step 1" in event_line, "the record stands beside its first event"
    for shown in ("tool: look", "[bold]x", "result: Error: nothing there", "status: error"):
        assert shown in said.err
    assert "\x1b[31m" not in said.err, "a trace cannot steer the terminal"


def test_the_first_three_and_how_to_see_more(cli, fresh_lab_file: Path) -> None:
    said = cli("parse", fresh_lab_file, "--adapter", "openai_chat")
    assert sum(row.startswith("run support-") for row in said.err.splitlines()) == 3
    assert "These are the first 3 runs. More: --limit N" in said.told


def test_labels_join(cli, fresh_lab_file: Path, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("run_id,outcome\nsupport-00040-0,unknown\nnobody,failure\n")
    said = cli("parse", fresh_lab_file, "--adapter", "openai_chat", "--labels", labels, "--json")
    assert said.lines[0]["outcome"] == "unknown"
    assert "1 label names no run that was read: 'nobody'." in said.told
    assert "runs have no label and the outcome that the trace gives: 'support-00040-1', " in said.told
