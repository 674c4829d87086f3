"""Lines as events and as runs: each with its number, bounded, and they say the form where a name does not."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.stepview import load_adapter, read_events, read_runs

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


def test_a_line_that_is_no_score_says_what_one_is() -> None:
    scores = load_adapter("scores")
    (line,) = read_events(io.BytesIO(b"r1,1,0.5\n"), scores)
    assert line.problem is not None and line.problem.endswith('; a line is one score: {"score": 0.7}, or 0.7 alone')
    examples = line.problem.partition("score: ")[2].removesuffix(" alone").split(", or ")
    lines = read_events(io.BytesIO("\n".join(examples).encode()), scores)
    assert [scores.parser().observe(one.event)[0].score for one in lines] == [0.7, 0.7]


def test_blank_lines_are_no_events() -> None:
    assert [line.event for line in read_events(io.BytesIO(b"\n1\n  \r\n2\n"), CHAT)] == [1, 2]


def _runs(n: int) -> list[dict[str, Any]]:
    return [
        {"run_id": f"r{i}", "outcome": "success", "messages": [{"role": "assistant", "content": "x" * 20_000}]}
        for i in range(n)
    ]


FORMS = {
    "a run a line": "\n".join(json.dumps(r) for r in _runs(3)) + "\n",
    "blank lines between": "\n\n".join(json.dumps(r) for r in _runs(3)),
    "an array on one line": json.dumps(_runs(3)),
    "an array over many lines": json.dumps(_runs(3), indent=1),
    "under a key": json.dumps({"runs": _runs(3)}, indent=1) + "\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_standard_input_and_files_of_any_name(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter = load_adapter("openai_chat")
    path = tmp_path / "runs.log"
    path.write_text(FORMS[form])
    assert [r.run_id for r in read_runs(path, adapter)] == ["r0", "r1", "r2"]
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(FORMS[form].encode())))
    assert [r.run_id for r in read_runs("-", adapter)] == ["r0", "r1", "r2"]


def test_one_run_on_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(_runs(1)[0]).encode() + b"\n")))
    assert [r.run_id for r in read_runs("-", load_adapter("openai_chat"))] == ["r0"]
