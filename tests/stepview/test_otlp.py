"""Span attributes as nested JSON."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview.spellings import plain, unflatten


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
