"""The alarm policy as a state machine over risks, and the threshold with its finite-sample bound."""

from prefixguard.alarm.bound import allowed_exceedances, binomial_cdf, runs_needed, smallest_budget
from prefixguard.alarm.groups import GroupThresholds, group_thresholds, watched
from prefixguard.alarm.level import Level
from prefixguard.alarm.policy import AlarmPolicy
from prefixguard.alarm.state import AlarmState, first_alert, run_maximum
from prefixguard.alarm.table import BUDGETS, alarm_table, table_from_json, table_to_json
from prefixguard.alarm.threshold import Thresholds, alarm_threshold, draw_one_per_task, watch_mark

__all__ = [
    "BUDGETS",
    "AlarmPolicy",
    "AlarmState",
    "GroupThresholds",
    "Level",
    "Thresholds",
    "alarm_table",
    "alarm_threshold",
    "allowed_exceedances",
    "binomial_cdf",
    "draw_one_per_task",
    "first_alert",
    "group_thresholds",
    "run_maximum",
    "runs_needed",
    "smallest_budget",
    "table_from_json",
    "table_to_json",
    "watch_mark",
    "watched",
]
