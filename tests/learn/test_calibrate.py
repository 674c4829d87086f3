import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from prefixguard.learn.calibrate import fit_platt


def test_recovers_the_map_that_made_the_labels():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 20_000)
    target = (rng.random(20_000) < 1 / (1 + np.exp(-(0.5 * logits - 1)))).astype(float)
    fitted = fit_platt(logits, target)
    assert fitted.a == pytest.approx(0.5, abs=0.03) and fitted.b == pytest.approx(-1, abs=0.05)


def test_agrees_with_logistic_regression_but_for_smoothed_targets():
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, 3000)
    target = (rng.random(3000) < 1 / (1 + np.exp(-logits))).astype(float)
    theirs = LogisticRegression(C=1e9).fit(logits[:, None], target)
    mine = fit_platt(logits, target)
    assert mine.a == pytest.approx(theirs.coef_[0, 0], rel=0.02)
    assert mine.b == pytest.approx(theirs.intercept_[0], abs=0.02)


def test_separable_data_give_finite_parameters():
    fitted = fit_platt(np.array([-1.0, -0.5, 0.5, 1.0]), np.array([0.0, 0.0, 1.0, 1.0]))
    assert np.isfinite([fitted.a, fitted.b]).all() and fitted.a > 0


@pytest.mark.parametrize("target", [np.zeros(50), np.ones(50)])
def test_one_class_gives_about_the_base_rate(target):
    fitted = fit_platt(np.linspace(-1, 1, 50), target)
    assert fitted(0.0) == pytest.approx(target[0], abs=0.03)


def test_a_map_that_would_fall_becomes_nearly_flat():
    logits = np.linspace(-3, 3, 200)
    fitted = fit_platt(logits, (logits < 0).astype(float))
    assert fitted.a > 0 and fitted(3.0) - fitted(-3.0) < 0.01 and fitted(0.0) == pytest.approx(0.5, abs=0.02)
