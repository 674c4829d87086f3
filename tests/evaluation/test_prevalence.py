import json

import numpy as np
import pytest

from prefixguard.errors import ConfigError
from prefixguard.evaluation.analyses.prevalence import prevalence_table
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import Prefixes, Resamples, average_precision, average_precision_at


def corpus(n=60, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 9, n).tolist()
    failed = (rng.random(n) < 0.3).tolist()
    risks = [np.clip(rng.random(length) + 0.3 * fail, 0, 1) for length, fail in zip(lengths, failed, strict=True)]
    return Prefixes.of(lengths, failed, [f"t{i // 3}" for i in range(n)]), lengths, risks


def table_of(**options):
    prefixes, lengths, risks = corpus()
    constant = [np.full(n, 0.4) for n in lengths]
    rows = [ScoreRow("monitor", risks, risks), ScoreRow("constant", constant, constant, oracle=True)]
    return prevalence_table(rows, prefixes, lengths, 3, **options), prefixes, np.concatenate(risks)


def test_figures_are_those_of_the_metric():
    table, prefixes, flat = table_of()
    for rows, labels in ((table.imminent, prefixes.imminent_labels(3)), (table.outcome, prefixes.outcome_labels)):
        monitor, constant = rows
        assert monitor.prevalence == pytest.approx(labels.mean())
        assert monitor.auprc == pytest.approx(average_precision(labels, flat), abs=1e-12)
        for reference in (0.05, 0.1, 0.25, 0.5):
            assert monitor.auprc_at[reference] == pytest.approx(average_precision_at(labels, flat, reference))
            assert constant.auprc_at[reference] == pytest.approx(reference)
    assert monitor.intervals == {}


def test_intervals_belong_to_the_first_row():
    table, _, _ = table_of(resamples=Resamples.draw(20, n=100), references=[0.2])
    monitor, constant = table.outcome
    low, high = monitor.intervals[0.2]
    assert low < monitor.auprc_at[0.2] < high
    assert constant.intervals == {}


def test_what_the_first_row_did_not_judge_is_left_out_of_all():
    prefixes, lengths, risks = corpus()
    blind = [scores.copy() for scores in risks]
    blind[0][:] = np.nan
    sampled = [np.full(n, np.nan) for n in lengths]
    for i in range(0, len(sampled), 2):
        sampled[i][-1] = risks[i][-1]
    rows = [ScoreRow("monitor", blind, risks), ScoreRow("again", risks, risks), ScoreRow("sampled", sampled, sampled)]
    table = prevalence_table(rows, prefixes, lengths, 3)
    assert table.outcome[0].auprc == table.outcome[1].auprc
    assert table.outcome[0].prevalence == pytest.approx(prefixes.outcome_labels[lengths[0] :].mean())
    ends = prefixes.failed[2::2]
    assert table.outcome[2].prevalence == pytest.approx(ends.mean()), "a row that judged less has its own share"


@pytest.mark.parametrize("failed", [[True], [False], [True, True]])
def test_one_class_has_no_figures(failed):
    n = len(failed)
    row = ScoreRow("monitor", [np.zeros(2)] * n, [np.zeros(2)] * n)
    prefixes = Prefixes.of([2] * n, failed, ["a"] * n)
    table = prevalence_table([row], prefixes, [2] * n, 3, resamples=Resamples.draw(1, n=5))
    assert np.isnan(table.outcome[0].auprc) and np.isnan(table.outcome[0].auprc_at[0.5])
    assert json.loads(json.dumps(table.as_json(), allow_nan=False))["outcome"][0]["auprc_at"]["0.5"] is None


def test_no_rows_and_a_wrong_reference():
    prefixes, lengths, risks = corpus()
    assert prevalence_table([], prefixes, lengths, 3).outcome == ()
    with pytest.raises(ConfigError, match="reference prevalence 1 is no share"):
        prevalence_table([ScoreRow("monitor", risks, risks)], prefixes, lengths, 3, references=[1.0])


def test_text_and_json():
    table, _, _ = table_of(resamples=Resamples.draw(20, n=50))
    text = table.to_text()
    assert max(map(len, text.split("\n"))) <= 118
    assert "Imminent risk: AUPRC at the own prevalence" in text
    assert ".050" in text.split("\n")[1]
    assert "constant" not in text, "the report has all rows, the terminal the clocks"
    plain = json.loads(json.dumps(table.as_json(), allow_nan=False))
    assert plain["references"] == [0.05, 0.1, 0.25, 0.5]
    assert plain["imminent"][0]["auprc_at"]["0.05"] == table.imminent[0].auprc_at[0.05]
    assert table.as_json() == table_of(resamples=Resamples.draw(20, n=50))[0].as_json()
