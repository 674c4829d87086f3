"""The wide view of an adapter: the same runs and steps, longer texts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from prefixguard.stepview import Adapter, list_adapters, load_adapter, read_runs, wide_view

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
