"""The views of an adapter: `raw`, each step one text, and wide, longer texts; the same runs and steps."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import prefixguard
from prefixguard.errors import AdapterError, UnknownAdapterError
from prefixguard.stepview import (
    Adapter,
    adapter_for,
    list_adapters,
    load_adapter,
    raw_view,
    read_runs,
    side_by_side,
    wide_view,
)

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
#: A table of scores has no text to show raw.
WITH_TEXT = [name for name in list_adapters() if name != "scores"]


@pytest.mark.parametrize("name", WITH_TEXT)
def test_runs_steps_outcomes_tasks_and_order_are_those_of_the_adapter(name: str) -> None:
    typed = list(read_runs(GOLDEN / name / "runs", load_adapter(name), strict=True))
    raw = list(read_runs(GOLDEN / name / "runs", load_adapter(f"raw:{name}"), strict=True))
    assert [replace(run, records=()) for run in raw] == [replace(run, records=()) for run in typed]
    assert [len(run.records) for run in raw] == [len(run.records) for run in typed]
    for run, control in zip(typed, raw, strict=True):
        for record, one in zip(run.records, control.records, strict=True):
            assert (one.index, one.event) == (record.index, record.event)
            assert (one.actor, one.agent, one.tool, one.arguments, one.observation, one.result) == (
                "agent", "", "", "", "", "",
            )  # fmt: skip
            assert one.status == "unknown"
            spoken = "" if record.tool == "respond" else record.tool
            for part in (record.observation, record.action, spoken, record.arguments, record.result):
                assert part in one.action
            length = sum(map(len, (record.observation, record.action, spoken, record.arguments, record.result)))
            assert len(one.action) <= length + 4, "more stands in it than in the record"


@pytest.mark.parametrize("name", WITH_TEXT)
def test_nothing_hidden_is_in_it(name: str) -> None:
    texts = [r.action for run in read_runs(GOLDEN / name / "runs", load_adapter(f"raw:{name}")) for r in run.records]
    assert any(texts) and not any("ZZHIDDEN" in text for text in texts)


def test_live_is_the_same_as_whole(chat: dict[str, Any]) -> None:
    parser = raw_view(Adapter(chat)).parser({"question": "Find it."})
    call = {"id": "c", "name": "look", "arguments": '{"at": "b"}'}
    events = [
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "call_id": "c", "content": "Error: no"},
    ]
    (record,) = [one for event in events for one in parser.observe(event)] + parser.end()
    assert record.action == 'Find it.\nI look.\nlook {"at":"b"}\nError: no'


def test_names_hashes_and_paths(chat: dict[str, Any], tmp_path: Path) -> None:
    typed, raw = load_adapter("tau2"), load_adapter("raw:tau2")
    assert raw.name == "raw:tau2" and raw.sha256 != typed.sha256
    assert load_adapter(raw.name).sha256 == raw.sha256 == raw_view(raw).sha256
    assert Adapter.from_bytes(raw.to_bytes(), "x").program.is_raw
    path = tmp_path / "mine.json"
    path.write_bytes(Adapter(chat).to_bytes())
    assert load_adapter(f"raw:{path}").name == "raw:chat"
    with pytest.raises(UnknownAdapterError, match="Nearest: tau2"):
        load_adapter("raw:tau3")
    with pytest.raises(AdapterError, match='view: "steps"'):
        Adapter(chat | {"view": "text"})


def test_raw_alone_is_the_control_of_the_adapter_that_reads_the_runs(fresh_lab_file: Path, tmp_path: Path) -> None:
    assert adapter_for("raw", fresh_lab_file).name == "raw:openai_chat"
    (run, *_) = prefixguard.parse(fresh_lab_file, "raw")
    assert run.records[0].status == "unknown"
    assert next(side_by_side(fresh_lab_file, "raw")).run == run
    with pytest.raises(UnknownAdapterError, match="whose"):
        load_adapter("raw")
    (tmp_path / "x.json").write_text('{"a": 1}')
    with pytest.raises(UnknownAdapterError, match=r"no shipped adapter reads .* well\. Say whose control"):
        prefixguard.parse(tmp_path, "raw")


LONG = "".join(f"{i} " for i in range(9000))


def test_texts_are_longer_and_nothing_else_differs(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    messages = [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": "Short."},
        {"role": "assistant", "content": LONG[::-1]},
    ]
    path.write_text(json.dumps({"run_id": "a", "outcome": "failure", "messages": messages}) + "\n")
    narrow_adapter = load_adapter("openai_chat")
    (narrow,) = read_runs(path, narrow_adapter)
    (wide,) = read_runs(path, wide_view(narrow_adapter, 100_000))
    (some,) = read_runs(path, wide_view(narrow_adapter, 8000))
    assert wide.records[0].observation == LONG and wide.records[1].action == LONG[::-1]
    assert len(narrow.records[0].observation) < len(some.records[0].observation) < 8100
    texts = {"observation": "", "action": ""}
    for one, other in zip(narrow.records, wide.records, strict=True):
        assert replace(one, **texts) == replace(other, **texts)
    assert replace(narrow, records=()) == replace(wide, records=())


def test_a_budget_that_is_wider_stays_and_every_shipped_adapter_has_a_wide_view() -> None:
    for name in list_adapters():
        adapter = load_adapter(name)
        assert wide_view(adapter, 1).sha256 == Adapter(json.loads(wide_view(adapter, 1).to_bytes())).sha256
        spec, wide = json.loads(adapter.to_bytes()), json.loads(wide_view(adapter, 50_000).to_bytes())
        assert {**spec, "budgets": None} == {**wide, "budgets": None}
        assert all(sum(pair) >= 50_000 for pair in wide["budgets"].values())
        for field, pair in spec.get("budgets", {}).items():
            assert json.loads(wide_view(adapter, 1).to_bytes())["budgets"][field] == pair
