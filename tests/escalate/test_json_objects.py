"""The JSON of a reply: what is whole is found with its place, what is not says why, and hostile texts cost little."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.escalate.reply_json import MAX_TRIES, json_objects, without_thoughts

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), VALUES), max_size=5))
def test_whole_objects_are_found_where_they_stand(objects: list[dict[str, object]]) -> None:
    parts = [json.dumps(value, ensure_ascii=False) for value in objects]
    text = "Here: " + " and ] ".join(parts)
    found = list(json_objects(text))
    assert [one.value for one in found] == objects
    assert [text[slice(*one.at)] for one in found] == parts
    assert not any(one.fault for one in found)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{"a": 1, "a": 1}', "the key 'a' stands twice in one object; combine the two"),
        ('{"a": NaN}', "NaN is no JSON"),
        ('{"a": -Infinity}', "-Infinity is no JSON"),
        ('{\n"a" 1}', "the JSON breaks off at line 2, column 5: Expecting ':' delimiter"),
        ('{"a": [' + "[" * 100_000, "the JSON is nested too deeply"),
    ],
)
def test_a_broken_one_says_why_and_what_follows_is_read(text: str, fault: str) -> None:
    broken, *others = json_objects(text + ' {"b": 2}')
    assert (broken.value, broken.fault, broken.at) == (None, fault, (0, 0))
    assert [one.value for one in others if not one.fault] == [{"b": 2}]


def test_of_a_broken_object_the_whole_ones_inside_are_told() -> None:
    assert [one.value for one in json_objects('{"a": {"b": 2}, "c"}')] == [None, {"b": 2}]


def test_lists_are_told_where_they_are_asked_for() -> None:
    text = '[{"a": 1}, {"b": 2}] {"c": [3]}'
    assert [one.value for one in json_objects(text)] == [{"a": 1}, {"b": 2}, {"c": [3]}]
    assert [one.value for one in json_objects(text, lists=True)] == [[{"a": 1}, {"b": 2}], {"c": [3]}]
    assert [one.at for one in json_objects(text, 20)] == [(21, 31)]


def test_so_many_places_are_tried_and_no_more() -> None:
    assert len(list(json_objects('{"a": 1} ' * (MAX_TRIES + 5)))) == MAX_TRIES
    assert len(list(json_objects("{" * 100_000 + '{"a": 1}'))) == MAX_TRIES


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no thought", "no thought"),
        ("<think>a</think>b", "b"),
        ("a<think>b</think>c<reasoning>d</reasoning>e", "ace"),
        ("<THINK>a</Think>b", "b"),
        ("a</think>b", "b"),
        ("a</think>b<think>c</think>d", "bd"),
        ("<think>a<think>b</think>c</think>d", "d"),
        ("a<think>b", "a<think>b"),
        ("<thinker>a</thinker>", "<thinker>a</thinker>"),
        ("", ""),
    ],
)
def test_thoughts_are_taken_out(text: str, kept: str) -> None:
    assert without_thoughts(text) == kept


@pytest.mark.parametrize("text", ["<think>" * 100_000, "</think>" * 100_000, "<think>a</think>b" * 50_000])
def test_many_tags_are_read_once(text: str) -> None:
    assert len(without_thoughts(text)) in (len(text), 0, 50_000)
