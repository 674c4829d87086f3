"""Looks at a monitor from outside: figures, baselines, first alerts, a verdict in words."""

from prefixguard.evaluation.analyses import (
    AlarmResampling,
    AutomatonFidelity,
    HeldShare,
    Observability,
    PrevalenceTable,
    Shortcuts,
    expected_held,
    observability,
    prevalence_table,
    resample_alarms,
    shortcuts,
)
from prefixguard.evaluation.behaviour_check import BehaviourCheck, BehaviourCount, check_behaviours
from prefixguard.evaluation.comparing import compare
from prefixguard.evaluation.evaluation import alarm_thresholds, evaluate
from prefixguard.evaluation.scoring import evaluate_scores
from prefixguard.evaluation.tables.alerts import AlertRow
from prefixguard.evaluation.tables.comparison import Comparison, MonitorAlerts, MonitorColumn
from prefixguard.evaluation.tables.evaluation_table import BaselineRow, Behind, EvaluationTable, RunKey, RunsLeftOut
from prefixguard.evaluation.tables.figures import Difference, RiskFigures
from prefixguard.evaluation.tables.rows import ScoreRow, oracle_rows, rule_threshold
from prefixguard.evaluation.tables.rules import StuckDetector, StuckRule, rule_rows, rule_scores, stuck_scores
from prefixguard.evaluation.tables.verdict import EvaluationVerdict

__all__ = [
    "AlarmResampling",
    "AlertRow",
    "AutomatonFidelity",
    "BaselineRow",
    "BehaviourCheck",
    "BehaviourCount",
    "Behind",
    "Comparison",
    "Difference",
    "EvaluationTable",
    "EvaluationVerdict",
    "HeldShare",
    "MonitorAlerts",
    "MonitorColumn",
    "Observability",
    "PrevalenceTable",
    "RiskFigures",
    "RunKey",
    "RunsLeftOut",
    "ScoreRow",
    "Shortcuts",
    "StuckDetector",
    "StuckRule",
    "alarm_thresholds",
    "check_behaviours",
    "compare",
    "evaluate",
    "evaluate_scores",
    "expected_held",
    "observability",
    "oracle_rows",
    "prevalence_table",
    "resample_alarms",
    "rule_rows",
    "rule_scores",
    "rule_threshold",
    "shortcuts",
    "stuck_scores",
]
