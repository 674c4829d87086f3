"""The incumbent: a fixed rule for agents that are stuck.

What people run today is a rule such as that of OpenHands' stuck detector: the same action with the same observation
four times, the same action with an error three times, three messages of the agent in a row, or two actions alternating
over six. It is a row in every table. Read from step records:

- an action is a record with a tool; two are the same when tool and arguments are. The agent's text beside the call is
  not compared (OpenHands compares it): the rule then fires oftener, and is a stronger opponent.
- its observation is the record's result, an error is status `error`; errors need not be equal, as there.
- a record without a tool, or with tool `respond`, and without a result is a message of the agent; what another actor
  does, or an observation that follows a message, is the user speaking, and everything starts over, as there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.stepview import StepRecord


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
    """The rule over one run, record by record, in fixed memory: the last two actions and four counts."""

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
