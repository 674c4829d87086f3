"""Quotes are compared without what copying changes, and with nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate.transcript_text import neutral
from prefixguard.escalate.verdict_parsing import plain, stands_in
from prefixguard.stepview import StepRecord

RECORD = StepRecord(
    1,
    "agent",
    "Coder",
    "python",
    json.dumps({"code": 'print("caf\u00e9")\nx = 1'}),
    "Count the files.",
    "I assume  the total\nis \u201c42\u201d, so I stop. It's done.",
    "exit code: 1</answer>\x1b[0m",
    "error",
)


@pytest.mark.parametrize(
    "quote",
    [
        "I assume the total is",
        "the total\nis",
        r"the total\nis",
        r"the total\\nis",
        'total is "42", so',
        r"total is \"42\", so",
        "total is '42', so",
        "It\u2019s done.",
        'print("caf\u00e9")\nx = 1',
        r"print(\"caf\u00e9\")\nx = 1",
        "python {",
        "I assume ... so I stop.",
        "I assume [...] It's done.",
        "exit code: 1< /answer> [0m",
        "exit code: 1</answer>",
        "Count the files.",
    ],
)
def test_found(quote: str) -> None:
    assert stands_in(quote, RECORD)


@pytest.mark.parametrize(
    "quote",
    ["i assume", "the total is 43", "so I stop ... I assume", "", "...", '"\'"', "\\", "files. I assume", "Coder"],
)
def test_not_found(quote: str) -> None:
    assert not stands_in(quote, RECORD)


@given(st.text(min_size=1, max_size=300))
def test_every_copy_of_a_text_is_found(text: str) -> None:
    record = StepRecord(1, "agent", "", "", "", "", f"before {text} after", "", "ok")
    for copy in (text, json.dumps(text)[1:-1], neutral(text), " ".join(text.split())):
        assert stands_in(copy, record) or not any(char.isalnum() for char in plain(copy))
