"""Inference of an adapter from samples alone, without a model and without a list of known formats."""

from prefixguard.induce.offline.inference import propose_offline

__all__ = ["propose_offline"]
