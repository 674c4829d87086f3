import json

import numpy as np
import pytest
from sklearn.metrics import log_loss

from prefixguard.alarm import AlarmPolicy, alarm_table
from prefixguard.errors import DataError
from prefixguard.evaluation import RunsLeftOut, ScoreRow, evaluate_scores, rule_threshold
from prefixguard.metrics import Prefixes, ReferenceRisks, at_remaining, average_precision, brier


def corpus(n=150, seed=0, strength=0.25):
    """Runs whose risk drifts up when they fail; tasks of five runs, agents of a third."""
    rng = np.random.default_rng(seed)
    imminent, outcome, failed = [], [], []
    for _ in range(n):
        length, fail = int(rng.integers(3, 20)), bool(rng.random() < 0.35)
        drift = np.cumsum(rng.normal(strength if fail else -0.05, 0.5, length)) - 1
        outcome.append(1 / (1 + np.exp(-drift)))
        imminent.append(outcome[-1] * np.linspace(0.2, 0.9, length))
        failed.append(fail)
    return imminent, outcome, failed, [f"t{i // 5}" for i in range(n)]


AGENTS = [f"agent {i % 3}" for i in range(150)]
MARKS = alarm_table(np.linspace(0.2, 0.9, 120), AlarmPolicy())
ORACLES = {"end oracle", "outcome oracle", "half oracle", "blurred oracle"}


@pytest.fixture(scope="module")
def table():
    return evaluate_scores(
        *corpus(), groups=AGENTS, grouped_by="agent", thresholds=MARKS, calibration_lengths=[12] * 120, resamples=200
    )


def test_figures_are_those_of_the_metrics_over_all_prefixes(table):
    imminent, outcome, failed, tasks = corpus()
    prefixes = Prefixes.of([len(risk) for risk in outcome], failed, tasks)
    labels = prefixes.imminent_labels(3)
    flat = np.concatenate(imminent)
    assert table.prefixes == len(flat)
    assert table.imminent.auprc == pytest.approx(average_precision(labels, flat), abs=1e-12)
    assert table.imminent.prevalence == pytest.approx(labels.mean())
    assert table.imminent.brier == pytest.approx(brier(labels, flat))
    assert table.outcome.auprc == pytest.approx(average_precision(prefixes.outcome_labels, np.concatenate(outcome)))
    assert table.outcome.outcome_auroc_within_groups == pytest.approx(
        float(at_remaining(prefixes, np.concatenate(outcome), groups=AGENTS).auroc())
    )


def test_the_constant_row_is_the_prevalence(table):
    for which in ("imminent", "outcome"):
        row = getattr(table.baselines["constant"], which)
        assert row.auprc == pytest.approx(row.prevalence)
        assert row.auroc == row.outcome_auroc_at_remaining == 0.5
        assert row.brier == pytest.approx(row.prevalence * (1 - row.prevalence))
        assert row.intervals["auprc"] == pytest.approx(row.intervals["prevalence"])


def test_clocks_are_clocks(table):
    step, end = table.baselines["step index"], table.baselines["end oracle"]
    assert end.oracle
    assert not step.oracle
    assert end.imminent.outcome_auroc_at_remaining == 0.5
    assert step.imminent.outcome_auroc_at_index == 0.5
    assert np.isnan(step.imminent.brier), "a clock is no probability"
    assert end.imminent.auprc > 2 * end.imminent.prevalence, "knowing the end is worth a lot to this label"


def test_every_figure_lies_in_its_interval(table):
    for name, (low, high) in table.outcome.intervals.items():
        assert low <= getattr(table.outcome, name) <= high or name == "ece", name


def test_differences_are_paired(table):
    for row in table.baselines.values():
        ahead = row.outcome.differences["auprc"]
        assert ahead.value == pytest.approx(table.outcome.auprc - row.outcome.auprc)
        assert ahead.interval[0] < ahead.value < ahead.interval[1]
    itself = evaluate_scores(
        *corpus(), baselines=[ScoreRow("the same", *corpus()[:2], probability=True)], resamples=50
    ).baselines["the same"]
    assert itself.imminent.differences["auprc"].interval == (0.0, 0.0)


def test_the_step_index_alarms_where_calibration_lengths_are_known(table):
    alerts = table.baselines["step index"].first_alert
    assert [row.budget for row in alerts] == [0.01, 0.05, 0.10]
    assert alerts[0].alerts is None
    assert alerts[2].thresholds.alarm == 12.0
    without = evaluate_scores(*corpus(), thresholds=MARKS, resamples=20)
    assert without.baselines["step index"].first_alert == ()


