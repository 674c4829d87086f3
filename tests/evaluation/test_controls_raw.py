"""The raw-text control: the same steps, without their fields."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from head_laws import splice

from prefixguard.alarm import AlarmPolicy
from prefixguard.errors import DataError
from prefixguard.evaluation.controls import CONTROLS, ControlSides, as_raw, control_rows, raw_control
from prefixguard.lab import write_runs
from prefixguard.learn import featurise
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


def test_read_again_it_gives_the_same_row(corpus, raw, row):
    sides = sides_by_task(corpus)
    told = []
    again = raw_control(raw, corpus, sides, **OPTIONS, on_stage=told.append)
    assert told == [again.name] == ["raw text"] and again.note == CONTROLS["raw text"].note
    assert said(again) == said(row)


def test_runs_are_matched_by_id_wherever_they_stand(corpus, raw, row):
    order = np.arange(len(raw))[::-1]
    steps = [np.arange(raw.first[r], raw.first[r + 1]) for r in order.tolist()]
    turned = replace(splice(raw, order, steps), failed=~raw.failed[order])  # and its own outcomes are not looked at
    found = raw_control(turned, corpus, sides_by_task(corpus), **OPTIONS)
    assert [s.tobytes() for s in found.outcome] == [s.tobytes() for s in row.outcome]


def test_what_cannot_be_put_side_by_side_is_refused(corpus, raw):
    sides = sides_by_task(corpus)
    r = int(sides.test[0])
    steps = [np.arange(raw.first[i], raw.first[i + 1]) for i in range(len(raw))]
    shorter = splice(raw, np.arange(len(raw)), [s[:-1] if i == r else s for i, s in enumerate(steps)])
    n = int(corpus.lengths[r])
    with pytest.raises(DataError, match=rf"{n - 1} steps through the raw view, {n} through the adapter\. Take the raw"):
        raw_control(shorter, corpus, sides, **OPTIONS)
    others = np.delete(np.arange(len(raw)), r)
    missing = splice(raw, others, [steps[i] for i in others.tolist()])
    with pytest.raises(DataError, match=r": 0 runs of that name .* Read the same files through both"):
        raw_control(missing, corpus, sides, **OPTIONS)
    twice = replace(raw, run_ids=[raw.run_ids[r]] * len(raw))
    with pytest.raises(DataError, match="give every run an id of its own"):
        raw_control(twice, corpus, sides, **OPTIONS)
