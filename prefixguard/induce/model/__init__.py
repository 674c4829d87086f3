"""Proposals of a language model, behind any endpoint that speaks chat completions."""

from prefixguard.escalate import Endpoint
from prefixguard.induce.model.model_result import ModelResult
from prefixguard.induce.model.pack import Pack, sample_pack
from prefixguard.induce.model.prompt import PROMPT_VERSION, first_messages
from prefixguard.induce.model.rounds import propose_with_model
from prefixguard.induce.model.transcript import Transcript
from prefixguard.induce.model.trial import Trial

__all__ = [
    "PROMPT_VERSION",
    "Endpoint",
    "ModelResult",
    "Pack",
    "Transcript",
    "Trial",
    "first_messages",
    "propose_with_model",
    "sample_pack",
]
