from __future__ import annotations

from pathlib import Path
from typing import Any

from prefixguard.simulation import write_runs
from prefixguard.stepview import ReadReport, load_adapter, read_runs, serialize


def test_the_shipped_adapter_reads_the_lab(tmp_path: Path, lab_runs: list[dict[str, Any]]) -> None:
    path = tmp_path / "lab.jsonl"
    write_runs(path, 200, seed=13)
    report = ReadReport()
    runs = list(read_runs(path, load_adapter("openai_chat"), report=report))
    assert (report.runs, report.skipped, report.empty, report.late_results) == (200, [], {}, 0)
    for run, raw in zip(runs, lab_runs, strict=False):
        assert (run.run_id, run.task_id, run.outcome) == (raw["run_id"], raw["task_id"], raw["outcome"])
        assert dict(run.groups) == {"agent": raw["agent"]}
        assert len(run.records) == len(raw["metadata"]["true_risk"]), "its records are the simulation's steps"
        errors = [message["content"].startswith("Error") for message in raw["messages"] if message["role"] == "tool"]
        assert [record.status == "error" for record in run.records if record.tool != "respond"] == errors


def test_a_monitor_sees_the_same_live_whatever_stands_beside_the_messages(lab_runs: list[dict[str, Any]]) -> None:
    adapter = load_adapter("openai_chat")
    for raw in lab_runs[:50]:
        seen = []
        for header in (None, {key: value for key, value in raw.items() if key != "messages"}):
            parser = adapter.parser(header)
            records = [record for message in raw["messages"] for record in parser.observe(message)] + parser.end()
            seen.append([serialize(record) for record in records])
        assert seen[0] == seen[1]
