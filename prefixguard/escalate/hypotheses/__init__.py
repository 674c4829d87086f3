"""Fourteen failure modes as hypotheses, each verified against a whole run: entail, neutral, contradict, or error."""

from prefixguard.escalate.hypotheses.answers import HypothesisLabel
from prefixguard.escalate.hypotheses.modes import MODES, CueFound, FailureMode, counter_evidence, modes_of
from prefixguard.escalate.hypotheses.questions import PROMPT_VERSION
from prefixguard.escalate.hypotheses.verification import Asks, HypothesisAnswer, HypothesisResult, verify

__all__ = [
    "MODES",
    "PROMPT_VERSION",
    "Asks",
    "CueFound",
    "FailureMode",
    "HypothesisAnswer",
    "HypothesisLabel",
    "HypothesisResult",
    "counter_evidence",
    "modes_of",
    "verify",
]
