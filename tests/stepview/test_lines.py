"""Events as lines: bounded, never raising, each with its number."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview import load_adapter, read_events

CHAT = load_adapter("openai_chat")
TEXT = load_adapter("terminal_log")


@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none(), max_size=3), max_size=6))
def test_what_is_written_as_lines_is_read_back(events: list[dict[str, object]]) -> None:
    stream = io.BytesIO("".join(json.dumps(event) + "\n" for event in events).encode())
    assert [line.event for line in read_events(stream, CHAT)] == events


@given(st.binary(max_size=300))
def test_no_bytes_raise_and_every_line_is_told(data: bytes) -> None:
    lines = list(read_events(io.BytesIO(data), CHAT))
    wanted = [n for n, line in enumerate(io.BytesIO(data), 1) if not line.isspace()]
    assert [line.number for line in lines] == wanted


@given(st.binary(max_size=300))
def test_text_comes_as_it_is(data: bytes) -> None:
    assert b"".join(line.event for line in read_events(io.BytesIO(data), TEXT)) == data


def test_a_line_that_is_too_long_is_read_past_and_told() -> None:
    stream = io.BytesIO(b"1\n" + b"x" * 5_000_000 + b"\n" + b"y" * 20 + b"\n3")
    lines = list(read_events(stream, CHAT, max_bytes=10))
    assert [(line.number, line.event) for line in lines] == [(1, 1), (2, None), (3, None), (4, 3)]
    assert lines[1].problem == "line 2 is longer than the 10 bytes that are read"


def test_blank_lines_are_no_events() -> None:
    assert [line.event for line in read_events(io.BytesIO(b"\n1\n  \r\n2\n"), CHAT)] == [1, 2]
