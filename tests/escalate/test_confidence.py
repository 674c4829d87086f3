"""Confidence: the tokens that spell the value are found, and a map is fitted, kept and refused as it says."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.escalate.confidence import (
    LEAST_PAIRS,
    ConfidenceMap,
    decisive_tokens,
    raw_confidence,
    value_span,
)


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ('{"answer": 12}', None, "12"),
        ('{"answer" :\n\t"SAFE", "x": 1}', None, "SAFE"),
        ('{"answer": "SAFE"}', "safe", "SAFE"),
        ('{"answer": " 12 "}', 12, " 12 "),
        ('{"answer": null}', None, "null"),
        ('{"answer": 3} no, {"answer": 4}', None, "4"),
        ('{"answer": 3} no, {"answer": 4}', 3, "3"),
        ('{"answer": 3, "reason": "the \\"answer\\": 9 is wrong"}', 3, "3"),
        ('it said "answer", then {"answer": 5}, and an "answer" again', None, "5"),
        ('{"answer": 12}', 1, None),
        ('{"answer": {"step": 1}}', None, None),
        ('{"answer": "cut off', None, None),
        ('{"answer": ', None, None),
        ('{"answers": 12}', None, None),
        ("", None, None),
    ],
)
def test_where_a_value_is_spelled(text: str, value: str | int | None, found: str | None) -> None:
    span = value_span(text, "answer", value)
    assert (None if span is None else text[slice(*span)]) == found


def test_a_text_made_to_hurt_costs_little() -> None:
    for text in (
        '"answer"' * 100_000,
        '"answer": [' * 100_000,
        '"answer": "' + "x" * 900_000,
        '"answer"' + " " * 900_000,
    ):
        assert value_span(text, "answer") is None


def test_the_tokens_that_spell_it() -> None:
    tokens = [("<think>", -3.0), ('{"ans', -2.0), ('wer": "', -2.0), ("SA", -0.5), ('FE"', -0.25), ("}", -2.0)]
    assert decisive_tokens(tokens, "answer") == (("SA", -0.5), ('FE"', -0.25))
    assert raw_confidence(tokens, "answer", "SAFE") == pytest.approx(math.exp(-0.75))
    assert decisive_tokens(tokens, "answer", 7) == () and raw_confidence(tokens, "answer", 7) is None
    assert raw_confidence([], "answer") is None


TEXT = 'I think né "answer": 9.\n{"agent": "Planner", "answer": 417, "reason": "wrong ✓ unit"}'


@settings(deadline=None, derandomize=True)
@given(st.sets(st.integers(1, len(TEXT) - 1)))
def test_however_a_reply_is_cut_into_tokens(cuts: set[int]) -> None:
    places = [0, *sorted(cuts), len(TEXT)]
    tokens = [(TEXT[a:b], -((i * 37 % 11) / 10)) for i, (a, b) in enumerate(pairwise(places))]
    found = decisive_tokens(tokens, "answer", 417)
    joined = "".join(token for token, _ in found)
    assert "417" in joined
    assert all(set("417") & set(token) for token, _ in found)
    raw = raw_confidence(tokens, "answer", 417)
    assert raw is not None and 0 <= raw <= 1
    assert raw == pytest.approx(math.exp(sum(value for _, value in found)))


def drawn(n: int, slope: float, intercept: float, seed: int = 0) -> tuple[list[float], list[bool]]:
    """Raw confidences, and verdicts that are right as often as a map of this slope and intercept says."""
    rng = np.random.default_rng(seed)
    raw = 1 / (1 + np.exp(-rng.normal(1.0, 2.0, n)))
    right = rng.random(n) < 1 / (1 + np.exp(-(slope * np.log(raw / (1 - raw)) + intercept)))
    return raw.tolist(), right.tolist()


def test_a_map_learns_back_what_made_the_data() -> None:
    found = ConfidenceMap.fit(*drawn(20_000, 0.5, -0.4))
    assert found.slope == pytest.approx(0.5, abs=0.05) and found.intercept == pytest.approx(-0.4, abs=0.06)
    assert found.pairs == 20_000 and found(0.5) == pytest.approx(1 / (1 + math.exp(0.4)), abs=0.02)


def test_the_fit_is_the_least_log_loss() -> None:
    raw, right = drawn(200, 0.7, 0.2, seed=3)
    found = ConfidenceMap.fit(raw, right)
    n_right = sum(right)
    targets = [(n_right + 1) / (n_right + 2) if r else 1 / (len(right) - n_right + 2) for r in right]

    def loss(map_: ConfidenceMap) -> float:
        return -sum(t * math.log(map_(x)) + (1 - t) * math.log(1 - map_(x)) for x, t in zip(raw, targets, strict=True))

    best = loss(found)
    for dx, dy in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
        assert loss(ConfidenceMap(found.slope + dx, found.intercept + dy)) > best


def test_raw_confidences_that_mislead_become_the_share_of_right_ones() -> None:
    raw, right = drawn(400, -0.8, 1.0)
    found = ConfidenceMap.fit(raw, right)
    assert found.slope == 0.0
    assert found(0.01) == found(0.99) == pytest.approx(sum(right) / 400, abs=0.01)


@pytest.mark.parametrize("raw", [[1.0] * 60, [0.0] * 30 + [1.0] * 30, [0.9] * 59 + [1e-300]])
def test_saturated_and_separated_pairs_have_a_map(raw: list[float]) -> None:
    right = [i >= 30 for i in range(60)]
    found = ConfidenceMap.fit(raw, right)
    assert 0 < found(0.0) <= found(0.5) <= found(1.0) < 1


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=LEAST_PAIRS, max_size=80),
    st.lists(st.floats(0, 1), min_size=2, max_size=20),
)
def test_a_map_never_falls_and_stays_a_probability(pairs: list[tuple[float, bool]], at: list[float]) -> None:
    raw, right = [x for x, _ in pairs], [r for _, r in pairs]
    if min(sum(right), len(right) - sum(right)) < 5:
        with pytest.raises(DataError, match="at least 40 verdicts"):
            ConfidenceMap.fit(raw, right)
        return
    found = ConfidenceMap.fit(raw, right)
    values = [found(x) for x in sorted(at)]
    assert values == sorted(values) and values[0] >= 0 and values[-1] <= 1
    assert ConfidenceMap.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize(
    ("raw", "right", "error", "said"),
    [
        ([0.5] * 39, [True] * 20 + [False] * 19, DataError, "stays raw"),
        ([0.5] * 50, [True] * 46 + [False] * 4, DataError, "there are 50, 46 of them right"),
        ([], [], DataError, "at least 40"),
        ([0.5] * 50, [True] * 49, ConfigError, "one for each"),
        ([1.5] * 50, [True, False] * 25, ConfigError, "from 0 to 1"),
        ([math.nan] * 50, [True, False] * 25, ConfigError, "from 0 to 1"),
    ],
)
def test_too_little_is_refused(raw: list[float], right: list[bool], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        ConfidenceMap.fit(raw, right)


@pytest.mark.parametrize("raw", [-0.1, 1.1, math.nan])
def test_a_raw_value_that_is_no_probability_is_refused(raw: float) -> None:
    with pytest.raises(ConfigError, match="from 0 to 1"):
        ConfidenceMap(1.0, 0.0)(raw)


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"}, {"slope": -1.0}, {"slope": "1"}, {"slope": True}, {"slope": 10**400}, {"slope": math.nan},
        {"intercept": None}, {"intercept": math.inf}, {"pairs": -1}, {"pairs": 1.5}, {"right": 101}, {"right": False},
    ],
)  # fmt: skip
def test_a_map_of_another_kind_is_not_read(change: dict[str, object]) -> None:
    good = ConfidenceMap(1.0, 0.5, 100, 50).to_json()
    assert ConfidenceMap.from_json(good) == ConfidenceMap(1.0, 0.5, 100, 50)
    with pytest.raises(ConfigError):
        ConfidenceMap.from_json({**good, **change})
    for gone in change:
        with pytest.raises(ConfigError):
            ConfidenceMap.from_json({name: value for name, value in good.items() if name != gone})
