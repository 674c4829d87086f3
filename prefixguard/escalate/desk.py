"""Where questions wait for the auditor: a bounded queue, some workers, one thread in the background.

Sessions offer questions from any thread and never wait. Each question ends exactly once, in the ledger and for its
session: answered, cached, dropped or failed.

A forked child has no background thread and must not use its parent's connections: there the desk is closed (reason
"fork"), what was pending is dropped in the child's ledger alone, and monitors go on. Make a new one in the child.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.escalate.background_loop import leave_loop, run_loop, stop_loop
from prefixguard.escalate.budgets import MINUTE, Budget
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.judged import Auditor, Judged
from prefixguard.escalate.ledger import Ledger
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.ticket import Ending, Question, Ticket, renew_events
from prefixguard.escalate.verdict import VerdictOutcome
from prefixguard.escalate.verdict_cache import Keyed, VerdictCache, as_cached, question_key
from prefixguard.stepview import StepRecord

#: Reasons that are ours; others are the words of budgets ("calls a run") and of verdicts ERROR ("timeout").
CLOSED = "closed"
FORK = "fork"
QUEUE_FULL = "queue full"
CIRCUIT_OPEN = "circuit open"
LATE = "late"
RAISED = "raised"
NO_THREAD = "no thread"
STEP_OUT_OF_RANGE = "step-out-of-range"

_CIRCUIT_FAULT = "circuit-open"  # the word of a verdict ERROR whose last try was not sent; nor was any, mostly
_GRACE = 1.0  # seconds that an auditor gets beyond what it was told
_JOIN = 2.0  # seconds that `close` waits for the thread after all is settled


class Desk:
    """Takes questions to an auditor. Nothing in it raises into the host.

    The thread starts with the first question. Closing the desk closes the auditor's client as well (its `aclose`, where
    it has one), since it belongs to the thread's event loop.
    """

    def __init__(
        self,
        auditor: Auditor,
        policy: EscalationPolicy,
        ledger: Ledger | None = None,
        cache: VerdictCache | None = None,
        workers: int = 8,
        *,
        breaker: CircuitBreaker | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """workers: questions that are on their way at once, 1 to 1000. breaker: the auditor's own; while it is open
        nothing is queued. None: the auditor's attribute of that name, where it has one. ConfigError for workers.
        """
        if not 1 <= workers <= 1000:
            raise ConfigError(f"workers {workers}: questions on their way at once, from 1 to 1000.")
        self.auditor, self.policy, self.cache, self.workers = auditor, policy, cache, workers
        self.ledger = ledger if ledger is not None else Ledger()
        self.breaker: CircuitBreaker | None = breaker if breaker is not None else getattr(auditor, "breaker", None)
        self._clock = clock
        self._minute = Budget(
            "minute",
            calls=policy.calls_a_minute,
            tokens=policy.tokens_a_minute,
            money=policy.money_a_minute,
            window=MINUTE,
            clock=clock,
        )
        self._closed: str | None = None  # why nothing is taken any more
        self._waiting: deque[Ticket] = deque()
        self._active: set[Ticket] = set()  # with a worker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._finalizer: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: dict[str, asyncio.Future[tuple[Judged | None, str]]] = {}
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        _DESKS.add(self)

    def offer(self, question: Question) -> Ticket:
        """Take a question; returns at once. A ticket that is `dropped` already says why. Never raises, never waits."""
        ticket = Ticket(question, self._clock())
        with self._lock:
            reason = self._refusal() or self._hold(ticket)
            if reason is None and len(self._active) >= self.workers:
                self._waiting.append(ticket)
            elif reason is None:
                reason = self._hand_over(ticket)
            if reason is None:
                self.ledger.offer()
            else:
                self._release(ticket)
                self.ledger.refuse(reason)
                ticket.end("dropped", None, reason)
        return ticket

    @property
    def silent(self) -> str | None:
        """Why a question would be dropped now, budgets aside; None where one would be taken."""
        with self._lock:
            return self._refusal()

    def close(self, drain: bool = True, seconds: float = 10.0) -> None:
        """Take nothing more, and end every question.

        drain: wait for those that were taken, `seconds` at most. Then those that wait are dropped and those on their
        way have failed, both as "closed"; what they answer later counts no more. Closing twice does nothing.
        """
        with self._lock:
            if self._closed is not None:
                return
            self._closed = CLOSED
            if drain:
                self._idle.wait_for(lambda: not self._active and not self._waiting, max(0.0, seconds))
            while self._waiting:
                self._settle(self._waiting.popleft(), "dropped", None, CLOSED)
            for ticket in self._active:
                self._settle(ticket, "failed" if ticket.sent else "dropped", None, CLOSED)
            self._active.clear()
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):  # its loop is closed already
            loop.call_soon_threadsafe(leave_loop, self.auditor, loop, self._tasks, _GRACE)
        if thread is not threading.current_thread():
            thread.join(_JOIN)

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refusal(self) -> str | None:
        if self._closed is not None:
            return self._closed
        if self.breaker is not None and self.breaker.retry_in > 0:
            return CIRCUIT_OPEN
        if len(self._active) >= self.workers and len(self._waiting) >= self.policy.queue:
            return QUEUE_FULL
        return None

    def _hold(self, ticket: Ticket) -> str | None:
        """Holds the question against both budgets; the reason where one refuses."""
        tokens, money = self.policy.question_tokens, self.policy.question_money
        if ticket.question.run is not None:
            held = ticket.question.run.hold(tokens, money)
            if isinstance(held, str):
                return held
            ticket.held = held
        held = self._minute.hold(tokens, money)
        if isinstance(held, str):
            return held
        ticket.held_minute = held
        return None

    def _release(self, ticket: Ticket) -> None:
        if ticket.held is not None and ticket.question.run is not None:
            ticket.question.run.release(ticket.held)
        if ticket.held_minute is not None:
            self._minute.release(ticket.held_minute)

    def _spend(self, ticket: Ticket, tokens: int, money: float | None) -> None:
        if ticket.held is not None and ticket.question.run is not None:
            ticket.question.run.settle(ticket.held, tokens, money)
        if ticket.held_minute is not None:
            self._minute.settle(ticket.held_minute, tokens, money)

    def _hand_over(self, ticket: Ticket) -> str | None:
        """Gives a question to a free worker, and starts the thread where there is none."""
        try:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=run_loop, args=(loop,), name="prefixguard-escalation", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # too many threads, or the program is about to end
                    loop.close()
                    raise
                self._loop, self._thread = loop, thread
                self._finalizer = weakref.finalize(self, stop_loop, loop)
            self._loop.call_soon_threadsafe(self._begin, ticket)
        except (RuntimeError, OSError):
            return NO_THREAD
        self._active.add(ticket)
        return None

    def _begin(self, ticket: Ticket) -> None:
        task = asyncio.get_running_loop().create_task(self._work(ticket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, ticket: Ticket) -> None:
        """A worker: this question, and then those that wait."""
        following: Ticket | None = ticket
        while following is not None:
            try:
                await self._take(following)
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException:  # the next question shall not be lost by this one, nor the thread
                self._finish(following, "failed" if following.sent else "dropped", None, RAISED)
            with self._lock:
                self._active.discard(following)
                following = self._waiting.popleft() if self._waiting else None
                if following is not None:
                    self._active.add(following)
                elif not self._active:
                    self._idle.notify_all()

    async def _take(self, ticket: Ticket) -> None:
        """Ends the question, unless the desk is closed meanwhile."""
        left = self.policy.seconds - (self._clock() - ticket.offered_at)
        if left <= 0:
            return self._finish(ticket, "dropped", None, LATE)
        records = ticket.question.records
        key = self._key(records)
        kept = self.cache.get(key) if self.cache is not None else None
        if kept is not None:
            return self._finish(ticket, "cached", kept, "")
        under_way = self._asking.get(key)
        if under_way is not None:  # its answer is this one's too, and so is its failure
            judged, fault = await asyncio.shield(under_way)
        else:
            if not self._mark_sent(ticket):
                return None
            answer: asyncio.Future[tuple[Judged | None, str]] = asyncio.get_running_loop().create_future()
            self._asking[key] = answer
            judged, fault = None, CLOSED
            try:
                judged, fault = await self._ask(records, left)
            finally:
                del self._asking[key]
                answer.set_result((judged, fault))
            if judged is not None and not fault and self.cache is not None:
                self.cache.put(key, judged)
        if fault == CIRCUIT_OPEN:
            ticket.sent = False
            return self._finish(ticket, "dropped", judged, fault)
        if fault:
            return self._finish(ticket, "failed", judged, fault)
        if judged is not None and judged.cached:  # the auditor has a cache of its own
            ticket.sent = False
        if ticket.sent or judged is None:
            return self._finish(ticket, "answered", judged, "")
        return self._finish(ticket, "cached", as_cached(judged), "")

    async def _ask(self, records: Sequence[StepRecord], seconds: float) -> tuple[Judged | None, str]:
        """The answer, and what is wrong with it in a word ("" where nothing is)."""
        try:
            async with asyncio.timeout(seconds + _GRACE):
                judged = await self.auditor.judge(records, seconds=seconds)
        except asyncio.CancelledError:
            if self._closed is not None:
                raise
            return None, RAISED  # an auditor that gives up by this is one that failed
        except TimeoutError:
            return None, LATE
        except GeneratorExit:
            raise
        except BaseException:  # whatever it was, it belongs to one question and not to this thread
            return None, RAISED
        if not isinstance(judged, Judged):
            return None, RAISED
        verdict = judged.verdict
        if verdict.outcome is VerdictOutcome.ERROR:
            if verdict.fault == _CIRCUIT_FAULT and judged.attempts == 0:
                return judged, CIRCUIT_OPEN
            return judged, verdict.fault or "error"
        if verdict.outcome is VerdictOutcome.ALARM and not any(r.index == verdict.step for r in records):
            return judged, STEP_OUT_OF_RANGE
        return judged, ""

    def _key(self, records: Sequence[StepRecord]) -> str:
        if isinstance(self.auditor, Keyed):
            return self.auditor.key_of(records)
        return question_key(records, self.auditor.model, self.auditor.prompt_version)

    def _mark_sent(self, ticket: Ticket) -> bool:
        """The question goes out now; False where it has ended already, since the desk was closed: then it must not."""
        with self._lock:
            if ticket.done:
                return False
            ticket.sent = True
        if ticket.held is not None and ticket.question.run is not None:
            ticket.question.run.sent(ticket.held)
        if ticket.held_minute is not None:
            self._minute.sent(ticket.held_minute)
        return True

    def _finish(self, ticket: Ticket, ending: Ending, judged: Judged | None, reason: str) -> None:
        with self._lock:
            self._settle(ticket, ending, judged, reason)

    def _settle(self, ticket: Ticket, ending: Ending, judged: Judged | None, reason: str) -> None:
        """Ends a ticket in ledger and budgets, once; the lock is held. What was not sent costs nothing."""
        if ticket.done:
            return
        if ending == "answered" and judged is not None:
            self.ledger.answer(judged)
        elif ending == "cached" and judged is not None:
            self.ledger.cache(judged)
        elif ending == "dropped":
            self.ledger.drop(reason)
        else:
            self.ledger.fail(reason, judged if ticket.sent else None, sent=ticket.sent)
        if not ticket.sent:
            self._release(ticket)
        elif judged is None or (ending == "failed" and judged.cost is None):  # nobody says what it took
            self._spend(ticket, self.policy.question_tokens, self.policy.question_money)
        else:
            self._spend(ticket, judged.tokens_in + judged.tokens_out, judged.cost)
        ticket.end(ending, judged, reason)

    def _after_fork(self) -> None:
        """In the child: nobody else holds anything here, and nobody answers."""
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self.ledger.renew_lock()
        self._closed = FORK if self._closed is None else self._closed
        for ticket in [*self._waiting, *self._active]:
            if not ticket.done:
                self.ledger.drop(FORK)
                ticket.forget_waiters()
                ticket.end("dropped", None, FORK)
        self._waiting.clear()
        self._active.clear()
        self._loop = self._thread = None
        if self._finalizer is not None:
            self._finalizer.detach()  # the loop's pipe is the parent's


_DESKS: weakref.WeakSet[Desk] = weakref.WeakSet()


def _in_child() -> None:
    renew_events()
    for desk in list(_DESKS):
        desk._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
