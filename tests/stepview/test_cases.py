"""Containers and events by cases: one adapter for a file that may be a run, or a list of runs, or lines of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import AdapterError, TraceError
from prefixguard.stepview import Adapter, ReadReport, read_runs

SAY = {"say": "hello"}


def spec(**changes: Any) -> dict[str, Any]:
    return {
        "schema": "prefixguard/adapter/v1",
        "name": "cases",
        "version": "1.0.0",
        "container": [
            {
                "format": "json",
                "runs": [
                    {"when": {"%[0].say": {"type": "string"}}, "path": "$"},
                    {"when": {"%": {"type": "array"}}, "path": "$[*]"},
                    {"path": "$.runs[*]"},
                ],
            },
            {"format": "jsonl"},
        ],
        "run": {"id": "$.name"},
        "events": {
            "path": [
                {"when": {"$.steps": {"type": "array"}}, "path": "$.steps"},
                {"when": {"$": {"type": "array"}}, "path": "$"},
            ]
        },
        "rules": [{"emit": "say", "action": "@.say"}],
        **changes,
    }


def parsed(folder: Path, **files: Any) -> list[tuple[str, int]]:
    for name, content in files.items():
        stem, _, suffix = name.rpartition("_")
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
    return [(run.run_id, len(run.records)) for run in read_runs(folder, Adapter(spec()), strict=True)]


def test_the_first_case_that_fits_the_document_says_where_the_runs_are(tmp_path: Path) -> None:
    named = {"name": "n", "steps": [SAY]}
    lines = json.dumps({"name": "l", "steps": [SAY, SAY]}) + "\n" + json.dumps([SAY]) + "\n"
    found = parsed(tmp_path, a_json=[SAY, SAY], b_json=[named, [SAY]], c_json={"runs": [[SAY]]}, d_jsonl=lines)
    assert found == [("a.json#1", 2), ("n", 1), ("b.json#2", 1), ("c.json#1", 1), ("l", 2), ("d.jsonl#2", 1)]


def test_a_document_that_no_case_fits_is_refused_with_the_places_looked_at(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        parsed(tmp_path, x_json={"a": 1})
    assert "no runs at $ or $[*] or $.runs[*]; the document is an object with a" in str(caught.value)


def test_a_run_that_no_case_fits_is_skipped_and_named(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"name": "bad", "talk": []}, [SAY]]), encoding="utf-8")
    report = ReadReport()
    runs = list(read_runs(tmp_path, Adapter(spec()), report=report))
    assert [run.run_id for run in runs] == ["x.json#2"]
    assert len(report.skipped) == 1
    assert "'bad'" in report.skipped[0][1]


def test_an_empty_list_of_events_is_an_empty_run_and_no_error(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(json.dumps([{"name": "e", "steps": []}, [SAY]]), encoding="utf-8")
    report = ReadReport()
    assert len(list(read_runs(tmp_path, Adapter(spec()), strict=True, report=report))) == 1
    assert report.empty == {"unknown": 1}


def test_hidden_places_are_refused_in_every_case_of_the_events() -> None:
    """The second place of the events is hidden as much as the first."""
    path = [{"when": {"$.steps": {"type": "array"}}, "path": "$.steps"}, {"path": "$.verdicts"}]
    with pytest.raises(AdapterError, match="hidden"):
        Adapter(spec(events={"path": path}, hidden=["$.verdicts"]))
