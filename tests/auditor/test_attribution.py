"""BlamedStep from risks: laws that hold for any run, known answers, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from prefixguard.auditor.attribution import (
    AttributionMethod,
    attribute,
    change_point,
    first_crossing,
    highest,
    jump,
    largest_rise,
    log_odds,
)
from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord

RISES = (AttributionMethod.CHANGE_POINT, AttributionMethod.LARGEST_RISE)
#: Values on a coarse grid, so that equal ones are common.
levels_of = st.lists(st.integers(-6, 6).map(lambda n: n / 2), max_size=30).map(lambda x: np.array(x, dtype=np.float64))


def steps(actors: str) -> list[StepRecord]:
    """One record a letter: u for the user, any other letter is the agent of that name."""
    return [
        StepRecord(i, "user" if who == "u" else "agent", "" if who == "u" else who, "", "", "", "x", "", "ok", i - 1)
        for i, who in enumerate(actors, 1)
    ]


def gain(levels: NDArray[np.float64], p: int) -> float:
    n = len(levels)
    return p * (n - p) / n * float(levels[p:].mean() - levels[:p].mean()) ** 2


def for_good(levels: NDArray[np.float64], p: int) -> bool:
    before = float(levels[:p].mean())
    return float(levels[p:].mean()) > before + 1e-9 and float(levels[p:].min()) > before + 1e-9


@given(levels_of)
def test_the_change_point_is_the_most_likely_one_of_those_that_last(levels: NDArray[np.float64]) -> None:
    """Against the definition, every position tried."""
    allowed = [p for p in range(1, len(levels)) if for_good(levels, p)]
    found = change_point(levels)
    if not allowed:
        assert found is None
        return
    assert found in allowed
    best = max(gain(levels, p) for p in allowed)
    assert gain(levels, found) == pytest.approx(best)
    assert all(
        gain(levels, p) < best - 1e-12 for p in allowed if p < found - 0 and gain(levels, p) != pytest.approx(best)
    )


@given(levels_of, st.integers(-8, 8), st.sampled_from([0.25, 0.5, 2.0, 4.0]))
def test_scale_and_zero_of_the_log_odds_do_not_matter(levels: NDArray[np.float64], shift: int, scale: float) -> None:
    assert change_point(levels * scale + shift) == change_point(levels)
    assert largest_rise(levels * scale + shift) == largest_rise(levels)


@given(st.integers(1, 20), st.integers(1, 20), st.floats(-5, 4), st.floats(0.1, 5), st.integers(0, 2**32 - 1))
def test_two_levels_are_found_exactly(n: int, m: int, low: float, up: float, seed: int) -> None:
    """Noise that is small against the jump cannot hide it."""
    noise = np.random.default_rng(seed).uniform(-up / 100, up / 100, n + m)
    levels = np.concatenate((np.full(n, low), np.full(m, low + up))) + noise
    assert change_point(levels) == n
    assert largest_rise(levels) == n
    assert jump(levels, n) == pytest.approx(up, abs=up / 40)


@given(st.floats(0, 1), st.integers(1, 12))
def test_a_constant_risk_points_at_nothing(risk: float, n: int) -> None:
    for method in RISES:
        found = attribute(steps("a" * n), [risk] * n, method)
        assert (found.step, found.agent, found.strength) == (None, None, 0.0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.data())
def test_unknown_readings_are_passed_over(risks: list[float], data: st.DataObject) -> None:
    """Steps without a reading change nothing but the numbers of the others."""
    gaps = [data.draw(st.integers(0, 2)) for _ in risks]
    spread: list[float | None] = []
    at = []
    for risk, gap in zip(risks, gaps, strict=True):
        spread += [None, math.nan][:gap]
        at.append(len(spread) + 1)
        spread.append(risk)
    for method in AttributionMethod:
        plain = attribute(steps("a" * len(risks)), risks, method, mark=0.5)
        found = attribute(steps("a" * len(spread)), spread, method, mark=0.5)
        assert found.step == (None if plain.step is None else at[plain.step - 1])
        assert found.strength == plain.strength


@given(st.text("uab", min_size=1, max_size=15), st.data())
def test_only_agents_are_blamed(actors: str, data: st.DataObject) -> None:
    """The blamed record is an agent's, and nobody of the agents acted between it and the rise."""
    risks = data.draw(st.lists(st.floats(0, 1), min_size=len(actors), max_size=len(actors)))
    records = steps(actors)
    for method in AttributionMethod:
        found = attribute(records, risks, method, mark=0.7, base=0.2)
        anywhere = attribute(steps("a" * len(actors)), risks, method, mark=0.7, base=0.2).step
        agents_by_then = [r for r in records if r.actor == "agent" and anywhere is not None and r.index <= anywhere]
        expected = agents_by_then[-1] if agents_by_then else None
        assert found.step == (expected.index if expected else None)
        assert found.agent == (expected.agent if expected else None)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=15))
