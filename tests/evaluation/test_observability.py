import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.evaluation.analyses.observability import LEAST, STEPS, WARNING, observability
from prefixguard.evaluation.tables.rows import ScoreRow
from prefixguard.metrics import Prefixes, average_precision, phi

H = 3


def world(q, n=2500, seed=0, hazard=0.15):
    """Runs whose length has no memory; a share q of positives scores above everything, the rest is noise."""
    rng = np.random.default_rng(seed)
    lengths = rng.geometric(hazard, n).tolist()
    prefixes = Prefixes.of(lengths, (rng.random(n) < 0.4).tolist(), [f"t{i}" for i in range(n)])
    cuts = np.cumsum(lengths)[:-1]
    imminent, outcome = (
        np.split(rng.random(len(prefixes)) + 2.0 * ((labels == 1) & (rng.random(len(prefixes)) < q)), cuts)
        for labels in (prefixes.imminent_labels(H), prefixes.outcome_labels)
    )
    return ScoreRow("monitor", imminent, outcome), prefixes, lengths


@pytest.mark.parametrize("q", [0.0, 0.2, 0.6])
def test_where_the_premise_holds_the_crossing_is_q(q):
    """The one world in which it is: known by construction, and found within the error of a simulation."""
    row, prefixes, lengths = world(q)
    found = observability(row, prefixes, lengths, H)
    assert found.outcome.monitor_crossing == pytest.approx(q, abs=0.02)  # 16,000 prefixes
    assert found.outcome.clock_crossing < 0.03
    assert [place.step for place in found.imminent][:3] == [1, 2, 3]
    for place in found.imminent[:3]:
        assert place.monitor_crossing == pytest.approx(q, abs=0.08)  # some 1,500 prefixes, 400 positive


def test_figures_are_those_of_the_metric():
    row, prefixes, lengths = world(0.3, n=300)
    found = observability(row, prefixes, lengths, H)
    imminent, outcome = row.flat(lengths)
    assert found.outcome.monitor == average_precision(prefixes.outcome_labels, outcome)
    assert found.outcome.clock == average_precision(prefixes.outcome_labels, prefixes.step)
    place = found.imminent[1]
    rows = prefixes.step == place.step
    assert place.monitor == average_precision(prefixes.imminent_labels(H)[rows], imminent[rows])
    assert place.prefixes == sum(n >= place.step for n in lengths)
    assert math.isnan(place.clock), "a clock says nothing at one step"
    assert found.scale[0] == (0.0, pytest.approx(found.outcome.prevalence))
    assert found.scale[-1] == (1.0, 1.0)
    assert dict(found.scale)[0.5] == phi(found.outcome.prevalence, 0.5)


def test_the_imminent_label_over_all_prefixes_has_no_place():
    """With a step cap a clock would be far up the scale there; at a fixed step nobody is who sees nothing."""
    rng = np.random.default_rng(1)
    lengths = np.minimum(rng.geometric(0.05, 2000), 12).tolist()
    prefixes = Prefixes.of(lengths, [n == 12 for n in lengths], [str(i) for i in range(2000)])
    noise = np.split(rng.random(len(prefixes)), np.cumsum(lengths)[:-1])
    found = observability(ScoreRow("monitor", noise, noise), prefixes, lengths, H)
    labels = prefixes.imminent_labels(H)
    assert average_precision(labels, prefixes.step) > phi(labels.mean(), 0.5)
    assert all(place.step is not None for place in found.imminent)
    assert "imminent" not in found.as_json()
    assert all(place.monitor_crossing < 0.1 for place in found.imminent)


def test_places_with_few_of_a_class_are_named_not_measured():
    row, prefixes, lengths = world(0.3, n=300)
    found = observability(row, prefixes, lengths, H)
    measured = [place.step for place in found.imminent]
    reached = [step for step in STEPS if step <= max(lengths)]
    assert sorted([*measured, *found.too_few]) == reached
    assert found.too_few
    for place in found.imminent:
        assert min(place.positives, place.prefixes - place.positives) >= LEAST
    assert f"At step {found.too_few[0]}" in found.to_text()


def test_what_was_not_judged_is_left_out():
    row, prefixes, lengths = world(0.3, n=300)
    blind = [scores.copy() for scores in row.imminent]
    blind[0][:] = np.nan
    found = observability(ScoreRow("monitor", blind, row.outcome), prefixes, lengths, H)
    assert found.outcome.prefixes == len(prefixes) - lengths[0]


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 5), st.booleans()), max_size=12),
    st.integers(0, 4),
    st.sampled_from([0.0, 0.5, math.nan]),
)
def test_any_runs_give_plain_json_and_text(runs, horizon, score):
    lengths, failed = [n for n, _ in runs], [fail for _, fail in runs]
    prefixes = Prefixes.of(lengths, failed, [str(i // 2) for i in range(len(runs))])
    scores = [np.full(n, score) for n in lengths]
    found = observability(ScoreRow("monitor", scores, scores), prefixes, lengths, horizon)
    plain = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert plain["warning"] == WARNING
    if len(set(failed)) < 2 or math.isnan(score):
        assert plain["outcome"]["monitor_crossing"] is None and plain["scale"] == []
        assert "do not hold both classes" in found.to_text()
    else:
        assert plain["outcome"]["monitor_crossing"] == pytest.approx(0.0, abs=1e-9), "a constant is at the foot"


def test_text_says_what_a_crossing_is_not():
    row, prefixes, lengths = world(0.3, n=400)
    text = observability(row, prefixes, lengths, H).to_text()
    assert max(map(len, text.split("\n"))) <= 118
    assert "It is not an estimate of q" in " ".join(text.split())
    assert "outcome, all steps" in text and "imminent, step 1 " in text


def test_text_says_when_a_clock_does_as_well():
    rng = np.random.default_rng(2)
    lengths = [int(n) for n in rng.integers(3, 10, 60)]
    failed = [n > 6 for n in lengths]
    noise = [rng.random(n) + 0.2 * fail for n, fail in zip(lengths, failed, strict=True)]
    prefixes = Prefixes.of(lengths, failed, [str(i) for i in range(60)])
    found = observability(ScoreRow("monitor", noise, noise), prefixes, lengths, H)
    assert found.outcome.clock_crossing > found.outcome.monitor_crossing
    first, second = found.remarks()
    assert first.startswith("The clock alone stands at .") and "run length tells the outcome here" in first
    assert second.startswith("The monitor stands no higher than the clock (.")
    worst = [-scores for scores in noise]
    found = observability(ScoreRow("monitor", worst, worst), prefixes, lengths, H)
    assert found.remarks()[1:] == [
        "The monitor's AUPRC is no higher than the share of positives: the foot of the scale."
    ]


def test_wrong_arguments():
    row, prefixes, lengths = world(0.3, n=20)
    with pytest.raises(ConfigError, match="step 0 does not exist: steps count from 1"):
        observability(row, prefixes, lengths, H, steps=[5, 0])
    with pytest.raises(DataError, match="its imminent scores are not one a step"):
        observability(row, prefixes, [*lengths[:-1], 99], H)
