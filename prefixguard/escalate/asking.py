"""When a run's auditor is asked: a small state machine over risks, one a run."""

from __future__ import annotations

from typing import Literal

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError
from prefixguard.escalate.policy import EscalationPolicy

#: Why a question is wanted: the risk came above the mark, or it still is, `every` steps after the last question.
Why = Literal["rising", "every"]


class Asking:
    """When to ask, by policy; deterministic, a few numbers, not thread-safe.

    What a budget or the queue then refuses counts as asked here: the next question comes when the policy says so, not
    at the very next step.

    >>> asking = Asking(EscalationPolicy(mark=0.5, every=2, gap=2))
    >>> [asking.wants(step, risk) for step, risk in enumerate((0.1, 0.6, 0.7, 0.8, 0.4, 0.9), 1)]
    [None, 'rising', None, 'every', None, 'rising']
    """

    __slots__ = ("_above", "_asked", "_every", "_gap", "_owed", "_rising", "_since", "mark")

    def __init__(self, policy: EscalationPolicy, mark: float | None = None) -> None:
        """mark: what holds where the policy names none (`policy.mark` goes first). ConfigError where neither does."""
        chosen = policy.mark if policy.mark is not None else mark
        if chosen is None:
            raise ConfigError("no escalation mark: the policy names none and there is no watch mark to take instead.")
        self.mark = chosen
        self._rising, self._every, self._gap = policy.rising, policy.every, policy.gap
        self._above = False
        self._owed = False  # the risk came above, and this was not asked about yet
        self._since = 0  # step from which `every` counts: the last question, or where the risk came above
        self._asked: int | None = None  # step of the last question

    def wants(self, step: int, risk: float | None, level: Level | None = None) -> Why | None:
        """Whether to ask about the run up to this step, and why; a question that is wanted counts as asked.

        step: from 1, never falling. risk: in [0, 1]; None (or NaN) where the step was not judged: such a step asks
        nothing and changes nothing. level: the reading's; an UNKNOWN one is a step that was not judged.
        """
        if risk is None or risk != risk or level is Level.UNKNOWN:
            return None
        if risk <= self.mark:
            self._above = self._owed = False
            return None
        if not self._above:
            self._above = True
            self._owed = self._rising
            self._since = step
        if self._asked is not None and step - self._asked < self._gap:
            return None
        if self._owed:
            why: Why = "rising"
        elif self._every is not None and step - self._since >= self._every:
            why = "every"
        else:
            return None
        self._owed = False
        self._since = self._asked = step
        return why

    def is_above(self, risk: float | None) -> bool:
        """Whether a risk is above the mark; one that is not there is not."""
        return risk is not None and risk > self.mark
