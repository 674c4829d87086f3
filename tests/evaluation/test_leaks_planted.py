"""Every known leak, planted into runs of the simulation, is found by field, token and numbers."""

from __future__ import annotations

import random

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
    turned = [
        run if i % 10 else Run(run.run_id, run.task_id, _other(run.outcome), run.records, run.source, run.groups)
        for i, run in enumerate(planted(runs, plant))
    ]
    token = named(audit_leaks(turned), "token", "result")
    assert token.severity == "error" and "reward" in token.token
    assert 0.8 < token.figures["separates"] < 0.97


def _other(outcome: Outcome) -> Outcome:
    return Outcome.FAILURE if outcome is Outcome.SUCCESS else Outcome.SUCCESS


def test_a_name_that_tells_says_how_much(runs: Runs):
    """A model's name that stands in every action, where one model fails far oftener."""
    told = []
    for run in runs:
        name = (
            "weak-model-7b" if run.outcome is Outcome.FAILURE and not run.run_id.endswith("0") else "strong-model-70b"
        )
        records = tuple(_with_action(record, f"{name}: {record.action}") for record in run.records)
        told.append(Run(run.run_id, run.task_id, run.outcome, records, run.source, {"model": name}))
    one = named(audit_leaks(told), "identifier", "action")
    assert one.severity == "error" and one.figures["area"] > 0.75 and one.figures["p"] < 0.01
    assert "tells the outcome" in one.text and "60 tasks" in one.text


def _with_action(record: StepRecord, action: str) -> StepRecord:
    return StepRecord(
        record.index,
        record.actor,
        record.agent,
        record.tool,
        record.arguments,
        record.observation,
        action,
        record.result,
        record.status,
        record.event,
    )


def test_a_script_without_any_name_is_found_by_its_words():
    """All that the user will say stands in the first observation, and nothing says what it is."""
    dice = random.Random(4)

    def prose():
        return " ".join(
            dice.choice(("order", "lamp", "blue", "return", "card", "street", "seven", "late")) for _ in range(12)
        )

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
