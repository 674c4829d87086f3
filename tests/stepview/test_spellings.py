"""Values in other spellings than JSON: Python literals, and attributes of spans."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.paths import Scope
from prefixguard.stepview.spellings import plain, read_literal, unflatten
from prefixguard.stepview.values import compile_arguments

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_python_writes_is_read_back(value: Any) -> None:
    assert read_literal(repr(value)) == value


@pytest.mark.parametrize(
    "text", ["", "{'a': open('x')}", "[1, 2", "{'a': 1 + 1}", "__import__('os')", "[" * 5000, "{'a'}", "f'a'"]
)
def test_what_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        read_literal(text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("{'b': None, 'a': ('x', 1.50)}", '{"a":["x",1.50],"b":null}'),
        ('{"b": 1, "a": true}', '{"a":true,"b":1}'),
        ("ls -l", "ls -l"),
        ("7", "7"),
        ("{'a': open('x')}", "{'a': open('x')}"),
    ],
)
def test_arguments_spelled_as_python_are_canonical_json(text: str, arguments: str) -> None:
    site = Site("rules[0].arguments", {"@": Base(None)}, in_record=True)
    found = compile_arguments({"json": "@.arguments", "python": True}, site)(Scope(event={"arguments": text}))
    assert found == arguments


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ({"stringValue": "x"}, "x"),
        ({"intValue": "12"}, 12),
        ({"intValue": 12}, 12),
        ({"boolValue": False}, False),
        ({"doubleValue": 1.5}, 1.5),
        ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, ["a", 1]),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"stringValue": "v"}}]}}, {"k": "v"}),
        ({"other": 1}, {"other": 1}),
        ("text", "text"),
        ({"arrayValue": None}, {"arrayValue": None}),
    ],
)
def test_typed_values(typed: Any, value: Any) -> None:
    assert plain(typed) == value


def test_dotted_names_become_lists_and_objects() -> None:
    flat = [
        {"key": "llm.input_messages.1.message.role", "value": {"stringValue": "user"}},
        {"key": "llm.input_messages.0.message.role", "value": {"stringValue": "system"}},
        {"key": "llm.input_messages.10.message.role", "value": {"stringValue": "tool"}},
        {"key": "tool.name", "value": {"stringValue": "ls"}},
    ]
    tree = unflatten(flat)
    assert [m["message"]["role"] for m in tree["llm"]["input_messages"]] == ["system", "user", "tool"]
    assert tree["tool"] == {"name": "ls"}


def test_a_name_that_is_value_and_prefix() -> None:
    assert unflatten({"a": 1, "a.b": 2}) == {"a": {"": 1, "b": 2}}
    assert unflatten({"a.b": 2, "a": 1}) == {"a": {"b": 2, "": 1}}


def test_a_huge_position_makes_no_huge_list() -> None:
    assert unflatten({"a.99999999999.b": 1}) == {"a": {"99999999999": {"b": 1}}}
    assert unflatten({"a.99998.b": 1}) == {"a": {"99998": {"b": 1}}}


@given(st.dictionaries(st.text("ab.01", max_size=8), st.integers() | st.none(), max_size=8))
def test_no_value_is_lost(flat: dict[str, Any]) -> None:
    def leaves(node: Any) -> int:
        if isinstance(node, dict):
            return sum(map(leaves, node.values()))
        return sum(map(leaves, node)) if isinstance(node, list) else 1

    if not any(name == other or name.startswith(other + ".") for name in flat for other in flat if name != other):
        assert leaves(unflatten(flat)) == len(flat)
    assert unflatten(flat) is not None
