"""One step of a monitor of kind automaton: a symbol, a transition, two risks, all looked up.

Only where the symbols come from a model (`ModelMap`) does onnxruntime run; its logits are not used.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import NONE_HELD
from prefixguard.bundle import UNSEEN, Automaton, Bundle, Calibration, ModelMap
from prefixguard.encoder import SparseRow
from prefixguard.errors import BundleError, SavedSessionError
from prefixguard.runtime.model import OnnxModel, Step, trial_rows
from prefixguard.stepview import plain

#: (automaton's state, steps so far, the symbol model's state if there is one).
State = tuple[int, int, NDArray[np.float32] | None]
_PLACE = struct.Struct("<IQ")  # the automaton's state, steps so far
_MOST_STEPS = 1 << 53
_CLIP = 1e-6  # a risk of 0 or 1 has no logit
_GLOSS_LENGTH = 160


def risk_logits(automaton: Automaton) -> list[list[tuple[float, float]]]:
    """Logits of both risks, imminent and outcome, by state and column of the clock; risks clipped to 1e-6.

    They are what the bundle's calibration maps are fitted to and applied to.
    """
    return [[(_logit(imminent), _logit(outcome)) for imminent, outcome in row] for row in automaton.risk.tolist()]


def read_risks(automaton: Automaton, calibration: Calibration) -> list[list[list[float]]]:
    """Both risks as readings say them, by state and column of the clock: they go through a logit, so they can differ
    from the automaton's in the last digit, and with it stand on the other side of a threshold that they were to meet.
    """
    return [[[calibration.imminent(i), calibration.outcome(o)] for i, o in row] for row in risk_logits(automaton)]


class AutomatonModel:
    """The automaton of a bundle as plain tables, checked against what the bundle's other files say.

    initial: state before the first step.
    """

    __slots__ = ("_bundle", "_clock", "_columns", "_logits", "_map", "_model", "_n_symbols", "_next", "initial")

    def __init__(self, bundle: Bundle) -> None:
        """Raises BundleError when the bundle holds no automaton, or one whose symbols cannot be computed."""
        if bundle.automaton is None or bundle.symbol_map is None:
            raise BundleError(f"{bundle.path}: has no automaton.json. Export the bundle again.")
        automaton = bundle.automaton
        self._bundle = bundle
        self._map = bundle.symbol_map
        self._n_symbols = automaton.n_symbols
        self._clock, self._columns = automaton.clock, len(automaton.clock) + 1
        # An unseen transition stands as ~state, the state that the fallback leads to, so one look-up says it all.
        fallback = automaton.fallback.tolist()
        self._next = [
            after if after != UNSEEN else ~(fallback[symbol] if fallback[symbol] != UNSEEN else state)
            for state, row in enumerate(automaton.transitions.tolist())
            for symbol, after in enumerate(row)
        ]
        self._logits = [pair for row in risk_logits(automaton) for pair in row]
        self._model = OnnxModel(bundle) if isinstance(self._map, ModelMap) else None
        inner = self._model.initial if self._model is not None else None
        self.initial: State = (automaton.start, 0, inner)
        self._try_out(bundle)

    @property
    def state_bytes(self) -> int:
        """Length of a packed state: place, count and the symbol model's floats."""
        return _PLACE.size + (0 if self._model is None else self._model.state_bytes)

    def step(
        self, tool: str, row: SparseRow, context: NDArray[np.float32], state: State, held: bytes = NONE_HELD
    ) -> Step:
        """One step; see `Step`. ArithmeticError where the symbol model leaves the alphabet."""
        place, count, inner = state
        if self._model is None:
            symbol = self._map.symbol(tool, row, context, held)
        else:
            _, _, given, inner, _, _ = self._model.step(tool, row, context, inner)  # type: ignore[arg-type]
            if given is None or not 0 <= given < self._n_symbols:
                raise ArithmeticError(f"the model gave symbol {given}, the automaton has {self._n_symbols}")
            symbol = given
        count += 1
        place, unseen, (imminent, outcome) = self.follow(place, symbol, count)
        return Step(imminent, outcome, symbol, (place, count, inner), place, unseen)

    def follow(self, place: int, symbol: int, count: int) -> tuple[int, bool, tuple[float, float]]:
        """State after a symbol, whether the transition was unseen, and both logits there at step `count` (from 1)."""
        after = self._next[place * self._n_symbols + symbol]
        unseen = after < 0
        if unseen:
            after = ~after
        return after, unseen, self._logits[after * self._columns + bisect_right(self._clock, count)]

    def pack(self, state: State) -> bytes:
        """See `state_bytes`."""
        place, count, inner = state
        return _PLACE.pack(place, count) + (b"" if self._model is None or inner is None else self._model.pack(inner))

    def unpack(self, data: bytes) -> State:
        """The state that was packed. SavedSessionError for a place that the automaton does not have."""
        place, count = _PLACE.unpack_from(data)
        if place >= len(self._logits) // self._columns or count >= _MOST_STEPS:
            raise SavedSessionError(
                f"The saved session is in state {place} at step {count}: the automaton has no such."
            )
        return place, count, None if self._model is None else self._model.unpack(data[_PLACE.size :])

    def reasons(self, row: SparseRow, context: NDArray[np.float32], state: State, step: Step) -> tuple[str, ...]:
        """What the step was, what runs in the state came to, and whether the way there is known; in words."""
        gloss = plain(self._bundle.glosses[step.symbol or 0], _GLOSS_LENGTH)
        return (f"this step: {gloss}", *self.say_state(state, step))

    def pushes(self, *_: object) -> None:
        """Its risks are looked up, and no feature moves them by itself."""

    def say_state(self, state: State, step: Step) -> tuple[str, ...]:
        """What runs in the state came to, and whether the way there is known; in words."""
        automaton, place = self._bundle.automaton, step.place
        if automaton is None or place is None:
            return ()
        said = [self._say_risk(automaton, place, state[1] + 1)]
        if step.unseen:
            rule = f"steps like it most often lead to state {place}" if place != state[0] else "the state stays"
            said.append(f"no run in training had such a step in state {state[0]}; {rule}")
        return tuple(said)

    def _say_risk(self, automaton: Automaton, place: int, count: int) -> str:
        """The outcome risk of a state with its interval, calibrated as readings are, and what it rests on."""
        column, outcome = automaton.column(count), self._bundle.calibration.outcome
        risk = outcome(self._logits[place * self._columns + column][1])
        low, high = (outcome(_logit(end)) for end in automaton.interval[place, column, 1].tolist())
        rests_on = int(automaton.stand_in[place])
        steps, runs = int(automaton.evidence[rests_on, column]), int(automaton.evidence_runs[rests_on, column])
        lent = "" if rests_on == place else f", of state {rests_on}, its nearest with enough"
        clock = "" if not automaton.clock else f" at {self._say_column(column)}"
        outside = "" if low <= risk <= high else "; the risk is outside, by what training runs say"
        return (
            f"state {place}: outcome risk {risk:.0%} ({low:.0%} to {high:.0%}{outside}){clock}, "
            f"from {steps} {'step' if steps == 1 else 'steps'} of {runs} held-out "
            f"{'run' if runs == 1 else 'runs'}{lent}"
        )

    def _say_column(self, column: int) -> str:
        first = self._clock[column - 1] if column else 1
        return f"steps {first} to {self._clock[column] - 1}" if column < len(self._clock) else f"steps from {first} on"

    def _try_out(self, bundle: Bundle) -> None:
        """An empty row and one with the last column: the map must give a symbol of the automaton's for each."""
        for row in trial_rows(len(bundle.vocabulary)):
            try:
                self.reasons(row, bundle.typical, self.initial, self.step("", row, bundle.typical, self.initial))
            except Exception as exc:
                raise BundleError(
                    f"{bundle.path}: the automaton does not run on a row with {len(row.indices)} terms "
                    f"({type(exc).__name__}: {plain(str(exc), 200)}). Export the bundle again."
                ) from exc


def _logit(risk: float) -> float:
    risk = min(max(risk, _CLIP), 1.0 - _CLIP)
    return math.log(risk / (1.0 - risk))
