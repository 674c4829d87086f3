"""Figures of merit over prefixes and runs: numpy only, one class or no data gives NaN, never an error."""

from prefixguard.metrics.bootstrap import Resamples, interval, paired_difference
from prefixguard.metrics.clocks import end_oracle, step_index
from prefixguard.metrics.first_alerts import FirstAlerts, first_alerts
from prefixguard.metrics.matched import MAX_INDEX, MAX_REMAINING, at_index, at_remaining
from prefixguard.metrics.prefixes import Prefixes
from prefixguard.metrics.ranking import Ranking, auroc, average_precision
from prefixguard.metrics.ratio import ratio
from prefixguard.metrics.reliability import Reliability, ReliabilityBin, brier, ece, reliability_curve

__all__ = [
    "MAX_INDEX",
    "MAX_REMAINING",
    "FirstAlerts",
    "Prefixes",
    "Ranking",
    "Reliability",
    "ReliabilityBin",
    "Resamples",
    "at_index",
    "at_remaining",
    "auroc",
    "average_precision",
    "brier",
    "ece",
    "end_oracle",
    "first_alerts",
    "interval",
    "paired_difference",
    "ratio",
    "reliability_curve",
    "step_index",
]
