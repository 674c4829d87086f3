"""Looks at a monitor from outside: figures, baselines, first alerts, a verdict in words."""

from prefixguard.evaluate.alarm_resampling import AlarmResampling, HeldShare, expected_held, resample_alarms
from prefixguard.evaluate.alerts import AlertRow
from prefixguard.evaluate.comparing import compare
from prefixguard.evaluate.comparison import Comparison, MonitorAlerts, MonitorColumn
from prefixguard.evaluate.evaluation import alarm_thresholds, evaluate
from prefixguard.evaluate.faithfulness import Faithfulness
from prefixguard.evaluate.figures import Difference, RiskFigures
from prefixguard.evaluate.incumbent import StuckDetector, StuckRule, stuck_scores
from prefixguard.evaluate.observability import Observability, observability
from prefixguard.evaluate.oracles import oracle_rows
from prefixguard.evaluate.prevalence import PrevalenceTable, prevalence_table
from prefixguard.evaluate.rows import ScoreRow, rule_threshold
from prefixguard.evaluate.rules import rule_rows, rule_scores
from prefixguard.evaluate.scoring import evaluate_scores
from prefixguard.evaluate.shortcuts import Shortcuts, shortcuts
from prefixguard.evaluate.table import BaselineRow, Behind, EvaluationTable, LeftOut, RunKey, Section
from prefixguard.evaluate.verdict import Verdict

__all__ = [
    "AlarmResampling",
    "AlertRow",
    "BaselineRow",
    "Behind",
    "Comparison",
    "Difference",
    "EvaluationTable",
    "Faithfulness",
    "HeldShare",
    "LeftOut",
    "MonitorAlerts",
    "MonitorColumn",
    "Observability",
    "PrevalenceTable",
    "RiskFigures",
    "RunKey",
    "ScoreRow",
    "Section",
    "Shortcuts",
    "StuckDetector",
    "StuckRule",
    "Verdict",
    "alarm_thresholds",
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
