"""Evaluations that train: cross-validation, ablation, leave one agent out. They need the training extra."""

from prefixguard.evaluation.retraining.ablation import Ablation, AblationRow, ablate
from prefixguard.evaluation.retraining.fitting import training_of
from prefixguard.evaluation.retraining.folds import FoldedEvaluation, FoldedRow, cross_validate
from prefixguard.evaluation.retraining.leave_one_agent_out import (
    AgentLeftOut,
    AgentTransfer,
    leave_one_agent_out,
)
from prefixguard.evaluation.retraining.partition import Fold, partition
from prefixguard.evaluation.retraining.views import View, ablation_views, seen_through

__all__ = [
    "Ablation",
    "AblationRow",
    "AgentLeftOut",
    "AgentTransfer",
    "Fold",
    "FoldedEvaluation",
    "FoldedRow",
    "View",
    "ablate",
    "ablation_views",
    "cross_validate",
    "leave_one_agent_out",
    "partition",
    "seen_through",
    "training_of",
]
