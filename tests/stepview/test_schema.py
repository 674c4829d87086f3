"""The published schema of a spec: shipped adapters pass it, and it knows every construct that the interpreter does."""

from __future__ import annotations

import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import pytest

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
    rules,
    values,
)

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
    assert kinds == set(values._BUILDERS)
    assert set(defs["test"]["anyOf"][1]["properties"]) == set(conditions._TESTS)
    assert set(SCHEMA["properties"]) == set(program._TOP)
    assert set(SCHEMA["properties"]["run"]["properties"]) == set(program._RUN)
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
