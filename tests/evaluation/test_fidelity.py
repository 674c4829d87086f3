"""What an evaluation says of an automaton: the share of transitions that no training run took, its teacher, care."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
import tiny_automaton
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.evaluation import evaluate
from prefixguard.evaluation.analyses.fidelity import UnseenTransitions
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import read_runs
from prefixguard.trace import task_hash

FIDELITY = {
    "agreement": 0.5,
    "teacher_imminent_auprc": 0.4,
    "teacher_outcome_auroc_at_remaining": 0.7,
    "care": ["It often ranks steps otherwise."],
}
METRICS = {"imminent_auprc": 0.3, "outcome_auroc_at_remaining": 0.65}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    made = []
    for i in range(6):
        messages = tiny_monitor.failing_run() if i % 2 else tiny_monitor.calm_run(3 + i)
        messages[0] = tiny_monitor.user(f"Request {i}")
        made.append({"run_id": f"r{i}", "task_id": f"t{i}", "reward": float(1 - i % 2), "messages": messages})
    path = tmp_path / "runs.json"
    path.write_text(json.dumps(made))
    return path


def automaton(folder: Path, **info: object) -> Monitor:
    known = {"horizon": 3, "seed": 13, "tasks": {"train": [task_hash("elsewhere")], "test": [task_hash("t0")]}}
    write_bundle(
        folder,
        tiny_automaton.parts(
            tiny_automaton.by_seed(4, 5, tiny_automaton.TYPED.n_symbols, unseen=0.5), info=known | info
        ),
    )
    return load(folder)


def test_unseen_transitions_are_those_that_sessions_count(runs: Path, tmp_path: Path) -> None:
    monitor = automaton(tmp_path / "m", fidelity=FIDELITY, metrics=METRICS)
    taken = unseen = 0
    for run in read_runs(runs, monitor.bundle.adapter):
        session = monitor.start()
        for record in run.records:
            session.observe_record(record)
        taken += session.counters["transitions"]
        unseen += session.counters["unseen_transitions"]
    assert 0 < unseen < taken
    found = evaluate(monitor, runs, resamples=20).as_json()["automaton"]
    assert found["unseen_share"] == unseen / taken
    assert (found["states"], found["symbols"]) == (5, tiny_automaton.TYPED.n_symbols)


def test_it_says_how_far_the_automaton_follows_its_teacher_and_where_care_is_due(runs: Path, tmp_path: Path) -> None:
    table = evaluate(automaton(tmp_path / "m", fidelity=FIDELITY, metrics=METRICS), runs, resamples=20)
    found = table.as_json()["automaton"]
    assert (found["agreement"], found["auprc"], found["teacher_auprc"]) == (0.5, 0.3, 0.4)
    assert (found["rem"], found["teacher_rem"], found["care"]) == (0.65, 0.7, FIDELITY["care"])
    text = table.to_text()
    assert "rank correlation of outcome risks .500; imminent AUPRC .300 against .400" in " ".join(text.split())
    assert "Audit with care: It often ranks steps otherwise." in text
    assert max(map(len, text.splitlines())) <= 120


def test_figures_that_a_bundle_does_not_hold_are_not_invented(runs: Path, tmp_path: Path) -> None:
    found = evaluate(automaton(tmp_path / "m"), runs, resamples=20).as_json()["automaton"]
    assert found["agreement"] is None and found["teacher_auprc"] is None and found["care"] == []


def test_a_network_has_no_such_section(runs: Path, tmp_path: Path) -> None:
    write_bundle(tmp_path / "m", tiny_monitor.parts(info={"horizon": 3, "seed": 13}))
    assert "automaton" not in evaluate(load(tmp_path / "m"), runs, resamples=20).as_json()


def test_no_transition_has_no_share() -> None:
    assert math.isnan(UnseenTransitions(tiny_automaton.by_hand()).unseen_share)
