import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.alarm import AlarmPolicy, first_alert
from prefixguard.evaluation import StuckDetector, evaluate_scores, stuck_scores
from prefixguard.evaluation.tables.rules import RULES, rule_rows, rule_scores
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Outcome, task_key


def act(tool="search", arguments="{}", result="nothing", status="ok", action="", observation=""):
    return StepRecord(1, "agent", "", tool, arguments, observation, action, result, status)


def say(text="hm", observation=""):
    return StepRecord(1, "agent", "", "respond", "", observation, text, "", "unknown")


USER = StepRecord(1, "user", "", "respond", "", "", "go on", "", "unknown")
FAILS = act("b", status="error", result="no")
records = st.lists(
    st.sampled_from(
        [act("a"), act("a", result="other"), FAILS, act("b"), act("", action="x"), say(), say("?", "yes"), USER]
    ),
    max_size=25,
)


def counts(run, name):
    return rule_scores(run)[name].tolist()


def test_the_largest_row_of_equal_calls_so_far():
    run = [act("a"), act("a"), act("b"), act("a"), act("a"), act("a")]
    assert counts(run, "same call repeated") == [1, 2, 2, 2, 2, 3]


def test_other_arguments_are_another_call_and_other_results_are_not():
    assert counts([act(arguments=str(i)) for i in range(4)], "same call repeated")[-1] == 1
    assert counts([act(result=str(i)) for i in range(4)], "same call repeated")[-1] == 4
    assert counts([act("", action=f"cmd {i}") for i in range(4)], "same call repeated")[-1] == 1


def test_messages_stand_between_calls_without_ending_the_row():
    run = [act(), say(), act(), USER, act()]
    assert counts(run, "same call repeated") == [1, 1, 2, 2, 3]
    assert counts([FAILS, say(), FAILS, USER, FAILS], "errors in a row") == [1, 1, 2, 2, 3]


def test_errors_in_a_row_end_with_a_call_that_is_none():
    run = [FAILS, FAILS, act(), FAILS, act(status="unknown"), FAILS, FAILS, FAILS]
    assert counts(run, "errors in a row") == [1, 2, 2, 2, 2, 2, 2, 3]


def test_steps_are_counted():
    assert counts([USER, say(), act()], "step count") == [1, 2, 3]


def test_how_near_the_detector_came():
    assert counts([act()] * 5, "stuck detector") == [0.25, 0.5, 0.75, 1.0, 1.25]
    assert counts([FAILS] * 3, "stuck detector") == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert counts([say(), say(), USER], "stuck detector") == pytest.approx([1 / 3, 2 / 3, 2 / 3])


@settings(deadline=None)
@given(records)
def test_the_detector_fires_where_its_share_is_one(run):
    detector = StuckDetector()
    for record in run:
        assert (detector.observe(record) is not None) == (detector.reached >= 1.0)
    assert np.array_equal(rule_scores(run)["stuck detector"] >= 1.0, stuck_scores(run) == 1.0)


@settings(deadline=None)
@given(records)
def test_counts_are_those_of_the_definition(run):
    calls = [
        (r.tool, r.arguments, r.action if not r.tool else "", r.status) for r in run if r.actor == "agent" and r.result
    ]
    for name, same in (
        ("same call repeated", lambda row: len({call[:3] for call in row}) == 1),
        ("errors in a row", lambda row: all(call[3] == "error" for call in row)),
    ):
        rows = [calls[i:j] for i in range(len(calls)) for j in range(i + 1, len(calls) + 1)]
        longest = max((len(row) for row in rows if same(row)), default=0)
        assert (counts(run, name) or [0])[-1] == longest


@settings(deadline=None)
@given(records, st.integers(0, 25))
def test_the_future_does_not_leak_and_no_count_falls(run, cut):
    whole, part = rule_scores(iter(run)), rule_scores(run[:cut])
    assert set(whole) == {rule.name for rule in RULES} | {"step count"}
    for name, scores in whole.items():
        assert len(scores) == len(run)
        assert part[name].tolist() == scores[:cut].tolist()
        assert sorted(scores) == scores.tolist()


