import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.trace import imminent_labels, remaining_steps


@given(st.integers(0, 60), st.integers(0, 70))
def test_a_failed_run_has_up_to_horizon_plus_one_positives_at_its_end(n_steps, horizon):
    labels = imminent_labels(n_steps, failed=True, horizon=horizon)
    assert labels.tolist() == [int(n_steps - t <= horizon) for t in range(1, n_steps + 1)]
    assert labels.sum() == min(n_steps, horizon + 1)


@given(st.integers(0, 60), st.integers(0, 70))
def test_a_successful_run_has_none(n_steps, horizon):
    assert imminent_labels(n_steps, failed=False, horizon=horizon).sum() == 0


def test_remaining_counts_down_to_zero():
    assert remaining_steps(3).tolist() == [2, 1, 0]
    assert remaining_steps(0).tolist() == []


def test_negative_numbers_are_refused():
    with pytest.raises(ConfigError, match="horizon is -1: it counts steps before the end"):
        imminent_labels(3, failed=True, horizon=-1)
    with pytest.raises(ConfigError, match="a run cannot have -2 steps"):
        remaining_steps(-2)
