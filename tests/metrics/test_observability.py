import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError
from prefixguard.metrics import average_precision, phi, phi_inverse

shares = st.floats(0.001, 0.999)


@pytest.mark.parametrize(("prevalence", "observable"), [(0.05, 0.2), (0.1, 0.3), (0.3, 0.7), (0.5, 0.05), (0.9, 0.5)])
def test_phi_is_what_a_simulation_measures(prevalence, observable):
    """400,000 rows: observable positives above everything, the others and the negatives in random order."""
    rng = np.random.default_rng(13)
    labels = rng.random(400_000) < prevalence
    seen = labels & (rng.random(400_000) < observable)
    # The standard error of the figure is below .002 for the smallest number of positives here.
    assert average_precision(labels, rng.random(400_000) + 2 * seen) == pytest.approx(
        phi(prevalence, observable), abs=0.006
    )


@settings(deadline=None)
@given(shares, shares)
def test_phi_is_the_integral_of_precision_over_recall(prevalence, observable):
    """The definition, summed numerically over the share u of the mix that was passed."""
    u = (np.arange(20_000) + 0.5) / 20_000
    hit = prevalence * (observable + (1 - observable) * u)
    mix = 1 - prevalence * observable
    precision = hit / (prevalence * observable + mix * u)
    expected = observable + (1 - observable) * precision.mean()
    assert phi(prevalence, observable) == pytest.approx(expected, abs=2e-3)  # a midpoint rule near a steep start


@settings(deadline=None)
@given(shares)
def test_its_ends(prevalence):
    assert phi(prevalence, 0.0) == prevalence
    assert phi(prevalence, 1.0) == 1.0
    assert phi(1.0, prevalence) == 1.0


@settings(deadline=None)
@given(shares, shares, shares)
def test_it_rises_with_what_is_observable(prevalence, one, other):
    low, high = sorted((one, other))
    if high - low > 1e-6:
        assert prevalence < phi(prevalence, low) < phi(prevalence, high) < 1.0


@settings(deadline=None)
@given(shares, st.floats(0.0, 1.0))
def test_the_inverse_is_the_inverse(prevalence, observable):
    # phi is flat nowhere, but its slope may be as small as 1e-3 near q = 1 where pi is near 1.
    assert phi_inverse(prevalence, phi(prevalence, observable)) == pytest.approx(observable, abs=1e-6)


def test_outside_the_scale():
    assert phi_inverse(0.3, 0.1) == 0.0, "worse than nothing"
    assert phi_inverse(0.3, 0.3) == 0.0
    assert phi_inverse(0.3, 1.0) == 1.0
    for prevalence, auprc in ((0.0, 0.5), (1.0, 1.0), (math.nan, 0.5), (0.5, math.nan)):
        assert math.isnan(phi_inverse(prevalence, auprc)), "one class has no scale"


def test_near_the_corner_nothing_cancels():
    assert phi(1 - 1e-12, 1 - 1e-12) == pytest.approx(1.0)
    assert phi(1e-300, 0.5) == pytest.approx(0.5)


def test_numbers_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="prevalence 0 is out of range: use a share above 0, at most 1"):
        phi(0.0, 0.5)
    with pytest.raises(ConfigError, match=r"observable share 1.5 is out of range"):
        phi(0.5, 1.5)
    with pytest.raises(ConfigError, match=r"AUPRC 1.2 at prevalence 0.5: both are shares"):
        phi_inverse(0.5, 1.2)
