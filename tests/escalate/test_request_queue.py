"""Every question ends once, whatever auditors, threads, budgets and closings do."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_auditor import ScriptedAuditor, nothing_wrong

from prefixguard.errors import ConfigError
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.request_accounts import Budget
from prefixguard.escalate.request_queue import PendingRequest, RequestQueue
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictCache, VerdictOutcome
from prefixguard.stepview import StepRecord

FREE = EscalationPolicy(mark=0.5, calls_a_run=None, calls_a_minute=None)
SUPPORT = str(Path(__file__).parents[1] / "support")
Opened = Callable[..., RequestQueue]
PATIENT = 20.0  # seconds that a test waits for what shall come


def steps(n: int, name: str = "run") -> tuple[StepRecord, ...]:
    return tuple(StepRecord(i, "agent", "", "find", "{}", "", f"{name} {i}", "ok", "ok") for i in range(1, n + 1))


def ask(queue: RequestQueue, name: str = "run", n: int = 1, run: Budget | None = None) -> PendingRequest:
    return queue.offer(steps(n, name), n, run)


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Makes queues, which are closed after the test."""
    with ExitStack() as queues:

        def make(auditor: Any, policy: EscalationPolicy = FREE, **options: Any) -> RequestQueue:
            queue = RequestQueue(auditor, policy, **options)
            queues.callback(queue.close, drain=False)
            return queue

        yield make


def check_law(queue: RequestQueue, requests: Sequence[PendingRequest]) -> None:
    """Nothing lost, nothing counted twice: the counts say what the requests say."""
    told = queue.counts
    endings = [request.ending for request in requests]
    assert told.offered == len(requests)
    assert told.offered == told.answered + told.cached + told.n_dropped + told.n_failed
    assert (told.answered, told.cached, told.n_dropped, told.n_failed) == tuple(
        endings.count(ending) for ending in ("answered", "cached", "dropped", "failed")
    )
    assert told.pending == 0 and all(request.done for request in requests)
    for kind, counted in (("dropped", told.dropped), ("failed", told.failed)):
        reasons = [request.reason for request in requests if request.ending == kind]
        assert {reason: reasons.count(reason) for reason in reasons} == dict(counted)


def test_an_answer_comes_back(opened: Opened) -> None:
    queue = opened(ScriptedAuditor())
    request = ask(queue, n=3)
    judged = request.result(PATIENT)
    assert judged is not None and (judged.verdict.outcome, judged.verdict.step) == (VerdictOutcome.ALARM, 3)
    assert (request.ending, request.reason, request.done) == ("answered", "", True)
    queue.close()
    told = queue.counts
    assert (told.offered, told.answered, told.tokens_in, told.cost) == (1, 1, 1000, 0.001)


def test_no_thread_before_the_first_question_and_none_after_the_close() -> None:
    def alive() -> int:
        return sum(thread.name == "prefixguard-escalation" for thread in threading.enumerate())

    auditor = ScriptedAuditor()
    before = alive()
    queue = RequestQueue(auditor, FREE)
    assert alive() == before
    ask(queue).result(PATIENT)
    assert alive() == before + 1
    queue.close()
    assert alive() == before
    assert auditor.closed
    late = ask(queue, "late")
    assert (late.ending, late.reason, queue.silent) == ("dropped", "closed", "closed")
    queue.close()


def test_a_desk_that_nobody_holds_goes(opened: Opened) -> None:
    queue = RequestQueue(ScriptedAuditor(), FREE)
    ask(queue).result(PATIENT)
    thread, gone = queue._thread, weakref.ref(queue)
    assert thread is not None
    del queue
    for _ in range(200):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    thread.join(PATIENT)
    assert gone() is None and not thread.is_alive()


def test_what_is_too_much_is_dropped_at_once(opened: Opened) -> None:
    queue = opened(ScriptedAuditor(stuck=True), replace(FREE, queue=3), workers=2)
    requests = [ask(queue, f"run {i}") for i in range(7)]
    assert [request.ending for request in requests] == ["pending"] * 5 + ["dropped"] * 2
    assert requests[-1].reason == queue.silent == "queue full"
    assert queue.counts.pending == 5
    queue.close(drain=False)
    check_law(queue, requests)
    assert [request.reason for request in requests] == ["closed"] * 5 + ["queue full"] * 2


def test_no_more_are_on_their_way_than_there_are_workers(opened: Opened) -> None:
    auditor = ScriptedAuditor(delay=0.005)
    queue = opened(auditor, FREE, workers=3)
    requests = [ask(queue, f"run {i}") for i in range(30)]
    queue.close(drain=True, seconds=PATIENT)
    assert {request.ending for request in requests} == {"answered"}
    assert auditor.most_at_once == 3


