"""The raw-text control: the same steps, without their fields."""

from __future__ import annotations

import numpy as np
import pytest

from prefixguard.alarm import AlarmPolicy
from prefixguard.evaluation.controls import ControlSides, as_raw, control_rows
from prefixguard.learn import featurise
from prefixguard.simulation import write_runs
from prefixguard.stepview import load_adapter, read_runs

OPTIONS = {"horizon": 3, "seed": 13, "policy": AlarmPolicy(budget=0.5), "budgets": (0.5,)}


def lab_corpus(path, runs):
    write_runs(path, runs, 5)
    return featurise(read_runs(str(path), load_adapter("openai_chat")))


def sides_by_task(corpus):
    """Half of the tasks to learn from, a quarter for thresholds, a quarter to test on."""
    tasks = {task: i % 4 for i, task in enumerate(sorted(set(corpus.task_ids)))}
    side = np.array([tasks[task] for task in corpus.task_ids])
    return ControlSides(np.flatnonzero(side < 2), np.flatnonzero(side == 2), np.flatnonzero(side == 3))


def said(row):
    """All that a row says, as bytes and values."""
    return [scores.tobytes() for scores in (*row.imminent, *row.outcome)], row.thresholds


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("lab")


@pytest.fixture(scope="module")
def corpus(folder):
    return lab_corpus(folder / "lab.jsonl", 64)


@pytest.fixture(scope="module")
def raw(folder, corpus):
    return featurise(read_runs(str(folder / "lab.jsonl"), load_adapter("raw:openai_chat")))


@pytest.fixture(scope="module")
def row(corpus):
    return control_rows(corpus, sides_by_task(corpus), **OPTIONS, wanted=["raw text"])[0]


def every_document(corpus):
    return list(corpus.documents.each(0, int(corpus.first[-1])))


def test_the_raw_view_needs_no_second_reading(corpus, raw):
    made = as_raw(corpus)
    assert every_document(made) == every_document(raw) != every_document(corpus)
    assert made.context.tobytes() == raw.context.tobytes()
    assert (made.run_ids, made.task_ids, made.digests) == (raw.run_ids, raw.task_ids, raw.digests)
    assert made.failed.tolist() == corpus.failed.tolist()


def test_no_field_is_left(corpus):
    for document in every_document(as_raw(corpus)):
        assert document.startswith(b"\x01agent\x02\x03\x04\x05") and document.endswith(b"\x06\x07unknown")


def test_the_row_is_boosting_on_runs_that_are_read_through_the_raw_view(corpus, raw, row):
    (read,) = control_rows(raw, sides_by_task(raw), **OPTIONS, wanted=["boosting"])
    assert said(read) == said(row)
