"""What verdicts do to the levels of a run."""

from __future__ import annotations

from prefixguard.alarm import Level
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.verdict import Verdict, VerdictOutcome


class Effect:
    """The verdicts on one run, and the level that they make of the monitor's. Not thread-safe, one a run.

    The state does not depend on the order in which verdicts come in, so a slow answer never undoes a newer one.

    >>> effect = Effect(EscalationPolicy(mark=0.5, clear_steps=2))
    >>> effect.take(3, Verdict(VerdictOutcome.SAFE))
    False
    >>> [effect.level(Level.WATCH, step, above=True).value for step in (4, 5, 6)]
    ['OK', 'OK', 'WATCH']
    """

    __slots__ = ("_alarm_about", "_cleared_until", "_policy", "about", "alarm", "verdict")

    def __init__(self, policy: EscalationPolicy) -> None:
        self._policy = policy
        self._cleared_until = 0
        #: The newest verdict ALARM, by the step it is about; None while there is none.
        self.alarm: Verdict | None = None
        self._alarm_about = 0
        #: The newest verdict, by the step it is about, that is no ERROR; that step.
        self.verdict: Verdict | None = None
        self.about: int | None = None

    def take(self, about: int, verdict: Verdict) -> bool:
        """A verdict on the run up to step `about`; whether it is an ALARM."""
        if verdict.outcome is VerdictOutcome.ERROR:
            return False
        if self.about is None or about >= self.about:
            self.verdict, self.about = verdict, about
        if verdict.outcome is VerdictOutcome.SAFE:
            self._cleared_until = max(self._cleared_until, about + self._policy.clear_steps)
        if verdict.outcome is not VerdictOutcome.ALARM:
            return False
        if self.alarm is None or about >= self._alarm_about:
            self.alarm, self._alarm_about = verdict, about
        return True

    def level(self, level: Level, step: int, *, above: bool) -> Level:
        """The level at a step. level: the monitor's. above: whether the step's risk is above the escalation mark."""
        policy = self._policy
        if self.alarm is not None:
            if policy.on_alarm == "raise" or (policy.on_alarm == "confirm" and above and level is not Level.UNKNOWN):
                return Level.ALARM
            return level
        if policy.clear_steps == 0 or step > self._cleared_until:
            return level
        if level is Level.WATCH:
            return Level.OK
        if level is Level.ALARM and policy.may_clear_alarm:
            return Level.WATCH
        return level