def test_an_open_circuit_costs_no_place_in_the_queue(opened: Opened) -> None:
    breaker = CircuitBreaker(failures=1, reset_seconds=1000)
    queue = opened(ScriptedAuditor(), FREE, breaker=breaker)
    breaker.ended(breaker.admit(), True)
    request = ask(queue)
    assert (request.ending, request.reason, queue.silent) == ("dropped", "circuit open", "circuit open")
    assert queue._thread is None


def test_the_auditors_own_breaker_is_found() -> None:
    auditor: Any = ScriptedAuditor()
    auditor.breaker = CircuitBreaker()
    assert RequestQueue(auditor, FREE).breaker is auditor.breaker


class Answers(ScriptedAuditor):
    """Gives one answer to all, or raises it."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def judged(verdict: Verdict, **changes: Any) -> AuditResult:
    return replace(AuditResult(verdict, "k", False, 10, 5, False, 0.5, 0.1, 1, "raw"), **changes)


@pytest.mark.parametrize(
    ("answer", "ending", "reason"),
    [
        (judged(Verdict(VerdictOutcome.SAFE)), "answered", ""),
        (judged(Verdict(VerdictOutcome.ABSTAIN)), "answered", ""),
        (judged(Verdict(VerdictOutcome.SAFE), cached=True), "cached", ""),
        (judged(Verdict(VerdictOutcome.ERROR, fault="truncated")), "failed", "truncated"),
        (judged(Verdict(VerdictOutcome.ERROR)), "failed", "error"),
        (judged(Verdict(VerdictOutcome.ERROR, fault="circuit-open"), attempts=0), "dropped", "circuit open"),
        (judged(Verdict(VerdictOutcome.ERROR, fault="circuit-open"), attempts=2), "failed", "circuit-open"),
        (judged(Verdict(VerdictOutcome.ALARM, 9)), "failed", "step-out-of-range"),
        (judged(Verdict(VerdictOutcome.ALARM, None)), "failed", "step-out-of-range"),
        (None, "failed", "raised"),
        ("SAFE", "failed", "raised"),
        (RuntimeError("no"), "failed", "raised"),
        (SystemExit(1), "failed", "raised"),
        (KeyboardInterrupt(), "failed", "raised"),
        (asyncio.CancelledError(), "failed", "raised"),
        (TimeoutError(), "failed", "late"),
    ],
)
def test_whatever_an_auditor_does_its_question_ends(answer: Any, ending: str, reason: str, opened: Opened) -> None:
    queue = opened(Answers(answer), FREE)
    first = ask(queue, "first")
    first.result(PATIENT)
    assert (first.ending, first.reason) == (ending, reason)
    second = ask(queue, "second")
    second.result(PATIENT)
    assert second.ending == ending  # the worker lives
    queue.close()
    check_law(queue, [first, second])


def test_an_auditor_that_does_not_answer_is_given_up(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.escalate.request_queue._AUDITOR_GRACE", 0.01)
    queue = opened(ScriptedAuditor(stuck=True), replace(FREE, seconds=0.05), workers=1)
    requests = [ask(queue, "a"), ask(queue, "b"), ask(queue, "c")]
    for request in requests:
        assert request.result(PATIENT) is None
    assert [request.reason for request in requests] == ["late"] * 3
    assert requests[0].ending == "failed" and requests[2].ending == "dropped"  # that one was never sent
    queue.close()
    check_law(queue, requests)


def test_the_same_question_is_sent_once(opened: Opened, tmp_path: Path) -> None:
    """While it is on its way, and, with a cache, ever after; those who join pay nothing."""
    auditor = ScriptedAuditor(delay=0.05)
    queue = opened(auditor, FREE, cache=VerdictCache(tmp_path))
    budget = Budget("run", calls=10)
    requests = [ask(queue, "same", run=budget) for _ in range(5)]
    for request in requests:
        request.result(PATIENT)
    again = ask(queue, "same", run=budget)
    found = again.result(PATIENT)
    assert len(auditor.asked) == 1
    assert [request.ending for request in requests] == ["answered"] + ["cached"] * 4
    assert found is not None and again.ending == "cached" and found.cached and found.cost == 0.0
    assert budget.used == (1, 1050, 0.001)
    queue.close()
    check_law(queue, [*requests, again])
    assert queue.counts.tokens_in == 1000


def test_a_failure_is_shared_too_and_not_kept(opened: Opened, tmp_path: Path) -> None:
    auditor = ScriptedAuditor(delay=0.05, failing=1.0)
    queue = opened(auditor, FREE, cache=VerdictCache(tmp_path))
    requests = [ask(queue, "same") for _ in range(3)]
    for request in requests:
        request.result(PATIENT)
    assert {(request.ending, request.reason) for request in requests} == {("failed", "server-error")}
    ask(queue, "same").result(PATIENT)
    assert len(auditor.asked) == 2 and not list(tmp_path.iterdir())
    assert queue.counts.tokens_in == 2000


def test_budgets_refuse_with_their_reason(opened: Opened) -> None:
    policy = replace(FREE, calls_a_minute=3, calls_a_run=2)
    auditor = ScriptedAuditor()
    queue = opened(auditor, policy)
    one, other = Budget("run", calls=2), Budget("run", calls=2)
    requests = [ask(queue, f"one {i}", run=one) for i in range(3)]
    requests += [ask(queue, f"other {i}", run=other) for i in range(2)]
    queue.close(seconds=PATIENT)
    assert [request.reason for request in requests] == ["", "", "calls a run", "", "calls a minute"]
    assert other.used[0] == 1  # what the minute refused costs the run nothing
    check_law(queue, requests)


def test_what_a_failure_took_is_held_where_nobody_says_it(opened: Opened) -> None:
    """And an answer without a cost ends what a budget of money allows."""
    policy = replace(FREE, question_tokens=500, question_money=0.2)
    failed = judged(Verdict(VerdictOutcome.ERROR, fault="timeout"), tokens_in=0, tokens_out=0, cost=None)
    for answer, used, then in (
        (failed, (1, 500, 0.2), ""),
        (replace(failed, cost=0.0), (1, 0, 0.0), ""),
        (judged(Verdict(VerdictOutcome.SAFE), cost=None), (1, 15, 0.2), "cost unknown"),
    ):
        queue = opened(Answers(answer), policy)
        budget = Budget("run", money=1.0)
        ask(queue, "a", run=budget).result(PATIENT)
        assert budget.used == used
        assert ask(queue, "b", run=budget).reason in (then, "timeout")


def test_a_question_that_met_an_open_circuit_costs_no_call(opened: Opened) -> None:
    queue = opened(Answers(judged(Verdict(VerdictOutcome.ERROR, fault="circuit-open"), attempts=0)), FREE)
    budget = Budget("run", calls=1)
    for name in ("a", "b"):
        request = ask(queue, name, run=budget)
        request.result(PATIENT)
        assert (request.ending, request.reason, budget.used) == ("dropped", "circuit open", (0, 0, 0.0))


def test_closing_with_drain_answers_all_and_without_drops_them(opened: Opened) -> None:
    for drain in (True, False):
        queue = RequestQueue(ScriptedAuditor(delay=0.01), FREE, workers=2)
        requests = [ask(queue, f"run {i}") for i in range(20)]
        queue.close(drain=drain, seconds=PATIENT)
        check_law(queue, requests)
        assert (queue.counts.answered == 20) is drain


def test_an_auditor_that_blocks_the_thread_does_not_hold_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Blocking(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> AuditResult:
            release.wait(PATIENT)
            return await super().judge(records, seconds=seconds)

    monkeypatch.setattr("prefixguard.escalate.request_queue._JOIN", 0.05)
    queue = RequestQueue(Blocking(), FREE)
    requests = [ask(queue, f"run {i}") for i in range(3)]
    thread = queue._thread
    queue.close(drain=True, seconds=0.05)
    check_law(queue, requests)
    release.set()
    assert thread is not None
    thread.join(PATIENT)
    check_law(queue, requests)  # what came too late counts no more


class Keyed(ScriptedAuditor):
    """Says keys by a function."""

    def __init__(self, key: Callable[[], str]) -> None:
        super().__init__()
        self._key = key

    def key_of(self, records: Sequence[StepRecord]) -> str:
        return self._key()


def test_a_question_that_a_close_has_dropped_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even one that a worker had in hand already: what is dropped was never sent."""
    begun, release = threading.Event(), threading.Event()

    def key() -> str:
        begun.set()
        release.wait(PATIENT)
        return "key"

    monkeypatch.setattr("prefixguard.escalate.request_queue._JOIN", 0.05)
    auditor = Keyed(key)
    queue = RequestQueue(auditor, FREE)
    request = ask(queue)
    thread = queue._thread
    assert begun.wait(PATIENT) and thread is not None
    queue.close(drain=False)
    release.set()
    thread.join(PATIENT)
    assert (request.ending, request.reason, auditor.asked) == ("dropped", "closed", [])
    check_law(queue, [request])


