"""PrefixGuard: compile raw agent traces into small online failure monitors.

    import prefixguard

    monitor = prefixguard.load("monitors/tau")
    session = monitor.start()
    for event in events:
        for reading in session.observe(event):
            ...

Names are loaded when they are first used, so that watching a run imports what watching needs and no more.
"""

from __future__ import annotations

__distribution__ = "prefixguard-monitor"  # set before anything is imported: prefixguard.distribution looks for it
__version__ = "0.3.0"

import importlib
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

# onnxruntime, once imported, writes an id of the machine to the home folder and sends figures of its use to its maker,
# unless it finds this. Whoever wants that sets the variable to 0 beforehand.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from prefixguard.alarm import AlarmPolicy, Level
    from prefixguard.automata import ExportResult, export
    from prefixguard.bundle import Bundle, KeyPair, Signed, new_key, open_bundle, sign
    from prefixguard.cli import demo, info
    from prefixguard.errors import PrefixGuardError
    from prefixguard.escalate import (
        AuditLine,
        Endpoint,
        EscalatedReading,
        EscalatedSession,
        EscalationPolicy,
        Escalator,
        Verdict,
        audit,
    )
    from prefixguard.evaluate import Comparison, EvaluationTable, compare, evaluate
    from prefixguard.evaluate.data_check import DataCheck, check_data
    from prefixguard.induce import CheckReport, Induced, check_adapter, induce_adapter
    from prefixguard.learn import LearnListener, TrainConfig
    from prefixguard.learn.train import TrainResult, train
    from prefixguard.runtime import (
        CalibrateResult,
        Drift,
        DriftReference,
        DriftSignal,
        Monitor,
        Reading,
        ScoredRun,
        Session,
        calibrate,
        load,
        parse,
        score,
        watch,
    )
    from prefixguard.stepview import Adapter, ReadReport, StepRecord, list_adapters, load_adapter
    from prefixguard.trace import Fault, Mistake, Outcome, Run

#: Public name to the room that has it.
_ROOMS = {
    "Adapter": "stepview",
    "AlarmPolicy": "alarm",
    "AuditLine": "escalate",
    "Bundle": "bundle",
    "CalibrateResult": "runtime",
    "CheckReport": "induce",
    "Comparison": "evaluate",
    "DataCheck": "evaluate.data_check",
    "Drift": "runtime",
    "DriftReference": "runtime",
    "DriftSignal": "runtime",
    "Endpoint": "escalate",
    "EscalatedReading": "escalate",
    "EscalatedSession": "escalate",
    "EscalationPolicy": "escalate",
    "Escalator": "escalate",
    "EvaluationTable": "evaluate",
    "ExportResult": "automata",
    "Fault": "trace",
    "Induced": "induce",
    "KeyPair": "bundle",
    "LearnListener": "learn",
    "Level": "alarm",
    "Mistake": "trace",
    "Monitor": "runtime",
    "Outcome": "trace",
    "PrefixGuardError": "errors",
    "ReadReport": "stepview",
    "Reading": "runtime",
    "Run": "trace",
    "ScoredRun": "runtime",
    "Session": "runtime",
    "Signed": "bundle",
    "StepRecord": "stepview",
    "TrainConfig": "learn",
    "TrainResult": "learn",
    "Verdict": "escalate",
    "audit": "escalate",
    "calibrate": "runtime",
    "check_adapter": "induce",
    "check_data": "evaluate.data_check",
    "compare": "evaluate",
    "demo": "cli",
    "evaluate": "evaluate",
    "export": "automata",
    "induce_adapter": "induce",
    "info": "cli",
    "list_adapters": "stepview",
    "load": "runtime",
    "load_adapter": "stepview",
    "new_key": "bundle",
    "open_bundle": "bundle",
    "parse": "runtime",
    "score": "runtime",
    "sign": "bundle",
    "train": "learn",
    "watch": "runtime",
}

__all__ = [
    "Adapter",
    "AlarmPolicy",
    "AuditLine",
    "Bundle",
    "CalibrateResult",
    "CheckReport",
    "Comparison",
    "DataCheck",
    "Drift",
    "DriftReference",
    "DriftSignal",
    "Endpoint",
    "EscalatedReading",
    "EscalatedSession",
    "EscalationPolicy",
    "Escalator",
    "EvaluationTable",
    "ExportResult",
    "Fault",
    "Induced",
    "KeyPair",
    "LearnListener",
    "Level",
    "Mistake",
    "Monitor",
    "Outcome",
    "PrefixGuardError",
    "ReadReport",
    "Reading",
    "Run",
    "ScoredRun",
    "Session",
    "Signed",
    "StepRecord",
    "TrainConfig",
    "TrainResult",
    "Verdict",
    "audit",
    "calibrate",
    "check_adapter",
    "check_data",
    "compare",
    "demo",
    "evaluate",
    "export",
    "induce_adapter",
    "info",
    "list_adapters",
    "load",
    "load_adapter",
    "new_key",
    "open_bundle",
    "parse",
    "score",
    "sign",
    "train",
    "watch",
]


def __getattr__(name: str) -> Any:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module 'prefixguard' has no attribute {name!r}")
    module = importlib.import_module(f"prefixguard.{room}")
    if name == room:
        return module  # a room that may be called, see below
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallableRoom(ModuleType):
    """A room with one main function of its own name: `prefixguard.evaluate` is both the room and its function."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Calls the room's function of the room's name."""
        return getattr(self, self.__name__.rpartition(".")[2])(*args, **options)


class _Package(ModuleType):
    """This package. Python binds a room's name here when the room is first imported; one that is also the name of a
    public function must stay callable then."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _ROOMS.get(name) == name:
            value.__class__ = _CallableRoom
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
