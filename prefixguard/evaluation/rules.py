"""Incumbent rules: what people run today instead of a monitor, as causal scores and as rows of a table.

A rule is a count over a run and a number at which it fires. Untuned it has the number of the field and whatever
false-alarm rate that brings; tuned, its count is a score like any other and the number is set from successful runs at
the budgets of the monitor, under the same bound. Each count is the largest so far: once a rule fires, it stays.

- same call repeated: equal calls in a row. A call is a record of the agent with a tool, or with a result; two are
  equal when tool and arguments are (and the text, where there is no tool). What others say, and messages of the agent,
  stand between calls without ending the row.
- errors in a row: calls in a row with status `error`.
- stuck detector: how near OpenHands' detector has come to firing, as a share of its numbers; it fires at 1.
- step count: the number of the step. No number of steps is the field's; tuned, it is the row `step index` of every
  table, so `rule_rows` does not repeat it.

>>> call = StepRecord(1, "agent", "", "search", "{}", "", "", "timeout", "error")
>>> {name: score.tolist() for name, score in rule_scores([call] * 3).items()}["errors in a row"]
[1.0, 2.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, Thresholds, alarm_table, run_maximum
from prefixguard.evaluation.incumbent import StuckDetector
from prefixguard.evaluation.rows import ScoreRow, rule_threshold
from prefixguard.stepview import StepRecord

Float = npt.NDArray[np.float64]
Scores = Mapping[str, Float]  # rule -> (T,), of one run


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with the field's number.

    name: of the count, and of the tuned row. fires: the count at which it fires. untuned: name of the untuned row.
    note: what the untuned row is, in words.
    """

    name: str
    fires: float
    untuned: str
    note: str


#: The rules that become rows. The last is the row of the table that was there first, and keeps its name.
RULES = (
    Rule("same call repeated", 4, "same call 4 times", "fires at the fourth equal call in a row, and stays"),
    Rule("errors in a row", 3, "3 errors in a row", "fires at the third error in a row, and stays"),
    Rule(
        "stuck detector",
        1,
        "incumbent rule",
        "OpenHands' stuck detector with its defaults: the same action and observation 4 times, the same action "
        "and error 3 times, 3 messages in a row, 6 alternating actions",
    ),
)


def rule_scores(records: Iterable[StepRecord]) -> dict[str, Float]:
    """The counts of all rules after each record of a run: name -> float (T,), never falling.

    Causal: the score at t depends on records 1..t alone. One pass, fixed memory beside the scores.
    """
    detector = StuckDetector()
    columns: dict[str, list[float]] = {name: [] for name in (*(rule.name for rule in RULES), "step count")}
    last: tuple[str, str, str] | None = None
    equal = errors = 0  # calls in a row, up to the last one
    most_equal = most_errors = 0
    most_stuck = 0.0
    for step, record in enumerate(records, 1):
        detector.observe(record)
        if record.actor == "agent" and (record.tool not in ("", "respond") or record.result):
            call = (record.tool, record.arguments, "" if record.tool else record.action)
            equal = equal + 1 if call == last else 1
            errors = errors + 1 if record.status == "error" else 0
            last = call
        most_equal, most_errors = max(most_equal, equal), max(most_errors, errors)
        most_stuck = max(most_stuck, detector.reached)
        for name, value in zip(columns, (most_equal, most_errors, most_stuck, step), strict=True):
            columns[name].append(float(value))
    return {name: np.array(values, dtype=np.float64) for name, values in columns.items()}


def rule_rows(
    scores: Sequence[Scores],
    calibration: Sequence[Scores] | None,
    policy: AlarmPolicy,
    budgets: Sequence[float],
) -> list[ScoreRow]:
    """Rows of the rules: all untuned ones, then all tuned ones where there are calibration runs.

    scores: `rule_scores` of each evaluated run. calibration: of successful runs used for nothing else, one run a task
    (`alarm.draw_one_per_task`); None: rules are not tuned. policy, budgets: the monitor's.
    An untuned rule scores 0 until it fires and 1 from then on, alarms when it fires, and has no budget. A tuned one
    scores its count; too few calibration runs for a budget refuse it, as they do for a monitor.
    """
    rows = [
        _row(rule.untuned, scores, _fired(rule), {None: rule_threshold()}, f"untuned rule: {rule.note}")
        for rule in RULES
    ]
    if calibration is None:
        return rows
    for rule in RULES:
        maxima = [run_maximum(run[rule.name], policy) for run in calibration]
        table = alarm_table(maxima, policy, budgets=budgets)
        marks: dict[float | None, Thresholds] = {float(budget): mark for budget, mark in table.items()}
        note = f"the largest count so far of the rule {rule.name!r}, its alarm set from successful runs"
        rows.append(_row(rule.name, scores, _count(rule), marks, note))
    return rows


def _fired(rule: Rule) -> Callable[[Scores], Float]:
    return lambda run: (run[rule.name] >= rule.fires).astype(np.float64)


def _count(rule: Rule) -> Callable[[Scores], Float]:
    return lambda run: run[rule.name]


def _row(
    name: str,
    scores: Sequence[Scores],
    read: Callable[[Scores], Float],
    marks: Mapping[float | None, Thresholds],
    note: str,
) -> ScoreRow:
    column = [read(run) for run in scores]
    return ScoreRow(name, column, column, thresholds=marks, note=note)
