"""Text of values, and its bounds."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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

    def cost(text: str) -> float:
        best = 1.0
        for _ in range(20):
            begin = time.thread_time()
            bounded(text)
            searchable(text)
            best = min(best, time.thread_time() - begin)
        return best

    assert cost(large) < 1e-3 + 20 * cost(small)
