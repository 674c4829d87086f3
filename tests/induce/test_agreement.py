"""The measure that benchmarks of induced adapters are judged by."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from agreement import Reading, agree, rand_index, read_truth, readings
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.stepview import StepRecord, list_adapters, load_adapter, read_runs

TRUTH = Path(__file__).parent / "truth"
GOLDEN = Path(__file__).parents[2] / "stepview_adapters" / "golden"
RUNS = read_truth(TRUTH / "langgraph.jsonl")


def changed(**fields: str) -> list[Reading]:
    """The runs, with fields of every third record replaced."""
    return [
        replace(run, records=tuple(replace(r, **fields) if k % 3 == 0 else r for k, r in enumerate(run.records)))
        for run in RUNS
    ]


@pytest.mark.parametrize("name", list_adapters())
def test_a_reading_agrees_with_itself(name: str) -> None:
    runs = readings(read_runs(GOLDEN / name / "runs", load_adapter(name)))
    found = agree(runs, runs[::-1])
    assert found.identical
    assert (found.runs, found.records, found.records_joined) == (1.0, 1.0, 1.0)
    assert found.tools == found.outcomes == found.tasks == found.status == 1.0


def test_lost_runs_and_lost_records_lower_their_shares() -> None:
    found = agree(RUNS, RUNS[1:])
    assert found.runs == round(2 * (len(RUNS) - 1) / (2 * len(RUNS) - 1), 4)
    assert not found.identical
    n = sum(len(run.records) for run in RUNS)
    shorter = [replace(run, records=run.records[1:]) for run in RUNS]
    found = agree(RUNS, shorter)
    assert found.counts["records_same"] == n - len(RUNS)
    assert found.records == round(2 * (n - len(RUNS)) / (2 * n - len(RUNS)), 4)


def test_doubled_records_and_merged_runs_are_no_agreement() -> None:
    n = sum(len(run.records) for run in RUNS)
    doubled = [replace(run, records=tuple(r for r in run.records for _ in (0, 1))) for run in RUNS]
    assert agree(RUNS, doubled).records == round(2 * n / (3 * n), 4)
    one = replace(RUNS[0], records=tuple(record for run in RUNS for record in run.records))
    assert agree(RUNS, [one]).runs <= 0.2
    assert agree(RUNS, [one]).records < 0.3


@pytest.mark.parametrize(
    ("field", "value", "figure"),
    [
        ("tool", "x", "tools"),
        ("arguments", "{}", "arguments"),
        ("status", "unknown", "status"),
        ("actor", "user", "actors"),
    ],
)
def test_a_wrong_field_lowers_its_figure_only(field: str, value: str, figure: str) -> None:
    found, whole = agree(RUNS, changed(**{field: value})), agree(RUNS, RUNS)
    assert getattr(found, figure) < 0.75
    others = {"tools", "arguments", "results", "status", "actors", "outcomes", "tasks"} - {figure}
    assert {name: getattr(found, name) for name in others} == {name: getattr(whole, name) for name in others}


def test_results_on_the_wrong_call_are_no_agreement() -> None:
    turned = []
    for run in RUNS:
        results = [r.result for r in run.records if r.result]
        results = iter(results[1:] + results[:1])
        turned.append(
            replace(run, records=tuple(replace(r, result=next(results)) if r.result else r for r in run.records))
        )
    assert agree(RUNS, turned).results < 0.3


def test_names_that_stand_for_others_are_told_from_names_that_are_wrong() -> None:
    renamed = [replace(run, records=tuple(replace(r, tool=f"do-{r.tool}") for r in run.records)) for run in RUNS]
    assert (agree(RUNS, renamed).tools, agree(RUNS, renamed).tools_renamed) == (0.0, 1.0)
    same = [replace(run, records=tuple(replace(r, tool="tool") for r in run.records)) for run in RUNS]
    assert agree(RUNS, same).tools_renamed < 0.5


def test_outcomes_and_tasks() -> None:
    assert agree(RUNS, [replace(run, outcome="success") for run in RUNS]).outcomes == pytest.approx(4 / 9, abs=1e-4)
    assert agree(RUNS, [replace(run, task=f"another {run.task}") for run in RUNS]).tasks == 1.0
    assert agree(RUNS, [replace(run, task=None) for run in RUNS]).tasks < 0.1
    assert rand_index([("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")]) < 0


def test_speech_before_a_call_may_be_a_record_of_its_own_and_is_counted() -> None:
    split = []
    for run in RUNS:
        records: list[StepRecord] = []
        for r in run.records:
            if r.action and r.tool != "respond":
                records += [
                    replace(r, tool="respond", arguments="", result="", status="ok"),
                    replace(r, action="", observation=""),
                ]
            else:
                records.append(r)
        split.append(replace(run, records=tuple(records)))
    found = agree(RUNS, split)
    assert found.counts["split_speech"] == 11
    assert found.records < 0.95
    assert found.records_joined == 1.0
    assert agree(split, RUNS).records_joined == 1.0


def test_results_that_stand_in_the_next_observation_are_counted() -> None:
    moved = []
    for run in RUNS:
        records, waiting = [], ""
        for r in run.records:
            records.append(replace(r, result="", observation=f"{waiting}\n{r.observation}"))
            waiting = r.result
        moved.append(replace(run, records=tuple(records)))
    found = agree(RUNS, moved)
    assert found.counts["result_as_observation"] > 20
    assert found.results == 0.0


records = st.builds(
    StepRecord, st.just(1), st.just("agent"), st.just(""), st.sampled_from(["ls", "respond"]),
    st.text("abc ", max_size=6), st.just(""), st.text("xyz ", max_size=6), st.text("uvw ", max_size=6), st.just("ok"),
)  # fmt: skip
runs = st.lists(
    st.builds(
        Reading, st.sampled_from(["p", "q", "r"]), st.sampled_from([None, "t", "u"]),
        st.sampled_from(["success", "failure"]), st.lists(records, min_size=1, max_size=5).map(tuple),
    ), max_size=4,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(runs, runs)
def test_shares_are_shares_whichever_way_round(a: list[Reading], b: list[Reading]) -> None:
    found, back = agree(a, b), agree(b, a)
    for share in (found.runs, found.records, found.records_joined, found.tools, found.results, found.outcomes):
        assert share is None or 0.0 <= share <= 1.0
    assert found.counts["records_same"] <= min(found.counts["records_a"], found.counts["records_b"])
    assert agree(a, a).identical
    assert agree(a, a).records == 1.0
    assert found.identical == back.identical