def test_a_rule_alarms_when_it_fires_whatever_the_policy_of_the_monitor():
    imminent, outcome, failed, tasks = corpus()
    last = [np.eye(1, len(risk), len(risk) - 1).ravel() for risk in outcome]  # fires at the last step
    rule = ScoreRow("rule", last, last, thresholds={None: rule_threshold()})
    row = evaluate_scores(
        imminent, outcome, failed, tasks, policy=AlarmPolicy(consecutive=3), baselines=[rule], resamples=20
    ).baselines["rule"]
    assert row.first_alert[0].alerts.alerted == 1.0
    assert row.first_alert[0].alerts.early == 0.0


def test_json_has_the_stable_keys(table):
    document = json.loads(table.to_json())
    figures = {
        "auprc", "auroc", "prevalence", "brier", "ece", "outcome_auroc_at_remaining", "outcome_auroc_at_index",
        "outcome_auroc_within_groups", "skill", "intervals",
    }  # fmt: skip
    assert {"runs", "failed_runs", "prefixes", "left_out", "imminent", "outcome", "first_alert", "baselines"} <= set(
        document
    )
    assert set(document["imminent"]) == set(document["outcome"]) == figures
    assert set(document["baselines"]) == {"constant", "step index", *ORACLES}
    for row in document["baselines"].values():
        assert set(row["imminent"]) == figures | {"differences"}
    assert {"budget", "false_alarm_rate", "alerted", "early", "lead_median"} <= set(document["first_alert"][0])
    refused = document["first_alert"][0]
    assert refused["budget"] == 0.01
    assert refused["alerted"] is None
    assert "needs at least 230" in refused["reason"]
    assert document["first_alert"][2]["threshold"] == MARKS[0.10].alarm


def test_the_order_of_runs_changes_no_figure():
    imminent, outcome, failed, tasks = corpus(60)
    order = np.random.default_rng(1).permutation(60)

    def document(rows):
        columns = ([column[i] for i in rows] for column in (imminent, outcome, failed, tasks))
        return evaluate_scores(*columns, thresholds=MARKS, resamples=0).as_json()

    one, other = document(range(60)), document(order)
    for which in ("imminent", "outcome"):
        for name, value in one[which].items():
            # Sums over prefixes in another order: float64 rounding.
            assert other[which][name] == pytest.approx(value, abs=1e-12), name
    assert [row["leads"] for row in other["first_alert"]] == [row["leads"] for row in one["first_alert"]]


@pytest.mark.parametrize(("failed", "word"), [(True, "failures"), (False, "successes")])
def test_one_class_is_null_and_said(failed, word):
    imminent, outcome, _, tasks = corpus(30)
    table = evaluate_scores(imminent, outcome, [failed] * 30, tasks, thresholds=MARKS, resamples=50)
    document = json.loads(table.to_json())
    assert document["outcome"]["auprc"] is None
    assert document["outcome"]["outcome_auroc_at_remaining"] is None
    assert document["outcome"]["brier"] is not None
    assert document["verdict"]["rankable"] is None
    assert table.notes[0].startswith(f"All runs are {word}")
    assert "–" in table.to_text()


def test_one_task_has_no_intervals():
    imminent, outcome, failed, _ = corpus(30)
    table = evaluate_scores(imminent, outcome, failed, ["t"] * 30, resamples=50)
    assert table.outcome.intervals == {}
    assert any("All runs are of one task" in note for note in table.notes)


def test_steps_that_were_not_judged_are_left_out_of_every_row():
    imminent, outcome, failed, tasks = corpus(60)
    for risks in (imminent, outcome):
        risks[0][:2] = np.nan
    table = evaluate_scores(imminent, outcome, failed, tasks, resamples=20)
    assert table.unknown_prefixes == 2
    whole = evaluate_scores(*corpus(60), resamples=20)
    assert table.prefixes == whole.prefixes
    clock, clock_whole = (t.baselines["step index"].outcome for t in (table, whole))
    assert clock.prevalence != clock_whole.prevalence
    assert "UNKNOWN at 2 of" in table.notes[0]
    assert "auprc" in table.baselines["step index"].outcome.differences, "still the same prefixes, so still paired"


def test_a_monitor_that_judges_nothing():
    blind = [np.full(5, np.nan)] * 4
    table = evaluate_scores(blind, blind, [True, False, True, False], list("abcd"), thresholds=MARKS, resamples=20)
    assert np.isnan(table.outcome.auprc)
    assert table.first_alert[1].alerts.alerted == 0.0


def test_very_short_and_single_runs():
    table = evaluate_scores([[0.2]], [[0.3]], [True], ["a"], thresholds=MARKS, resamples=20)
    assert table.prefixes == 1
    assert json.loads(table.to_json())["imminent"]["auroc"] is None


def test_counts_that_do_not_agree_are_refused():
    with pytest.raises(DataError, match="1 and 1 scored runs with 2 outcomes and 1 tasks"):
        evaluate_scores([[0.1]], [[0.1]], [True, False], ["a"])
    with pytest.raises(DataError, match="there is no run to evaluate"):
        evaluate_scores([], [], [], [])
    with pytest.raises(DataError, match="row 'other': its imminent scores are not one a step"):
        evaluate_scores([[0.1, 0.2]], [[0.1, 0.2]], [True], ["a"], baselines=[ScoreRow("other", [[0.1]], [[0.1]])])