@pytest.mark.parametrize("raised", [ValueError, SystemExit])
def test_a_key_that_cannot_be_made_costs_its_question_only(raised: type[BaseException], opened: Opened) -> None:
    def key() -> str:
        raise raised

    queue = opened(Keyed(key), FREE)
    for name in ("a", "b"):
        request = ask(queue, name)
        request.result(PATIENT)
        assert (request.ending, request.reason) == ("dropped", "raised")


def test_where_no_thread_can_be_had_nothing_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    new_loop = asyncio.new_event_loop

    def noted() -> asyncio.AbstractEventLoop:
        loops.append(new_loop())
        return loops[-1]

    monkeypatch.setattr(asyncio, "new_event_loop", noted)
    monkeypatch.setattr(threading.Thread, "start", no_thread)
    queue = RequestQueue(ScriptedAuditor(), FREE)
    requests = [ask(queue), ask(queue)]
    assert {(request.ending, request.reason) for request in requests} == {("dropped", "no thread")}
    assert len(loops) == 2 and all(loop.is_closed() for loop in loops)
    queue.close()
    check_law(queue, requests)


ACTS = st.lists(
    st.tuples(st.sampled_from(["offer", "same", "wait", "close", "drop"]), st.integers(0, 3)), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None)
@given(ACTS, st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_the_law_under_any_order_of_offers_and_closings(
    acts: list[tuple[str, int]], workers: int, places: int, calls: int, fails: bool
) -> None:
    auditor = ScriptedAuditor(nothing_wrong, failing=0.5 * fails, raising=0.3 * fails, delay=0.0005)
    policy = replace(FREE, queue=places, calls_a_minute=calls + 5)
    queue = RequestQueue(auditor, policy, workers=workers)
    budgets = [Budget("run", calls=calls) for _ in range(4)]
    requests: list[PendingRequest] = []
    for number, (act, which) in enumerate(acts):
        if act == "offer":
            requests.append(ask(queue, f"{number}", run=budgets[which]))
        elif act == "same":
            requests.append(ask(queue, f"shared {which}", run=budgets[which]))
        elif act == "wait" and requests:
            requests[which % len(requests)].result(PATIENT)
        elif act in ("close", "drop"):
            queue.close(drain=act == "close", seconds=PATIENT)
        told = queue.counts
        assert told.offered == len(requests) and 0 <= told.pending <= places + workers
    queue.close(drain=False)
    check_law(queue, requests)
    assert len(auditor.asked) <= calls + 5
    assert all(budget.used[0] <= calls for budget in budgets)


def test_many_threads_and_a_close_in_the_middle() -> None:
    auditor = ScriptedAuditor(failing=0.5, delay=0.001)
    queue = RequestQueue(auditor, replace(FREE, queue=50), workers=8)
    start = threading.Barrier(9)
    requests: list[list[PendingRequest]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        start.wait()
        for i in range(300):
            requests[number].append(ask(queue, f"{number % 4} {i}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    requests[0][0].result(PATIENT) if requests[0] else None
    queue.close(drain=True, seconds=PATIENT)
    for thread in threads:
        thread.join()
    every = [request for some in requests for request in some]
    assert len(every) == 2400
    check_law(queue, every)


PROGRAM = """
import os, sys
sys.path.insert(0, sys.argv[1])
from scripted_auditor import ScriptedAuditor
from prefixguard.escalate.request_queue import RequestQueue
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.stepview import StepRecord
step = StepRecord(1, "agent", "", "find", "{}", "", "", "", "ok")
queue = RequestQueue(ScriptedAuditor(stuck=True), EscalationPolicy(mark=0.5))
"""


def alone(program: str) -> tuple[int, str]:
    """Status and errors of a program of its own, which begins with `PROGRAM`."""
    command = [sys.executable, "-c", PROGRAM + program, SUPPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_asks_nothing_and_lives() -> None:
    program = """
first = queue.offer((step,), 1)
child = os.fork()
if child == 0:
    late = queue.offer((step,), 1)
    told = queue.counts
    good = (first.ending, first.reason, late.reason, told.pending, told.n_dropped) == (
        "dropped", "fork", "fork", 0, 2)
    queue.close()
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
assert first.ending == "pending"
queue.close(drain=False)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, SUPPORT], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_a_program_ends_without_a_close() -> None:
    program = """
queue.offer((step,), 1)
"""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + program, SUPPORT], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_have_a_range() -> None:
    with pytest.raises(ConfigError, match="workers 0"):
        RequestQueue(ScriptedAuditor(), FREE, workers=0)
