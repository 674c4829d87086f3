"""Watch runs while they go on: a monitor, its sessions, and what they say after every step."""

from prefixguard.alarm import Level
from prefixguard.runtime.automaton_model import AutomatonModel, risk_logits
from prefixguard.runtime.drift import Drift
from prefixguard.runtime.drift_signal import Drifted, DriftReference, DriftReport, DriftSignal
from prefixguard.runtime.model import OnnxModel
from prefixguard.runtime.monitor import Monitor, load, open_model
from prefixguard.runtime.new_tasks import NewTasks
from prefixguard.runtime.parsing import parse
from prefixguard.runtime.reading import Reading, plain
from prefixguard.runtime.reasons import say_term
from prefixguard.runtime.recalibration import CalibrateResult, calibrate
from prefixguard.runtime.run_summary import RunSummary, summarise_records, summarise_run, summarise_steps
from prefixguard.runtime.scoring import ScoredRun, score
from prefixguard.runtime.session import MAX_STEP_BYTES, Session
from prefixguard.runtime.step import Step, StepModel
from prefixguard.runtime.watching import watch

__all__ = [
    "MAX_STEP_BYTES",
    "AutomatonModel",
    "CalibrateResult",
    "Drift",
    "DriftReference",
    "DriftReport",
    "DriftSignal",
    "Drifted",
    "Level",
    "Monitor",
    "NewTasks",
    "OnnxModel",
    "Reading",
    "RunSummary",
    "ScoredRun",
    "Session",
    "Step",
    "StepModel",
    "calibrate",
    "load",
    "open_model",
    "parse",
    "plain",
    "risk_logits",
    "say_term",
    "score",
    "summarise_records",
    "summarise_run",
    "summarise_steps",
    "watch",
]
