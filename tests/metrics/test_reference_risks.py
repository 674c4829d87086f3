"""Risks that read nothing: what they are fitted to, and that a bundle carries them whole."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from prefixguard.errors import BundleError
from prefixguard.metrics import Prefixes, ReferenceRisks
from prefixguard.metrics.reference_risks import _RIDGE, _hinges, _logs

HORIZON = 2


def runs(n: int = 400, seed: int = 0) -> tuple[Prefixes, list[np.ndarray]]:
    """Runs that fail more often the longer they are and the more they say."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 15, n)
    sizes = [rng.integers(20, 400, length) for length in lengths]
    chance = 1 / (1 + np.exp(-(lengths - 8) / 2 - np.array([size.mean() - 200 for size in sizes]) / 100))
    failed = rng.random(n) < chance
    return Prefixes.of(lengths.tolist(), failed.tolist(), [f"t{i // 2}" for i in range(n)]), sizes


def test_the_clock_says_the_shares_of_runs_still_going() -> None:
    prefixes = Prefixes.of([3] * 4000 + [6] * 4000, [False] * 4000 + [True] * 4000, [str(i) for i in range(8000)])
    clock = ReferenceRisks.fit(prefixes, [np.ones(n) for n in [3] * 4000 + [6] * 4000], HORIZON)
    imminent, outcome = clock.by_step(np.arange(1, 9)).T
    assert outcome[0] == pytest.approx(0.5, abs=0.02) and outcome[5] > 0.99
    assert imminent[0] < 0.05 and imminent[5] > 0.9
    assert outcome[6] == outcome[7] == outcome[5], "the last holds beyond the longest training run"


def test_the_spline_is_the_regression_of_another_library() -> None:
    prefixes, sizes = runs()
    found = ReferenceRisks.fit(prefixes, sizes, HORIZON)
    x = _hinges(_logs(prefixes.step, sizes), found.knots)
    for place, labels in enumerate((prefixes.imminent_labels(HORIZON), prefixes.outcome_labels)):
        other = LogisticRegression(C=1 / (_RIDGE * len(x)), fit_intercept=False, tol=1e-10, max_iter=10_000).fit(
            x, labels
        )
        said = other.predict_proba(x)[:, 1]
        np.testing.assert_allclose(found.by_size(prefixes.step, sizes)[:, place], said, atol=2e-4)


def test_what_classes_are_apart_is_fitted_too() -> None:
    """One class, or classes that steps part, have no greatest likelihood; the ridge gives one."""
    for failed in ([True] * 20, [True] * 10 + [False] * 10):
        lengths = [9] * 10 + [2] * 10
        prefixes = Prefixes.of(lengths, failed, [str(i) for i in range(20)])
        risk = ReferenceRisks.fit(prefixes, [np.ones(n) for n in lengths], 0).by_size(
            prefixes.step, [np.ones(n) for n in lengths]
        )
        assert np.isfinite(risk).all() and risk[8, 1] > 0.9


def test_a_risk_at_a_step_depends_on_that_step_and_those_before() -> None:
    prefixes, sizes = runs()
    found = ReferenceRisks.fit(prefixes, sizes, HORIZON)
    whole = found.by_size(np.arange(1, 6), [np.array([5, 6, 7, 8, 9])])
    np.testing.assert_array_equal(found.by_size(np.arange(1, 4), [np.array([5, 6, 7])]), whole[:3])


def test_a_bundle_carries_them_whole() -> None:
    prefixes, sizes = runs()
    found = ReferenceRisks.fit(prefixes, sizes, HORIZON)
    read = ReferenceRisks.from_json(json.loads(json.dumps(found.as_json())), "manifest.json")
    assert read is not None and read.as_json() == found.as_json()
    np.testing.assert_allclose(read.by_step(prefixes.step), found.by_step(prefixes.step), atol=1e-6)
    np.testing.assert_allclose(read.by_size(prefixes.step, sizes), found.by_size(prefixes.step, sizes), atol=1e-5)
    assert ReferenceRisks.from_json(None, "manifest.json") is None


@pytest.mark.parametrize(
    "change",
    [
        {"clock": []}, {"clock": [[1.0]]}, {"clock": [[1.0, "x"]]}, {"clock": [[1.0, 2.0], [1.0]]}, {"knots": 3},
        {"knots": [[0.1]]}, {"weights": [[0.0, 0.0]]}, {"weights": None}, {"clock": [[1e999, 0.0]]},
        {"clock": [[10**400, 0.0]]},
    ],
)  # fmt: skip
def test_what_a_manifest_says_wrong_is_refused(change: dict[str, object]) -> None:
    prefixes, sizes = runs()
    good = ReferenceRisks.fit(prefixes, sizes, HORIZON).as_json()
    for value in (good | change, [], "x", 3):
        with pytest.raises(BundleError, match=r"manifest.json: its reference risks .*Train the monitor again"):
            ReferenceRisks.from_json(value, "manifest.json")
