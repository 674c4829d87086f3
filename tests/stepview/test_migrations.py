"""An adapter that an earlier release froze opens in this one, and reads what it read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview import Adapter, load_adapter, read_runs
from prefixguard.stepview.schema import MIGRATIONS, NEWEST, lift, schema_of

GOLDEN = Path(__file__).parents[1] / "golden"
KEPT = sorted(GOLDEN.glob("adapters_v*"))
#: Hashes that the kept adapters were frozen with; a monitor trained through one names it.
HASHES = {"adapters_v1": "e149c8284e67cf54258f402993fff3548e64ea2edcc48b31b3a68382e8610380"}


@pytest.mark.parametrize("folder", KEPT, ids=lambda path: path.name)
def test_a_kept_adapter_opens_with_its_hash_and_reads_its_records(folder: Path) -> None:
    adapter = load_adapter(folder / "spec.json")
    assert adapter.sha256 == HASHES[folder.name]
    expected = [json.loads(line) for line in (folder / "expected.jsonl").read_text().splitlines()]
    found = [
        {
            "run_id": run.run_id, "task_id": run.task_id, "groups": dict(run.groups), "outcome": run.outcome.value,
            "step": record.index, "actor": record.actor, "agent": record.agent, "tool": record.tool,
            "arguments": record.arguments, "observation": record.observation, "action": record.action,
            "result": record.result, "status": record.status,
        }
        for run in read_runs(folder / "runs", adapter, strict=True)
        for record in run.records
    ]  # fmt: skip
    assert found == expected


def test_every_schema_so_far_has_a_kept_file() -> None:
    assert {path.name for path in KEPT} >= {f"adapters_v{n}" for n in {*MIGRATIONS, NEWEST}}


def old(**changes: Any) -> dict[str, Any]:
    """A spec of a schema before the first, in which `hidden` was called `secret` and views did not exist."""
    kept = json.loads((GOLDEN / "adapters_v1" / "spec.json").read_text())
    kept["secret"] = kept.pop("hidden")
    return {**kept, "schema": "prefixguard/adapter/v0", **changes}


def respell(spec: dict[str, Any]) -> dict[str, Any]:
    return {("hidden" if key == "secret" else key): value for key, value in spec.items()}


def test_an_old_spec_is_lifted_step_by_step_and_left_as_it_was() -> None:
    before = old()
    lifted = lift(before, "x", migrations={0: respell})
    assert before == old()
    assert lifted["schema"] == schema_of(1) and lifted["hidden"] == ["$.score"] and "secret" not in lifted
    Adapter(lifted)
    twice = lift(before, "x", newest=2, migrations={0: respell, 1: lambda spec: {**spec, "more": 1}})
    assert (twice["schema"], twice["more"], twice["hidden"]) == (schema_of(2), 1, ["$.score"])


def test_a_lifted_adapter_keeps_bytes_and_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.stepview.program.lift", lambda spec, where: lift(spec, where, migrations=table))
    table = {0: respell}
    adapter = Adapter(old())
    assert json.loads(adapter.to_bytes()) == old()
    again = Adapter.from_bytes(adapter.to_bytes(), "bundle/adapter.json")
    assert again.sha256 == adapter.sha256 != HASHES["adapters_v1"]
    runs = list(read_runs(GOLDEN / "adapters_v1" / "runs", adapter))
    assert [run.records for run in runs] == [
        run.records
        for run in read_runs(GOLDEN / "adapters_v1" / "runs", load_adapter(GOLDEN / "adapters_v1" / "spec.json"))
    ]


@pytest.mark.parametrize(
    "schema",
    ["prefixguard/adapter/v2", "prefixguard/adapter/v01", "prefixguard/adapter/v", "prefixguard/adapter/v²", "v1", 1],
)
def test_a_newer_or_odd_schema_is_refused(schema: object) -> None:
    with pytest.raises(AdapterError, match="A newer schema needs a newer release of prefixguard") as caught:
        lift(old(schema=schema), "mine.json")
    assert str(caught.value).startswith(f"mine.json: schema {schema!r}; this release reads 'prefixguard/adapter/v1'")


def test_a_schema_too_old_says_what_to_do() -> None:
    with pytest.raises(AdapterError, match="older than the oldest that this release reads") as caught:
        lift(old(), "mine.json")
    assert "prefixguard induce-adapter" in str(caught.value)
