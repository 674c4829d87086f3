"""Causal features of the run so far, in fixed memory, one implementation for training and the live path."""

from prefixguard.context import scores, signals
from prefixguard.context.features import FEATURES, GROUPS, N_FEATURES, Feature
from prefixguard.context.recent import RecentCounts
from prefixguard.context.scores import SCORE_FEATURES, ScoreState
from prefixguard.context.signals import SIGNAL_FEATURES
from prefixguard.context.state import PACKED_BYTES, ContextState, knows, pack, start, unpack, update

__all__ = [
    "FEATURES",
    "GROUPS",
    "N_FEATURES",
    "PACKED_BYTES",
    "SCORE_FEATURES",
    "SIGNAL_FEATURES",
    "ContextState",
    "Feature",
    "RecentCounts",
    "ScoreState",
    "knows",
    "pack",
    "scores",
    "signals",
    "start",
    "unpack",
    "update",
]
