"""Watch runs while they go on: a monitor, its sessions, and what they say after every step."""

from prefixguard.alarm import Level
from prefixguard.runtime.automaton_model import AutomatonModel, read_risks, risk_logits
from prefixguard.runtime.calibration_runs import NewTasks
from prefixguard.runtime.drift import Drift, RunSummary, summarise_steps
from prefixguard.runtime.drift_signal import Drifted, DriftReference, DriftReport, DriftSignal
from prefixguard.runtime.files import ScoredRun, parse, score, watch
from prefixguard.runtime.model import OnnxModel, Step, StepModel
from prefixguard.runtime.monitor import Monitor, load, open_model
from prefixguard.runtime.reading import Reading, say_term
from prefixguard.runtime.reasons import ReasonsKind
from prefixguard.runtime.recalibration import CalibrateResult, calibrate
from prefixguard.runtime.rules_calibration import CalibratedRules, calibrate_rules
from prefixguard.runtime.rules_file import RuleCalibration
from prefixguard.runtime.rules_model import RULES
from prefixguard.runtime.session import MAX_STEP_BYTES, Session
from prefixguard.stepview import plain

__all__ = [
    "MAX_STEP_BYTES",
    "RULES",
    "AutomatonModel",
    "CalibrateResult",
    "CalibratedRules",
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
    "ReasonsKind",
    "RuleCalibration",
    "RunSummary",
    "ScoredRun",
    "Session",
    "Step",
    "StepModel",
    "calibrate",
    "calibrate_rules",
    "load",
    "open_model",
    "parse",
    "plain",
    "read_risks",
    "risk_logits",
    "say_term",
    "score",
    "summarise_steps",
    "watch",
]