def test_text_is_aligned_narrow_and_says_what_matters(table):
    text = table.to_text()
    lines = text.split("\n")
    assert max(map(len, lines)) <= 118
    assert lines[0] == f"150 runs of 30 tasks, {table.failed_runs} failed ({table.failed_runs / 1.5:.1f} %), " + (
        f"{table.prefixes:,} prefixes"
    )
    for title in ("(imminent risk): fails, and ends within 3 more steps", "(outcome risk): fails", "First alerts"):
        assert title in text
    rows = [line for line in lines if line.startswith(("monitor ", "constant ", "step index ", "end oracle *"))]
    heads = [line for line in lines if line.startswith("Scores by")]
    column = heads[0].index("AUPRC") + len("AUPRC")
    for row in rows[:4]:
        assert row[column - 1].isdigit() and row[column] == " ", "figures stand under their heading"
    assert "* knows what no monitor can know" in text
    assert text.count("needs at least 230") == 1, "one refusal, said once"
    assert table.verdict.headline in text


def test_text_says_what_was_left_out():
    left_out = RunsLeftOut(by_use={"train": 3, "validation": 0, "alarm": 2}, without_outcome=1)
    table = evaluate_scores(*corpus(30), left_out=left_out, notes=["One thing."], resamples=10)
    assert "left out: 6 runs (3 train, 2 alarm, 1 without outcome)" in table.to_text()
    assert table.to_text().endswith("One thing.")
    marked = evaluate_scores(*corpus(30), left_out=RunsLeftOut(in_sample=7), resamples=10)
    assert "IN SAMPLE: 7 runs are of tasks the monitor was made from" in marked.to_text()
    assert json.loads(marked.to_json())["in_sample"] is True


def test_the_same_seed_gives_the_same_json():
    one, other = (evaluate_scores(*corpus(40), thresholds=MARKS, resamples=50, seed=3).to_json() for _ in range(2))
    assert one == other
    assert one != evaluate_scores(*corpus(40), thresholds=MARKS, resamples=50, seed=4).to_json()


def test_scales_stand_beside_the_table(table):
    """Observability, reference prevalences, and, where runs have agents, what the agent is worth."""
    document = table.as_json()
    assert document["observability"]["outcome"]["monitor"] == pytest.approx(document["outcome"]["auprc"])
    (first, *rest) = document["prevalence"]["imminent"]
    assert (first["name"], first["auprc"]) == ("monitor", pytest.approx(document["imminent"]["auprc"]))
    assert {row["name"] for row in rest} == set(document["baselines"])
    assert document["shortcuts"]["pooled"] == pytest.approx(document["outcome"]["outcome_auroc_at_remaining"])
    assert document["shortcuts"]["within"] == pytest.approx(document["outcome"]["outcome_auroc_within_groups"])
    assert "shortcuts" not in evaluate_scores(*corpus(), resamples=5).as_json()


def test_skill_is_the_share_of_a_fitted_clocks_log_loss() -> None:
    imminent, outcome, failed, tasks = corpus(60)
    lengths = [len(risk) for risk in outcome]
    prefixes, sizes = Prefixes.of(lengths, failed, tasks), [np.full(n, 10.0) for n in lengths]
    reference = ReferenceRisks.fit(prefixes, sizes, 3)
    table = evaluate_scores(imminent, outcome, failed, tasks, sizes=sizes, reference=reference, resamples=50)
    clock = reference.by_step(prefixes.step)
    labels = prefixes.imminent_labels(3), prefixes.outcome_labels
    for place, (figures, risks) in enumerate(((table.imminent, imminent), (table.outcome, outcome))):
        own, its = (
            log_loss(labels[place], np.clip(p, 1e-6, 1 - 1e-6)) for p in (np.concatenate(risks), clock[:, place])
        )
        assert figures.skill == pytest.approx(1 - own / its)
        low, high = figures.intervals["skill"]
        assert low < figures.skill < high
    rows = table.baselines
    assert rows["fitted clock"].outcome.skill == 0.0 and "skill" in rows["size spline"].imminent.differences
    assert np.isnan(rows["step index"].outcome.skill), "a number of steps is no probability"
    assert rows["fitted clock"].outcome.outcome_auroc_at_index == 0.5, "at equal steps a clock knows nothing"
    none = evaluate_scores(imminent, outcome, failed, tasks, resamples=5)
    assert np.isnan(none.outcome.skill) and "fitted clock" not in none.baselines
    assert (
        "size spline"
        not in evaluate_scores(imminent, outcome, failed, tasks, reference=reference, resamples=5).baselines
    )
