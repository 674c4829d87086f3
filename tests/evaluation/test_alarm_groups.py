"""First alerts of a monitor whose alarm thresholds differ by group: as its live readings, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
import orjson
import pytest

import prefixguard
from prefixguard.alarm import AlarmPolicy, GroupThresholds, Thresholds
from prefixguard.errors import DataError
from prefixguard.evaluation import EvaluationTable, compare, evaluate, evaluate_scores
from prefixguard.evaluation.report import report_of
from prefixguard.evaluation.tables.alerts import AlarmGroups, AlertRow
from prefixguard.runtime import Level, Monitor, load
from prefixguard.simulation import generate
from prefixguard.stepview import StepRecord, read_runs
from prefixguard.trace import Outcome, Run

#: Messages of a lab run, about half of them have more.
MIDDLE = 33


@dataclass(frozen=True)
class Tiers:
    """A lab monitor calibrated by group, runs that are new to it, and which of them alarm as `score` reads them."""

    monitor: Monitor
    runs: list[Run[StepRecord]]
    alarmed: dict[str, bool]
    table: EvaluationTable

    def share(self, outcome: Outcome, agent: str | None = None) -> float:
        """Of these runs, those that alarm."""
        of = [r for r in self.runs if r.outcome is outcome and agent in (None, r.groups["agent"])]
        return sum(self.alarmed[r.run_id] for r in of) / len(of)


@pytest.fixture(scope="module")
def tiers(lab_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Tiers:
    """Long runs and short ones, on which the monitor's greatest risks differ, are the two groups."""
    folder = tmp_path_factory.mktemp("tiers")
    found = list(islice(generate(340, 5), 160, None))
    for run in found:
        run["agent"] = "patient" if len(run["messages"]) > MIDDLE else "brisk"
    calibration, fresh = folder / "calibration.jsonl", folder / "fresh.jsonl"
    calibration.write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in found[:100]))
    fresh.write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in found[100:]))
    monitor = load(prefixguard.calibrate(lab_bundle, calibration, out=folder / "new", group_by="agent").path)
    runs = list(read_runs(fresh, monitor.bundle.adapter))
    alarmed = {
        scored.run.run_id: any(reading.level is Level.ALARM for reading in scored.readings)
        for scored in prefixguard.score(monitor, runs)
    }
    return Tiers(monitor, runs, alarmed, evaluate(monitor, runs, resamples=20))


def working(monitor: Monitor, rows: tuple[AlertRow, ...]) -> AlertRow:
    (row,) = [row for row in rows if row.budget == monitor.bundle.calibration.policy.budget]
    return row


def test_alerts_are_those_of_the_readings(tiers: Tiers) -> None:
    table = tiers.table
    row = working(tiers.monitor, table.first_alert)
    assert row.alerts is not None and row.grouped_by == "agent"
    assert row.alerts.alerted == pytest.approx(tiers.share(Outcome.FAILURE))
    assert row.alerts.false_alarm_rate == pytest.approx(tiers.share(Outcome.SUCCESS))
    assert [part.value for part in row.groups] == ["brisk", "patient"]
    for part in row.groups:
        assert part.alerts is not None and part.thresholds.alarm == part.alerts.threshold
        assert part.alerts.alerted == pytest.approx(tiers.share(Outcome.FAILURE, part.value))
        assert part.alerts.false_alarm_rate == pytest.approx(tiers.share(Outcome.SUCCESS, part.value))
        assert part.runs == sum(run.groups["agent"] == part.value for run in tiers.runs)
    # The common threshold gives something else, or nothing of this would be tested.
    plain = evaluate_scores(
        table.behind.rows[0].imminent,
        table.behind.rows[0].outcome,
        table.behind.failed,
        table.behind.tasks,
        policy=tiers.monitor.bundle.calibration.policy,
        thresholds={row.budget: row.thresholds},
        resamples=0,
    ).first_alert[0]
    assert plain.alerts.false_alarm_rate != row.alerts.false_alarm_rate or plain.alerts.alerted != row.alerts.alerted
    others = [one for one in table.first_alert if one is not row]
    assert others and all(one.grouped_by is None and not one.groups for one in others), "no other budget has groups"


