"""What a monitor knows of a run whose steps have signals: all that stands in `state`, then what its steps took.

It stands where the context of an agent's steps stands: the same functions, one state a run, causal by construction. A
figure that is absent is not zero: a feature says so, the others are then as usual for the run. Figures are compared as
logarithms, with the run's own mean, so that a slow machine or a dear model is not an unusual run.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from prefixguard.context import state as text
from prefixguard.context.features import Feature
from prefixguard.context.state import ContextState
from prefixguard.encoder import Tokens
from prefixguard.errors import SavedSessionError
from prefixguard.stepview.record import StepRecord

_TOOK = (
    ("seconds", "seconds that the step took"),
    ("tokens_in", "tokens that the model read"),
    ("tokens_out", "tokens that the model wrote"),
    ("cents", "cost of the step, in cents"),
)


def _features() -> Iterator[Feature]:
    for name, said in _TOOK:
        yield Feature(name, "signals", said, "logarithm")
        yield Feature(f"mean_{name}", "signals", f"{said}, typically so far", "logarithm")
        yield Feature(f"{name}_ratio", "signals", f"{said}, above what is typical for the run, as a logarithm")
        yield Feature(f"has_{name}", "signals", f"{said}: known", "yes")
    yield Feature("doubt", "signals", "doubt of the step: mean negative log-probability of the model's words")
    yield Feature("mean_doubt", "signals", "doubt of the steps so far, on average")
    yield Feature("doubt_ratio", "signals", "doubt of the step, above the run's average")
    yield Feature("has_doubt", "signals", "log-probabilities of the model's words: known", "yes")
    yield Feature("largest_doubt", "signals", "greatest doubt of a word so far, as a negative log-probability")


#: In the order in which they follow `FEATURES`.
SIGNAL_FEATURES: tuple[Feature, ...] = tuple(_features())
_N = len(_TOOK) + 1
_MOST_COUNTED = 1 << 53
_PACKED = struct.Struct(f"<{_N}Q{_N + 1}d")
#: Length of a packed state.
PACKED_BYTES = text.PACKED_BYTES + _PACKED.size


class SignalledState(ContextState):
    """The context of steps, and of each figure how often it was known and its mean; the greatest doubt."""

    __slots__ = ("counts", "largest", "means_taken")

    def __init__(self) -> None:
        super().__init__()
        self.counts = [0] * _N
        self.means_taken = [0.0] * _N
        self.largest = 0.0


def start() -> SignalledState:
    """The context of a run before its first step."""
    return SignalledState()


def taken(state: SignalledState, record: StepRecord) -> NDArray[np.float32]:
    """Take what the step took into the state (in place). Returns float32, in the order of `SIGNAL_FEATURES`."""
    out: list[float] = []
    for i, value in enumerate(_values(record)):
        n, mean = state.counts[i], state.means_taken[i]
        if value is None:
            out += (mean, mean, 0.0, 0.0)
            continue
        state.counts[i] = n + 1
        state.means_taken[i] = now = mean + (value - mean) / (n + 1)
        out += (value, now, value - mean if n else 0.0, 1.0)
    least = record.signals.logprob_min if record.signals is not None else None
    state.largest = max(state.largest, -least if least is not None else 0.0)
    return np.array((*out, state.largest), dtype=np.float32)


def _values(record: StepRecord) -> tuple[float | None, ...]:
    """The figures of a step, on the scales of the features."""
    found = record.signals
    if found is None:
        return (None,) * _N
    cents = None if found.dollars is None else 100 * found.dollars
    took = (found.seconds, found.tokens_in, found.tokens_out, cents)
    doubt = None if found.logprob_mean is None else -found.logprob_mean
    return (*(None if one is None else math.log1p(one) for one in took), doubt)


def update(state: SignalledState, record: StepRecord, tokens: Tokens) -> NDArray[np.float32]:
    """As `state.update`, and behind it what the step took: float32 (len(FEATURES) + len(SIGNAL_FEATURES),)."""
    return np.concatenate((text.update(state, record, tokens), taken(state, record)))


class HeldSignals:
    """The functions of this module where what steps took is held at what is typical, so that it tells nothing.

    typical: float32 (len(SIGNAL_FEATURES),), such as the medians over training steps.
    """

    PACKED_BYTES = text.PACKED_BYTES
    start, pack, unpack = staticmethod(text.start), staticmethod(text.pack), staticmethod(text.unpack)

    def __init__(self, typical: NDArray[np.float32]) -> None:
        self._typical = typical

    def update(self, state: ContextState, record: StepRecord, tokens: Tokens) -> NDArray[np.float32]:
        """As `update`, whatever the step took."""
        return np.concatenate((text.update(state, record, tokens), self._typical))


def pack(state: SignalledState) -> bytes:
    """All of the state, `PACKED_BYTES` long."""
    return text.pack(state) + _PACKED.pack(*state.counts, *state.means_taken, state.largest)


def unpack(data: bytes) -> SignalledState:
    """The state that `pack` was given. Raises SavedSessionError for bytes that no state packs to."""
    if len(data) != PACKED_BYTES:
        raise SavedSessionError(f"The saved context has {len(data)} bytes, not {PACKED_BYTES}: the session is damaged.")
    state = SignalledState()
    text.unpack(data[: text.PACKED_BYTES], state)
    *numbers, state.largest = _PACKED.unpack_from(data, text.PACKED_BYTES)
    state.counts, state.means_taken = numbers[:_N], numbers[_N:]
    kept = (*state.means_taken, state.largest)
    if max(state.counts) >= _MOST_COUNTED or not all(math.isfinite(x) and 0 <= x <= 1e4 for x in kept):
        raise SavedSessionError("The saved signals hold numbers that no run gives: the session is damaged.")
    return state
