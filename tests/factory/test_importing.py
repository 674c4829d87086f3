"""Published sets become corpora: the same agents' steps, labels on the same text, licences kept."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from prefixguard.errors import ConfigError, TraceError
from prefixguard.factory import SETS, LabelledRun, as_messages, import_set, read_corpus, records_of
from prefixguard.stepview import load_adapter, read_runs, wide_view

GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
REAL = Path(os.environ.get("PREFIXGUARD_TRACES", ".traces")) / "whoandwhen"
FOLDERS = {name: GOLDEN / one.adapter for name, one in SETS.items()}


def imported(name: str, source: Path, tmp_path: Path) -> tuple[list[LabelledRun], object]:
    report = import_set(name, source, tmp_path / "corpus.jsonl")
    return list(read_corpus(tmp_path / "corpus.jsonl")), report


@pytest.mark.parametrize("name", SETS)
def test_agents_steps_and_labels_are_those_of_the_set(name: str, tmp_path: Path) -> None:
    runs, report = imported(name, FOLDERS[name], tmp_path)
    there = {one.run_id: one for one in read_runs(FOLDERS[name], wide_view(load_adapter(SETS[name].adapter), 72_000))}
    assert runs and report.counts["runs"] == len(runs) and not report.skips.counts.get("not a labelled run")
    for run in runs:
        origin = there[run.run_id]
        acted = [one for one in origin.records if one.actor == "agent"]
        mine = [one for one in run.records() if one.actor == "agent"]
        assert [(one.agent, one.action) for one in mine] == [(one.agent, one.action) for one in acted]
        modes = {(one.agent, one.kind) for one in run.mistakes if one.kind}
        assert modes == {(one.agent, one.mode) for one in origin.faults}
        if run.decisive is not None:
            labelled, original = run.records()[run.decisive.step - 1], origin.records[origin.mistake.step - 1]
            assert (labelled.agent, labelled.action) == (original.agent, original.action)
        assert (run.may_train, run.licence) == (SETS[name].may_train, SETS[name].licence)
        assert all(one.rule == "imported" for one in run.mistakes)


def aftraj(conv_id: str, turns: list[dict], mistake: int = -1, agent: str | None = None) -> str:
    row = {
        "conv_id": conv_id,
        "domain": "math",
        "task": "Add 2 and 2.",
        "gold_answer": "canary",
        "num_turns": len(turns),
    }
    return json.dumps({**row, "turns": turns, "mistake_step": mistake, "mistake_agent": agent}) + "\n"


TURNS = [
    {"role": "user", "content": "Add 2 and 2."},
    {"role": "MathSolver", "thought": "I add.", "action": 'add({"a": 2, "b": 2})'},
    {"role": "environment", "content": "5"},
    {"role": "MathSolver", "content": "It is 5."},
    {"role": "Verifier", "content": "Right."},
]


def test_the_published_test_side_is_kept_and_steps_are_counted_anew(tmp_path: Path) -> None:
    source = tmp_path / "set"
    source.mkdir()
    (source / "aftraj_unsafe.jsonl").write_text(
        aftraj("u1", TURNS, 3, "MathSolver") + aftraj("u2", TURNS, 2, "environment")
    )
    (source / "aftraj_safe.jsonl").write_text(aftraj("s1", TURNS))
    (source / "splits_test.json").write_text(json.dumps({"test_safe": ["s1"], "test_unsafe": []}))
    runs, report = imported("aftraj", source, tmp_path)
    by_id = {run.run_id: run for run in runs}
    assert {name: (run.split, run.is_safe) for name, run in by_id.items()} == {
        "s1": ("test", True),
        "u1": ("train", False),
        "u2": ("train", False),
    }
    first = by_id["u1"].records()
    assert [(one.agent, one.tool, one.result, one.action) for one in first] == [
        ("MathSolver", "add", "5", "I add."),
        ("MathSolver", "respond", "", "It is 5."),
        ("Verifier", "respond", "", "Right."),
    ]
    assert first[0].observation == "Add 2 and 2." and by_id["u1"].decisive.step == 2
    assert by_id["u2"].decisive is None and by_id["u2"].mistakes[0].agent == "environment"
    assert report.skips.counts == {"the step of a label, where no agent acted; the run is kept": 1}
    assert len({run.family for run in runs}) == 1, "a task's runs stand on one side"
    assert "canary" not in (tmp_path / "corpus.jsonl").read_text()


def test_tables_are_read_as_they_are_published(tmp_path: Path) -> None:
    """The form in which AFTraj and TracerTraj are published: parquet, turns as lists of structures."""
    parquet, table = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow").Table
    keys = ("role", "thought", "action", "content")
    row = json.loads(aftraj("u1", [{key: turn.get(key) for key in keys} for turn in TURNS], 3, "MathSolver"))
    parquet.write_table(table.from_pylist([row]), tmp_path / "aftraj_unsafe.parquet")
    (run,), _ = imported("aftraj", tmp_path / "aftraj_unsafe.parquet", tmp_path)
    assert run.decisive.step == 2 and [one.agent for one in run.records()] == ["MathSolver", "MathSolver", "Verifier"]


def test_without_the_split_file_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "aftraj_safe.jsonl").write_text(aftraj("s1", TURNS))
    report = import_set("aftraj", tmp_path / "aftraj_safe.jsonl", tmp_path / "corpus.jsonl")
    assert "No splits_test.json beside the tables" in report.to_text()
    (tmp_path / "splits_test.json").write_text("[]")
    with pytest.raises(TraceError, match=r"splits_test.json: not the list of the test side"):
        import_set("aftraj", tmp_path / "aftraj_safe.jsonl", tmp_path / "corpus.jsonl")


def test_what_cannot_be_read_or_has_no_agent_is_counted(tmp_path: Path) -> None:
    source = tmp_path / "set.jsonl"
    source.write_text(aftraj("a", TURNS[:1]) + '{"turns": 3}\n' + aftraj("b", TURNS))
    runs, report = imported("aftraj", source, tmp_path)
    assert [run.run_id for run in runs] == ["b"]
    assert report.skips.counts == {"no agent acted in it": 1, "it could not be read": 1}


def test_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no set called 'trail': one of aftraj, aegis, mast, whoandwhen, tracertraj"):
        import_set("trail", tmp_path, tmp_path / "out.jsonl")


def test_records_of_messages_read_back(tmp_path: Path) -> None:
    """What `as_messages` writes of the records of `openai_chat` are the same records again."""
    from prefixguard.simulation import generate

    for run in generate(20, seed=5):
        records = records_of(run)
        again = records_of({"messages": as_messages(records)[0]})
        shown = [(one.agent, one.tool, one.arguments, one.action, one.observation, one.result) for one in records]
        assert [(one.agent, one.tool, one.arguments, one.action, one.observation, one.result) for one in again] == shown


@pytest.mark.real
@pytest.mark.skipif(not REAL.is_dir(), reason="no Who&When in .traces")
def test_who_and_when(tmp_path: Path) -> None:
    runs, report = imported("whoandwhen", REAL, tmp_path)
    assert report.counts == {
        "runs": 184, "safe": 0, "with a step": 182, "with modes": 0, "agent is not who acted": 4,
    }  # fmt: skip
    assert not any(run.may_train for run in runs)
