"""Groups that tell how runs ended are a warning, whatever records say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prefixguard.evaluation.leaks import audit_leaks
from prefixguard.simulation import write_runs
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, Run

Runs = list[Run[StepRecord]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    path = tmp_path_factory.mktemp("lab") / "runs.jsonl"
    write_runs(path, 160, seed=3)
    return list(read_runs(path, load_adapter("openai_chat")))


def in_files(runs: Runs, name: dict[Outcome, str]) -> Runs:
    return [replace(run, groups={**run.groups, "file": name[run.outcome]}) for run in runs]


def test_runs_sorted_into_files_by_outcome_are_told(runs: Runs) -> None:
    sorted_runs = in_files(runs, {Outcome.FAILURE: "failed.ipynb", Outcome.SUCCESS: "resolved.ipynb"})
    (found,) = [one for one in audit_leaks(sorted_runs).findings if one.field == "group file"]
    assert (found.kind, found.severity, found.token) == ("shortcut", "warning", "failed.ipynb")
    assert "'failed.ipynb' failed" in found.text and "'resolved.ipynb' succeeded" in found.text


def test_files_that_hold_both_outcomes_are_not(runs: Runs) -> None:
    mixed = [replace(run, groups={**run.groups, "file": f"part {i % 2}"}) for i, run in enumerate(runs)]
    for some in (runs, mixed, in_files(runs, {Outcome.FAILURE: "all", Outcome.SUCCESS: "all"})):
        assert not [one for one in audit_leaks(some).findings if one.field.startswith("group")]


def test_a_word_that_parts_outcomes_perfectly_before_the_end_is_an_error(runs: Runs) -> None:
    def marked(run: Run[StepRecord]) -> Run[StepRecord]:
        first, *rest = run.records
        word = " zq7" if run.outcome is Outcome.FAILURE else ""
        second = replace(rest[0], result=rest[0].result + word) if rest else None
        return run if second is None else replace(run, records=(first, second, *rest[1:]))

    found = [one for one in audit_leaks([marked(run) for run in runs]).findings if "zq7" in one.token]
    assert found and found[0].severity == "error" and found[0].field == "result"
