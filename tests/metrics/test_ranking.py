import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from prefixguard.errors import DataError
from prefixguard.metrics import Ranking, auroc, average_precision

#: (label, score, weight) with coarse scores, so that ties are the rule.
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-4, 4).map(lambda i: i / 4), st.integers(0, 3)), min_size=2, max_size=60
)


def columns(data):
    labels, scores, weights = (np.array(column) for column in zip(*data, strict=True))
    return labels, scores, weights.astype(float)


@given(rows)
def test_average_precision_equals_scikit_learn(data):
    labels, scores, _ = columns(data)
    if 0 < labels.sum() < len(labels):
        # Both sum at most 60 float64 terms; order of summation differs.
        assert average_precision(labels, scores) == pytest.approx(average_precision_score(labels, scores), abs=1e-12)


@given(rows)
def test_auroc_equals_scikit_learn(data):
    labels, scores, _ = columns(data)
    if 0 < labels.sum() < len(labels):
        assert auroc(labels, scores) == pytest.approx(roc_auc_score(labels, scores), abs=1e-12)


@given(rows)
def test_weights_equal_scikit_learn_and_copies(data):
    """A weight of 2 is a row that stands there twice: what makes a bootstrap by weights right."""
    labels, scores, weights = columns(data)
    heavy = np.repeat(np.arange(len(labels)), weights.astype(int))
    ranking = Ranking(labels, scores)
    by_weight = ranking.average_precision(weights), ranking.auroc(weights)
    by_copy = average_precision(labels[heavy], scores[heavy]), auroc(labels[heavy], scores[heavy])
    np.testing.assert_allclose(by_weight, by_copy, atol=1e-12)
    if 0 < labels[heavy].sum() < len(heavy):
        assert by_weight[0] == pytest.approx(average_precision_score(labels, scores, sample_weight=weights), abs=1e-12)


@given(rows, st.randoms(use_true_random=False))
def test_order_of_rows_does_not_matter(data, random):
    labels, scores, _ = columns(data)
    order = list(range(len(labels)))
    random.shuffle(order)
    np.testing.assert_array_equal(average_precision(labels, scores), average_precision(labels[order], scores[order]))
    np.testing.assert_array_equal(auroc(labels, scores), auroc(labels[order], scores[order]))


@given(rows, st.lists(st.integers(0, 3), min_size=60, max_size=60))
def test_auroc_over_strata_is_the_weighted_mean_of_their_own(data, codes):
    labels, scores, weights = columns(data)
    strata = np.array(codes[: len(labels)])
    total = above = 0.0
    for code in np.unique(strata):
        inside = strata == code
        value = Ranking(labels[inside], scores[inside]).auroc(weights[inside])
        if not np.isnan(value):
            above += value * weights[inside].sum()
            total += weights[inside].sum()
    expected = above / total if total else np.nan
    np.testing.assert_allclose(Ranking(labels, scores, strata=strata).auroc(weights), expected, atol=1e-12)


def test_a_matrix_of_weights_is_its_rows():
    rng = np.random.default_rng(0)
    labels, scores, units = rng.integers(0, 2, 200), rng.integers(0, 9, 200), rng.integers(0, 12, 200)
    strata = rng.integers(0, 5, 200)
    weights = rng.integers(0, 4, (7, 12)).astype(float)
    plain, layered = Ranking(labels, scores, units=units), Ranking(labels, scores, units=units, strata=strata)
    for figure in (plain.average_precision, plain.auroc, layered.auroc):
        np.testing.assert_allclose(figure(weights), [figure(row) for row in weights], rtol=1e-13)
    np.testing.assert_allclose(plain.auroc(weights), Ranking(labels, scores).auroc(weights[:, units]), rtol=1e-13)


@pytest.mark.parametrize("labels", [[], [1, 1, 1], [0, 0]])
def test_one_class_or_none_is_nan_and_no_warning(labels):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(average_precision(labels, np.zeros(len(labels))))
        assert np.isnan(auroc(labels, np.zeros(len(labels))))
        assert np.isnan(Ranking(labels, np.zeros(len(labels))).auroc(np.zeros((3, len(labels))))).all()


def test_equal_scores_know_nothing():
    labels = [0, 1, 0, 0]
    assert auroc(labels, [0.3] * 4) == 0.5
    assert average_precision(labels, [0.3] * 4) == 0.25


def test_strata_report_their_size():
    ranking = Ranking([1, 0, 1, 0, 1], [3, 2, 1, 2, 5], strata=[7, 7, 2, 2, 9])
    assert ranking.strata.tolist() == [2, 7, 9]
    value, weight = ranking.auroc_by_stratum()
    np.testing.assert_array_equal(value, [0.0, 1.0, np.nan])
    assert weight.tolist() == [2, 2, 1]


def test_what_cannot_be_ranked_is_refused():
    with pytest.raises(DataError, match="a score is NaN: leave prefixes that were not judged out"):
        average_precision([0, 1], [0.1, np.nan])
    with pytest.raises(DataError, match=r"\(2,\) labels for \(3,\) scores"):
        auroc([0, 1], [0.1, 0.2, 0.3])
    with pytest.raises(DataError, match="rank without strata"):
        Ranking([0, 1], [0.1, 0.2], strata=[0, 1]).average_precision()
