"""Further analyses of an evaluation: observability, prevalence, shortcuts, fidelity, and whether alarm bounds hold."""

from prefixguard.evaluation.analyses.alarm_resampling import AlarmResampling, HeldShare, expected_held, resample_alarms
from prefixguard.evaluation.analyses.detection import Detection, detection, known_onsets, onset_of
from prefixguard.evaluation.analyses.fidelity import AutomatonFidelity, UnseenTransitions, automaton_fidelity
from prefixguard.evaluation.analyses.observability import Observability, observability
from prefixguard.evaluation.analyses.prevalence import PrevalenceTable, prevalence_table
from prefixguard.evaluation.analyses.shares_seen import SharesSeen, shares_seen
from prefixguard.evaluation.analyses.shortcuts import Shortcuts, shortcuts

__all__ = [
    "AlarmResampling",
    "AutomatonFidelity",
    "Detection",
    "HeldShare",
    "Observability",
    "PrevalenceTable",
    "SharesSeen",
    "Shortcuts",
    "UnseenTransitions",
    "automaton_fidelity",
    "detection",
    "expected_held",
    "known_onsets",
    "observability",
    "onset_of",
    "prevalence_table",
    "resample_alarms",
    "shares_seen",
    "shortcuts",
]
