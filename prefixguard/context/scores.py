"""What a monitor of scores knows of a run: the scores so far, as seven numbers, in fixed memory.

It stands where the context of an agent's steps stands: the same functions, one state a run, causal by construction.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from numpy.typing import NDArray

from prefixguard.context.features import Feature
from prefixguard.encoder import Tokens
from prefixguard.errors import SavedSessionError
from prefixguard.stepview.record import LARGEST_SCORE, StepRecord

#: In the order in which `update` gives them. All but the first rise with every score that they rest on.
SCORE_FEATURES: tuple[Feature, ...] = (
    Feature("step", "position", "step number"),
    Feature("score", "now", "the score of this step"),
    Feature("previous_score", "before", "the score of the step before"),
    Feature("smoothed_score", "average", "the average of the last scores"),
    Feature("mean_score", "mean", "the mean of all scores so far"),
    Feature("least_score", "least", "the least score so far"),
    Feature("greatest_score", "greatest", "the greatest score so far"),
)

_DECAY = 0.5  # share of the way that the average of the last scores goes towards each
_MOST_STEPS = 1 << 53
_PACKED = struct.Struct("<Q5d")
#: Length of a packed state.
PACKED_BYTES = _PACKED.size


class ScoreState:
    """What is kept of a run. last, smoothed, mean, least, greatest: of the scores so far; 0 before the first."""

    __slots__ = ("greatest", "last", "least", "mean", "smoothed", "step")

    #: Of the context of steps: words that it had no room for.
    saturated = 0

    def __init__(self) -> None:
        self.step = 0
        self.last = self.smoothed = self.mean = self.least = self.greatest = 0.0


def start() -> ScoreState:
    """The scores of a run before its first step."""
    return ScoreState()


def update(state: ScoreState, record: StepRecord, tokens: Tokens | None = None) -> NDArray[np.float32]:
    """Take the score of a record into the state (in place) and return what is known after it.

    tokens: not looked at: a score has no text. Returns float32 (7,), in the order of `SCORE_FEATURES`.
    """
    s, score = state, record.score
    if score is None:
        raise ValueError("the step holds no score")
    previous = s.last if s.step else score
    s.step += 1
    if s.step == 1:
        s.smoothed = s.mean = s.least = s.greatest = score
    else:
        s.smoothed += (score - s.smoothed) * _DECAY
        s.mean += (score - s.mean) / s.step
        s.least, s.greatest = min(s.least, score), max(s.greatest, score)
    s.last = score
    return np.array((s.step, score, previous, s.smoothed, s.mean, s.least, s.greatest), dtype=np.float32)


def pack(state: ScoreState) -> bytes:
    """All of the state, `PACKED_BYTES` long."""
    return _PACKED.pack(state.step, state.last, state.smoothed, state.mean, state.least, state.greatest)


def unpack(data: bytes) -> ScoreState:
    """The state that `pack` was given. Raises SavedSessionError for bytes that no state packs to."""
    state = ScoreState()
    if len(data) != PACKED_BYTES:
        raise SavedSessionError(f"The saved scores have {len(data)} bytes, not {PACKED_BYTES}: the session is damaged.")
    state.step, *numbers = _PACKED.unpack(data)
    if state.step >= _MOST_STEPS or not all(math.isfinite(x) and abs(x) <= LARGEST_SCORE for x in numbers):
        raise SavedSessionError("The saved scores hold numbers that no run gives: the session is damaged.")
    state.last, state.smoothed, state.mean, state.least, state.greatest = numbers
    return state
