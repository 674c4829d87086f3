import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from prefixguard.errors import ConfigError
from prefixguard.metrics import ReferenceRanking, average_precision, average_precision_at

#: (label, score, unit) with coarse scores, so that ties are the rule.
rows = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-4, 4).map(lambda i: i / 4), st.integers(0, 5)), min_size=2, max_size=50
)
references = st.floats(0.01, 0.99)


def columns(data):
    labels, scores, units = (np.array(column) for column in zip(*data, strict=True))
    assume(0 < labels.sum() < len(labels))
    return labels, scores, units


@settings(deadline=None)
@given(rows)
def test_at_its_own_prevalence_it_is_the_ordinary_figure(data):
    labels, scores, _ = columns(data)
    # The factor of a negative is 1 up to rounding.
    assert average_precision_at(labels, scores, labels.mean()) == pytest.approx(
        average_precision(labels, scores), abs=1e-12
    )


@settings(deadline=None)
@given(rows, references)
def test_it_is_scikit_learns_figure_over_weighted_negatives(data, reference):
    labels, scores, _ = columns(data)
    factor = (1 - reference) / reference * labels.sum() / (1 - labels).sum()
    expected = average_precision_score(labels, scores, sample_weight=np.where(labels, 1.0, factor))
    assert average_precision_at(labels, scores, reference) == pytest.approx(expected, abs=1e-9)


@settings(deadline=None)
@given(rows, st.integers(2, 5))
def test_a_weight_is_a_negative_that_stands_there_so_many_times(data, copies):
    labels, scores, _ = columns(data)
    positives, negatives = labels.sum(), copies * (1 - labels).sum()
    times = np.where(labels, 1, copies)
    assert average_precision_at(labels, scores, positives / (positives + negatives)) == pytest.approx(
        average_precision(np.repeat(labels, times), np.repeat(scores, times)), abs=1e-9
    )


@settings(deadline=None)
@given(rows, references, references)
def test_it_rises_with_the_prevalence_and_a_constant_has_the_prevalence(data, one, other):
    labels, scores, _ = columns(data)
    low, high = sorted((one, other))
    assert average_precision_at(labels, scores, low) <= average_precision_at(labels, scores, high) + 1e-12
    assert average_precision_at(labels, np.zeros(len(labels)), one) == pytest.approx(one, abs=1e-12)


@settings(deadline=None)
@given(rows, references, st.lists(st.integers(0, 3), min_size=6, max_size=6))
def test_weights_of_tasks_are_tasks_that_stand_there_so_many_times(data, reference, weights):
    """Each resample is brought to the reference by itself."""
    labels, scores, units = columns(data)
    ranking = ReferenceRanking(labels, scores, units=units)
    times = np.array(weights)[units]
    found = ranking.average_precision(reference, np.array([weights, [1.0] * 6]))
    assert found[1] == pytest.approx(average_precision_at(labels, scores, reference), abs=1e-12)
    drawn = np.repeat(labels, times)
    if 0 < drawn.sum() < len(drawn):
        assert found[0] == pytest.approx(average_precision_at(drawn, np.repeat(scores, times), reference), abs=1e-9)
        assert ranking.prevalence(np.array(weights)) == pytest.approx(drawn.mean())
    else:
        assert np.isnan(found[0])


def test_a_hand_example():
    """Four rows, the second best a negative that now counts three times: precision 1 and 2 / 5."""
    assert average_precision_at([1, 0, 1, 0], [4, 3, 2, 1], 2 / 8) == pytest.approx((1 + 2 / 5) / 2)


@pytest.mark.parametrize(("labels", "scores"), [([], []), ([1], [0.5]), ([0, 0], [0.1, 0.2])])
def test_one_class_or_nothing_has_no_figure(labels, scores):
    assert np.isnan(average_precision_at(labels, scores, 0.1))


@pytest.mark.parametrize("reference", [0.0, 1.0, -0.1, float("nan")])
def test_a_reference_is_a_share(reference):
    with pytest.raises(ConfigError, match=r"reference prevalence .* is no share: use a number between 0 and 1"):
        average_precision_at([0, 1], [0.1, 0.2], reference)
