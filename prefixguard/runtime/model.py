"""What a session asks of a monitor's model, whatever it is made of; and one step by ONNX: arrays in, logits, symbol and
state out.

The sessions of onnxruntime are made once a monitor, run on the caller's thread only, and may be used from any number of
threads at a time; what belongs to a run (its state) is passed in and handed back.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from prefixguard.behaviours import NONE_HELD
from prefixguard.bundle import Bundle
from prefixguard.encoder import SparseRow
from prefixguard.errors import BundleError
from prefixguard.runtime.reading import say_reasons
from prefixguard.runtime.reasons_graph import ReasonsGraph, run_of


class Step(NamedTuple):
    """What a model says of one step.

    imminent, outcome: logits (natural log-odds before calibration). symbol: the step's symbol; None of rules alone.
    state: of the run after the step; only the model knows what it is. place: the automaton's state, None where there
    is no automaton. unseen: whether no training run took this transition of the automaton.
    """

    imminent: float
    outcome: float
    symbol: int | None
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

    def step(
        self, tool: str, row: SparseRow, context: NDArray[np.float32], state: Any, held: bytes = NONE_HELD
    ) -> Step:
        """One step. tool: the record's. row: of its text. context: float32 (d,), after it. state: before it. held: the
        behaviours that hold at it."""

    def reasons(self, row: SparseRow, context: NDArray[np.float32], state: Any, step: Step) -> tuple[str, ...]:
        """What moved the risk at `step`, by the model's own features, strongest first. state: before the step."""

    def pushes(
        self, row: SparseRow, context: NDArray[np.float32], state: Any, sets: NDArray[np.float32]
    ) -> list[float] | None:
        """How much each set of context features moved the outcome logit at this step, positive towards failure; None
        where the model cannot tell. sets: float32 (n, d + 1), 1 where a feature is in the set, and behind the features
        where all terms of the row are, else 0. state: before the step."""

    def say_state(self, state: Any, step: Step) -> tuple[str, ...]:
        """What the automaton says of the state after `step`; () where there is none. state: before the step."""

    def pack(self, state: Any) -> bytes:
        """A state of a run as bytes, `state_bytes` long."""

    def unpack(self, data: bytes) -> Any:
        """The state that was packed. SavedSessionError where `state_bytes` bytes are no state of this model."""


_STEP_OUTPUTS = {"logits": "tensor(float)", "symbol": "tensor(int64)", "state_out": "tensor(float)"}
_STEP_NAMES = list(_STEP_OUTPUTS)
_FATAL = 4


