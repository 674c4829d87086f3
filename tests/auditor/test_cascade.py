"""A gate before an auditor: both walks by hand, identities, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from prefixguard.auditor import PrefixVerdict, cascade, cascade_curve, escalated_above, replayed
from prefixguard.errors import DataError
from prefixguard.stepview import StepRecord
from prefixguard.trace import Mistake, Outcome, Run

SAFE = PrefixVerdict("safe", cost=0.5, seconds=1.0, tokens_in=10, tokens_out=1)
ERROR = PrefixVerdict("error", cost=0.5)


def alarm(step: int) -> PrefixVerdict:
    return PrefixVerdict("alarm", step, "Coder", cost=0.5)


def run(name: str, n: int, gold: int | None = None) -> Run[StepRecord]:
    records = tuple(StepRecord(k, "agent", "Coder", "run", "", "", "", "", "ok", k) for k in range(1, n + 1))
    outcome = Outcome.SUCCESS if gold is None else Outcome.FAILURE
    mistake = None if gold is None else Mistake(gold, "Coder")
    return Run(name, None, outcome, records, "made.json", mistake=mistake)


RUNS = [run("hit", 4, 2), run("late", 4, 3), run("wrong", 3, 1), run("calm", 3), run("false", 3)]
VERDICTS = {
    "hit": {1: SAFE, 2: alarm(2), 3: alarm(2), 4: alarm(2)},
    "late": {1: alarm(1), 2: SAFE, 3: alarm(3), 4: alarm(3)},
    "wrong": {1: SAFE, 2: alarm(2), 3: SAFE},
    "calm": {1: SAFE, 2: ERROR, 3: SAFE},
    "false": {1: SAFE, 2: alarm(1), 3: SAFE},
}
GATE = {"hit": [1], "late": [2, 3], "wrong": [2], "false": [3]}


def test_both_walks_by_hand() -> None:
    found = cascade(RUNS, VERDICTS, GATE, n_resamples=50)
    assert [row.alarm_step for row in found.always.rows] == [2, 1, 2, None, 2]
    assert [row.alarm_step for row in found.gated.rows] == [None, 3, 2, None, None]
    assert (found.calls_always, found.calls_gated) == (2 + 1 + 2 + 3 + 2, 1 + 2 + 1 + 0 + 1)
    assert found.calls_saved == pytest.approx(0.5)
    assert (found.prefixes, found.escalated, found.unasked) == (17, 5, 1)
    assert (found.hits_lost, found.hits_gained, found.alarms_lost) == (1, 1, 1)
    assert (found.false_alarms_avoided, found.false_alarms_added) == (1, 0)
    assert found.always_figures.cost_per_1000_runs == pytest.approx(1000)
    assert found.differences["false_alarm_rate"].value == -0.5
    text = found.to_text()
    assert max(map(len, text.splitlines())) <= 118
    assert "5 calls instead of 10: 50.0 % saved. 1 runs were never asked about." in " ".join(text.split())
    json.dumps(found.as_json(), allow_nan=False)


def test_a_gate_that_passes_all_changes_nothing_and_one_that_passes_none_asks_nothing() -> None:
    everything = {one.run_id: range(1, len(one.records) + 1) for one in RUNS}
    found = cascade(RUNS, VERDICTS, everything, n_resamples=0)
    assert found.always.rows == found.gated.rows
    assert found.calls_saved == 0.0
    nothing = cascade(RUNS, VERDICTS, {}, n_resamples=0)
    assert nothing.calls_gated == 0
    assert {row.outcome for row in nothing.gated.rows} == {"safe"}
    assert nothing.gated_figures.cost_per_1000_runs == 0.0


def test_a_walk_without_alarm_ends_as_its_last_question() -> None:
    calm = RUNS[3]
    assert replayed(calm, {1: SAFE, 2: ERROR, 3: SAFE}).outcome == "safe"
    assert replayed(calm, {1: SAFE, 2: SAFE, 3: ERROR}).outcome == "error"
    assert replayed(calm, {1: SAFE, 2: ERROR, 3: SAFE}, [1, 2]).outcome == "error"
    assert replayed(calm, {1: SAFE, 2: PrefixVerdict("abstain")}, [1, 2]).outcome == "abstain"
    row = replayed(calm, {1: SAFE, 2: ERROR, 3: SAFE})
    assert (row.calls, row.failed_calls, row.cost, row.seconds, row.tokens_in) == (3, 1, 1.5, 2.0, 20)
    assert replayed(calm, {1: SAFE, 2: PrefixVerdict("safe"), 3: SAFE}).cost is None


def test_the_label_does_not_steer_the_walk() -> None:
    failed, succeeded = run("x", 3, 2), run("x", 3)
    verdicts = {1: SAFE, 2: alarm(2), 3: SAFE}
    one, other = replayed(failed, verdicts), replayed(succeeded, verdicts)
    assert (one.calls, one.step, one.alarm_step) == (other.calls, other.step, other.alarm_step)


@pytest.mark.parametrize("prefixes", [[3], [9]])
def test_a_prefix_without_verdict_is_refused(prefixes: list[int]) -> None:
    with pytest.raises(DataError, match=f"no verdict of its first {prefixes[0]} steps"):
        replayed(RUNS[3], {1: SAFE, 2: SAFE, 9: SAFE}, prefixes)


def test_the_curve_escalates_less_as_the_mark_rises() -> None:
    rng = np.random.default_rng(5)
    risks = {one.run_id: rng.random(len(one.records)).tolist() for one in RUNS}
    found = cascade_curve(RUNS, VERDICTS, risks, [0.9, -1.0, 0.5, 1.0], n_resamples=20)
    shares = [one.escalated_share for _, one in found.points]
    assert [mark for mark, _ in found.points] == [-1.0, 0.5, 0.9, 1.0]
    assert shares[0] == 1.0
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] == 0.0
    text = found.to_text()
    assert max(map(len, text.splitlines())) <= 118
    assert text.splitlines()[2].startswith("none")
    json.dumps(found.as_json(), allow_nan=False)


def test_a_risk_that_was_not_judged_is_not_escalated() -> None:
    assert escalated_above({"a": [float("nan"), 0.5, 0.6]}, 0.5) == {"a": [3]}
