"""Which lists of a document could be events, and what could be a run around them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prefixguard.induce.offline.arrays import INSIDE, LONGEST, is_map, levels, parse_inside, survey


def places(*documents: Any) -> set[tuple[str | None, ...]]:
    return {array.place for array in survey(documents)[0] if not array.columns}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"0": {"a": 1}, "1": {"b": 2}}, True),
        ({f"run_{i}": {"a": 1, "b": i} for i in range(3)}, True),
        ({name: {"a": 1} for name in "abcdefgh"}, True),
        ({"user": {"name": "x"}, "agent": {"name": "y"}}, False),
        ({"input": {"a": 1}, "output": {"b": 1}, "meta1": {"c": 1}}, False),
        ({"a1": {"x": 1}, "a2": "text", "a3": {"x": 1}}, False),
        ({}, False),
    ],
)
def test_an_object_of_ids_is_a_list_and_one_of_fields_is_not(value: dict[str, Any], told: bool) -> None:
    assert is_map(value) is told


def test_lists_of_objects_and_of_short_lists_are_found_wherever_they_stand() -> None:
    found = places(
        {
            "a": {"messages": [{"role": "x"}, {"role": "y"}]},
            "pairs": [["I", "they"], ["we", "you"]],
            "runs": {"0": {"t": 1}, "1": {"t": 2}},
            "spelled": json.dumps([{"thought": f"number {i}"} for i in range(4)]),
            "numbers": [1, 2, 3],
            "attributes": [{"key": "k", "value": {"stringValue": "v"}}] * 3,
        }
    )
    assert found == {("a", "messages", None), ("pairs", None), ("runs", None), ("spelled", INSIDE, None)}


def test_parallel_lists_are_one_list_with_columns() -> None:
    documents = [{"thoughts": ["a"] * n, "acts": ["b"] * n, "saw": ["c"] * (n + 1), "tags": ["x"]} for n in (4, 6, 9)]
    (array,) = (one for one in survey(documents)[0] if one.columns)
    assert array.columns == ("acts", "saw", "thoughts")
    assert array.pads == ("acts", "thoughts")
    assert array.lengths == [5, 7, 10]


def test_a_long_text_beside_counts_no_more_than_others() -> None:
    (array,), walked = survey([{"patch": "x" * 10**6, "steps": [{"a": "y" * 1000} for _ in range(9)]}])
    assert array.size == 9000
    assert walked == 9000 + LONGEST


@pytest.mark.parametrize("text", ["{", "[1, 2", "plain", '"text"', "3", "[" * 100_000, '{"a":' * 9000])
def test_a_string_that_spells_no_list_or_object_holds_none(text: str) -> None:
    assert parse_inside(text) is None


def runs_of(documents: list[Any], *place: str | None) -> list[tuple[str | None, ...]]:
    return levels(place, documents)


STEPS = [{"x": "a"}, {"x": "b"}]


def test_elements_with_fields_of_their_own_can_be_runs() -> None:
    assert runs_of([[{"task": f"t{i}", "s": STEPS} for i in range(3)]], None, "s", None) == [(), (None,)]
    assert runs_of([[{"at": {"deep": {"seed": f"s{i}"}}, "s": STEPS} for i in range(3)]], None, "s", None)[1:] == [
        (None,)
    ]


def test_elements_that_are_only_counted_are_no_runs() -> None:
    assert runs_of([[{"round": i, "s": STEPS} for i in range(3)]], None, "s", None) == [()]
    assert runs_of([[{"s": STEPS}, {"s": STEPS}]], None, "s", None) == [()]


def test_elements_numbered_by_an_id_can_be_runs() -> None:
    assert runs_of([[{"id": i, "s": STEPS} for i in range(3)]], None, "s", None) == [(), (None,)]