class OnnxModel:
    """The step model of a bundle, checked against its contract and against the bundle's vocabulary and context.

    state_size: S, length of the state. initial: float32 (S,), read-only zeros, the state before the first step.
    """

    __slots__ = ("_features", "_reasons", "_run", "_typical", "_vocabulary", "initial", "state_size")

    def __init__(self, bundle: Bundle) -> None:
        """Raises BundleError when onnxruntime cannot run the model or the model is not what the bundle promises."""
        if bundle.model_bytes is None:
            raise BundleError(f"{bundle.path}: has no model.onnx. Train or export the bundle again.")
        d = len(bundle.typical)
        self._typical, self._vocabulary, self._features = bundle.typical, bundle.vocabulary, bundle.features
        session = _session(bundle.model_bytes, f"{bundle.path}/model.onnx")
        self.state_size = _check(session, _STEP_OUTPUTS, f"{bundle.path}/model.onnx")
        self._run = run_of(session)
        self.initial: NDArray[np.float32] = np.zeros(self.state_size, dtype=np.float32)
        self.initial.setflags(write=False)
        self._reasons = None
        if bundle.reasons_bytes is not None:
            session = _session(bundle.reasons_bytes, f"{bundle.path}/reasons.onnx")
            self._reasons = ReasonsGraph(session)
            if _check(session, self._reasons.outputs, f"{bundle.path}/reasons.onnx") != self.state_size:
                raise BundleError(f"{bundle.path}/reasons.onnx: its state is not as long as the model's. Train again.")
        self._try_out(bundle, d)

    @property
    def state_bytes(self) -> int:
        """Length of a packed state: four a float."""
        return 4 * self.state_size

    def step(
        self,
        tool: str,
        row: SparseRow,
        context: NDArray[np.float32],
        state: NDArray[np.float32],
        held: bytes = NONE_HELD,
    ) -> Step:
        """One step; its state is float32 (S,). The tool's name is not looked at: it is in the row; nor is `held`."""
        feed = {"indices": row.indices, "values": row.values, "context": context, "state": state}
        logits, symbol, new_state = self._run(_STEP_NAMES, feed, None)
        imminent, outcome = logits.tolist()
        return Step(imminent, outcome, int(symbol), new_state.copy())  # its own: the model's hangs on an arena

    def pack(self, state: NDArray[np.float32]) -> bytes:
        """The state's floats, little-endian."""
        return state.astype("<f4").tobytes()

    def unpack(self, data: bytes) -> NDArray[np.float32]:
        """The state that was packed; numbers that are not finite come out as an UNKNOWN of the next step."""
        return np.frombuffer(data, "<f4", self.state_size).astype(np.float32)

    def reasons(
        self, row: SparseRow, context: NDArray[np.float32], state: NDArray[np.float32], step: Step
    ) -> tuple[str, ...]:
        """The strongest pushes towards failure at this step, in words; state: before it."""
        if self._reasons is None:
            return ()
        each = self._reasons.contributions(row, context, state)
        return say_reasons(*each, row, context, self._typical, self._vocabulary, self._features)

    def say_state(self, state: NDArray[np.float32], step: Step) -> tuple[str, ...]:
        """There is no automaton."""
        return ()

    def pushes(
        self, row: SparseRow, context: NDArray[np.float32], state: NDArray[np.float32], sets: NDArray[np.float32]
    ) -> list[float] | None:
        """See `StepModel`; None where the bundle has no graph for it."""
        return None if self._reasons is None else self._reasons.pushes(row, context, state, sets)

    def _try_out(self, bundle: Bundle, d: int) -> None:
        """Run an empty row and one with the last column: shapes and numbers must be right before any run starts."""
        for row in trial_rows(len(bundle.vocabulary)):
            try:
                imminent, outcome, _, state, *_ = self.step("", row, bundle.typical, self.initial)
                pushes = self._reasons.contributions(row, bundle.typical, self.initial) if self._reasons else ()
            except Exception as exc:
                raise BundleError(
                    f"{bundle.path}: the model does not run on a row with {len(row.indices)} terms "
                    f"({_first_line(exc)}). Train or export the bundle again."
                ) from exc
            given, wanted = (state, *pushes), [(self.state_size,), (d,), row.indices.shape]
            fits = [array.shape for array in given] == wanted[: len(given)]
            if not fits or not all(np.isfinite(array).all() for array in (*given, imminent, outcome)):
                raise BundleError(
                    f"{bundle.path}: the model gives wrong shapes or numbers that are not finite. "
                    "Train or export the bundle again."
                )


def trial_rows(n_terms: int) -> list[SparseRow]:
    """Rows that a model is tried on before any run starts: an empty one, and one with the last column."""
    last = SparseRow(np.array([n_terms - 1], np.int64), np.ones(1, np.float32))
    return [SparseRow(np.empty(0, np.int64), np.empty(0, np.float32)), *([last] if n_terms else [])]


def _session(model: bytes, where: str) -> Any:
    """An inference session on one thread that neither spins nor writes to the log."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = _FATAL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as exc:
        raise BundleError(
            f"{where}: onnxruntime {ort.__version__} cannot load it ({_first_line(exc)}). "
            "Upgrade onnxruntime, or export the bundle again."
        ) from exc


def _check(session: Any, outputs: dict[str, str], where: str) -> int:
    """The length of the state, after checking the outputs; the inputs were checked when the bundle was opened."""
    if {item.name: item.type for item in session.get_outputs()} != outputs:
        raise BundleError(f"{where}: outputs are not {sorted(outputs)}. Export the bundle again.")
    return next(int(item.shape[0]) for item in session.get_inputs() if item.name == "state")


def _first_line(exc: BaseException) -> str:
    lines = str(exc).splitlines()
    return f"{type(exc).__name__}: {lines[0][:200]}" if lines else type(exc).__name__
