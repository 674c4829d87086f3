"""Any JSON value as text of bounded length, and JSON as text with its numbers as they were spelled."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import least_seconds

from prefixguard.stepview.jsontext import canonical, canonical_text, decode, decode_text
from prefixguard.stepview.text import CUT_MARK, cut, cutter, repair, searchable, to_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, ""),
        (True, "true"),
        (1.5, "1.5"),
        ([], ""),
        (["a", "b"], "a\nb"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:..."}}], "a\n<image>"),
        ([{"type": "input_image"}, {"type": "input_audio"}], "<image>\n<audio>"),
        ([{"type": "tool_result", "content": [{"type": "text", "text": "deep"}]}], "deep"),
        ([{"type": "text", "text": {"value": "v1"}}], "v1"),
        ([{"type": "refusal", "refusal": "no"}], "no"),
        ([{"type": "weird", "data": 1}], "<weird>"),
        ([["nested", ["more"]], None, 3], "nested\nmore\n3"),
        ({"a": 1}, '{"a":1}'),
        ({"type": "text", "text": "one block"}, "one block"),
    ],
)
def test_to_text(value: Any, text: str) -> None:
    assert to_text(value) == text


@given(st.text(st.characters(), max_size=60), st.integers(0, 20), st.integers(0, 20))
def test_cut_keeps_head_and_tail(text: str, head: int, tail: int) -> None:
    shown = cut(text, head, tail)
    assert len(shown) <= head + tail + len(CUT_MARK)
    shown.encode("utf-8")
    if len(text) <= head + tail:
        assert shown == repair(text)
    else:
        assert CUT_MARK in shown


def test_surrogates() -> None:
    assert repair("a\ud83d\ude00b") == "a\U0001f600b"
    assert repair("a\ud800b") == "a\ufffdb"
    assert repair("plain") == "plain"


def test_the_mark_is_no_word() -> None:
    assert not any(character.isalnum() or ord(character) > 127 for character in CUT_MARK)


def test_cutting_50_mb_costs_what_cutting_50_kb_does() -> None:
    bounded = cutter((1200, 800))
    small, large = "x" * 50_000, "x" * 50_000_000

    def cut(text: str) -> None:
        bounded(text)
        searchable(text)

    long, short = least_seconds(lambda: cut(large), lambda: cut(small), times=20)
    assert long < 1e-3 + 20 * short


NUMBERS = [
    "0", "-0", "1", "-1", "1.0", "1.10", "1e3", "1E+3", "1e-7", "0.00001", "123456789012345678901234567890", "1e400",
    "10000000000000000.0", "0.1", "-0.0", "3.141592653589793238462643", "9007199254740993", "1" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_keeps_its_spelling(number: str) -> None:
    assert canonical_text(f'{{"n": {number}, "a": [{number}]}}') == f'{{"a":[{number}],"n":{number}}}'


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_of_a_document_keeps_its_spelling_too(number: str) -> None:
    assert canonical(decode(f'{{"n": {number}}}'.encode())) == f'{{"n":{number}}}'


spelled = st.sampled_from(NUMBERS) | st.decimals(allow_nan=False, allow_infinity=False, places=3).map(str)


@given(st.lists(spelled.filter(lambda text: "E" not in text or text == "1E+3"), max_size=6))
def test_any_numbers_keep_their_spelling(numbers: list[str]) -> None:
    text = "[" + ",".join(numbers) + "]"
    assert canonical_text(text) == text


def test_spelled_numbers_still_count() -> None:
    value = decode(b"[1e3, 1.50, -0, 12345678901234567890123]")
    assert value == [1000.0, 1.5, 0, 12345678901234567890123]
    assert value[0] >= 1000.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b":1,"a":{"d":2,"c":3}}', '{"a":{"c":3,"d":2},"b":1}'),
        (' {"a": null} ', '{"a":null}'),
        ('{"a": NaN, "b": -Infinity}', '{"a":NaN,"b":-Infinity}'),
        ('"{\\"b\\": 1, \\"a\\": 2}"', '{"a":2,"b":1}'),
        ('"plain"', '"plain"'),
        ("ls -l", "ls -l"),
        ("12", "12"),
        ("", ""),
        ("{broken", "{broken"),
        ("[1, 2", "[1, 2"),
        ("{'a': 1}", "{'a': 1}"),
        ('{"ü": "ß"}', '{"ü":"ß"}'),
    ],
)
def test_canonical_text(text: str, expected: str) -> None:
    assert canonical_text(text) == expected


def test_deep_nesting_is_kept_as_text() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert canonical_text(text) == text


def test_lone_surrogates_are_read() -> None:
    assert decode(b'["\\ud800"]') == ["\ud800"]
    assert canonical_text('["\\ud800", 1.0]') == '["\ud800",1.0]'


def test_nan_of_a_decoded_value_does_not_become_null() -> None:
    assert canonical({"a": math.nan, "b": math.inf, "c": None}) == '{"a":NaN,"b":Infinity,"c":null}'


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_canonical_is_json_of_the_same_value(value: Any) -> None:
    text = canonical(value)
    assert json.loads(text) == value
    assert decode_text(text) == value
    assert canonical(json.loads(text)) == text or "e" in text


@given(st.dictionaries(st.text(max_size=3), json_values, max_size=5))
def test_order_of_keys_does_not_count(value: dict[str, Any]) -> None:
    assert canonical(dict(reversed(list(value.items())))) == canonical(value)
