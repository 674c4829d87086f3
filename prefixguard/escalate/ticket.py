"""A question to the auditor, and what became of it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from prefixguard.escalate.budgets import Budget, Held
from prefixguard.escalate.judged import Judged
from prefixguard.stepview import StepRecord

Ending = Literal["pending", "answered", "cached", "dropped", "failed"]


@dataclass(frozen=True, slots=True)
class Question:
    """Is the run, up to this step, still on a good way?

    records: the steps so far, in order. step: number of the last one. why: see `asking.Why`; free for other callers.
    run: the run's budget; None where only the minute's counts.
    """

    records: Sequence[StepRecord]
    step: int
    why: str = ""
    run: Budget | None = None


_events = threading.Lock()  # held while a ticket gets its event


class Ticket:
    """What became of a question. Reading it is safe from any thread.

    ending: "pending", and then once and for all another. judged: what was answered, also for some that failed; None
    where nothing was. reason: for dropped and failed ones, a few words; "" for others. The rest is the desk's: when it
    was offered, what is held for it in the run's and the minute's budget, and whether it was sent.
    """

    __slots__ = ("_event", "ending", "held", "held_minute", "judged", "offered_at", "question", "reason", "sent")

    def __init__(self, question: Question, offered_at: float) -> None:
        self.question = question
        self.ending: Ending = "pending"
        self.judged: Judged | None = None
        self.reason = ""
        self.offered_at = offered_at
        self.held: Held | None = None
        self.held_minute: Held | None = None
        self.sent = False
        self._event: threading.Event | None = None  # made by the first who waits; most questions are never waited for

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.ending != "pending"

    def result(self, timeout: float | None = None) -> Judged | None:
        """Waits `timeout` seconds at most (None: until it ends); the answer, or None where there is none by then."""
        if not self.done:
            with _events:
                if self._event is None:
                    self._event = threading.Event()
            if not self.done:  # whoever ends it looks for an event afterwards
                self._event.wait(timeout)
        return self.judged if self.done else None

    def end(self, ending: Ending, judged: Judged | None, reason: str) -> None:
        """Ends it; whoever waits goes on. For the desk alone."""
        self.judged, self.reason = judged, reason
        self.ending = ending  # last: who reads that it has ended may read the rest
        if self._event is not None:
            self._event.set()

    def forget_waiters(self) -> None:
        """In a forked child: whoever waited is not there any more."""
        self._event = None

    def __repr__(self) -> str:
        return f"<Ticket step {self.question.step} {self.ending}{f': {self.reason}' if self.reason else ''}>"


def renew_events() -> None:
    """In a forked child: whoever held the lock is not there any more."""
    global _events
    _events = threading.Lock()
