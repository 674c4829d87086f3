from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.behaviours import Behaviour, BehaviourFinding
from prefixguard.errors import ConfigError
from prefixguard.runtime import Level, Reading
from prefixguard.simulation import demonstration


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo's path with next to no training, and a budget that so few runs support."""
    small = {"epochs": 1, "symbol_epochs": 1, "members": 1, "teacher": 0.0, "max_features": 64, "budget": 0.3}
    monkeypatch.setattr(demonstration, "SETTINGS", small)


@pytest.mark.slow
def test_the_whole_demo(cli, quick: None, tmp_path: Path) -> None:
    said = cli("demo", "--out", tmp_path / "demo", "--runs", 140, "--fresh", 40)
    assert said.code == 0, said.err
    for number in range(1, 6):
        assert f"[{number}/5]" in said.err
    for shown in ("Evaluated on fresh runs", "end oracle", "MiB", "The run failed at its end", "Done in"):
        assert shown in said.err
    assert "fresh runs that failed" in said.told and "that succeeded" in said.told
    steps = said.out.splitlines()
    assert all(line.startswith("step ") for line in steps) and len(steps) >= 2
    if any(" ALARM " in line for line in steps):
        first = next(i for i, line in enumerate(steps, 1) if " ALARM " in line)
        assert f"ALARM at step {first}, {len(steps) - first} steps before the failure." in said.told
    else:
        assert "No alarm sounded in this run" in said.told
    again = cli("demo", "--out", tmp_path / "demo", "--runs", 140, "--fresh", 40, "--json")
    (facts,) = again.lines
    assert [line.split()[2] for line in steps] == [one["level"] for one in facts["watched"]["readings"]]
    assert facts["fresh"]["failed"] + facts["fresh"]["succeeded"] == 40
    assert facts["evaluation"]["runs"] == 40 and facts["evaluation"]["left_out"] == 0, "fresh tasks are new to it"


def test_too_few_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 100 runs to learn from and 40 fresh"):
        demonstration.demo(tmp_path / "m", runs=10)


FAULT = BehaviourFinding(Behaviour("b", "fault", "Tests fail.", "Fix it.", "Show one."), 3, 2, "pytest")


def reading(step: int, level: Level, *faults: BehaviourFinding) -> Reading:
    return Reading(step, 0.1, 0.5, level, 0, None, (), None, 1.0, faults=faults)


def run(name: str, outcome: str, observable: bool | None, mistake: int | None) -> dict[str, object]:
    return {"run_id": name, "outcome": outcome, "metadata": {"observable": observable, "mistake_step": mistake}}


def readings(steps: int, alarm: int | None) -> tuple[Reading, ...]:
    return tuple(
        reading(step, Level.ALARM if alarm is not None and step >= alarm else Level.OK) for step in range(1, steps + 1)
    )


def test_the_run_that_is_watched_failed_visibly_with_an_early_alarm_after_its_fault() -> None:
    judged = [
        (run("lucky", "success", None, None), readings(9, 2)),
        (run("silent", "failure", False, 3), readings(9, 4)),
        (run("missed", "failure", True, 3), readings(9, None)),
        (run("late", "failure", True, 3), readings(9, 9)),
        (run("before its fault", "failure", True, 5), readings(9, 2)),
        (run("this one", "failure", True, 3), readings(9, 4)),
        (run("as good", "failure", True, 3), readings(9, 4)),
    ]
    chosen, _ = max(judged, key=demonstration._worth_showing)
    assert chosen["run_id"] == "this one"
    said = tuple(reading(step, Level.ALARM if step > 3 else Level.OK, FAULT) for step in range(1, 10))
    explained = [*judged, (run("and says why", "failure", True, 3), said)]
    assert max(explained, key=demonstration._worth_showing)[0]["run_id"] == "and says why"
    judged = judged[:3]
    assert max(judged, key=demonstration._worth_showing)[0]["run_id"] == "missed", "honest when none is better"


def test_alarms_are_counted_over_all_fresh_runs() -> None:
    found = demonstration._alarms(
        [
            (run("a", "failure", True, 3), readings(9, 4)),
            (run("b", "failure", False, 3), readings(9, None)),
            (run("c", "failure", True, 3), readings(9, 9)),
            (run("d", "success", None, None), readings(9, 9)),
            (run("e", "success", None, None), readings(9, None)),
        ]
    )
    assert (found.failed, found.showing, found.alarmed, found.alarmed_showing) == (3, 2, 2, 2)
    assert (found.succeeded, found.false_alarms) == (2, 1)
    assert found.leads == (5, 0) and found.lead_median == 2.5
