"""Where a bundle's runs stand for the controls."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest

from prefixguard.bundle import open_bundle
from prefixguard.errors import DataError
from prefixguard.evaluation import evaluate
from prefixguard.evaluation.controls import sides_of
from prefixguard.learn import featurise
from prefixguard.stepview import load_adapter, read_runs
from prefixguard.trace import task_hash


@pytest.fixture(scope="module")
def files(lab_file, fresh_lab_file, tmp_path_factory):
    """The runs that the bundle was made from, and further ones, in one folder."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copy(lab_file, folder / "a.jsonl")
    shutil.copy(fresh_lab_file, folder / "b.jsonl")
    return folder


@pytest.fixture(scope="module")
def corpus(files):
    return featurise(read_runs(str(files), load_adapter("openai_chat")))


@pytest.fixture(scope="module")
def manifest(lab_bundle):
    return open_bundle(lab_bundle).manifest


def test_sides_are_those_of_the_training(corpus, manifest):
    sides = sides_of(corpus, manifest)

    def tasks(runs):
        return {task_hash(corpus.task_ids[r]) for r in runs.tolist()}

    of = {side: set(hashes) for side, hashes in manifest["tasks"].items()}
    assert tasks(sides.train) == of["train"] | of["validation"]
    assert tasks(sides.alarm) == of["alarm"]
    assert tasks(sides.test) - of["test"] and of["test"] < tasks(sides.test)
    assert not tasks(sides.test) & (of["train"] | of["validation"] | of["alarm"] | of["calibration"])
    digests = sorted(corpus.digests[r] for r in sides.train.tolist())
    assert digests == sorted(manifest["runs"]["train"] + manifest["runs"]["validation"])
    sides.check(corpus)


def test_the_test_runs_are_those_that_evaluate_counts(corpus, manifest, lab_bundle, files):
    table = evaluate(lab_bundle, str(files), resamples=10)
    sides = sides_of(corpus, manifest)
    assert len(sides.test) == table.runs
    assert int(corpus.failed[sides.test].sum()) == table.failed_runs
    assert int(corpus.lengths[sides.test].sum()) == table.prefixes


def test_a_word_for_word_repeat_of_a_used_run_is_no_test(corpus, manifest):
    sides = sides_of(corpus, manifest)
    digests = list(corpus.digests)
    new, used = int(sides.test[-1]), int(sides.train[0])
    digests[new] = digests[used]
    found = sides_of(replace(corpus, digests=digests), manifest)
    assert np.array_equal(found.test, sides.test[:-1]) and np.array_equal(found.train, sides.train)


def test_without_its_training_runs_nothing_can_be_trained(fresh_lab_file, lab_file, corpus, manifest):
    fresh = featurise(read_runs(str(fresh_lab_file), load_adapter("openai_chat")))
    n = len(manifest["runs"]["train"])
    with pytest.raises(DataError, match=rf"of the {n} runs that the monitor was trained on, 0 are among these 24, .*"):
        sides_of(fresh, manifest)
    with pytest.raises(DataError, match="does not say which tasks and runs"):
        sides_of(corpus, {**manifest, "runs": {}})
    everything = {**manifest, "tasks": {**manifest["tasks"], "train": [task_hash(t) for t in set(corpus.task_ids)]}}
    with pytest.raises(DataError, match="Name runs of further tasks too"):
        sides_of(corpus, everything)
