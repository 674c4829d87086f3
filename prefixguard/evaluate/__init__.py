"""Looks at a monitor from outside: figures, baselines, first alerts, a verdict in words."""

from prefixguard.evaluate.alerts import AlertRow
from prefixguard.evaluate.evaluation import alarm_thresholds, evaluate
from prefixguard.evaluate.figures import Difference, RiskFigures
from prefixguard.evaluate.incumbent import StuckDetector, StuckRule, stuck_scores
from prefixguard.evaluate.rows import ScoreRow, rule_threshold
from prefixguard.evaluate.scoring import evaluate_scores
from prefixguard.evaluate.table import BaselineRow, EvaluationTable, LeftOut
from prefixguard.evaluate.verdict import Verdict

__all__ = [
    "AlertRow",
    "BaselineRow",
    "Difference",
    "EvaluationTable",
    "LeftOut",
    "RiskFigures",
    "ScoreRow",
    "StuckDetector",
    "StuckRule",
    "Verdict",
    "alarm_thresholds",
    "evaluate",
    "evaluate_scores",
    "rule_threshold",
    "stuck_scores",
]
