"""What a database writes into a table where there is nothing is read as nothing."""

from __future__ import annotations

from pathlib import Path

from prefixguard.stepview import Adapter, read_runs

SPEC = {
    "schema": "prefixguard/adapter/v1",
    "name": "dump",
    "version": "1.0.0",
    "container": "csv",
    "run": {
        "outcome": {
            "of": {
                "elements": {"sibling": "tasks.tsv", "format": "csv"},
                "when": {"@.task": {"in": {"list": ["$.events[0].task"]}}},
                "path": "$[0].state",
            },
            "type": "string",
            "success": "ok",
            "failure": "bad",
        }
    },
    "events": "$.events[*]",
    "rules": [
        {"when": {"@.tool": {"present": True}}, "emit": "step", "tool": "@.tool", "result": "@.output"},
        {"emit": "say", "action": "@.text"},
    ],
}


def test_a_null_of_a_database_is_an_absent_cell(tmp_path: Path) -> None:
    rows = "task,tool,text,output\nt1,ls,\\N,a.py\nt1,\\N,done \\N,\\N\n"
    (tmp_path / "actions.csv").write_text(rows, encoding="utf-8")
    (tmp_path / "tasks.tsv").write_text("task,state\nt1,\\N\n", encoding="utf-8")
    (run,) = read_runs(tmp_path, Adapter(SPEC))
    said = [(step.tool, step.action, step.result) for step in run.records]
    assert said == [("ls", "", "a.py"), ("respond", "done \\N", "")]
    assert run.outcome.value == "unknown"
