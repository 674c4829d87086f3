"""What a spec may be: its published schema, its bounds, and adapters that an earlier release froze."""

from __future__ import annotations

import copy
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from processor_time import least_seconds

from prefixguard.errors import AdapterError
from prefixguard.stepview import (
    Adapter,
    conditions,
    containers,
    events,
    labels,
    list_adapters,
    load_adapter,
    program,
    read_runs,
    rules,
    signals,
    values,
)
from prefixguard.stepview import schema as bounds
from prefixguard.stepview.schema import MIGRATIONS, NEWEST, lift, schema_of

SCHEMA_FILE = resources.files("prefixguard.stepview") / "adapter.schema.json"
SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text("utf-8"))
DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "adapter-spec.md").read_text("utf-8")
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def test_it_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", list_adapters())
def test_shipped_adapters_pass(name: str) -> None:
    CHECK.validate(json.loads(load_adapter(name).to_bytes()))


def test_every_construct_is_in_it() -> None:
    defs = SCHEMA["$defs"]
    kinds = {name.removeprefix("value_") for name in defs if name.startswith("value_")}
    assert kinds == set(values.BUILDERS)
    assert set(defs["test"]["anyOf"][1]["properties"]) == set(conditions._TESTS)
    assert set(SCHEMA["properties"]) == set(program._TOP)
    assert set(SCHEMA["properties"]["run"]["properties"]) == set(program._RUN)
    assert set(SCHEMA["properties"]["signals"]["properties"]) == {*signals.KEYS, "comment"}
    told = SCHEMA["properties"]["run"]["properties"]["labels"]["properties"]
    assert set(told) == set(labels.KEYS)
    assert set(told["faults"]["properties"]) == set(labels._FAULT_KEYS)
    assert set(defs["rule"]["properties"]["emit"]["enum"]) == set(rules.EMITS)
    for one in defs["events"]["anyOf"]:
        if "properties" in one:
            assert set(events._MODIFIERS) <= set(one["properties"])


def test_container_formats_stand_in_the_schema_and_the_documentation() -> None:
    """Whoever adds a format is told here what else to write."""
    short, *whole = SCHEMA["$defs"]["container"]["anyOf"]
    formats = {one["properties"]["format"]["const"]: set(one["properties"]) for one in whole}
    expected = {form: {"format", "files", "comment", *keys} for form, (_, keys) in containers.FORMATS.items()}
    assert formats == expected, "adapter.schema.json: $defs.container has an object for every format, with its keys"
    needing = {one["properties"]["format"]["const"] for one in whole if one["required"] != ["format"]}
    assert set(short["enum"]) == set(expected) - needing, "adapter.schema.json: a format that needs no key has a name"
    rows = re.findall(r"(?m)^\| `(\w+)` \| (.*) \|$", DOCUMENTATION.partition("## Containers")[2])
    documented = {form for form, _ in rows if form in expected}
    assert documented == set(expected), "docs/adapter-spec.md: the table of containers has a row for every format"


def described(node: Any, path: str = "$") -> None:
    if isinstance(node, dict):
        if node.get("additionalProperties") is False and path.count("/") < 3:
            assert "description" in node, path
        for key, value in node.items():
            described(value, f"{path}/{key}")


def test_constructs_are_described() -> None:
    for name, definition in SCHEMA["$defs"].items():
        assert len(definition["description"]) > 20, name
    described(SCHEMA)


def test_what_it_refuses_the_interpreter_refuses(chat: dict[str, Any]) -> None:
    CHECK.validate(chat)
    for change in (
        {"container": {"format": "json", "entries": "*"}},
        {"container": "yaml"},
        {"events": {"zip": {"a": "$.a"}, "split": {"head": "x"}}},
        {"rules": []},
        {"rules": [{"emit": "shout"}]},
        {"rules": [{"emit": "say", "action": "plain"}]},
        {"rules": [{"emit": "say", "action": {"text": "@.a", "json": "@.b"}}]},
        {"rules": [{"when": {"role": "x"}, "emit": "skip"}]},
        {"status": [{"is": "fine"}]},
        {"join": {"by": "time"}},
        {"run": {"labels": {"step_base": 2}}},
        {"run": {"labels": {"faults": {"each": "$.blamed"}}}},
        {"budgets": {"result": [1]}},
        {"waived": [{"path": "$.x"}]},
        {"name": ""},
        {"more": 1},
    ):
        spec = chat | change
        assert not CHECK.is_valid(spec), change
        with pytest.raises(AdapterError):
            Adapter(spec)


BASE = json.loads(load_adapter("openai_chat").to_bytes())


def with_kind(value: Any) -> dict[str, Any]:
    return {**copy.deepcopy(BASE), "kind": value}


def nested(levels: int) -> Any:
    value: Any = "@.a"
    for _ in range(levels):
        value = {"join": [value]}
    return value


def search(source: str) -> dict[str, Any]:
    return {"of": "@.a", "re": source, "group": 0}


TOO_LARGE = {
    "nested joins": (with_kind({"join": [nested(20)] * 40_000}), "3,6.. bytes; at most 262,144 are read"),
    "deep": (with_kind(nested(300)), "more than 48 levels"),
    "wide": (with_kind({"join": ["@.a"] * 6000}), "more than 5,000 values"),
    "rules": ({**BASE, "rules": BASE["rules"] * 200}, "more than 5,000 values"),
    "expressions": (with_kind({"join": [search(f"a{i}") for i in range(65)]}), "more than 64 regular expressions"),
    "one expression": (with_kind(search("a" * 2501)), "a regular expression of more than 2,500 characters"),
    "its program": (with_kind(search("[^b]{1000}" * 30)), "compiles to more than 20,000 instructions"),
    "a text": (with_kind("@" + ".a" * 6000), "a text or name of 12,001 characters; at most 10,000"),
    "comparisons": (
        {**with_kind("@.a"), "hidden": [f"$.h{i}" for i in range(1500)], "run": {"preamble": {"join": ["$.a"] * 1500}}},
        "are too many to compare",
    ),
}


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_spec_that_is_too_large_is_refused_at_once(name: str) -> None:
    spec, said = TOO_LARGE[name]
    data = json.dumps(spec).encode()

    def refused() -> None:
        with pytest.raises(AdapterError, match=said.replace("3,6..", r"\d+,\d+,\d+")):
            Adapter.from_bytes(data, "adapter.json")

    assert least_seconds(refused)[0] < 0.5


def test_the_shipped_adapters_stay_far_below() -> None:
    """Three times what the largest has must still be readable, or the next adapter meets a bound."""

    def depth(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + max(map(depth, inner), default=0)

    def values(value: Any) -> int:
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        return 1 + sum(map(values, inner))

    specs = [json.loads(load_adapter(name).to_bytes()) for name in list_adapters()]
    assert 3 * max(map(depth, specs)) < bounds.MOST_DEPTH
    assert 3 * max(map(values, specs)) < bounds.MOST_VALUES
    assert 3 * max(len(json.dumps(spec)) for spec in specs) < bounds.MOST_BYTES


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
