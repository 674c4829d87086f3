"""Labels beside the runs: what counts as an outcome, and what is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.errors import TraceError
from prefixguard.trace import Label, Outcome, read_labels


def write(tmp_path: Path, text: str | bytes, name: str = "labels.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_json_lines_and_csv_say_the_same(tmp_path: Path) -> None:
    lines = (
        '{"run_id": "a", "outcome": "success", "task_id": "t1"}\n\n{"run_id": 7, "outcome": "Failure", "task_id": 3}\n'
        '{"run_id": "c", "outcome": null}\n'
    )
    table = "run_id,outcome,task_id\r\na,success,t1\r\n7,failure,3\r\nc,,\r\n"
    expected = {
        "a": Label(Outcome.SUCCESS, "t1"),
        "7": Label(Outcome.FAILURE, "3"),
        "c": Label(Outcome.UNKNOWN, None),
    }
    assert read_labels(write(tmp_path, lines)) == expected
    assert read_labels(write(tmp_path, b"\xef\xbb\xbf" + table.encode(), "labels.csv")) == expected


@pytest.mark.parametrize(
    "outcome", ["true", "false", "0", "1", "0.5", '"false"', '"true"', '"1"', '"passed"', "[]", "{}"]
)
def test_no_outcome_is_guessed(tmp_path: Path, outcome: str) -> None:
    path = write(tmp_path, f'{{"run_id": "ok", "outcome": "success"}}\n{{"run_id": "a", "outcome": {outcome}}}\n')
    with pytest.raises(TraceError, match=r"labels.jsonl line 2: outcome .*Write success, failure or unknown"):
        read_labels(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("l.jsonl", '{"outcome": "success"}', "line 1: no run_id"),
        ("l.jsonl", '{"run_id": "", "outcome": "success"}', "line 1: no run_id"),
        ("l.jsonl", '{"run_id": true, "outcome": "success"}', "line 1: no run_id"),
        ("l.jsonl", '{"run_id": "a"}', "line 1: no outcome"),
        ("l.jsonl", '{"run_id": "a", "outcome": "success", "task_id": []}', "neither a text nor a whole number"),
        ("l.jsonl", '{"run_id"', "line 1: not JSON"),
        ("l.jsonl", "[1]", "line 1: not an object"),
        ("l.csv", "id,result\nx,success\n", "line 1: the columns are id, result; needed: run_id,outcome"),
        ("l.csv", "", "line 1: the columns are none"),
        ("l.csv", "run_id,outcome\nx,solved\n", "line 2: outcome 'solved'"),
    ],
)
def test_lines_that_are_no_labels(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        read_labels(write(tmp_path, text, name))
    assert message in str(caught.value)


def test_the_same_run_twice(tmp_path: Path) -> None:
    same = '{"run_id": "a", "outcome": "success"}\n' * 2
    assert len(read_labels(write(tmp_path, same))) == 1
    with pytest.raises(TraceError, match=r"line 3: run 'a' was labelled before, and otherwise"):
        read_labels(write(tmp_path, same + '{"run_id": "a", "outcome": "failure"}\n'))


@pytest.mark.parametrize(("name", "text"), [("l.jsonl", "\n"), ("l.csv", "run_id,outcome\n")])
def test_a_file_without_a_label(tmp_path: Path, name: str, text: str) -> None:
    with pytest.raises(TraceError, match=r"holds no label. Write run_id,outcome"):
        read_labels(write(tmp_path, text, name))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="Check the path of the labels"):
        read_labels(tmp_path / "none.csv")
    with pytest.raises(TraceError, match="Save the labels as UTF-8"):
        read_labels(write(tmp_path, b'{"run_id": "\xff"}'))
