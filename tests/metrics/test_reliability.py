import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import Reliability, brier, ece, reliability_curve

rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 20).map(lambda i: i / 20)), min_size=1, max_size=80)


@given(rows)
def test_brier_equals_scikit_learn(data):
    labels, risks = zip(*data, strict=True)
    assert brier(labels, risks) == pytest.approx(brier_score_loss(labels, risks, pos_label=1), abs=1e-12)


def test_ece_without_ties_is_that_of_fifteen_equal_slices():
    rng = np.random.default_rng(3)
    risks = rng.permutation(np.linspace(0, 1, 600))
    labels = rng.random(600) < risks**2
    order = np.argsort(risks)
    expected = sum(
        len(part) / 600 * abs(risks[part].mean() - labels[part].mean()) for part in np.array_split(order, 15)
    )
    assert ece(labels, risks) == pytest.approx(expected, abs=1e-12)


@given(rows, st.randoms(use_true_random=False))
def test_order_does_not_matter_even_with_ties(data, random):
    other = list(data)
    random.shuffle(other)
    assert ece(*zip(*other, strict=True)) == pytest.approx(ece(*zip(*data, strict=True)), abs=1e-12)


@given(rows)
def test_the_curve_adds_up_to_the_error(data):
    labels, risks = zip(*data, strict=True)
    curve = reliability_curve(labels, risks)
    assert sum(point.prefixes for point in curve) == len(risks)
    total = sum(point.prefixes * abs(point.mean_risk - point.rate) for point in curve) / len(risks)
    assert total == pytest.approx(ece(labels, risks), abs=1e-12)
    for lower, higher in itertools.pairwise(curve):
        assert lower.high < higher.low, "equal risks share a bin"


def test_weights_by_unit_equal_copies_for_brier():
    rng = np.random.default_rng(0)
    labels, risks, units = rng.integers(0, 2, 90), rng.random(90), rng.integers(0, 8, 90)
    weights = rng.integers(0, 3, (5, 9)).astype(float)  # unit 8 holds no prefix
    reliability = Reliability(labels, risks, units=units)
    for w, value in zip(weights, reliability.brier(weights), strict=True):
        copies = np.repeat(np.arange(90), w[units].astype(int))
        assert value == pytest.approx(brier(labels[copies], risks[copies]), abs=1e-12)
    np.testing.assert_allclose(reliability.ece(np.ones(9)), reliability.ece(), atol=1e-12)
    assert reliability.ece(weights).shape == (5,)


def test_perfectly_reliable_risks_have_no_error():
    assert ece([0, 1, 0, 0, 1, 1, 1, 0], [0.25, 0.25, 0.25, 0.25, 0.75, 0.75, 0.75, 0.75], bins=2) == 0.0


def test_nothing_gives_nan():
    assert np.isnan(brier([], []))
    assert np.isnan(ece([], []))
    assert reliability_curve([], []) == []


def test_what_cannot_be_binned_is_refused():
    with pytest.raises(DataError, match="a risk is NaN"):
        ece([0, 1], [0.1, np.nan])
    with pytest.raises(ConfigError, match="0 bins: use 1 or more"):
        ece([0, 1], [0.1, 0.2], bins=0)
