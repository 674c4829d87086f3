"""Where questions wait for the auditor: a bounded queue, some workers, one thread in the background.

Sessions offer questions from any thread and never wait. Each question ends exactly once, in the counts and for its
session: answered, cached, dropped or failed.

A forked child has no background thread and must not use its parent's connections: there the queue is closed (reason
"fork"), what was pending is dropped in the child's counts alone, and monitors go on. Make a new one in the child.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal

from prefixguard.errors import ConfigError
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.request_accounts import MINUTE, Budget, Held, RequestCounts, RequestStatistics
from prefixguard.escalate.verdict import (
    Auditor,
    AuditResult,
    Keyed,
    VerdictCache,
    VerdictOutcome,
    as_cached,
    question_key,
)
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
_AUDITOR_GRACE = 1.0  # seconds that an auditor gets beyond what it was told
_JOIN = 2.0  # seconds that `close` waits for the thread after all is settled

Ending = Literal["pending", "answered", "cached", "dropped", "failed"]
#: An answer, and what is wrong with it in a word ("" where nothing is).
_Answer = tuple[AuditResult | None, str]


class PendingRequest:
    """A question, "is the run, up to this step, still on a good way?", and what became of it. Reading it is safe from
    any thread.

    records: the steps so far, in order. step: number of the last one. ending: "pending", and then once and for all
    another. judged: what was answered, also for some that failed; None where nothing was. reason: for dropped and
    failed ones, a few words; "" for others. The rest is the queue's: when it was offered, what is held for it in each
    budget, whether it was sent, and who is told of its end.
    """

    __slots__ = ("_changed", "ended", "ending", "held", "judged", "offered_at", "reason", "records", "sent", "step")

    def __init__(
        self,
        records: Sequence[StepRecord],
        step: int,
        offered_at: float,
        changed: threading.Condition,
        ended: Callable[[], None] | None = None,
    ) -> None:
        """changed: notified when any request of the queue ends. ended: as for `RequestQueue.offer`."""
        self.records, self.step, self.offered_at, self.ended = records, step, offered_at, ended
        self.ending: Ending = "pending"
        self.judged: AuditResult | None = None
        self.reason = ""
        self.held: list[tuple[Budget, Held]] = []
        self.sent = False
        self._changed = changed

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.ending != "pending"

    def result(self, timeout: float | None = None) -> AuditResult | None:
        """Waits `timeout` seconds at most (None: until it ends); the answer, or None where there is none by then."""
        if not self.done:
            with self._changed:
                self._changed.wait_for(lambda: self.done, timeout)
        return self.judged if self.done else None

    def end(self, ending: Ending, judged: AuditResult | None, reason: str) -> None:
        """Ends it. For the queue alone."""
        self.judged, self.reason = judged, reason
        self.ending = ending  # last: who reads that it has ended may read the rest

    def __repr__(self) -> str:
        return f"<PendingRequest step {self.step} {self.ending}{f': {self.reason}' if self.reason else ''}>"


class RequestQueue:
    """Takes questions to an auditor. Nothing in it raises into the host.

    The thread starts with the first question. Closing it closes the auditor's client as well (its `aclose`, where
    it has one), since it belongs to the thread's event loop.
    """

    def __init__(
        self,
        auditor: Auditor,
        policy: EscalationPolicy,
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
        self.breaker: CircuitBreaker | None = breaker if breaker is not None else getattr(auditor, "breaker", None)
        self._clock = clock
        limits = {"calls": policy.calls_a_minute, "tokens": policy.tokens_a_minute}
        self._minute = Budget("minute", **limits, money=policy.money_a_minute, window=MINUTE, clock=clock)
        self._statistics = RequestStatistics()
        self._closed: str | None = None  # why nothing is taken any more
        self._waiting: deque[PendingRequest] = deque()
        self._active: set[PendingRequest] = set()  # with a worker
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._finalizer: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._asking: dict[str, asyncio.Future[_Answer]] = {}
        self._changed = threading.Condition(threading.Lock())  # held for every change, notified when a request ends
        _QUEUES.add(self)

    def offer(
        self,
        records: Sequence[StepRecord],
        step: int,
        run: Budget | None = None,
        ended: Callable[[], None] | None = None,
    ) -> PendingRequest:
        """Take a question; returns at once. A request that is `dropped` already says why. Never raises, never waits.

        records: the steps of the run so far. step: number of the last one. run: the run's budget; None where only the
        minute's counts. ended: called on the background thread when a worker has ended the question; it must not wait.
        """
        request = PendingRequest(records, step, self._clock(), self._changed, ended)
        with self._changed:
            self._statistics.offer()
            reason = self._refusal() or self._hold(request, run)
            if reason is None and len(self._active) >= self.workers:
                self._waiting.append(request)
            elif reason is None:
                reason = self._hand_over(request)
            if reason is not None:
                self._settle(request, "dropped", None, reason)
        return request

    @property
    def silent(self) -> str | None:
        """Why a question would be dropped now, budgets aside; None where one would be taken."""
        with self._changed:
            return self._refusal()

    @property
    def counts(self) -> RequestCounts:
        """What became of all questions so far."""
        with self._changed:
            return self._statistics.snapshot()

    def close(self, drain: bool = True, seconds: float = 10.0) -> None:
        """Take nothing more, and end every question.

        drain: wait for those that were taken, `seconds` at most. Then those that wait are dropped and those on their
        way have failed, both as "closed"; what they answer later counts no more. Closing twice does nothing.
        """
        with self._changed:
            if self._closed is not None:
                return
            self._closed = CLOSED
            if drain:
                self._changed.wait_for(lambda: not self._active and not self._waiting, max(0.0, seconds))
            for request in (*self._waiting, *self._active):
                self._settle(request, "failed" if request.sent else "dropped", None, CLOSED)
            self._waiting.clear()
            self._active.clear()
            loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        with suppress(RuntimeError):  # its loop is closed already
            loop.call_soon_threadsafe(leave_loop, self.auditor, loop, self._tasks, _AUDITOR_GRACE)
        if thread is not threading.current_thread():
            thread.join(_JOIN)

    def __enter__(self) -> RequestQueue:
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

    def _hold(self, request: PendingRequest, run: Budget | None) -> str | None:
        """Holds the question against both budgets; the reason where one refuses."""
        for budget in (run, self._minute):
            if budget is None:
                continue
            held = budget.hold(self.policy.question_tokens, self.policy.question_money)
            if isinstance(held, str):
                return held
            request.held.append((budget, held))
        return None

    def _hand_over(self, request: PendingRequest) -> str | None:
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
            self._loop.call_soon_threadsafe(self._begin, request)
        except (RuntimeError, OSError):
            return NO_THREAD
        self._active.add(request)
        return None

    def _begin(self, request: PendingRequest) -> None:
        task = asyncio.get_running_loop().create_task(self._work(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, request: PendingRequest) -> None:
        """A worker: this question, and then those that wait."""
        following: PendingRequest | None = request
        while following is not None:
            try:
                await self._take(following)
            except (asyncio.CancelledError, GeneratorExit):
                raise
            except BaseException:  # the next question shall not be lost by this one, nor the thread
                self._finish(following, "failed" if following.sent else "dropped", None, RAISED)
            with self._changed:
                self._active.discard(following)
                following = self._waiting.popleft() if self._waiting else None
                if following is not None:
                    self._active.add(following)
                elif not self._active:
                    self._changed.notify_all()

    async def _take(self, request: PendingRequest) -> None:
        """Ends the question, unless the queue is closed meanwhile."""
        left = self.policy.seconds - (self._clock() - request.offered_at)
        if left <= 0:
            return self._finish(request, "dropped", None, LATE)
        records = request.records
        if isinstance(self.auditor, Keyed):
            key = self.auditor.key_of(records)
        else:
            key = question_key(records, self.auditor.model, self.auditor.prompt_version)
        kept = self.cache.get(key) if self.cache is not None else None
        if kept is not None:
            return self._finish(request, "cached", kept, "")
        under_way = self._asking.get(key)
        if under_way is not None:  # its answer is this one's too, and so is its failure
            judged, fault = await asyncio.shield(under_way)
        else:
            if not self._mark_sent(request):
                return None
            answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
            self._asking[key] = answer
            judged, fault = None, CLOSED
            try:
                judged, fault = await self._ask(records, left)
            finally:
                del self._asking[key]
                answer.set_result((judged, fault))
            if judged is not None and not fault and self.cache is not None:
                self.cache.put(key, judged)
        if fault == CIRCUIT_OPEN or (judged is not None and not fault and judged.cached):
            request.sent = False  # nothing went out, or the auditor has a cache of its own
        if fault:
            return self._finish(request, "dropped" if fault == CIRCUIT_OPEN else "failed", judged, fault)
        if request.sent or judged is None:
            return self._finish(request, "answered", judged, "")
        return self._finish(request, "cached", as_cached(judged), "")

    async def _ask(self, records: Sequence[StepRecord], seconds: float) -> _Answer:
        try:
            async with asyncio.timeout(seconds + _AUDITOR_GRACE):
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
        if not isinstance(judged, AuditResult):
            return None, RAISED
        verdict = judged.verdict
        if verdict.outcome is VerdictOutcome.ERROR:
            if verdict.fault == _CIRCUIT_FAULT and judged.attempts == 0:
                return judged, CIRCUIT_OPEN
            return judged, verdict.fault or "error"
        if verdict.outcome is VerdictOutcome.ALARM and not any(r.index == verdict.step for r in records):
            return judged, STEP_OUT_OF_RANGE
        return judged, ""

    def _mark_sent(self, request: PendingRequest) -> bool:
        """The question goes out now; False where it has ended already, since the queue was closed: then it must not."""
        with self._changed:
            if request.done:
                return False
            request.sent = True
        for budget, held in request.held:
            budget.sent(held)
        return True

    def _finish(self, request: PendingRequest, ending: Ending, judged: AuditResult | None, reason: str) -> None:
        with self._changed:
            self._settle(request, ending, judged, reason)
        if request.ended is not None:
            with suppress(Exception):
                request.ended()

    def _settle(self, request: PendingRequest, ending: Ending, judged: AuditResult | None, reason: str) -> None:
        """Ends a request in counts and budgets, once; the lock is held. What was not sent costs nothing."""
        if request.done:
            return
        self._statistics.end(ending, judged, reason, sent=request.sent)
        for budget, held in request.held:
            if not request.sent:
                budget.release(held)
            elif judged is None or (ending == "failed" and judged.cost is None):  # nobody says what it took
                budget.settle(held, self.policy.question_tokens, self.policy.question_money)
            else:
                budget.settle(held, judged.tokens_in + judged.tokens_out, judged.cost)
        request.end(ending, judged, reason)
        self._changed.notify_all()

    def _after_fork(self) -> None:
        """In the child: nobody else holds anything here, and nobody answers."""
        self._changed = threading.Condition(threading.Lock())
        self._closed = FORK if self._closed is None else self._closed
        for request in (*self._waiting, *self._active):
            if not request.done:
                self._statistics.end("dropped", None, FORK)
                request.end("dropped", None, FORK)
        self._waiting.clear()
        self._active.clear()
        self._loop = self._thread = None
        if self._finalizer is not None:
            self._finalizer.detach()  # the loop's pipe is the parent's


def run_loop(loop: asyncio.AbstractEventLoop) -> None:
    """The background thread. It knows no queue, so that one that nobody holds any more can go."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        with suppress(Exception):
            loop.run_until_complete(_cancel_tasks(asyncio.all_tasks(loop), 1.0))
            loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def leave_loop(
    auditor: Any, loop: asyncio.AbstractEventLoop, workers: Iterable[asyncio.Task[None]], grace: float
) -> None:
    """On the loop: cancels the workers, closes the auditor's client, stops the loop. grace: seconds for each."""

    async def leave() -> None:
        # Tasks of the auditor's own packages end with the worker that waits for them; cancelled by us, they complain.
        await _cancel_tasks(list(workers), grace)
        aclose = getattr(auditor, "aclose", None)
        if aclose is not None:
            with suppress(Exception):
                await asyncio.wait_for(aclose(), grace)

    loop.create_task(leave()).add_done_callback(lambda _: loop.stop())


async def _cancel_tasks(tasks: Iterable[asyncio.Task[Any]], grace: float) -> None:
    """Cancels them, and waits a moment for them to end."""
    others = [task for task in tasks if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=grace)


def stop_loop(loop: asyncio.AbstractEventLoop) -> None:
    """From any thread, also where the loop is closed already."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(loop.stop)


_QUEUES: weakref.WeakSet[RequestQueue] = weakref.WeakSet()


def _in_child() -> None:
    for queue in list(_QUEUES):
        queue._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
