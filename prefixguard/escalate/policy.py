"""When an auditor is asked, what that may cost, and what its verdict does."""

from __future__ import annotations

import math
import warnings
from dataclasses import InitVar, dataclass
from typing import Literal

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError

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


Mode = Literal["async", "block"]
Intervention = Literal["warn", "nudge", "stop"]
OnAlarm = Literal["note", "confirm", "raise"]

#: The choices, in words as options take them.
MODES: tuple[Mode, ...] = ("async", "block")
INTERVENTIONS: tuple[Intervention, ...] = ("warn", "nudge", "stop")
ON_ALARM: tuple[OnAlarm, ...] = ("note", "confirm", "raise")
#: Seconds that may be waited for anything, at most: more than a timer of the system can take is no number of seconds.
MAX_SECONDS = 1e6


@dataclass(frozen=True, slots=True)
class EscalationPolicy:
    """The policy of the escalation tier. Steps are counted as readings count them, from 1.

    When to ask. "Above" is a risk strictly above the mark, as for alarms.
    mark: a risk in (0, 1]; 1 is never passed. None: the monitor's watch mark, which a stated share of its calibration
        steps passed (10 % by default), so at most that share of them is asked about. `escalation_mark` finds others.
    risk: which risk is meant, "outcome" or "imminent". The watch mark is one of the outcome risk.
    rising: ask when the risk comes above the mark. One that comes too early after a question is asked about when the
        gap is over, if the risk is still above.
    every: while the risk stays above: ask again that many steps after the last question, 1 or more. None: not again.
    gap: fewest steps from one question of a run to its next, 1 or more.

    What it may cost. None is no limit; 0 asks nothing. A question that a budget refuses is dropped, and counted.
    calls_a_run, calls_a_minute: questions that are sent. Those answered from the cache are none.
    tokens_a_run, tokens_a_minute: tokens sent and received.
    money_a_run, money_a_minute: in the currency of the endpoint's prices. Where an answer's cost is not known, nothing
        is asked after it.
    question_tokens, question_money: what a question is held to take until its answer tells; tokens (1 or more) and
        money (0 or more). No budget of calls is ever passed; one of tokens or money is passed by no more than what
        answers take beyond this, so give the most that one can take (the prompt's budget and the longest reply).

    What a verdict does. An answer ABSTAIN or ERROR never changes a level; no answer makes UNKNOWN an OK.
    on_alarm: an ALARM verdict "note": is shown, no level changes; "confirm": the level is ALARM wherever the risk is
        above the mark as well, for the rest of the run; "raise": ALARM for the rest of the run, whatever the risk. The
        promise about false alarms holds for the monitor's own alarms; those of a verdict are outside it.
    clear_steps: a SAFE verdict about the run up to step q makes WATCH an OK up to step q + clear_steps; 0: it does not.
    may_clear_alarm: it makes ALARM a WATCH there too. Without it no alarm is ever hidden.
    A later verdict ALARM undoes a clearance; a later SAFE does not undo an alarm.

    How it runs.
    mode: "async": the agent never waits, a verdict is applied to the reading after it has come. "block": the reading
        waits for the verdict on it, `deadline` seconds (more than 0) at most.
    seconds: for one question, its wait for a free worker included; what is not answered by then has failed. Over 0;
        neither this nor the deadline is over MAX_SECONDS.
    intervention: what a host is told to do at ALARM: "warn": nothing more; "nudge": a message for the agent; "stop":
        the message, and to stop.
    queue: questions that may wait for a worker, 1 or more; more are dropped.
    keep_texts: bytes of the run's texts that a session keeps for prompts, 1024 or more; of longer runs the middle is
        dropped, and the prompt says so. Three times the tokens of the prompt's budget are what it can show at most.
    rung: the name of `intervention` in 0.3, with a warning.
    Raises ConfigError for a value outside its range.

    >>> EscalationPolicy(mark=0.0)
    Traceback (most recent call last):
    ...
    prefixguard.errors.ConfigError: escalation mark 0: it is a risk above 0 and at most 1, or None for the watch mark.
    """

    mark: float | None = None
    risk: Literal["outcome", "imminent"] = "outcome"
    rising: bool = True
    every: int | None = 5
    gap: int = 2
    calls_a_run: int | None = 8
    calls_a_minute: int | None = 120
    tokens_a_run: int | None = None
    tokens_a_minute: int | None = None
    money_a_run: float | None = None
    money_a_minute: float | None = None
    question_tokens: int = 8000
    question_money: float = 0.0
    on_alarm: OnAlarm = "confirm"
    clear_steps: int = 0
    may_clear_alarm: bool = False
    mode: Mode = "async"
    deadline: float = 10.0
    seconds: float = 60.0
    intervention: Intervention = "warn"
    queue: int = 256
    keep_texts: int = 32 * 1024
    rung: InitVar[Intervention | None] = None

    def __post_init__(self, rung: Intervention | None) -> None:
        if rung is not None:
            warnings.warn("EscalationPolicy(rung=...): say intervention=...", DeprecationWarning, stacklevel=3)
            object.__setattr__(self, "intervention", rung)
        if self.mark is not None and not 0.0 < self.mark <= 1.0:
            raise ConfigError(
                f"escalation mark {self.mark:g}: it is a risk above 0 and at most 1, or None for the watch mark."
            )
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} {getattr(self, name)!r}: one of {', '.join(choices)}.")
        if not self.rising and self.every is None:
            raise ConfigError("rising is off and every is None: nothing would ever be asked. Set one of them.")
        for names, least, what in _WHOLE:
            for name in names:
                value = getattr(self, name)
                if value is not None and (type(value) is not int or value < least):
                    raise ConfigError(f"{name} {value!r}: {what}, so use a whole number of {least} or more.")
        for name in ("money_a_run", "money_a_minute", "question_money"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ConfigError(f"{name} {value}: it is an amount of money, 0 or more.")
        for name in ("tokens_a_run", "tokens_a_minute"):
            value = getattr(self, name)
            if value is not None and 0 < value < self.question_tokens:
                raise ConfigError(
                    f"{name} {value} is less than one question is held to take ({self.question_tokens}): nothing would "
                    "ever be asked. Give question_tokens as well."
                )
        for name in ("deadline", "seconds"):
            value = getattr(self, name)
            if not 0 < value <= MAX_SECONDS:
                raise ConfigError(f"{name} {value}: seconds, more than 0. At most {MAX_SECONDS:,.0f}.")


_CHOICES: dict[str, tuple[str, ...]] = {
    "risk": ("outcome", "imminent"),
    "on_alarm": ON_ALARM,
    "mode": MODES,
    "intervention": INTERVENTIONS,
}
#: Options that are whole numbers: their least value, and what they are.
_WHOLE = (
    (("every", "gap"), 1, "it counts steps"),
    (("clear_steps",), 0, "it counts steps"),
    (("calls_a_run", "calls_a_minute", "tokens_a_run", "tokens_a_minute"), 0, "it is a budget, None for no limit"),
    (("question_tokens",), 1, "it counts tokens"),
    (("queue",), 1, "it counts questions"),
    (("keep_texts",), 1024, "it counts bytes"),
)
