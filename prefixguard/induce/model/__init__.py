"""Proposals of a language model, behind any endpoint that speaks chat completions."""

from prefixguard.escalate import Endpoint
from prefixguard.induce.model.pack import Pack, sample_pack
from prefixguard.induce.model.rounds import ModelResult, Transcript, propose_with_model

__all__ = ["Endpoint", "ModelResult", "Pack", "Transcript", "propose_with_model", "sample_pack"]
