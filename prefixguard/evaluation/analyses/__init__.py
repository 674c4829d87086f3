"""Further analyses of an evaluation: observability, prevalence, shortcuts, fidelity, and whether alarm bounds hold."""

from prefixguard.evaluation.analyses.alarm_resampling import AlarmResampling, HeldShare, expected_held, resample_alarms
from prefixguard.evaluation.analyses.fidelity import AutomatonFidelity, UnseenTransitions, automaton_fidelity
from prefixguard.evaluation.analyses.observability import Observability, observability
from prefixguard.evaluation.analyses.prevalence import PrevalenceTable, prevalence_table
from prefixguard.evaluation.analyses.shortcuts import Shortcuts, shortcuts

__all__ = [
    "AlarmResampling",
    "AutomatonFidelity",
    "HeldShare",
    "Observability",
    "PrevalenceTable",
    "Shortcuts",
    "UnseenTransitions",
    "automaton_fidelity",
    "expected_held",
    "observability",
    "prevalence_table",
    "resample_alarms",
    "shortcuts",
]
