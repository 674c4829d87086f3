"""Figures of merit over prefixes and runs: numpy only, one class or no data gives NaN, never an error."""

from prefixguard.metrics.attribution import (
    ATTRIBUTION_FIGURES,
    Attribution,
    AuditCounts,
    MeasuredAttribution,
    Quartiles,
    attribution,
    attribution_differences,
    measure_attribution,
)
from prefixguard.metrics.audited_run import AuditedRun, AuditOutcome
from prefixguard.metrics.fault_sets import FaultFigures, FaultRow, FaultSets, fault_set_figures, say_yes_to_all
from prefixguard.metrics.first_alerts import FirstAlerts, first_alerts
from prefixguard.metrics.observability import phi, phi_inverse
from prefixguard.metrics.prefixes import Prefixes, end_oracle, step_index
from prefixguard.metrics.ranking import (
    MAX_INDEX,
    MAX_REMAINING,
    REFERENCE_PREVALENCES,
    Ranking,
    ReferenceRanking,
    at_index,
    at_remaining,
    auroc,
    average_precision,
    average_precision_at,
)
from prefixguard.metrics.reference_risks import ReferenceRisks, hazards
from prefixguard.metrics.reliability import Reliability, ReliabilityBin, brier, ece, log_losses, reliability_curve
from prefixguard.metrics.resampling import Estimates, Resamples, interval, paired_difference, ratio

__all__ = [
    "ATTRIBUTION_FIGURES",
    "MAX_INDEX",
    "MAX_REMAINING",
    "REFERENCE_PREVALENCES",
    "Attribution",
    "AuditCounts",
    "AuditOutcome",
    "AuditedRun",
    "Estimates",
    "FaultFigures",
    "FaultRow",
    "FaultSets",
    "FirstAlerts",
    "MeasuredAttribution",
    "Prefixes",
    "Quartiles",
    "Ranking",
    "ReferenceRanking",
    "ReferenceRisks",
    "Reliability",
    "ReliabilityBin",
    "Resamples",
    "at_index",
    "at_remaining",
    "attribution",
    "attribution_differences",
    "auroc",
    "average_precision",
    "average_precision_at",
    "brier",
    "ece",
    "end_oracle",
    "fault_set_figures",
    "first_alerts",
    "hazards",
    "interval",
    "log_losses",
    "measure_attribution",
    "paired_difference",
    "phi",
    "phi_inverse",
    "ratio",
    "reliability_curve",
    "say_yes_to_all",
    "step_index",
]
