"""Labels beside the runs: what counts as an outcome, what is refused with its place, and which run a label is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prefixguard.errors import DataError, TraceError
from prefixguard.trace import Fault, Label, LabelBook, LabelTally, Mistake, Outcome, read_labels


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


def test_steps_and_agents_of_mistakes(tmp_path: Path) -> None:
    lines = (
        '{"run_id": "a", "outcome": "failure", "mistake_step": 4, "mistake_agent": "Coder"}\n'
        '{"run_id": "b", "outcome": "success", "mistake_step": null}\n'
        '{"run_id": "c", "outcome": "failure", "labels": [{"step": null, "agent": "X", "kind": "FM-3.2"},'
        ' {"step": 2, "agent": "Y", "kind": "wrong_value", "rule": "injected"}]}\n'
        '{"run_id": "d", "outcome": "success", "step": 3, "agent": "gpt"}\n'
    )
    found = read_labels(write(tmp_path, lines))
    assert {name: label.mistake for name, label in found.items()} == {
        "a": Mistake(4, "Coder"), "b": None, "c": Mistake(2, "Y"), "d": None,
    }  # fmt: skip
    assert found["c"].faults == (Fault("X", "FM-3.2"),) and not found["a"].faults
    table = "run_id,outcome,mistake_step,mistake_agent\na,failure, 4,Coder\nb,success,,\n"
    read = read_labels(write(tmp_path, table, "labels.csv"))
    assert read == {name: found[name] for name in ("a", "b")}


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
        (
            "l.jsonl",
            '{"run_id": "a", "outcome": "failure", "mistake_step": 0}',
            "step 0. Write the number of a record, from 1",
        ),
        ("l.jsonl", '{"run_id": "a", "outcome": "failure", "mistake_step": true}', "step True. Write the number"),
        ("l.csv", "run_id,outcome,mistake_step\nx,failure,two\n", "line 2: step 'two'. Write the number of a record"),
        ("l.jsonl", '{"run_id": "a", "outcome": "failure", "mistake_agent": 3}', "agent 3 is no text"),
        ("l.jsonl", '{"run_id": "a", "outcome": "success", "mistake_step": 3}', "only failures have one"),
        ("l.jsonl", '{"run_id": "a", "outcome": "failure", "labels": [3]}', "labels are a list of objects"),
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


def book(ids: list[str], files: list[str]) -> LabelBook:
    return LabelBook({run_id: Label(Outcome.SUCCESS, run_id) for run_id in ids}, files)


@pytest.mark.parametrize("told", ["q1", "q1.json", "runs/q1.json"])
def test_a_run_alone_in_its_file_goes_by_the_file(told: str) -> None:
    labels = book([told], ["runs/q1.json", "runs/q2.json"])
    found = labels.find("runs/q1.json", "runs/q1.json")
    assert found is not None and found.task_id == told and labels.tally().unmatched == 0
    assert labels.find("runs/q2.json", "runs/q2.json") is None
    assert book([told], ["runs/q1.json"]).find("x", None) is None


def test_a_name_that_two_files_or_two_labels_have_is_nobodys() -> None:
    assert book(["q1"], ["a/q1.json", "b/q1.json"]).find("a/q1.json", "a/q1.json") is None
    assert book(["q1.json", "q1.log"], ["q1.txt"]).find("own", "q1.txt") is None
    both = book(["a/q1.json", "b/q1.json"], ["a/q1.json", "b/q1.json"])
    found = both.find("own", "b/q1.json")
    assert found is not None and found.task_id == "b/q1.json"


def test_numbers_at_the_end_are_no_suffix() -> None:
    assert book(["run"], ["run.1.json", "run.2.json"]).find("run.1.json", "run.1.json") is None


def test_labels_of_other_runs_are_refused() -> None:
    labels = book(["x1", "x2"], ["a.json"])
    labels.refuse_strangers(Path("l.csv"))  # nothing was read yet
    labels.find("a.json", "a.json")
    with pytest.raises(DataError, match=r"l.csv: none of its 2 labels .* 'x1', 'x2'; the runs are 'a.json'"):
        labels.refuse_strangers(Path("l.csv"))
    labels.find("x1")
    labels.refuse_strangers(Path("l.csv"))


@pytest.mark.parametrize(
    "told",
    ["a/q1.json", "./a/q1.json", "a\\q1.json", "runs/a/q1.json", "./runs//a/q1.json", "/data/runs/a/q1.json", "a/q1"],
)
def test_a_path_is_understood_however_it_is_spelled(told: str) -> None:
    labels = LabelBook({told: Label(Outcome.FAILURE, None)}, ["a/q1.json", "b/q1.json"], ["/data/runs"])
    assert labels.find("q1", "a/q1.json") == Label(Outcome.FAILURE, None)
    assert labels.find("q1#2", "b/q1.json") is None
    assert labels.tally() == LabelTally(unlabelled=1, first_unlabelled=("q1#2",))


def test_a_path_in_another_folder_is_of_no_run() -> None:
    labels = LabelBook({"c/q1.json": Label(Outcome.FAILURE, None)}, ["a/q1.json"], ["/data/runs"])
    assert labels.find("q1", "a/q1.json") is None


def test_what_met_nothing_is_counted_and_named() -> None:
    labels = book(["q1", "gone", "own"], ["a/q1.json", "b/q1.json", "c.json"])
    for run_id, file in (("a/q1.json", "a/q1.json"), ("b/q1.json", "b/q1.json"), ("own", "c.json")):
        labels.find(run_id, file)
    tally = labels.tally()
    assert (tally.unmatched, tally.ambiguous, tally.unlabelled) == (1, 1, 2)
    assert list(tally.notes()) == [
        "1 label names no run that was read: 'gone'.",
        "1 label fits several files, or a file that another label fits, and counted for none: 'q1'. Write the path "
        "inside the folder of runs, or the run_id that parse --json prints.",
        "2 runs have no label and the outcome that the trace gives: 'a/q1.json', 'b/q1.json'.",
    ]
    assert list(LabelTally().notes()) == []


PARTS = st.sampled_from(["a", "b", "runs", "q1", "q1.json", "q1.log", "run.1.json"])
PATHS = st.lists(st.lists(PARTS, min_size=1, max_size=3).map("/".join), min_size=1, max_size=8, unique=True)


@example(["a", "runs/a", "runs/runs/a"], "runs/{}")
@given(PATHS, st.sampled_from(["{}", "./{}", "runs/{}", "/data/runs/{}"]))
def test_the_path_inside_the_folder_always_finds_its_run(files: list[str], spelled: str) -> None:
    """However a path is written, the label of each file is its own, or nobody's; written as it is, it is its own."""
    told = {spelled.format(file): Label(Outcome.SUCCESS, file) for file in files}
    labels = LabelBook(told, files, ["/data/runs"])
    for file in files:
        found = labels.find("id of " + file, file)
        assert (found is None and spelled != "{}") is (found is None)
        assert found is None or found.task_id == file
