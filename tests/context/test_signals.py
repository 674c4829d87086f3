"""What a monitor knows of what steps took: causal, neutral where nobody says it, and the same after a save."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard import context
from prefixguard.context import FEATURES, N_FEATURES, SIGNAL_FEATURES, signals
from prefixguard.encoder import tokenize
from prefixguard.errors import SavedSessionError
from prefixguard.stepview import Signals, StepRecord, serialize

AT = {feature.name: place for place, feature in enumerate(SIGNAL_FEATURES)}
SOME = st.none() | st.floats(0, 1e6)
SIGNALS = st.none() | st.builds(
    Signals, SOME, SOME, SOME, SOME, st.none() | st.floats(-1e4, 0), st.none() | st.floats(-1e4, 0)
)


def step(took: Signals | None, index: int = 1) -> StepRecord:
    return StepRecord(index, "agent", "", "ls", "{}", "", "look", "a b", "ok", signals=took)


def walk(run: list[Signals | None]) -> list[Any]:
    state = signals.start()
    return [signals.update(state, one, tokenize(serialize(one))) for one in map(step, run)]


@given(st.lists(SIGNALS, max_size=8), st.lists(SIGNALS, min_size=1, max_size=4))
def test_a_feature_rests_on_the_steps_so_far_and_survives_a_save(run: list[Any], more: list[Any]) -> None:
    whole = walk(run + more)
    assert np.array_equal(walk(run), whole[: len(run)])
    state = signals.start()
    for one in map(step, run):
        signals.update(state, one, tokenize(serialize(one)))
    state = signals.unpack(signals.pack(state))
    assert np.array_equal(
        [signals.update(state, one, tokenize(serialize(one))) for one in map(step, more)], whole[len(run) :]
    )
    for row in whole:
        assert row.dtype == np.float32 and row.shape == (N_FEATURES + len(SIGNAL_FEATURES),) and np.isfinite(row).all()


@given(st.lists(SIGNALS, min_size=1, max_size=6))
def test_the_other_features_are_what_they_were(run: list[Any]) -> None:
    state = context.start()
    for row, one in zip(walk(run), map(step, run), strict=True):
        assert row[:N_FEATURES].tobytes() == context.update(state, one, tokenize(serialize(one))).tobytes()


def test_absent_is_as_usual_and_not_zero() -> None:
    took = [Signals(seconds=3.0, dollars=0.02), None, Signals(seconds=15.0)]
    first, absent, slow = (row[N_FEATURES:] for row in walk(took))  # type: ignore[misc]
    assert first[AT["has_seconds"]] == 1 and first[AT["seconds_ratio"]] == 0 and first[AT["has_tokens_in"]] == 0
    assert absent[AT["has_seconds"]] == 0 and absent[AT["seconds"]] == first[AT["seconds"]] == np.float32(np.log(4))
    assert slow[AT["seconds_ratio"]] == pytest.approx(np.log(4)) and slow[AT["has_cents"]] == 0
    assert slow[AT["mean_cents"]] == np.float32(np.log(3))


def test_names_are_unique_and_groups_are_their_own() -> None:
    names = [feature.name for feature in (*FEATURES, *SIGNAL_FEATURES)]
    assert len(set(names)) == len(names) and {feature.group for feature in SIGNAL_FEATURES} == {"signals"}
    assert "signals" not in context.GROUPS


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: d[:-8] + np.array(np.nan).tobytes(), lambda d: d + b"0"]
)
def test_a_damaged_state_is_refused(damage: Any) -> None:
    with pytest.raises(SavedSessionError):
        signals.unpack(damage(signals.pack(signals.start())))


def test_the_room_of_a_session_has_room_for_them() -> None:
    assert signals.PACKED_BYTES - context.PACKED_BYTES < 128
