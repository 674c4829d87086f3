"""Adapters of attribution sets, on invented rows in the published layouts: indices, labels, and what stays hidden."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attribution_rows import HIDDEN, aegis, aftraj_safe, aftraj_unsafe, mast, mast_human, tracertraj, whoandwhen

from prefixguard.errors import TraceError
from prefixguard.induce import check_adapter
from prefixguard.stepview import ReadReport, StepRecord, load_adapter, read_runs, serialize
from prefixguard.trace import Fault, Mistake, Outcome, Run

Runs = dict[str, Run[StepRecord]]


def as_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def read(source: Path, adapter: str) -> Runs:
    return {run.run_id: run for run in read_runs(source, load_adapter(adapter), strict=True)}


def blamed(run: Run[StepRecord]) -> StepRecord:
    """The record that the label names."""
    assert run.mistake is not None and run.mistake.step is not None
    return run.records[run.mistake.step - 1]


@pytest.fixture
def aftraj(tmp_path: Path) -> Runs:
    as_parquet(tmp_path / "aftraj_safe.parquet", aftraj_safe())
    as_parquet(tmp_path / "aftraj_unsafe.parquet", aftraj_unsafe())
    (tmp_path / "splits_test.json").write_text('{"test_safe": ["sum-safe"], "test_unsafe": []}')
    return read(tmp_path, "aftraj")


def test_aftraj_outcomes_and_families(aftraj: Runs) -> None:
    assert {name: run.outcome.value for name, run in aftraj.items()} == {
        "ferry-safe": "success", "sum-safe": "success", "ferry-injected": "failure", "sum-injected": "failure",
        "double-diagnosed": "failure",
    }  # fmt: skip
    assert aftraj["ferry-safe"].task_id == aftraj["ferry-injected"].task_id
    assert dict(aftraj["ferry-injected"].groups) == {"domain": "hotpotqa", "area": "agentic"}


def test_aftraj_labels_hit_their_turns(aftraj: Runs) -> None:
    assert aftraj["ferry-safe"].mistake is None and aftraj["sum-safe"].mistake is None
    searched = blamed(aftraj["ferry-injected"])
    assert (searched.index, searched.agent, searched.tool) == (3, "search_agent", "search")
    assert blamed(aftraj["sum-injected"]).index == 1
    empty = blamed(aftraj["double-diagnosed"])
    assert (empty.index, empty.actor, empty.status) == (4, "environment", "error")
    for row in aftraj_safe() + aftraj_unsafe():
        records = aftraj[row["conv_id"]].records
        assert [record.event for record in records] == list(range(len(row["turns"])))
        assert [record.agent for record in records] == [turn["role"] for turn in row["turns"]]


def test_aftraj_request_is_seen_where_no_user_speaks(aftraj: Runs) -> None:
    assert aftraj["sum-safe"].records[0].observation == "What is 17 + 26?"
    assert aftraj["ferry-safe"].records[0].observation == ""
    assert aftraj["ferry-safe"].records[0].actor == "user"


@pytest.mark.parametrize(
    ("file", "step", "outcome", "mistake"),
    [
        ("merged", None, Outcome.UNKNOWN, None),
        ("merged", float("nan"), Outcome.UNKNOWN, None),
        ("merged", -1.0, Outcome.SUCCESS, None),
        ("merged", 1.0, Outcome.FAILURE, Mistake(2, "Verifier")),
        ("aftraj_safe", float("nan"), Outcome.SUCCESS, None),
        ("safe-00000-of-00001", None, Outcome.SUCCESS, None),
        ("aftraj_unsafe", None, Outcome.FAILURE, Mistake(None, "Verifier")),
        ("aftraj_unsafe", -1.0, Outcome.SUCCESS, None),
        ("aftraj_unsafe", 7.0, Outcome.FAILURE, Mistake(None, "Verifier")),
    ],
)
def test_aftraj_in_other_tables(
    file: str, step: float | None, outcome: Outcome, mistake: Mistake | None, tmp_path: Path
) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {name: [value] for name, value in aftraj_safe()[1].items()}
    columns["mistake_step"] = pyarrow.array([step], pyarrow.float64())
    columns["mistake_agent"] = ["Verifier" if mistake else None]
    parquet.write_table(pyarrow.table(columns), tmp_path / f"{file}.parquet")
    run = read(tmp_path, "aftraj")["sum-safe"]
    assert (run.outcome, run.mistake) == (outcome, mistake)


def test_tracertraj_labels_are_steps_that_entries_bear(tmp_path: Path) -> None:
    as_parquet(tmp_path / "code-test.parquet", tracertraj())
    runs = read(tmp_path, "tracertraj")
    assert {run.outcome for run in runs.values()} == {Outcome.FAILURE}
    assert blamed(runs["lamp_I"]).action.startswith("```python")
    assert blamed(runs["door_I"]).action == "Hinge 10 is drawn."  # the text "10", and not "1"
    assert [record.actor for record in runs["door_I"].records][-2:] == ["environment", "agent"]
    assert runs["door_I"].records[-1].agent == "Engineer"  # an entry with a role and no name
    later = tracertraj()[0]
    for entry in later["history"]:
        entry["step"] += 5
    (tmp_path / "moved").mkdir()
    as_parquet(
        tmp_path / "moved" / "t.parquet",
        [later | {"mistake_step": "7"}, later | {"mistake_step": "2", "question_ID": "2"}],
    )
    moved = read(tmp_path / "moved", "tracertraj")
    assert blamed(moved["lamp_I"]).agent == "Engineer"
    assert moved["2"].mistake == Mistake(None, "Engineer")


@pytest.mark.parametrize("form", ["array", "lines", "one"])
def test_aegis_faults_in_every_form(form: str, tmp_path: Path) -> None:
    rows = aegis()
    text = {
        "array": json.dumps(rows),
        "lines": "".join(json.dumps(row) + "\n" for row in rows),
        "one": json.dumps(rows[0]),
    }
    (tmp_path / ("test.jsonl" if form == "lines" else "test.json")).write_text(text[form])
    runs = read(tmp_path, "aegis")
    assert runs["sums-1"].faults == (
        Fault("Node1", "FM-2.6"), Fault("Node2", "FM-3.3"), Fault("Node9", "FM-1.2"),
    )  # fmt: skip
    assert [record.index for record in runs["sums-1"].records] == [1, 2, 3]  # steps 1, 10 and 12
    assert runs["sums-1"].mistake is None and runs["sums-1"].outcome is Outcome.FAILURE
    if form != "one":
        trip = runs["trip-1"]
        assert trip.outcome is Outcome.UNKNOWN
        assert trip.faults[0].agent in {record.agent for record in trip.records}
        assert [record.agent for record in trip.records if record.actor == "agent"] == [
            "Orchestrator", "Orchestrator", "WebSurfer",
        ]  # fmt: skip


def test_mast_turns_faults_and_ids(tmp_path: Path) -> None:
    (tmp_path / "MAD_full_dataset.json").write_text(json.dumps(mast()))
    runs = read(tmp_path, "mast")
    assert runs["ChatDev/m-1/0"].faults == (Fault(None, "FM-1.1"), Fault(None, "FM-3.2"))
    assert runs["ChatDev/m-2/0"].faults == ()
    assert {run.outcome for run in runs.values()} == {Outcome.UNKNOWN}
    speakers = {
        name.partition("/")[0]: [record.agent for record in run.records if record.actor == "agent"]
        for name, run in runs.items()
        if name != "ChatDev/m-2/0"
    }
    assert speakers == {
        "ChatDev": ["Chief Executive Officer", "Programmer"],
        "MetaGPT": ["SimpleCoder", "SimpleTester"],
        "Magentic": ["MagenticOneOrchestrator", "Orchestrator"],
        "AG2": ["mathproxyagent", "assistant"],
        "OpenManus": ["Manus"],
        "AppWorld": ["Supervisor Agent", "spotify Agent"],
        "HyperAgent": ["Planner", "Navigator"],
    }
    (plain,) = runs["ChatDev/m-2/0"].records
    assert (plain.actor, plain.result) == ("environment", "Nothing here says who speaks.\nIt was switched on.")


def test_mast_human_labels_are_of_another_layout(tmp_path: Path) -> None:
    (tmp_path / "MAD_human_labelled_dataset.json").write_text(json.dumps(mast_human()))
    with pytest.raises(TraceError, match=r"MAD_human_labelled_dataset\.json: no runs at"):
        read(tmp_path, "mast")
    (tmp_path / "MAD_full_dataset.json").write_text(json.dumps(mast()))
    report = ReadReport()
    assert len(list(read_runs(tmp_path, load_adapter("mast"), report=report))) == len(mast())
    assert [where for where, _ in report.skipped] == [str(tmp_path / "MAD_human_labelled_dataset.json")]


def test_whoandwhen_turns_beside_whoandwhen(tmp_path: Path) -> None:
    for name, row in whoandwhen().items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(json.dumps(row))
    turns, joined = read(tmp_path, "whoandwhen_turns"), read(tmp_path, "whoandwhen")
    for name, row in whoandwhen().items():
        assert len(turns[name].records) == len(row["history"]) > len(joined[name].records)
        assert turns[name].mistake == Mistake(int(row["mistake_step"]) + 1, row["mistake_agent"])
    by_name = turns["Algorithm-Generated/1.json"]
    assert blamed(by_name).actor == "environment"  # a label on an entry of the terminal
    assert joined["Algorithm-Generated/1.json"].mistake == Mistake(None, "Blu-Ray_Expert")
    by_role = turns["Hand-Crafted/1.json"]
    assert {record.agent for record in by_role.records if record.actor == "agent"} == {"Orchestrator", "WebSurfer"}
    assert by_role.records[-1].action == by_role.records[-1].result == ""


ROWS: dict[str, tuple[str, Callable[[], list[dict[str, Any]]]]] = {
    "aftraj": ("aftraj_unsafe.jsonl", aftraj_unsafe),
    "tracertraj": ("t.jsonl", tracertraj),
    "aegis": ("t.jsonl", aegis),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_label_changes_a_record_and_none_is_in_one(name: str, tmp_path: Path) -> None:
    """Every hidden value takes a text of its own, and the labels vanish; the records stay."""

    def spoilt(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: spoilt(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [spoilt(one, key) for one in value]
        marks = ("mistake_agent", "mistake_step", "error_type", "is_injected", "num_turns", "num_injected_agents")
        return "CANARY" if value == HIDDEN or key in marks else value

    file, rows = ROWS[name]
    found = []
    changes: tuple[Callable[[Any], Any], ...] = (lambda value: value, spoilt)
    for n, change in enumerate(changes):
        path = tmp_path / str(n) / file
        path.parent.mkdir()
        path.write_text("".join(json.dumps(change(row)) + "\n" for row in rows()))
        assert (HIDDEN in path.read_text()) is (n == 0)
        found.append([run.records for run in read_runs(path.parent, load_adapter(name), strict=True)])
    assert found[0] == found[1]
    text = b"".join(serialize(record) for records in found[1] for record in records)
    assert b"CANARY" not in text and HIDDEN.encode() not in text


@pytest.mark.parametrize("name", ["aftraj", "aegis", "mast", "tracertraj", "whoandwhen_turns"])
def test_a_check_finds_no_error(name: str, tmp_path: Path) -> None:
    source = Path(__file__).parents[2] / "stepview_adapters" / "golden" / name / "runs"
    if name in ("aftraj", "tracertraj"):  # as they are published
        for path in source.glob("*.jsonl"):
            as_parquet(tmp_path / f"{path.stem}.parquet", [json.loads(line) for line in path.read_text().splitlines()])
        source = tmp_path
    report = check_adapter(name, source, processes=False)
    assert not [finding for finding in report.findings if finding.severity == "error"]
    assert report.figures["streams_equal"] == 1
