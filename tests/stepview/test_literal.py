"""Python-spelled values become the JSON they mean, and nothing else is read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.paths import Scope
from prefixguard.stepview.spellings import read_literal
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
    scope = Scope()
    scope.event = {"arguments": text}
    assert compile_arguments({"json": "@.arguments", "python": True}, site)(scope) == arguments
