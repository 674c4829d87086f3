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

from collections import deque
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
    """The rule over one run, record by record, in fixed memory."""

    __slots__ = ("_recent", "_rule", "_said")

    def __init__(self, rule: StuckRule | None = None) -> None:
        self._rule = rule or StuckRule()
        size = max(self._rule.same_observation, self._rule.same_error, self._rule.alternating)
        #: (action, observation, whether it is an error) of the last actions since the user spoke.
        self._recent: deque[tuple[tuple[str, str, str], str, bool]] = deque(maxlen=size)
        self._said = 0  # messages of the agent in a row

    def observe(self, record: StepRecord) -> str | None:
        """What the agent is stuck in after this record, in words; None if in nothing."""
        if record.actor != "agent" or (self._said and record.observation):
            self._recent.clear()
            self._said = 0
            if record.actor != "agent":
                return None
        if record.tool in ("", "respond") and not record.result:
            self._said += 1
            return "monologue" if self._said >= self._rule.monologue else None
        self._said = 0
        action = (record.tool, record.arguments, "" if record.tool else record.action)
        self._recent.append((action, record.result, record.status == "error"))
        return self._stuck()

    def _stuck(self) -> str | None:
        steps = list(self._recent)
        rule = self._rule
        last = steps[-rule.same_observation :]
        if len(last) == rule.same_observation and all(step[:2] == last[0][:2] for step in last):
            return "same action, same observation"
        last = steps[-rule.same_error :]
        if len(last) == rule.same_error and all(step[0] == last[0][0] and step[2] for step in last):
            return "same action, error"
        last = steps[-rule.alternating :]
        if len(last) == rule.alternating and all(
            one[:2] == other[:2] for one, other in zip(last, last[2:], strict=False)
        ):
            return "alternating actions"
        return None


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
