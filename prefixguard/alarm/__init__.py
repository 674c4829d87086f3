"""The alarm policy as a state machine over risks, and the threshold with its finite-sample bound."""

from prefixguard.alarm.policy import AlarmPolicy, Level
from prefixguard.alarm.rules import LEAST_SCALE, MOST_SCALE, alarm_scale, calibrated_scale, rule_level
from prefixguard.alarm.state import AlarmState, first_alert, run_maximum
from prefixguard.alarm.threshold import (
    BUDGETS,
    GroupThresholds,
    Thresholds,
    alarm_table,
    alarm_threshold,
    allowed_exceedances,
    binomial_cdf,
    draw_one_per_task,
    group_thresholds,
    runs_needed,
    smallest_budget,
    table_from_json,
    table_to_json,
    watch_threshold,
    watched,
)

__all__ = [
    "BUDGETS",
    "LEAST_SCALE",
    "MOST_SCALE",
    "AlarmPolicy",
    "AlarmState",
    "GroupThresholds",
    "Level",
    "Thresholds",
    "alarm_scale",
    "alarm_table",
    "alarm_threshold",
    "allowed_exceedances",
    "binomial_cdf",
    "calibrated_scale",
    "draw_one_per_task",
    "first_alert",
    "group_thresholds",
    "rule_level",
    "run_maximum",
    "runs_needed",
    "smallest_budget",
    "table_from_json",
    "table_to_json",
    "watch_threshold",
    "watched",
]
