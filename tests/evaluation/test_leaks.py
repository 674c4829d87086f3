"""The audit as a whole: what it takes, what it gives, and what it does with hostile or thin material."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run


def run_of(i, records, failed, task=None, groups=None):
    outcome = {True: Outcome.FAILURE, False: Outcome.SUCCESS, None: Outcome.UNKNOWN}[failed]
    return Run(f"run-{i:04}", task or f"task-{i}", outcome, tuple(records), "here", groups or {})


def leaking(n=80, known=True, seed=1):
    """Runs whose last result says the verdict."""
    dice = random.Random(seed)
    runs = []
    for i in range(n):
        failed = dice.random() < 0.4
        records = [
            StepRecord(j + 1, "agent", "", "look", "", "", f"look {dice.randint(0, 9)}", "fine", "ok") for j in range(4)
        ]
        records.append(StepRecord(5, "agent", "", "stop", "", "", "", f"verdict {not failed}", "ok"))
        runs.append(run_of(i, records, failed if known else None))
    return runs


def test_an_iterable_is_read_once_and_gives_the_same():
    runs = leaking()
    assert audit_leaks(iter(runs)).as_json() == audit_leaks(runs).as_json()
    assert audit_leaks(runs).errors


def test_plain_values_and_narrow_text():
    audit = audit_leaks(leaking())
    assert json.loads(json.dumps(audit.as_json(), allow_nan=False)) == audit.as_json()
    assert max(map(len, audit.to_text().splitlines())) <= 118
    token = next(one for one in audit.errors if one.kind == "token")
    assert token.token in ("verdict true", "verdict false")
    assert f"ERROR token, result: '{token.token}' in result tells" in audit.to_text().replace("\n", " ")


def test_without_outcomes_only_text_is_audited():
    audit = audit_leaks(leaking(known=False))
    assert audit.findings == () and audit.judged == 0
    assert audit.notes[0].startswith("Nothing was tested against outcomes")


def test_few_tasks_are_not_enough_however_many_runs():
    runs = [run_of(i, run.records, run.outcome is Outcome.FAILURE, f"t{i % 7}") for i, run in enumerate(leaking(200))]
    audit = audit_leaks(runs)
    assert audit.findings == () and audit.tasks == 7 and audit.notes


def test_more_runs_than_are_looked_at_are_sampled():
    audit = audit_leaks(leaking(200), most_runs=100)
    assert (audit.runs, audit.looked_at) == (200, 100) and audit.errors
    assert "A sample of 100 of 200 runs was audited." in audit.notes
    assert audit.as_json() == audit_leaks(leaking(200), most_runs=100).as_json()
    with pytest.raises(ConfigError, match="most_runs is 0; it must be 1 or more"):
        audit_leaks([], most_runs=0)


def test_nothing_is_nothing():
    assert audit_leaks([]).findings == ()
    assert audit_leaks([run_of(0, [], True)]).runs == 0


def test_stages_are_told_in_order():
    stages: list[str] = []
    audit_leaks(leaking(), on_stage=stages.append)
    assert stages[:2] == ["runs", "later text"] and stages[-1] == "groups" and len(set(stages)) == len(stages)


def test_what_a_run_is_called_or_grouped_by_does_not_change_its_inputs():
    runs = leaking()
    before = [run.records for run in runs]
    audit_leaks(runs)
    assert [run.records for run in runs] == before


HOSTILE = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(
    ["(a+)+$" * 40, "\ud800", "\x00\x01\x1b[2J", "a" * 50_000, "(" * 3000, "1" * 400, "1e999 -9" * 50, "{{}}%s%n\\"]
)


@settings(max_examples=8, deadline=None)
@given(st.lists(HOSTILE, min_size=6, max_size=6), st.integers(0, 3))
def test_hostile_text_is_only_text(texts, seed):
    dice = random.Random(seed)
    runs = []
    for i in range(24):
        failed = i % 2 == 0
        records = [
            StepRecord(j + 1, "agent", "", *(dice.choice(texts) for _ in range(5)), "ok")  # type: ignore[arg-type]
            for j in range(3)
        ]
        records.append(StepRecord(4, "agent", "", "", "", texts[failed], "", texts[2 + failed], "ok"))
        runs.append(run_of(i, records, failed, groups={"model": texts[4 + i % 2]}))
    audit = audit_leaks(runs)
    json.dumps(audit.as_json(), allow_nan=False)
    assert "\x1b" not in audit.to_text() and "\x00" not in audit.to_text()


def test_the_same_in_any_process():
    """Sets of text have another order under another hash seed; findings have not."""
    code = (
        "import json, sys; sys.path[:0] = sys.argv[1:]\n"
        "from test_leaks import leaking\n"
        "from prefixguard.evaluation.leaks import audit_leaks\n"
        "print(json.dumps(audit_leaks(leaking()).as_json()))"
    )
    here = os.path.dirname(__file__)  # noqa: PTH120
    said = {
        subprocess.run(
            [sys.executable, "-c", code, here],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_what_is_waived_is_a_note_with_its_reason():
    audit = audit_leaks(leaking())
    fields = {one.field for one in audit.errors}
    assert fields and all(one.text.endswith(one.option) for one in audit.findings)
    field = sorted(fields)[0]
    waived = audit_leaks(leaking(), waive={field: "the tool says so live", "actor": "never looked at"})
    assert {one.field for one in waived.errors} == fields - {field}
    assert len(waived.findings) == len(audit.findings), "nothing is hidden"
    notes = [one for one in waived.findings if one.field == field]
    assert all(one.severity == "note" and one.text.startswith("waived (the tool says so live): ") for one in notes)
    assert all(one.as_json()["waived"] == "the tool says so live" for one in notes)
    assert "'actor' waived nothing: nothing was found there." in waived.notes
    assert f"{len(notes)} waived" in waived.to_text()
