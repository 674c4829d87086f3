"""The one form: what goes in comes out, labels stay out of records, and no line is lost in silence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import DataError, OutputError, TraceError
from prefixguard.factory import LabelledRun, MistakeLabel, Skips, bare_run, read_corpus, write_corpus
from prefixguard.simulation import generate
from prefixguard.stepview import load_adapter, read_runs

CANARY = "canary-7f3a"
RUNS = list(generate(12, seed=3))


def labelled(run: dict, **parts: object) -> LabelledRun:
    """A run of the simulation with the label that the simulation knows."""
    step = run["metadata"]["mistake_step"]
    mistakes = (MistakeLabel(step, None, "wrong_value", "first_cause"),) if step is not None else ()
    source = "safe" if run["outcome"] == "success" else "replayed"
    return LabelledRun(bare_run(run), source, mistakes, family=run["task_id"], **parts)


CORPUS = [labelled(run) for run in RUNS]


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    assert write_corpus(path, CORPUS) == len(CORPUS)
    assert list(read_corpus(path)) == CORPUS
    again = tmp_path / "again.jsonl"
    write_corpus(again, read_corpus(path))
    assert again.read_bytes() == path.read_bytes(), "same runs, same bytes"


TEXT = st.text(max_size=8)


@given(
    text=TEXT,
    step=st.none() | st.integers(1, 10**6),
    agent=st.none() | TEXT,
    provenance=st.dictionaries(TEXT, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT, max_size=2)),
)
def test_any_label_comes_out(text: str, step: int | None, agent: str | None, provenance: dict) -> None:
    failed = {"run_id": "a", "outcome": "failure", "messages": [{"role": "assistant", "content": text}]}
    run = LabelledRun(
        failed, "imported", (MistakeLabel(step, agent, text, "imported"),), text, provenance, text, False, "test"
    )
    assert LabelledRun.from_json(json.loads(json.dumps(run.as_json()))) == run
    assert run.decisive == (None if step is None else run.mistakes[0])


def test_no_label_reaches_a_record(tmp_path: Path) -> None:
    """A corpus is read as the runs without labels are; what the labels say occurs in no record."""
    loud = [
        replace(
            one,
            mistakes=tuple(replace(mistake, agent=CANARY, kind=CANARY) for mistake in one.mistakes),
            family=CANARY,
            provenance={CANARY: [CANARY]},
            licence=CANARY,
        )
        for one in CORPUS
    ]
    write_corpus(tmp_path / "corpus.jsonl", loud)
    (tmp_path / "bare.jsonl").write_text("".join(json.dumps(bare_run(run)) + "\n" for run in RUNS))
    adapter = load_adapter("openai_chat")
    read, bare = (list(read_runs(tmp_path / name, adapter)) for name in ("corpus.jsonl", "bare.jsonl"))
    assert [one.records for one in read] == [one.records for one in bare]
    assert CANARY not in repr([(one.records, one.groups, one.task_id) for one in read])
    assert all(one.mistake is None and not one.faults for one in read)


def test_records_are_those_of_the_adapter(tmp_path: Path) -> None:
    write_corpus(tmp_path / "corpus.jsonl", CORPUS)
    read = {run.run_id: run.records for run in read_runs(tmp_path / "corpus.jsonl", load_adapter("openai_chat"))}
    assert {one.run_id: one.records() for one in CORPUS} == read
    for one in CORPUS:
        assert one.decisive is None or one.records()[one.decisive.step - 1].actor == "agent"


def test_metadata_of_a_run_is_refused_and_bare_run_leaves_it_out() -> None:
    with pytest.raises(DataError, match="has 'metadata': a run keeps run_id, task_id, agent, outcome, messages"):
        LabelledRun(RUNS[0], "safe")
    assert set(bare_run(RUNS[0])) == {"run_id", "task_id", "agent", "outcome", "messages"}


GOOD = {"run_id": "a", "outcome": "failure", "messages": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    ("run", "source", "mistakes", "sentence"),
    [
        ({**GOOD, "run_id": ""}, "replayed", (), "a run without run_id"),
        ({**GOOD, "messages": []}, "replayed", (), "messages are a list of objects, one or more"),
        ({**GOOD, "outcome": True}, "replayed", (), "outcome True: success, failure or unknown"),
        (GOOD, "found", (), "source 'found': one of safe, injected"),
        (GOOD, "safe", (), "is called safe and did not succeed"),
        (
            {**GOOD, "outcome": "success"},
            "imported",
            (MistakeLabel(1, None, "", "imported"),),
            "succeeded and has a decisive mistake",
        ),
    ],
)
def test_parts_that_contradict_each_other_are_refused(run: dict, source: str, mistakes: tuple, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        LabelledRun(run, source, mistakes)


@pytest.mark.parametrize("step", [0, -1, True, "3", 2.0])
def test_a_step_is_a_whole_number_from_1(step: object) -> None:
    with pytest.raises(DataError, match="a whole number, from 1"):
        MistakeLabel(step, None, "", "imported")  # type: ignore[arg-type]


def test_every_line_that_cannot_be_read_is_counted(tmp_path: Path) -> None:
    path, good = tmp_path / "corpus.jsonl", [json.dumps(one.as_json()) for one in CORPUS[:3]]
    unlabelled = json.dumps(GOOD)
    lines = [good[0], "", "{broken", unlabelled, good[1], good[0], "[" * 100_000, good[2][:40]]
    path.write_text("\n".join(lines))
    skips = Skips()
    assert list(read_corpus(path, skips)) == CORPUS[:2]
    assert skips.counts == {
        "a line that is not JSON": 2,
        "not a labelled run": 1,
        "the run_id occurred before": 1,
        "a last line that was cut off": 1,
    }
    assert any("not a labelled run (" in note and "labels" in note for note in skips.notes()), "and what is wrong"
    assert next(skips.notes()) == f"2 left out: a line that is not JSON ({path}:3, {path}:7)."
    assert Skips.from_json(json.loads(json.dumps(skips.as_json()))) == skips
    with pytest.raises(TraceError, match=r"corpus.jsonl:3: a line that is not JSON"):
        list(read_corpus(path))


def test_a_corpus_that_is_written_halfway_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    write_corpus(path, CORPUS[:2])

    def interrupted():
        yield CORPUS[2]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_corpus(path, interrupted())
    assert list(read_corpus(path)) == CORPUS[:2] and [one.name for one in tmp_path.iterdir()] == ["corpus.jsonl"]


def test_places_that_are_not_there_are_said(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="Name a file of labelled runs"):
        list(read_corpus(tmp_path / "none.jsonl"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="Name a place with room"):
        write_corpus(tmp_path / "file" / "corpus.jsonl", CORPUS)
