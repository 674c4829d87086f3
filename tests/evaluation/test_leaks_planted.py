"""Every known leak, planted into runs of the simulation, is found by field, token and numbers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from leaks import PLANTS, Plant, found, planted

from prefixguard.evaluation.leaks import LeakAudit, audit_leaks
from prefixguard.simulation import write_runs
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

Runs = list[Run[StepRecord]]


def lab(path, n, seed) -> Runs:
    write_runs(path, n, seed)
    return list(read_runs(path, load_adapter("openai_chat")))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return lab(tmp_path_factory.mktemp("lab") / "runs.jsonl", 240, 5)


@pytest.fixture(scope="module")
def clean(runs: Runs) -> LeakAudit:
    return audit_leaks(runs)


def test_clean_runs_have_no_errors(clean: LeakAudit, tmp_path):
    assert clean.errors == ()
    assert clean.failed > 50 and clean.tasks == 60
    assert audit_leaks(lab(tmp_path / "other.jsonl", 240, 21)).errors == ()


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.name)
def test_a_planted_leak_is_found(runs: Runs, clean: LeakAudit, plant: Plant):
    hit = found(audit_leaks(planted(runs, plant)), plant, clean)
    assert hit is not None
    assert hit.field in hit.text and hit.figures


def named(audit: LeakAudit, kind: str, field: str):
    return next(one for one in audit.findings if one.kind == kind and one.field == field)


def test_the_numbers_of_a_verdict_in_the_status(runs: Runs):
    plant = next(plant for plant in PLANTS if plant.name == "status")
    audit = audit_leaks(planted(runs, plant))
    token, probe = named(audit, "token", "status"), named(audit, "last_step", "status")
    assert token.token in ("success", "failure") and token.severity == "error"
    assert token.figures["separates"] == token.figures["purity"] == token.figures["covers"] == 1.0
    assert token.figures["earlier_share"] == 0.0 and token.figures["p"] < 1e-6
    assert probe.severity == "error" and probe.figures["last"] == 1.0 and probe.figures["before"] < 0.7
    assert "100% of the runs that end so have it" in token.text


def test_a_verdict_in_eight_of_ten_runs_is_found(runs: Runs):
    plant = next(plant for plant in PLANTS if plant.name == "status")
    token = named(audit_leaks(planted(runs, plant, 0.8)), "token", "status")
    assert token.severity == "error" and token.figures["purity"] == 1.0
    assert 0.65 < token.figures["covers"] < 0.95


def test_a_judge_who_errs_in_one_run_of_ten_is_found(runs: Runs):
    """No token is certain, but a verdict's word tells far more than chance, and only at the end."""
    plant = next(plant for plant in PLANTS if plant.name == "reward")
    other = {Outcome.FAILURE: Outcome.SUCCESS, Outcome.SUCCESS: Outcome.FAILURE}
    turned = [run if i % 10 else replace(run, outcome=other[run.outcome]) for i, run in enumerate(planted(runs, plant))]
    token = named(audit_leaks(turned), "token", "result")
    assert token.severity == "error" and "reward" in token.token
    assert 0.8 < token.figures["separates"] < 0.97


def test_a_name_that_tells_says_how_much(runs: Runs):
    """A model's name that stands in every action, where one model fails far oftener."""
    told = []
    for run in runs:
        is_weak = run.outcome is Outcome.FAILURE and not run.run_id.endswith("0")
        name = "weak-model-7b" if is_weak else "strong-model-70b"
        records = tuple(replace(record, action=f"{name}: {record.action}") for record in run.records)
        told.append(replace(run, records=records, groups={"model": name}))
    one = named(audit_leaks(told), "identifier", "action")
    assert one.severity == "error" and one.figures["area"] > 0.75 and one.figures["p"] < 0.01
    assert "tells the outcome" in one.text and "60 tasks" in one.text


def test_a_script_without_any_name_is_found_by_its_words():
    """All that the user will say stands in the first observation, and nothing says what it is."""
    dice = random.Random(4)

    words = ("order", "lamp", "blue", "return", "card", "street", "seven", "late")

    def prose():
        return " ".join(dice.choice(words) for _ in range(12))

    runs = []
    for i in range(20):
        said = [prose() for _ in range(5)]
        seen = [f"{said[0]} {' '.join(said[1:])}", *said[1:]]
        records = [
            StepRecord(j + 1, "agent", "", "find", "", text, prose(), prose(), "ok") for j, text in enumerate(seen)
        ]
        runs.append(Run(f"r{i}", f"t{i}", Outcome.UNKNOWN, tuple(records), "here"))
    one = named(audit_leaks(runs), "whole_rest", "observation")
    assert one.severity == "error" and one.token == "is seen"
    assert one.figures["runs"] == 20 and one.figures["held"] == one.figures["texts"] == 80


def in_files(runs: Runs, name: dict[Outcome, str]) -> Runs:
    return [replace(run, groups={**run.groups, "file": name[run.outcome]}) for run in runs]


def test_runs_sorted_into_files_by_outcome_are_a_warning(runs: Runs) -> None:
    sorted_runs = in_files(runs, {Outcome.FAILURE: "failed.ipynb", Outcome.SUCCESS: "resolved.ipynb"})
    one = named(audit_leaks(sorted_runs), "shortcut", "group file")
    assert (one.severity, one.token) == ("warning", "failed.ipynb")
    assert "'failed.ipynb' failed" in one.text and "'resolved.ipynb' succeeded" in one.text


def test_files_that_hold_both_outcomes_are_not(runs: Runs) -> None:
    mixed = [replace(run, groups={**run.groups, "file": f"part {i % 2}"}) for i, run in enumerate(runs)]
    for some in (runs, mixed, in_files(runs, {Outcome.FAILURE: "all", Outcome.SUCCESS: "all"})):
        assert not [one for one in audit_leaks(some).findings if one.field.startswith("group")]


def test_a_word_that_parts_outcomes_perfectly_before_the_end_is_an_error(runs: Runs) -> None:
    def marked(run: Run[StepRecord]) -> Run[StepRecord]:
        first, *rest = run.records
        if not rest or run.outcome is Outcome.SUCCESS:
            return run
        return replace(run, records=(first, replace(rest[0], result=f"{rest[0].result} zq7"), *rest[1:]))

    found = [one for one in audit_leaks(map(marked, runs)).findings if "zq7" in one.token]
    assert found and found[0].severity == "error" and found[0].field == "result"
