"""Runs stand on the side of the split that the monitor's training put them on, and on no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from lab_export import corpus_of, material_of, one_teacher

from prefixguard.automata.alphabets import Alphabet
from prefixguard.automata.material import Material, gather
from prefixguard.bundle import Bundle, open_bundle
from prefixguard.errors import DataError
from prefixguard.learn import Corpus, featurise
from prefixguard.stepview import read_runs
from prefixguard.trace import Side, task_hash


@pytest.fixture(scope="module")
def material(lab_file: Path, lab_bundle: Path) -> Material:
    return material_of(lab_file, lab_bundle)


def some(lab_file: Path, tmp_path: Path, bundle: Bundle, keep: Any) -> Corpus:
    """The simulation's runs for whose task (its hash) and line `keep` says so, changed as it says."""
    path = tmp_path / "some.jsonl"
    kept = []
    for line in lab_file.read_text().splitlines():
        run = keep(json.loads(line))
        if run is not None:
            kept.append(json.dumps(run) + "\n")
    path.write_text("".join(kept))
    return featurise(read_runs(str(path), bundle.adapter))


def with_manifest(bundle: Bundle, **changes: Any) -> Bundle:
    return replace(bundle, manifest=MappingProxyType({**bundle.manifest, **changes}))


def test_sides_are_the_teachers(material: Material, lab_bundle: Path) -> None:
    manifest, corpus = open_bundle(lab_bundle).manifest, material.corpus
    for runs, sides in (
        (material.pool, (Side.TRAIN, Side.VALIDATION)),
        (material.held_out, (Side.CALIBRATION,)),
        (material.alarm, (Side.ALARM,)),
        (material.test, (Side.TEST,)),
    ):
        digests = sorted(corpus.digests[r] for r in runs.tolist())
        assert digests == sorted(d for side in sides for d in manifest["runs"][side.value])
        assert {task_hash(corpus.task_ids[r]) for r in runs.tolist()} <= {
            t for side in sides for t in manifest["tasks"][side.value]
        }
    every = np.concatenate((material.pool, material.held_out, material.alarm, material.test))
    assert sorted(every.tolist()) == list(range(len(corpus)))
    assert material.notes == ()


def test_the_teacher_says_nothing_of_runs_outside_the_pool(material: Material) -> None:
    inside = np.zeros(len(material.labels), dtype=np.bool_)
    for r in material.pool.tolist():
        inside[material.corpus.first[r] : material.corpus.first[r + 1]] = True
    assert (material.teacher[~inside] == 0).all()
    assert (material.teacher[inside] > 0).all() and (material.teacher[inside] < 1).all()


def test_strings_of_a_side_are_those_of_its_runs(material: Material) -> None:
    numbers = np.arange(len(material.labels), dtype=np.int32)
    strings = Alphabet.of_model("gumbel", numbers, len(numbers)).strings(material, material.held_out)
    corpus = material.corpus
    steps = [s for r in material.held_out.tolist() for s in range(corpus.first[r], corpus.first[r + 1])]
    assert strings.symbols.tolist() == steps
    assert strings.failed.tolist() == corpus.failed[material.held_out].tolist()
    np.testing.assert_array_equal(strings.labels, material.labels[steps])
    of_task = {corpus.task_ids[r]: int(t) for r, t in zip(material.held_out.tolist(), strings.tasks, strict=True)}
    assert len(set(of_task.values())) == len(of_task) > 1


def test_other_runs_are_refused(lab_bundle: Path, fresh_lab_file: Path) -> None:
    trained = len(open_bundle(lab_bundle).manifest["runs"]["train"])
    with pytest.raises(DataError) as told:
        gather(corpus_of(fresh_lab_file, lab_bundle), open_bundle(lab_bundle))
    assert str(told.value) == (
        f"{lab_bundle}: of the {trained} runs that it was trained on, 0 are among these 24. An automaton is learned "
        "from the runs that its monitor learned from: name those."
    )


@pytest.mark.slow
def test_runs_that_are_missing_and_runs_of_other_tasks_are_told(
    lab_file: Path, fresh_lab_file: Path, lab_bundle: Path, tmp_path: Path
) -> None:
    bundle = open_bundle(lab_bundle)
    train = set(bundle.manifest["tasks"]["train"])
    gone: list[str] = []

    def keep(run: dict[str, Any]) -> dict[str, Any] | None:
        if task_hash(run["task_id"]) in train and len(gone) < 3:
            gone.append(run["run_id"])
            return None
        return run

    some(lab_file, tmp_path, bundle, keep)
    both = tmp_path / "both.jsonl"
    both.write_bytes((tmp_path / "some.jsonl").read_bytes() + fresh_lab_file.read_bytes())
    with one_teacher():
        found = gather(featurise(read_runs(str(both), bundle.adapter)), bundle)
    assert found.notes == (
        f"3 of the {len(bundle.manifest['runs']['train'])} runs that the monitor was trained on are not here.",
        "24 runs are of tasks that the monitor was not made with; they are left out.",
    )
    used = np.concatenate((found.pool, found.held_out, found.alarm, found.test))
    assert sorted(set(range(len(found.corpus))) - set(used.tolist())) == list(range(157, 181))


@pytest.mark.parametrize("side", ["train", "calibration"])
def test_one_outcome_on_a_side_that_needs_both_is_refused(
    side: str, lab_file: Path, lab_bundle: Path, tmp_path: Path
) -> None:
    bundle = open_bundle(lab_bundle)
    tasks = {t for s in ([side] if side != "train" else ["train", "validation"]) for t in bundle.manifest["tasks"][s]}

    def all_succeed(run: dict[str, Any]) -> dict[str, Any]:
        return {**run, "outcome": "success"} if task_hash(run["task_id"]) in tasks else run

    corpus = some(lab_file, tmp_path, bundle, all_succeed)
    with pytest.raises(DataError, match=r"hold one outcome only on the training or the calibration side\. Name all"):
        gather(corpus, bundle)


@pytest.mark.parametrize("missing", ["tasks", "runs"])
def test_a_bundle_that_does_not_say_its_runs_is_refused(missing: str, lab_file: Path, lab_bundle: Path) -> None:
    bundle = open_bundle(lab_bundle)
    manifest = {name: value for name, value in bundle.manifest.items() if name != missing}
    with pytest.raises(
        DataError, match=r"does not say which tasks and runs it was trained on.* Train the monitor again"
    ):
        gather(corpus_of(lab_file, lab_bundle), replace(bundle, manifest=MappingProxyType(manifest)))


def test_horizon_and_seed_are_the_monitors(lab_file: Path, lab_bundle: Path, material: Material) -> None:
    bundle = open_bundle(lab_bundle)
    with one_teacher():
        found = gather(corpus_of(lab_file, lab_bundle), with_manifest(bundle, horizon=0, seed=77))
    failed = int(found.corpus.failed.sum())
    assert (found.labels[:, 0].sum(), found.seed) == (failed, 77)  # at horizon 0, the last step of each failed run
    assert material.labels[:, 0].sum() > failed
    assert material.seed == bundle.manifest["seed"]
