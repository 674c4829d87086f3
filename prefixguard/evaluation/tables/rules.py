"""Heuristic baselines: rules that people run today instead of a monitor, as causal scores and as rows of a table.

A rule is a count over a run and a number at which it fires. Untuned it has the number of the field and whatever
false-alarm rate that brings; tuned, its count is a score like any other and the number is set from successful runs at
the budgets of the monitor, under the same bound. Each count is the largest so far: once a rule fires, it stays.

- same call repeated: equal calls in a row. A call is a record of the agent with a tool, or with a result; two are
  equal when tool and arguments are (and the text, where there is no tool). What others say, and messages of the agent,
  come between calls and do not end the row.
- errors in a row: calls in a row with status `error`.
- stuck detector: how near a detector such as that of OpenHands has come to firing, as a share of its numbers; it fires
  at 1: the same action with the same observation four times, the same action with an error three times, three messages
  of the agent in a row, or two actions alternating over six. Its terms are those of `StuckDetector`.
- step count: the number of the step. No number of steps is the field's; tuned, it is the row `step index` of every
  table, so `rule_rows` does not repeat it.

>>> call = StepRecord(1, "agent", "", "search", "{}", "", "", "timeout", "error")
>>> {name: score.tolist() for name, score in rule_scores([call] * 3).items()}["errors in a row"]
[1.0, 2.0, 3.0]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.alarm import AlarmPolicy, alarm_table, run_maximum
from prefixguard.errors import ConfigError
from prefixguard.evaluation.tables.rows import ScoreRow, rule_threshold
from prefixguard.stepview import StepRecord

Float = npt.NDArray[np.float64]
Scores = Mapping[str, Float]  # rule -> (T,), of one run


@dataclass(frozen=True, slots=True)
class StuckRule:
    """How often counts as stuck; the defaults are OpenHands'.

    same_observation: the same action and observation, this many times in a row.
    same_error: the same action with an error, this many times in a row.
    monologue: messages of the agent in a row without anybody answering.
    alternating: actions in a row of which each equals the one before the last, observations too.
    """

    same_observation: int = 4
    same_error: int = 3
    monologue: int = 3
    alternating: int = 6

    def __post_init__(self) -> None:
        for name in self.__slots__:
            least = 3 if name == "alternating" else 1
            if getattr(self, name) < least:
                raise ConfigError(f"stuck rule: {name} is {getattr(self, name)}, use {least} or more.")


class StuckDetector:
    """The rule over one run, record by record, in fixed memory: the last two actions and four counts.

    - an action is a record with a tool; two are the same when tool and arguments are. The text that the agent
      says with the call is not compared (OpenHands compares it): the rule then fires more often.
    - its observation is the record's result, an error is status `error`; errors need not be equal, as there.
    - a record without a tool, or with tool `respond`, and without a result is a message of the agent; what another
      actor does, or an observation that follows a message, is the user speaking, and everything starts over, as there.
    """

    __slots__ = ("_alternating", "_before", "_last", "_rule", "_said", "_same_error", "_same_observation", "reached")

    def __init__(self, rule: StuckRule | None = None) -> None:
        self._rule = rule or StuckRule()
        #: The last two actions with their observations since the user spoke; None: there was none.
        self._last: tuple[tuple[str, str, str], str] | None = None
        self._before: tuple[tuple[str, str, str], str] | None = None
        #: Actions in a row, up to the last: equal with equal observations; equal with errors; each as the one before
        #: the last.
        self._same_observation = self._same_error = self._alternating = 0
        self._said = 0  # messages of the agent in a row
        #: How near the last record brought the rule to firing, 0 or more: the largest share of one of its numbers that
        #: is reached. It fires exactly where this is 1 or more.
        self.reached = 0.0

    def observe(self, record: StepRecord) -> str | None:
        """What the agent is stuck in after this record, in words; None if in nothing."""
        if record.actor != "agent" or (self._said and record.observation):
            self._start_over()
            if record.actor != "agent":
                return None
        rule = self._rule
        if record.tool in ("", "respond") and not record.result:
            self._said += 1
            self.reached = self._said / rule.monologue
            return "monologue" if self._said >= rule.monologue else None
        self._said = 0
        self._count(record)
        counts = (
            (self._same_observation, rule.same_observation, "same action, same observation"),
            (self._same_error, rule.same_error, "same action, error"),
            (self._alternating, rule.alternating, "alternating actions"),
        )
        self.reached = max(count / number for count, number, _ in counts)
        return next((words for count, number, words in counts if count >= number), None)

    def _count(self, record: StepRecord) -> None:
        action = (record.tool, record.arguments, "" if record.tool else record.action)
        step = (action, record.result)
        last, before = self._last, self._before
        self._same_observation = self._same_observation + 1 if step == last else 1
        if record.status != "error":
            self._same_error = 0
        else:
            self._same_error = self._same_error + 1 if last is not None and action == last[0] else 1
        # Any two actions may be the start of an alternation.
        self._alternating = self._alternating + 1 if step == before else 1 + (last is not None)
        self._last, self._before = step, last

    def _start_over(self) -> None:
        self._last = self._before = None
        self._same_observation = self._same_error = self._alternating = self._said = 0
        self.reached = 0.0


def stuck_scores(records: Iterable[StepRecord], rule: StuckRule | None = None) -> npt.NDArray[np.float64]:
    """Score of each prefix, (T,): 0 until the rule first fires, 1 from that step on (a host would have stopped there).

    Causal: the score at t depends on records 1..t alone.

    >>> poll = StepRecord(1, "agent", "", "status", "{}", "", "", "pending", "ok")
    >>> stuck_scores([poll] * 5)
    array([0., 0., 0., 1., 1.])
    """
    detector = StuckDetector(rule)
    fired = False
    scores = []
    for record in records:
        fired = detector.observe(record) is not None or fired
        scores.append(float(fired))
    return np.array(scores, dtype=np.float64)


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

    Causal: the score at t depends on records 1..t alone. One pass; besides the scores, fixed memory.
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
    rows = []
    for rule in RULES:
        fired = [(run[rule.name] >= rule.fires).astype(np.float64) for run in scores]
        note = f"untuned rule: {rule.note}"
        rows.append(ScoreRow(rule.untuned, fired, fired, thresholds={None: rule_threshold()}, note=note))
    for rule in RULES if calibration is not None else ():
        note = f"the largest count so far of the rule {rule.name!r}, its alarm set from successful runs"
        rows.append(tuned_row(rule.name, note, scores, calibration, policy, budgets))
    return rows


def tuned_row(
    name: str,
    note: str,
    scores: Sequence[Scores],
    calibration: Sequence[Scores] | None,
    policy: AlarmPolicy,
    budgets: Sequence[float],
) -> ScoreRow:
    """A row of the scores of this name; its alarm is set from the calibration runs, and there is none without them."""
    counts = [run[name] for run in scores]
    maxima = [run_maximum(run[name], policy) for run in calibration or ()]
    found = {} if calibration is None else alarm_table(maxima, policy, budgets=budgets)
    return ScoreRow(name, counts, counts, thresholds={float(b): one for b, one in found.items()}, note=note)
