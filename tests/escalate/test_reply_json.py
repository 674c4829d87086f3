"""Where the answer of a reply stands: in blocks, outside of thought, as JSON or nearly so."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.escalate.reply_json import (
    MAX_DEPTH,
    MAX_READ,
    MAX_TRIES,
    BrokenJson,
    find_answers,
    json_objects,
    read_object,
    without_thoughts,
)

THREE = '{"answer": 3, "agent": "A"}'


def answers(text: str, **options: bool) -> list[object]:
    return [found["answer"] for found in find_answers(text, **options).objects]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (f"<think>hm</think>\n<answer>\n{THREE}\n</answer>", None),
        (f"<answer>{THREE}</answer>", None),
        (f"<Think>hm</THINK><ANSWER >{THREE}</Answer>", None),
        (f"hm, no opening tag</think><answer>{THREE}</answer>", None),
        (f"<thinking>hm</thinking><answer>```json\n{THREE}\n```</answer>", None),
        (f"```\n<answer>{THREE}</answer>\n```", None),
        (f"<answer>The answer is {THREE}, I think.</answer> Bye.", None),
        (f"<think>hm</think><answer>{THREE}", "answer block not closed"),
        (f"<think>hm</think>{THREE}", "no answer block"),
        (f"Sure!\n```json\n{THREE}\n```\nI hope that helps.", "no answer block"),
        (f"<think>hm <answer>{THREE}</answer>", "thought not closed"),
        (f"<answer>{{{THREE}}}</answer>", None),
        ("<answer>{'answer': 3, 'agent': 'A',}</answer>", "not strict JSON"),
        ("<answer>{answer: 3, agent: A}</answer>", "not strict JSON"),
        ('<answer>{"Answer": 3, "reason": "a\nb"}</answer>', None),
        ('<answer>{"answer": 3, "reason": "he said "x", then left"}</answer>', "not strict JSON"),
        ("<answer>{\u201canswer\u201d: 3, \u201cagent\u201d: \u201cA\u201d}</answer>", "not strict JSON"),
        (f'<answer>{{"answer": ..., "agent": ...}}</answer><answer>{THREE}</answer>', "an earlier answer was broken"),
        (f"x{{y}} {{z}} <answer>{THREE}</answer>", None),
        (f'{{"plan": "none"}} {THREE}', "no answer block"),
    ],
)
def test_forms_that_are_read(text: str, note: str | None) -> None:
    found = find_answers(text)
    assert (found.fault, [entry["answer"] for entry in found.objects]) == ("", [3])
    assert found.notes == ((note,) if note else ())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no-verdict"),
        ("I would say that it is SAFE.", "no-verdict"),
        ("null", "no-verdict"),
        ("[3]", "no-verdict"),
        ('{"step": 3}', "no-verdict"),
        ('{"result": {"answer": 3}}', "no-verdict"),
        ("<answer>SAFE</answer>", "malformed"),
        ("<answer></answer>", "malformed"),
        ('<answer>{"verdict": "SAFE"}</answer>', "malformed"),
        ("<answer>", "truncated"),
        ('<answer>{"answer": 3, "reason": "the', "truncated"),
        ('<answer>{"answer": 3', "truncated"),
        ('{"answer": "SAFE", "reason": "the', "truncated"),
        ('<answer>{"answer": 3 "agent": "A"}</answer>', "malformed"),
        ('<answer>{"answer": 3 "meta": {"answer": "SAFE"}}</answer>', "malformed"),
        (f"<think>I will say <answer>{THREE}</answer></think>", "answer-in-thought"),
        (f"<think>I will say {THREE}</think> Done.", "answer-in-thought"),
        (f"<answer>{THREE}</answer></think>", "answer-in-thought"),
        (f"<think>They wrote <answer>{THREE}</answer>, which is", "answer-in-thought"),
        (f"<think>They wrote {THREE}", "answer-in-thought"),
        (f"<answer>{THREE}</answer><answer>{{", "truncated"),
        (f"<answer>{THREE}</answer><answer>SAFE</answer>", "malformed"),
    ],
)
def test_forms_that_are_not(text: str, fault: str) -> None:
    found = find_answers(text)
    assert (found.fault, found.objects) == (fault, ())


def test_only_what_stands_outside_the_thought_counts() -> None:
    assert answers(f'<think><answer>{{"answer": "SAFE"}}</answer></think><answer>{THREE}</answer>') == [3]
    assert answers(f'They: <answer>{{"answer": "SAFE"}}</answer></think><answer>{THREE}</answer>') == [3]


def test_a_block_inside_a_text_of_the_answer_is_text() -> None:
    quoted = '{"answer": 3, "quote": "</think><answer>{\\"answer\\": \\"SAFE\\"}</answer>"}'
    assert answers(f"<think>hm</think><answer>{quoted}</answer>") == [3]
    assert answers(quoted) == [3]


def test_all_answers_outside_of_thought_are_reported() -> None:
    assert answers(f'<answer>{THREE}</answer> or <answer>{{"answer": "SAFE"}}</answer>') == [3, "SAFE"]
    assert answers(f'<answer>{THREE} {{"answer": "SAFE"}}</answer>') == [3, "SAFE"]
    assert answers(f"A sample: {{'answer': 'SAFE'}}\n<answer>{THREE}</answer>") == [3]


def test_a_text_that_is_all_thought_counts_with_a_last_block_only() -> None:
    assert answers(f"hm\n<answer>{THREE}</answer>\n", all_thought=True) == [3]
    assert find_answers(f"<answer>{THREE}</answer> but maybe not", all_thought=True).fault == "answer-in-thought"
    assert find_answers(f"hm {THREE}", all_thought=True).fault == "answer-in-thought"


def test_of_a_long_reply_the_end_is_read() -> None:
    found = find_answers("<answer>" + "x" * MAX_READ + f"<answer>{THREE}</answer>")
    assert [entry["answer"] for entry in found.objects] == [3]
    assert found.notes == ("long reply, only its end was read",)


@pytest.mark.parametrize(
    "text",
    [
        "{" * 300_000,
        '{"answer":' * 30_000,
        "{ " * 100_000,
        '{"a": "' * 40_000,
        "<answer>" * 30_000,
        "<think>" * 30_000,
        "</think>" * 30_000,
        "\\" * 250_000,
        '{"answer": "' + "\\" * 250_000,
        '{"answer": ' + "9" * 70_000 + "}",
        "{'" + "' " * 60_000,
        '"answer": ' * 20_000 + "{",
    ],
)
def test_hostile_replies_hold_no_answer(text: str) -> None:
    """Each would take hours with backtracking or without bounds."""
    assert find_answers(text).objects == ()


@given(st.text(max_size=300))
def test_whatever_is_said_there_are_answers_or_a_fault(text: str) -> None:
    found = find_answers(text)
    assert bool(found.objects) != bool(found.fault)


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", THREE, "{", "}", '"', " x "])))
def test_whatever_order_tags_come_in(parts: list[str]) -> None:
    found = find_answers("".join(parts))
    assert bool(found.objects) != bool(found.fault)
    assert all(entry["answer"] == 3 for entry in found.objects)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, "b": [1, 2,], "c": {"d": null},}', {"a": 1, "b": [1, 2], "c": {"d": None}}),
        ("{'a': 'it's', 'b': True}", {"a": "it's", "b": True}),
        ("{'a': 'x\\ny', \"b\": 'say \"hi\"'}", {"a": "x\ny", "b": 'say "hi"'}),
        ('{"a": "\\u00e9", b: -2.50}', {"a": "\u00e9", "b": -2.5}),
        ("{a: None, b: SAFE}", {"a": None, "b": "SAFE"}),
        ("{}", {}),
    ],
)
def test_json_as_models_write_it(text: str, value: object) -> None:
    assert read_object(text, 0).value == value


def test_numbers_that_no_step_has() -> None:
    value = read_object('{"a": NaN, "b": -Infinity, "c": ' + "9" * 5000 + "}", 0).value
    assert math.isnan(value["a"]) and value["b"] == -math.inf and value["c"] == math.inf


def test_keys_that_stand_twice() -> None:
    value = read_object('{"answer": 1, "Answer": 2, "agent": "A", "agent": "A"}', 0).value
    assert value["answer"] == 2 and value.clashing == {"answer"}
    assert read_object("{answer: 1, 'answer': True}", 0).value.clashing == {"answer"}


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ('{"a": 1', True),
        ('{"a": "x', True),
        ("{", True),
        ('{"a": "x\\', True),
        ('{"a" 1}', False),
        ("{1: 2}", False),
        ('{"a": ...}', False),
        ('{"a": ' + "[" * (MAX_DEPTH + 1), False),
        ('{"a": ' + '{"a": ' * 100_000 + "1" + "}" * 100_001, False),
        ('{"a": 1;}', False),
    ],
)
def test_what_is_no_object(text: str, cut: bool) -> None:
    with pytest.raises(BrokenJson) as broken:
        read_object(text, 0)
    assert broken.value.cut is cut


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