def test_nothing_is_changed_and_everything_repeats(risks: list[float]) -> None:
    values = np.array(risks)
    kept = values.copy()
    for method in AttributionMethod:
        one = attribute(steps("a" * len(risks)), values, method, mark=0.5)
        assert attribute(steps("a" * len(risks)), risks, method, mark=0.5) == one
    np.testing.assert_array_equal(values, kept)


@pytest.mark.parametrize(
    ("method", "step"),
    [("change-point", 4), ("largest-rise", 2), ("first-crossing", 2), ("highest", 5)],
)
def test_each_method_sees_what_it_looks_for(method: str, step: int) -> None:
    """A peak that passes, then a rise that lasts: only the change point does not fall for the peak."""
    risks = [0.1, 0.8, 0.1, 0.7, 0.9, 0.85]
    found = attribute(steps("abcdef"), risks, method, mark=0.6)
    assert (found.step, found.agent) == (step, "abcdef"[step - 1])


def test_with_a_base_the_first_step_can_be_blamed() -> None:
    risks = [0.9, 0.9, 0.9]
    assert attribute(steps("abc"), risks).step is None
    found = attribute(steps("abc"), risks, base=0.3)
    assert (found.step, found.agent) == (1, "a")
    assert found.strength == pytest.approx(math.log(9) - math.log(3 / 7))


@pytest.mark.parametrize("risk", [None, math.nan, 0.3])
def test_one_step(risk: float | None) -> None:
    for method in RISES:
        assert attribute(steps("a"), [risk], method).step is None
    top = attribute(steps("a"), [risk], "highest").step
    assert top == (None if risk is None or math.isnan(risk) else 1)


def test_no_step_and_nothing_known() -> None:
    for method in AttributionMethod:
        assert attribute([], [], method, mark=0.5, base=0.5).step is None
        assert attribute(steps("ab"), [None, None], method, mark=0.5, base=0.5).step is None


def test_certain_risks_are_finite() -> None:
    found = attribute(steps("abc"), [0.0, 1.0, 1.0])
    assert found.step == 2
    assert math.isfinite(found.strength)


def test_a_record_that_names_nobody_has_no_agent() -> None:
    record = StepRecord(1, "agent", "", "", "", "", "x", "", "ok")
    assert attribute([record], [0.9], base=0.1).agent is None


def test_the_index_of_the_record_is_said() -> None:
    """Records need not begin at 1: what is said is what the record calls itself."""
    records = steps("abcd")[2:]
    assert attribute(records, [0.1, 0.9]).step == 4


@pytest.mark.parametrize(
    ("risks", "options", "message"),
    [
        ([0.5], {}, "1 risks for 2 records: give one a record, None where unknown."),
        ([0.5, 1.5], {}, "risks are probabilities from 0 to 1"),
        ([0.5, math.inf], {}, "risks are probabilities from 0 to 1"),
        ([0.5, 0.5], {"method": "guess"}, "choose one of change-point, largest-rise, first-crossing, highest"),
        ([0.5, 0.5], {"method": "first-crossing"}, "first-crossing needs a mark"),
        ([0.5, 0.5], {"mark": math.nan}, "mark nan: a risk from 0 to 1."),
        ([0.5, 0.5], {"base": -0.1}, "base -0.1: a risk from 0 to 1."),
    ],
)
def test_refusals(risks: Sequence[float], options: dict[str, float], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        attribute(steps("ab"), risks, **options)  # type: ignore[arg-type]


def test_positions_of_nothing() -> None:
    empty = np.zeros(0)
    assert change_point(empty) is largest_rise(empty) is first_crossing(empty, 0.0) is highest(empty) is None
    assert np.isnan(log_odds(np.array([np.nan]))).all()


def test_a_long_run_takes_one_pass() -> None:
    """A million steps: what is quadratic would not come back."""
    levels = np.random.default_rng(13).normal(size=1_000_000)
    levels[700_000:] += 20
    assert change_point(levels) == 700_000
