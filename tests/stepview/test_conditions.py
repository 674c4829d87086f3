"""Tests in `when`: each kind, golden; and what is no test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview.compiling import Base, DataPlace, Site
from prefixguard.stepview.conditions import compile_test, compile_when
from prefixguard.stepview.paths import Scope

EVENT = {
    "role": "tool",
    "n": 1,
    "x": 0.5,
    "yes": True,
    "null": None,
    "empty": "",
    "none": [],
    "s": "Error: x",
    "nan": float("nan"),
}


def holds(spec: Any, **fields: Any) -> bool:
    scope = Scope(event=EVENT, open_calls=fields.pop("open_calls", 0), fields=SimpleNamespace(**fields))
    return compile_when(spec, Site("here", {"@": Base(None)}, fields=("result",)))(scope)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("else", True),
        ({"@.role": "tool"}, True),
        ({"@.role": "user"}, False),
        ({"@.role": "tool", "@.n": 1}, True),
        ({"@.role": "tool", "@.n": 2}, False),
        ({"@.role": "tool", "@.n": 1, "@.yes": True}, True),
        ({"@.n": 1.0}, True),
        ({"@.n": True}, False),
        ({"@.yes": 1}, False),
        ({"@.yes": {"eq": 1}}, False),
        ({"@.null": None}, True),
        ({"@.absent": None}, False),
        ({"@.absent": {"present": False}}, True),
        ({"@.null": {"present": True}}, False),
        ({"@.empty": {"present": True}}, False),
        ({"@.none": {"present": True}}, False),
        ({"@.n": {"present": True}}, True),
        ({"@.role": {"in": ["user", "tool"]}}, True),
        ({"@.n": {"in": [True, 2]}}, False),
        ({"@.n": {"in": [1]}}, True),
        ({"@.absent": {"in": ["x"]}}, False),
        ({"@.s": {"re": "(?i)^error"}}, True),
        ({"@.absent": {"re": ""}}, False),
        ({"@.n": {"ge": 1, "le": 1}}, True),
        ({"@.n": {"gt": 1}}, False),
        ({"@.x": {"lt": 1}}, True),
        ({"@.yes": {"ge": 0}}, False),
        ({"@.s": {"ge": 0}}, False),
        ({"@.nan": {"lt": 1}}, False),
        ({"@.nan": {"not": {"ge": 1}}}, True),
        ({"@.s": {"type": "string"}}, True),
        ({"@.yes": {"type": "number"}}, False),
        ({"@.none": {"type": "array"}}, True),
        ({"@.null": {"type": "null"}}, True),
        ({"@.absent": {"type": "null"}}, False),
        ({"@.role": {"not": "user"}}, True),
        ({"@.role": {"not": {"in": ["tool"]}}}, False),
        ({"@.role": {"any": ["user", {"in": ["tool"]}]}}, True),
        ({"@.role": {"not": {"any": ["user", {"in": ["tool"]}]}}}, False),
        ({"not": {"@.role": "tool"}}, False),
        ({"any": [{"@.role": "user"}, {"@.n": 1}]}, True),
        ({"any": [{"@.role": "user"}, {"@.n": 2}]}, False),
        ({"value": {"join": ["@.role", "@.n"], "sep": ":"}, "is": "tool:1"}, True),
        ({"open_call": False}, True),
        ({"open_call": True}, False),
    ],
)
def test_when(spec: Any, expected: bool) -> None:
    assert holds(spec) is expected


def test_open_call_and_fields() -> None:
    assert holds({"open_call": True, "@.role": "tool"}, open_calls=2)
    assert holds({"result": {"re": "boom"}}, result="boom!")
    assert not holds({"result": {"re": "boom"}})


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "a condition is an object of tests"),
        (None, "a condition is an object of tests"),
        ("always", "a condition is an object of tests"),
        ({"role": "x"}, "'role' cannot be tested"),
        ({"@.a": {}}, "an empty test"),
        ({"@.a": {"matches": "x"}}, "unknown key 'matches'"),
        ({"@.a": ["x"]}, '"one of these" is {"in": [...]}'),
        ({"@.a": {"ge": "1"}}, "compared with a number"),
        ({"@.a": {"ge": True}}, "compared with a number"),
        ({"@.a": {"type": "integer"}}, "it is one of string, number"),
        ({"@.a": {"present": 1}}, "present is true or false"),
        ({"@.a": {"in": "x"}}, "is not a value"),
        ({"@.a": {"re": 1}}, "a regular expression is a string"),
        ({"open_call": 1}, "open_call is true or false"),
        ({"any": []}, "any holds a list of conditions"),
        ({"value": "@.a"}, '{"value": value, "is": test}'),
        ({"is": 1}, '"is" goes with "value"'),
    ],
)
def test_no_condition(spec: Any, message: str) -> None:
    with pytest.raises(AdapterError) as caught:
        holds(spec)
    assert message in str(caught.value)


def test_a_number_is_compared_with_one_that_stands_beside_it() -> None:
    roots = {"@": Base(DataPlace("run", ())), "$": Base(DataPlace("run", ()))}
    holds = compile_test({"ge": "$.least"}, Site("here", roots))
    pairs = ((3, 2), (2, 2), (1, 2), (3, None), ("3", 2))
    found = [holds(value, Scope(run={"least": least})) for value, least in pairs]
    assert found == [True, True, False, False, False]
    assert not holds(3, Scope(run={})) and not holds(3, Scope(run={"least": True}))
    with pytest.raises(AdapterError, match=r'with the number at a path: "\$.required"'):
        compile_test({"ge": "two"}, Site("here", roots))