def test_text_and_json_say_it(tiers: Tiers) -> None:
    table = tiers.table
    text = table.to_text()
    assert "\n· brisk (" in text and "\n· patient (" in text
    assert "At 25 % each run is judged by the threshold of its agent, where that has one of its own" in text
    assert [line for line in text.splitlines() if len(line) > 118] == []
    row = next(row for row in table.as_json()["first_alert"] if row["budget"] == 0.25)
    own = tiers.monitor.bundle.calibration.groups.of
    assert {part["value"]: part["threshold"] for part in row["groups"]} == {k: one.alarm for k, one in own.items()}
    assert row["grouped_by"] == "agent" and row["threshold"] == tiers.monitor.bundle.calibration.thresholds.alarm


def test_the_report_shows_each_example_by_its_own_threshold(tiers: Tiers) -> None:
    report = report_of(tiers.monitor, tiers.table, tiers.runs)
    sections = report.as_json()["sections"]
    by_agent = {run.run_id: tiers.monitor.group_of(run) for run in tiers.runs}
    runs = sections["examples"]["runs"]
    assert len(runs) >= 3
    for example in runs:
        own = tiers.monitor.bundle.calibration.thresholds_of(by_agent[example["run_id"]])
        assert example["threshold"] == own.alarm
        assert (example["first_alert"] is not None) == tiers.alarmed[example["run_id"]]
        alarms = [step["step"] for step in example["steps"] if step["level"] == "ALARM"]
        assert alarms[:1] == ([] if example["first_alert"] is None else [example["first_alert"]])
    assert set(sections["reproduction"]["thresholds_by_group"]["of"]) == {"brisk", "patient"}
    assert sections["reproduction"]["facts"]["thresholds set anew on"].startswith("100 runs, ")
    page = report.to_html().decode()
    assert (
        "Thresholds by agent, at a budget of 25&nbsp;%" in page or "Thresholds by agent, at a budget of 25\xa0%" in page
    )
    assert "Runs whose agent has a threshold of its own are judged by that" in page
    assert "· patient (" in report.to_markdown()


def test_compare_judges_by_group_too(tiers: Tiers, lab_bundle: Path) -> None:
    found = compare([lab_bundle, tiers.monitor], tiers.runs, resamples=20)
    (shown,) = [one for one in found.monitors[1].alerts if one.row.budget == 0.25]
    assert shown.row.alerts.alerted == pytest.approx(tiers.share(Outcome.FAILURE))
    failed = sum(run.outcome is Outcome.FAILURE for run in tiers.runs)
    assert shown.both + shown.only_this == round(tiers.share(Outcome.FAILURE) * failed)
    assert any("has alarm thresholds by agent: at 25 % each run is judged by its own." in note for note in found.notes)
    assert found.as_json()["monitors"][1]["first_alert"][-1]["grouped_by"] == "agent"


def test_a_group_with_an_alarm_where_all_runs_have_none() -> None:
    refused = Thresholds(None, 0.3, 9, 0, 22, "9 runs are too few.")
    own = GroupThresholds("tier", {"gold": Thresholds(0.6, 0.3, 30, 0, 22, None), "new": refused})
    risks = [[0.1, 0.7, 0.2, 0.2, 0.2, 0.2], [0.9, 0.9], [0.1, 0.65], [0.2, 0.2]]
    table = evaluate_scores(
        risks,
        risks,
        [True, True, False, False],
        ["a", "b", "c", "d"],
        policy=AlarmPolicy(budget=0.1),
        thresholds={0.1: refused},
        resamples=20,
        alarm_groups=AlarmGroups(own, ("gold", "new", "gold", None)),
        sizes=[[1, 1, 2, 2, 2, 2], [5, 5], [1, 1], [1, 1]],
    )
    (row,) = table.first_alert
    assert (row.alerts.alerted, row.alerts.false_alarm_rate) == (0.5, 0.5)
    assert [(part.value, part.runs, part.alerts is None) for part in row.groups] == [
        ("gold", 2, False),
        (None, 2, True),
    ]
    assert row.alerts.text_saved == pytest.approx(8 / 20) and row.alerts.text_lost == 0.0
    assert table.as_json()["first_alert"][0]["threshold"] is None
    text = table.to_text()
    assert "Refused at 10 % for all runs: 9 runs are too few." in text and "· others (2 runs)" in text
    assert row.alerts.steps_saved == pytest.approx(4 / 8)


def test_sizes_that_are_not_one_a_step() -> None:
    with pytest.raises(DataError, match="one a step of every run"):
        evaluate_scores([[0.1, 0.2]], [[0.1, 0.2]], [True], ["a"], sizes=[np.ones(3)])