def scored(*runs):
    return [rule_scores(run) for run in runs]


def test_untuned_rules_fire_once_and_stay():
    run = [act("a")] * 4 + [act("b")] + [FAILS] * 3 + [act("c")]
    rows = {row.name: row for row in rule_rows(scored(run), None, AlarmPolicy(), [0.1])}
    assert list(rows) == ["same call 4 times", "3 errors in a row", "incumbent rule"]
    assert rows["same call 4 times"].outcome[0].tolist() == [0] * 3 + [1] * 6
    assert rows["3 errors in a row"].outcome[0].tolist() == [0] * 7 + [1] * 2
    assert rows["incumbent rule"].outcome[0].tolist() == stuck_scores(run).tolist()
    for row in rows.values():
        assert list(row.thresholds) == [None] and not row.probability and not row.oracle
        assert row.imminent[0].tolist() == row.outcome[0].tolist()
        assert row.note.startswith("untuned rule: ")


def test_tuned_rules_keep_the_budget_on_the_runs_they_were_tuned_on():
    """30 successful runs, of which three call the same thing often: the threshold lets at most one alarm."""
    patience = [1] * 27 + [3, 4, 6]
    calibration = scored(*([act("a")] * n for n in patience))
    rows = {row.name: row for row in rule_rows(scored([act("a")] * 8), calibration, AlarmPolicy(), [0.05, 0.10])}
    assert list(rows)[3:] == ["same call repeated", "errors in a row", "stuck detector"]
    tuned = rows["same call repeated"]
    assert list(tuned.thresholds) == [0.05, 0.10]
    assert tuned.thresholds[0.05].alarm is None and "needs at least 45" in tuned.thresholds[0.05].reason
    mark = tuned.thresholds[0.10]
    assert (mark.n_runs, mark.allowed, mark.alarm) == (30, 0, 6.0)
    alarmed = [first_alert(run["same call repeated"], mark.alarm, AlarmPolicy()) for run in calibration]
    assert sum(step is not None for step in alarmed) <= mark.allowed
    assert first_alert(tuned.outcome[0], mark.alarm, AlarmPolicy()) == 7, "the seventh equal call is one too many"
    assert rows["errors in a row"].thresholds[0.10].alarm == 0.0, "successful runs have no error: one is enough"


def test_hysteresis_is_inside_the_calibration():
    calibration = scored(*([act("a")] * 5 for _ in range(30)))
    rows = rule_rows(scored([act("a")] * 8), calibration, AlarmPolicy(consecutive=2), [0.10])
    assert rows[3].thresholds[0.10].alarm == 4.0, "five equal calls are over 4 for one step only"


def test_no_calibration_runs_refuse_and_no_runs_are_no_runs():
    rows = rule_rows([], [], AlarmPolicy(), [0.10])
    assert [len(row.outcome) for row in rows] == [0] * 6
    assert rows[3].thresholds[0.10].alarm is None
    assert all(len(scores) == 0 for scores in rule_scores([]).values())


def test_rules_on_runs_of_the_lab(lab_file):
    """They know something of these runs, where errors and repeats do lose runs, and stand in one table."""
    runs = list(read_runs(lab_file, load_adapter("openai_chat")))
    scores = [rule_scores(run.records) for run in runs]
    good = [s for run, s in zip(runs, scores, strict=True) if run.outcome is Outcome.SUCCESS]
    flat = [np.full(len(run.records), 0.5) for run in runs]
    table = evaluate_scores(
        flat, flat, [run.outcome is Outcome.FAILURE for run in runs], [task_key(run) for run in runs],
        baselines=rule_rows(scores, good, AlarmPolicy(), [0.1]), resamples=20,
    )  # fmt: skip
    errors = table.baselines["errors in a row"]
    assert errors.outcome.auroc > 0.55
    assert errors.first_alert[0].alerts.false_alarm_rate <= 0.10
    assert table.baselines["3 errors in a row"].first_alert[0].budget is None
