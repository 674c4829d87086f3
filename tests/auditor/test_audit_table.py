"""The audit table: its figures, its width, its JSON and Markdown, what it refuses; and published figures beside it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from prefixguard.auditor import AuditedSystem, AuditTable, audit_table, published_rows, trivial_baselines
from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import AuditedRun
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run


def made_runs(n: int = 40) -> list[Run[StepRecord]]:
    """Every other run fails, at step 2 or 3; ten steps each."""
    runs = []
    for i in range(n):
        failed = i % 2 == 0
        records = tuple(
            StepRecord(k, "agent", "Coder" if k % 2 else "Web", "run", "", "", "", "", "error" if k == 3 else "ok", k)
            for k in range(1, 11)
        )
        mistake = Mistake(2 + (i % 4) // 2, "Web" if i % 4 == 0 else "Coder") if failed else None
        outcome = Outcome.FAILURE if failed else Outcome.SUCCESS
        runs.append(Run(f"run {i}", f"task {i // 2}", outcome, records, "made.json", mistake=mistake))
    return runs


RUNS = made_runs()


def auditor(name: str = "auditor | *bold*") -> AuditedSystem:
    """Right on every failed run but each tenth; one false alarm; asks until it alarms; one call fails."""
    rows = []
    for i, run in enumerate(RUNS):
        failed = run.outcome is Outcome.FAILURE
        gold, who = (run.mistake.step, run.mistake.agent) if run.mistake else (None, None)
        row = AuditedRun(run.run_id, run.task_id, 10, failed, gold, who, "safe", calls=10, cost=0.1, seconds=5.0)
        if failed and i % 20:
            row = replace(row, outcome="alarm", step=gold, agent="web" if who == "Web" else who, alarm_step=5, calls=5)
        elif i == 1:
            row = replace(row, outcome="alarm", step=1, alarm_step=1, calls=1, cost=0.01)
        elif i == 3:
            row = replace(row, outcome="error", failed_calls=10)
        rows.append(row)
    return AuditedSystem(name, tuple(rows))


def table(**options: object) -> AuditTable:
    return audit_table([auditor()], trivial_baselines(RUNS), n_resamples=200, **options)  # type: ignore[arg-type]


def test_figures_stand_in_the_text_and_the_trivial_rows_beside() -> None:
    found = table(normalise=str.lower)
    text = found.to_text(full=True)
    assert max(map(len, text.splitlines())) <= 118
    assert text.startswith("40 audited runs of 20 tasks: 20 failed (U), 20 safe (S)")
    for row in found.rows:
        assert row.name[:23] in text
    row = found.rows[0].figures
    assert (row.counts.exact, row.counts.alarmed, row.counts.false_alarms) == (18, 18, 1)
    assert row.exact_f1 == pytest.approx(36 / 39)
    line = next(line for line in text.splitlines() if line.startswith("auditor"))
    assert "92.3 %" in line
    assert "94.7 %" in line  # by the text
    assert row.agent_accuracy < row.agent_accuracy_normalised == 0.9
    assert "2 [" in next(x for x in text.split("When, and at what cost")[1].splitlines() if x.startswith("auditor"))
    line = next(x for x in text.split("Errors and false alarms")[1].splitlines() if x.startswith("auditor"))
    assert line.split()[-6:] == ["yes", "20", "20", "18", "1", "18"]
    assert not text.endswith("\n")


def test_the_first_is_compared_with_every_other_on_the_same_resamples() -> None:
    found = table()
    assert found.rows[0].ahead == {}
    for row in found.rows[1:]:
        if math.isnan(row.figures.step_accuracy):
            assert "step_accuracy" not in row.ahead
            continue
        ahead = row.ahead["step_accuracy"]
        assert ahead.value == pytest.approx(found.rows[0].figures.step_accuracy - row.figures.step_accuracy)
        assert ahead.interval is not None
        assert ahead.interval[0] <= ahead.value <= ahead.interval[1]


def test_json_is_plain_and_says_none_for_no_number() -> None:
    found = table(published=published_rows("aftraj"), notes=["A note."])
    back = json.loads(found.to_json())
    assert [row["name"] for row in back["systems"]] == [row.name for row in found.rows]
    chance = next(row for row in back["systems"] if row["name"] == "random agent")
    assert chance["step_accuracy"] is None
    assert back["systems"][0]["counts"]["exact"] == 18
    assert back["systems"][0]["trivial"] is False
    assert all(row["trivial"] for row in back["systems"][1:])
    assert back["published"][0]["system"] == "AgentForesight-7B"
    assert back["notes"] == ["A note."]


def test_published_rows_come_on_request_with_their_caveats() -> None:
    assert "Published" not in table().to_text(full=True)
    text = table(published=published_rows("aftraj")).to_text(full=True)
    assert max(map(len, text.splitlines())) <= 118
    said = " ".join(text.split("Published, and not of the same protocol or runs")[1].split())
    assert "66.4 %" in said
    assert all(" ".join(caveat.split()) in said for row in published_rows("aftraj") for caveat in row.caveats)


def test_names_form_no_markup() -> None:
    text = table().to_markdown()
    assert "| auditor \\| \\*bold\\* |" in text
    heads = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(heads) > 40
    assert text.endswith("\n")


def test_a_table_of_what_needs_no_auditor_alone() -> None:
    found = audit_table([], trivial_baselines(RUNS), n_resamples=50)
    assert all(row.ahead == {} for row in found.rows)
    assert "minus each other" not in found.to_text(full=True)


def test_without_safe_runs_the_text_says_what_cannot_be_known() -> None:
    failed = [run for run in RUNS if run.outcome is Outcome.FAILURE]
    text = audit_table([], trivial_baselines(failed), n_resamples=20).to_text(full=True)
    assert "no safe run: false alarms cannot be measured" in text
    assert "unknown" in text


def test_what_is_refused() -> None:
    with pytest.raises(ConfigError, match="without trivial baselines"):
        audit_table([auditor()], [])
    with pytest.raises(ConfigError, match='two auditors of a table are named "step 1"'):
        audit_table([auditor("step 1")], trivial_baselines(RUNS))
    with pytest.raises(DataError, match="Give every auditor the same runs"):
        audit_table([auditor()], trivial_baselines(RUNS[:-1]))


def test_no_name_of_a_trivial_row_is_cut() -> None:
    systems = trivial_baselines(made_runs(4), index="event", constants=(100,))
    names = [row.name + ("*" if row.hindsight else "") for row in audit_table([], systems, n_resamples=0).rows]
    text = audit_table([], systems, n_resamples=0).to_text(full=True)
    assert all(f"\n{name} " in text for name in names)


def test_every_row_has_a_source_and_a_caveat_and_shares_in_range() -> None:
    rows = published_rows()
    for row in rows:
        assert row.source
        assert row.caveats
        shares = [row.agent, row.step, row.exact_f1, row.false_alarm_rate]
        known = [share for share in shares if not math.isnan(share)]
        assert known
        assert all(0 < share < 1 for share in known)
        json.dumps(row.as_json(), allow_nan=False)
    assert len({(row.system, row.test, row.caveats) for row in rows}) == len(rows)


def test_rows_are_chosen_by_test_set() -> None:
    hand = published_rows("whoandwhen/hand-crafted")
    best = {row.step for row in hand if row.system == "Claude-Sonnet-4"}
    assert best == {0.1724, 0.1897}
    assert {row.test for row in published_rows("aftraj")} == {"aftraj"}
    with pytest.raises(ConfigError, match='no published figures of "mast"'):
        published_rows("mast")


def test_the_row_that_counts_only_alarmed_runs_says_so() -> None:
    (row,) = [row for row in published_rows("whoandwhen/short") if row.system == "AgentForesight-7B"]
    assert any("only the runs in which the system raised an alarm" in caveat for caveat in row.caveats)
