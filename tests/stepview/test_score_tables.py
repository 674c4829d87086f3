"""Tables of scores as runs: what is read, and what is said of a table that cannot be."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport, load_adapter, read_runs, score_record
from prefixguard.trace import Outcome, digest_of

SCORES = load_adapter("scores")
GOOD = "run,step,score,outcome,task\na,1,0.5,success,t\na,2,0.25,,\n"


def read(path: Path, **options) -> list:
    return list(read_runs(path, SCORES, **options))


def table(folder: Path, text: str | bytes, name: str = "s.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_rows_become_runs_and_scores_are_steps(tmp_path: Path) -> None:
    text = "run,step,score,outcome,task,note\na,1,0.5,success,t,x\nb,1,-3,failure,u,y\na,2,1e-3,,,\nb,2,7,failure,u,\n"
    first, second = read(table(tmp_path, text))
    assert (first.run_id, first.task_id, first.outcome) == ("a", "t", Outcome.SUCCESS)
    assert [record.score for record in first.records] == [0.5, 0.001]
    assert [(record.index, record.score) for record in second.records] == [(1, -3.0), (2, 7.0)]
    assert second.outcome is Outcome.FAILURE


@given(
    runs=st.lists(st.lists(st.floats(min_value=-1e30, max_value=1e30), min_size=1, max_size=6), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
)
def test_three_forms_say_the_same_in_any_order_of_runs(tmp_path_factory, runs, order) -> None:
    folder = tmp_path_factory.mktemp("forms")
    waiting = [[(f"r{i}", step, score) for step, score in enumerate(run, 1)] for i, run in enumerate(runs)]
    rows = []
    while any(waiting):
        rows.append(order.choice([one for one in waiting if one]).pop(0))
    csv = "run,step,score\n" + "".join(f"{run},{step},{score!r}\n" for run, step, score in rows)
    lines = "".join(json.dumps({"run": run, "step": step, "score": score}) + "\n" for run, step, score in rows)
    paths = [table(folder, csv), table(folder, "\ufeff" + csv, "bom.csv"), table(folder, lines, "s.jsonl")]
    for path in paths:
        found = {run.run_id: [record.score for record in run.records] for run in read(path)}
        assert found == {f"r{i}": run for i, run in enumerate(runs)}


def test_parquet_with_missing_outcomes(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = arrow.table(
        {"run": ["a", "a", "b"], "step": [1.0, 2.0, 1.0], "score": [0.1, 0.2, float("nan")],
         "outcome": ["success", None, "failure"], "task": [float("nan")] * 3}
    )  # fmt: skip
    parquet.write_table(rows, tmp_path / "s.parquet")
    report = ReadReport()
    (run,) = read(tmp_path / "s.parquet", report=report)
    assert (run.outcome, run.task_id, len(run.records)) == (Outcome.SUCCESS, None, 2)
    assert "row 3: the score nan is not a finite number from -1e+30 to 1e+30." in report.skipped[0][1]


BAD = {
    "b,1,nan": "line 4: the score nan is not a finite number from -1e+30 to 1e+30.",
    "b,1,inf": "line 4: the score inf is not a finite number from -1e+30 to 1e+30.",
    "b,1,1e31": "line 4: the score 1e+31 is not a finite number from -1e+30 to 1e+30.",
    "b,1,=1+1": "line 4: the score '=1+1' is not a number.",
    "b,1,0x1p3": "line 4: the score '0x1p3' is not a number.",
    "b,1,1_0": "line 4: the score '1_0' is not a number.",
    "b,1,": "line 4: the score '' is not a number.",
    "b,1": "line 4: the score None is not a number.",
    "b,0,1": "line 4: step '0' is not a whole number from 1.",
    "b,1.5,1": "line 4: step '1.5' is not a whole number from 1.",
    "b,one,1": "line 4: step 'one' is not a whole number from 1.",
    "b,2,1": "line 4: step 2 comes, and step 1 is missing before it.",
    "b,1,1\nb,1,2": "line 5: step 1 comes after step 1. Give each once, in order.",
    "b,1,1\nb,3,2": "line 5: step 3 comes, and step 2 is missing before it.",
    "b,1,1,true": "line 4: outcome 'true'. Write success, failure or unknown.",
    "b,1,1,success\nb,2,1,failure": "line 5: outcome 'failure', and 'success' in an earlier row of the run.",
    "b,1,1,,t\nb,2,1,,u": "line 5: task 'u', and 't' in an earlier row of the run.",
    ",1,1": "line 4: names no run. Every row needs run, step and score.",
}


@pytest.mark.parametrize("rows", BAD)
def test_a_run_that_cannot_be_read_is_left_out_with_a_sentence(tmp_path: Path, rows: str) -> None:
    path, report = table(tmp_path, GOOD + rows + "\n"), ReadReport()
    (run,) = read(path, report=report)
    assert run.run_id == "a"
    ((_, why),) = report.skipped
    assert why == f"{path} {BAD[rows]}"
    with pytest.raises(TraceError, match="line"):
        read(path, strict=True)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"run,step\na,1\n", "the columns are run, step; needed: run,step,score[,outcome,task]. Rename them"),
        (b"run,step,score,score\na,1,1,2\n", "two columns are called score. Rename one."),
        (b"", "the columns are none; needed: run,step,score"),
        (b"run,step,score\na,1,\xff\n", "line 2: not UTF-8 (invalid start byte). Save the table as UTF-8."),
        (b'run,step,score\na,1,"' + b"x" * 200_000 + b'"\n', "not CSV (field larger than field limit (131072))"),
    ],
)
def test_a_table_that_cannot_be_read_is_said(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(table(tmp_path, data))
    assert said in str(caught.value)


def test_control_bytes_reach_no_terminal(tmp_path: Path) -> None:
    with pytest.raises(TraceError) as caught:
        read(table(tmp_path, b"run,step,score\na\x00\x1b[31m,1,\x00\x1b\n"))
    assert "\x1b" not in str(caught.value) and "\x00" not in str(caught.value)


def test_labels_give_outcomes(tmp_path: Path) -> None:
    labels = table(tmp_path, "run_id,outcome,task_id\na,failure,q\n", "labels.csv")
    (run,) = read(table(tmp_path, "run,step,score\na,1,1\n"), labels=labels)
    assert (run.outcome, run.task_id) == (Outcome.FAILURE, "q")


def test_equal_scores_of_different_runs_are_no_repeat(tmp_path: Path) -> None:
    first, second = read(table(tmp_path, "run,step,score\na,1,0\nb,1,0\n"))
    assert digest_of(first) != digest_of(second)
    (again,) = read(table(tmp_path, "run,step,score\na,1,0\n"))
    assert digest_of(again) == digest_of(first)
    (other,) = read(table(tmp_path, "run,step,score\na,1,1\n"))
    assert digest_of(other) != digest_of(first)


def test_live_events_are_objects_or_numbers() -> None:
    parser = SCORES.parser()
    assert [record.score for record in parser.observe({"run": "a", "step": 1, "score": 0.5})] == [0.5]
    assert [record.score for record in parser.observe(2)] == [2.0]
    for event, said in [
        ({"step": 3}, "the score {'step': 3} is not a number. An event is one score: {\"score\": 0.7}, or 0.7 alone"),
        ({"step": 3, "score": True}, "step 3: it comes after step 3. Give each step once, in order"),
        ({"step": 6, "score": 1}, "step 6: steps 4 to 5 are missing before it. Give a score of every step, in order"),
        ({"step": "7", "score": 1}, "the step '7' is not a whole number from 1"),
        ({"step": 0, "score": 1}, "step 0: steps count from 1"),
        ({"step": 10**9, "score": 1}, "step 1000000000: steps 7 to 999999999 are missing before it"),
        ("x", "the score 'x' is not a number"),
    ]:
        with pytest.raises(TraceError) as caught:
            parser.observe(event)
        assert said in str(caught.value)
    assert [record.index for record in parser.observe({"step": 7, "score": 1})] == [7]
    parser.observe({"run": "b", "score": 1})
    assert parser.other_run is not None


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_a_record_holds_any_finite_number_and_no_other(score: float) -> None:
    if math.isfinite(score) and abs(score) <= 1e30:
        assert score_record(1, score).score == score
    else:
        with pytest.raises(TraceError, match="finite number"):
            score_record(1, score)
