"""What looks like a call, whatever its keys are called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.induce.offline.kinds import Kind
from prefixguard.induce.offline.shapes import arguments_value, call_shape, speaks_for_itself
from prefixguard.induce.offline.units import Unit, columns_of


def unit(elements: list[dict[str, Any]]) -> Unit:
    members = list(range(len(elements)))
    made = Unit(Kind((), tuple(members)), {}, None, (), elements, members, [0] * len(elements))
    made.columns = columns_of(elements)
    return made


def found(elements: list[dict[str, Any]], **hints: str) -> tuple[str | None, str | None]:
    shape = call_shape(unit(elements), **hints)
    return shape.tool and shape.tool.name, shape.arguments and shape.arguments.name


def calls(name: str, given: str, n: int = 12, *, spelled: bool = False) -> list[dict[str, Any]]:
    out = []
    for i in range(n):
        arguments: Any = ({"path": f"f{i}"}, {"query": f"q{i}", "limit": i}, {"url": f"u{i}"})[i % 3]
        tool = ("open", "search", "fetch")[i % 3]
        out.append(
            {"k": f"c-{i}", name: tool, given: json.dumps(arguments) if spelled else arguments, "n": i, "model": "m"}
        )
    return out


@pytest.mark.parametrize("spelled", [False, True])
@pytest.mark.parametrize(("name", "given"), [("name", "arguments"), ("tool", "input"), ("zu", "ka"), ("model", "time")])
def test_a_name_that_decides_the_keys_of_an_object_is_a_tool(name: str, given: str, spelled: bool) -> None:
    assert found(calls(name, given, spelled=spelled) if name != "model" else calls("name", given)) == (
        "@.name" if name == "model" else f"@.{name}",
        f"@.{given}",
    )


def test_the_only_tool_of_an_agent_is_known_beside_its_arguments() -> None:
    assert found([{"name": "bash", "arguments": {"command": f"ls {i}"}} for i in range(9)]) == ("@.name", "@.arguments")


def test_the_pair_inside_a_request_is_the_call() -> None:
    requests = [
        {"method": "tools/call", "params": {"name": one["name"], "arguments": one["arguments"]}}
        for one in calls("name", "arguments")
    ]
    assert found(requests) == ("@.params.name", "@.params.arguments")


@pytest.mark.parametrize(
    "elements",
    [
        [{"role": "user", "content": f"words {i}"} for i in range(9)],
        [{"id": f"x{i}", "size": i} for i in range(9)],
        [{"name": f"person {i} of many", "age": i} for i in range(90)],
        [{}, {}],
    ],
)
def test_what_has_no_arguments_is_no_call(elements: list[dict[str, Any]]) -> None:
    shape = call_shape(unit(elements))
    assert shape.arguments is None
    assert shape.weight < 0.4
    assert not speaks_for_itself(unit(elements), shape)


def test_hints_are_taken_as_they_are() -> None:
    assert found(calls("name", "arguments"), tool="@.k", arguments="@.n") == ("@.k", "@.n")
    assert found(calls("name", "arguments"), tool="@.nowhere") == ("@.name", "@.arguments")


def test_arguments_in_strings_are_read_as_json() -> None:
    shape = call_shape(unit(calls("name", "arguments", spelled=True)))
    assert shape.arguments is not None
    assert arguments_value(shape.arguments) == {"json": "@.arguments", "python": True}
