"""An exported automaton knows how runs of its alarm side look to it, transitions that training never took included."""

from __future__ import annotations

from pathlib import Path

import pytest
from finished_run import summarise_records
from lab_export import one_teacher

from prefixguard.alarm import draw_one_per_task
from prefixguard.automata import export
from prefixguard.runtime import DriftReference, Monitor, NewTasks, load, score
from prefixguard.stepview import read_runs
from prefixguard.trace import Side, task_hash


@pytest.fixture(scope="module")
def automaton(lab_bundle: Path, lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    out = tmp_path_factory.mktemp("automata") / "typed"
    with one_teacher():
        made = export(lab_bundle, lab_file, out=out, alphabet="typed", learner="ladder", clock=True, max_states=16)
    return load(made.path)


def test_its_reference_is_what_its_sessions_say(automaton: Monitor, lab_file: Path) -> None:
    manifest = automaton.bundle.manifest
    tasks = set(manifest["tasks"][Side.ALARM.value])
    runs = [run for run in read_runs(lab_file, automaton.bundle.adapter) if task_hash(run.task_id) in tasks]
    drawn = draw_one_per_task([r.task_id for r in runs], [r.run_id for r in runs], seed=manifest["seed"])
    looks = [summarise_records(automaton, runs[i].records) for i in drawn]
    assert manifest["drift"] == DriftReference.of(looks).to_json()
    assert sum(count for _, count in manifest["drift"]["cells"]["unseen_transitions"]) == len(tasks)


def test_it_is_its_own_and_not_the_teacher_s(automaton: Monitor, lab_bundle: Path) -> None:
    of_teacher = load(lab_bundle).bundle.manifest["drift"]["cells"]
    assert "unseen_transitions" not in of_teacher
    assert automaton.bundle.manifest["drift"]["cells"]["mean_risk"] != of_teacher["mean_risk"]
    assert set(automaton.drift_signal().evidence) == set(of_teacher) | {"unseen_transitions"}


def test_new_runs_of_the_same_world_give_no_signal(automaton: Monitor, fresh_lab_file: Path) -> None:
    signal, new = automaton.drift_signal(), NewTasks(automaton.bundle.manifest)
    for one in score(automaton, fresh_lab_file):
        if new.take(one.run):
            signal.observe_run(one.summary)
    assert signal.runs == 6 and signal.report is None
