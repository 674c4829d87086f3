"""Terminal recordings as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview.terminal import render, render_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain text", "plain text"),
        ("plain\r", "plain"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07prompt$ ls", "prompt$ ls"),
        ("\x1b[?2004h$ ", "$ "),
        ("  0%\r 50%\r100%", "100%"),
        ("long line\rshort", "shortline"),
        ("long line\r\x1b[Kshort", "short"),
        ("long line\x1b[2K\rx", "x"),
        ("abc\x08\x08X", "aXc"),
        ("ab\x1b[2DX", "Xb"),
        ("a\x1b[3Cb", "a   b"),
        ("abc\x1b[1GX", "Xbc"),
        ("bell\x07 nul\x00", "bell nul"),
        ("tab\tkept", "tab\tkept"),
        ("\x1b(Bcharset \x1b=", "charset "),
        ("cut off \x1b[", "cut off"),
        ("⠏ Waiting\r⠋ Waiting\r\x1b[2Kdone", "done"),
        ("", ""),
    ],
)
def test_a_line(line: str, shown: str) -> None:
    assert render_line(line) == shown


def test_lines_are_kept_apart() -> None:
    assert render("a\r\nb\x1b[1A\r\n\nc") == "a\nb\n\nc"


pieces = st.lists(
    st.sampled_from(
        ["a", "bc ", "\r", "\x08", "\x1b[K", "\x1b[2K", "\x1b[3C", "\x1b[2D", "\x1b[0m", "\x1b", "é", "\t", "\x9b"]
    ),
    max_size=20,
).map("".join)


@given(pieces)
def test_rendering_twice_changes_nothing(line: str) -> None:
    shown = render_line(line)
    assert render_line(shown) == shown
    assert not any(c < " " and c != "\t" for c in shown)


@pytest.mark.parametrize(
    "line",
    [
        "a" * 100_000 + "\rb" * 100_000,
        "\x1b[999C" * 100_000 + "x",
        "ab\x1b[K\r" * 50_000,
        "\x1b" * 200_000,
        "\x1b[1;" * 60_000,
    ],
    ids=["returns", "far cursor", "erasing", "escapes", "unfinished"],
)
def test_a_hostile_line_costs_its_length(line: str) -> None:
    begin = time.thread_time()
    shown = render_line(line)
    assert time.thread_time() - begin < 5.0, "a quadratic one takes minutes"
    assert len(shown) <= len(line) + 4096
