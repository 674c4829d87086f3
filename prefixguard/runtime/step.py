"""What a session asks of a monitor's model, whatever it is made of."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from prefixguard.encoder import SparseRow


class Step(NamedTuple):
    """What a model says of one step.

    imminent, outcome: logits (natural log-odds before calibration). symbol: the step's symbol.
    state: of the run after the step; only the model knows what it is. place: the automaton's state, None where there
    is no automaton. unseen: whether no training run took this transition of the automaton.
    """

    imminent: float
    outcome: float
    symbol: int
    state: Any
    place: int | None = None
    unseen: bool = False


class StepModel(Protocol):
    """The step of a monitor. Nothing in it changes; what belongs to a run is passed in and handed back."""

    @property
    def initial(self) -> Any:
        """The state before the first step."""

    @property
    def state_bytes(self) -> int:
        """Length of a packed state."""

    @property
    def gives_reasons(self) -> bool:
        """Whether `reasons` has anything to say."""

    def step(self, tool: str, row: SparseRow, context: NDArray[np.float32], state: Any) -> Step:
        """One step. tool: the record's. row: of its text. context: float32 (d,), after it. state: before it."""

    def reasons(self, row: SparseRow, context: NDArray[np.float32], state: Any, step: Step) -> tuple[str, ...]:
        """Why the risk is what it is after `step`, in words, strongest first. state: before the step."""

    def pack(self, state: Any) -> bytes:
        """A state of a run as bytes, `state_bytes` long."""

    def unpack(self, data: bytes) -> Any:
        """The state that was packed. SavedSessionError where `state_bytes` bytes are no state of this model."""
