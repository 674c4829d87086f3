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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_auditor import ScriptedAuditor, nothing_wrong

from prefixguard.errors import ConfigError
from prefixguard.escalate.budgets import Budget
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.desk import Desk
from prefixguard.escalate.judged import Judged
from prefixguard.escalate.ledger import Ledger
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.escalate.ticket import Question, Ticket
from prefixguard.escalate.verdict import Verdict, VerdictOutcome
from prefixguard.escalate.verdict_cache import VerdictCache
from prefixguard.stepview import StepRecord

FREE = EscalationPolicy(mark=0.5, calls_a_run=None, calls_a_minute=None)
SUPPORT = str(Path(__file__).parents[1] / "support")
PATIENT = 20.0  # seconds that a test waits for what shall come


def steps(n: int, name: str = "run") -> tuple[StepRecord, ...]:
    return tuple(StepRecord(i, "agent", "", "find", "{}", "", f"{name} {i}", "ok", "ok") for i in range(1, n + 1))


def ask(name: str = "run", n: int = 1, run: Budget | None = None) -> Question:
    return Question(steps(n, name), n, "rising", run)


@pytest.fixture
def opened() -> Iterator[list[Desk]]:
    desks: list[Desk] = []
    yield desks
    for desk in desks:
        desk.close(drain=False)


def check_law(ledger: Ledger, tickets: Sequence[Ticket]) -> None:
    """Nothing lost, nothing counted twice: the ledger says what the tickets say."""
    told = ledger.snapshot()
    endings = [ticket.ending for ticket in tickets]
    assert told.offered == len(tickets)
    assert told.offered == told.answered + told.cached + told.n_dropped + told.n_failed
    assert (told.answered, told.cached, told.n_dropped, told.n_failed) == tuple(
        endings.count(ending) for ending in ("answered", "cached", "dropped", "failed")
    )
    assert told.pending == 0 and all(ticket.done for ticket in tickets)
    for kind, counted in (("dropped", told.dropped), ("failed", told.failed)):
        reasons = [ticket.reason for ticket in tickets if ticket.ending == kind]
        assert {reason: reasons.count(reason) for reason in reasons} == dict(counted)


def test_an_answer_comes_back(opened: list[Desk]) -> None:
    desk = Desk(ScriptedAuditor(), FREE)
    opened.append(desk)
    ticket = desk.offer(ask(n=3))
    judged = ticket.result(PATIENT)
    assert judged is not None and (judged.verdict.outcome, judged.verdict.step) == (VerdictOutcome.ALARM, 3)
    assert (ticket.ending, ticket.reason, ticket.done) == ("answered", "", True)
    desk.close()
    told = desk.ledger.snapshot()
    assert (told.offered, told.answered, told.tokens_in, told.cost) == (1, 1, 1000, 0.001)


def test_no_thread_before_the_first_question_and_none_after_the_close() -> None:
    def alive() -> int:
        return sum(thread.name == "prefixguard-escalation" for thread in threading.enumerate())

    auditor = ScriptedAuditor()
    before = alive()
    desk = Desk(auditor, FREE)
    assert alive() == before
    desk.offer(ask()).result(PATIENT)
    assert alive() == before + 1
    desk.close()
    assert alive() == before
    assert auditor.closed
    late = desk.offer(ask("late"))
    assert (late.ending, late.reason, desk.silent) == ("dropped", "closed", "closed")
    desk.close()


def test_a_desk_that_nobody_holds_goes(opened: list[Desk]) -> None:
    desk = Desk(ScriptedAuditor(), FREE)
    desk.offer(ask()).result(PATIENT)
    thread, gone = desk._thread, weakref.ref(desk)
    assert thread is not None
    del desk
    for _ in range(200):
        gc.collect()
        if gone() is None:
            break
        time.sleep(0.01)
    thread.join(PATIENT)
    assert gone() is None and not thread.is_alive()


def test_what_is_too_much_is_dropped_at_once(opened: list[Desk]) -> None:
    desk = Desk(ScriptedAuditor(stuck=True), replace(FREE, queue=3), workers=2)
    opened.append(desk)
    tickets = [desk.offer(ask(f"run {i}")) for i in range(7)]
    assert [ticket.ending for ticket in tickets] == ["pending"] * 5 + ["dropped"] * 2
    assert tickets[-1].reason == desk.silent == "queue full"
    assert desk.ledger.snapshot().pending == 5
    desk.close(drain=False)
    check_law(desk.ledger, tickets)
    assert [ticket.reason for ticket in tickets] == ["closed"] * 5 + ["queue full"] * 2


def test_no_more_are_on_their_way_than_there_are_workers(opened: list[Desk]) -> None:
    auditor = ScriptedAuditor(delay=0.005)
    desk = Desk(auditor, FREE, workers=3)
    opened.append(desk)
    tickets = [desk.offer(ask(f"run {i}")) for i in range(30)]
    desk.close(drain=True, seconds=PATIENT)
    assert {ticket.ending for ticket in tickets} == {"answered"}
    assert auditor.most_at_once == 3


def test_an_open_circuit_costs_no_place_in_the_queue(opened: list[Desk]) -> None:
    breaker = CircuitBreaker(failures=1, reset_seconds=1000)
    desk = Desk(ScriptedAuditor(), FREE, breaker=breaker)
    opened.append(desk)
    breaker.failed(breaker.admit())
    ticket = desk.offer(ask())
    assert (ticket.ending, ticket.reason, desk.silent) == ("dropped", "circuit open", "circuit open")
    assert desk._thread is None


def test_the_auditors_own_breaker_is_found() -> None:
    auditor: Any = ScriptedAuditor()
    auditor.breaker = CircuitBreaker()
    assert Desk(auditor, FREE).breaker is auditor.breaker


class Answers(ScriptedAuditor):
    """Gives one answer to all, or raises it."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> Judged:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def judged(verdict: Verdict, **changes: Any) -> Judged:
    return replace(Judged(verdict, "k", False, 10, 5, False, 0.5, 0.1, 1, "raw"), **changes)


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
def test_whatever_an_auditor_does_its_question_ends(answer: Any, ending: str, reason: str, opened: list[Desk]) -> None:
    desk = Desk(Answers(answer), FREE)
    opened.append(desk)
    first = desk.offer(ask("first"))
    first.result(PATIENT)
    assert (first.ending, first.reason) == (ending, reason)
    second = desk.offer(ask("second"))
    second.result(PATIENT)
    assert second.ending == ending  # the worker lives
    desk.close()
    check_law(desk.ledger, [first, second])


def test_an_auditor_that_does_not_answer_is_given_up(opened: list[Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prefixguard.escalate.desk._GRACE", 0.01)
    desk = Desk(ScriptedAuditor(stuck=True), replace(FREE, seconds=0.05), workers=1)
    opened.append(desk)
    tickets = [desk.offer(ask("a")), desk.offer(ask("b")), desk.offer(ask("c"))]
    for ticket in tickets:
        assert ticket.result(PATIENT) is None
    assert [ticket.reason for ticket in tickets] == ["late"] * 3
    assert tickets[0].ending == "failed" and tickets[2].ending == "dropped"  # that one was never sent
    desk.close()
    check_law(desk.ledger, tickets)


def test_the_same_question_is_sent_once(opened: list[Desk], tmp_path: Path) -> None:
    """While it is on its way, and, with a cache, ever after; those who join pay nothing."""
    auditor = ScriptedAuditor(delay=0.05)
    desk = Desk(auditor, FREE, cache=VerdictCache(tmp_path))
    opened.append(desk)
    budget = Budget("run", calls=10)
    tickets = [desk.offer(ask("same", run=budget)) for _ in range(5)]
    for ticket in tickets:
        ticket.result(PATIENT)
    again = desk.offer(ask("same", run=budget))
    found = again.result(PATIENT)
    assert len(auditor.asked) == 1
    assert [ticket.ending for ticket in tickets] == ["answered"] + ["cached"] * 4
    assert found is not None and again.ending == "cached" and found.cached and found.cost == 0.0
    assert budget.used == (1, 1050, 0.001)
    desk.close()
    check_law(desk.ledger, [*tickets, again])
    assert desk.ledger.snapshot().tokens_in == 1000


def test_a_failure_is_shared_too_and_not_kept(opened: list[Desk], tmp_path: Path) -> None:
    auditor = ScriptedAuditor(delay=0.05, failing=1.0)
    desk = Desk(auditor, FREE, cache=VerdictCache(tmp_path))
    opened.append(desk)
    tickets = [desk.offer(ask("same")) for _ in range(3)]
    for ticket in tickets:
        ticket.result(PATIENT)
    assert {(ticket.ending, ticket.reason) for ticket in tickets} == {("failed", "server-error")}
    desk.offer(ask("same")).result(PATIENT)
    assert len(auditor.asked) == 2 and not list(tmp_path.iterdir())
    assert desk.ledger.snapshot().tokens_in == 2000


def test_budgets_refuse_with_their_reason(opened: list[Desk]) -> None:
    policy = replace(FREE, calls_a_minute=3, calls_a_run=2)
    auditor = ScriptedAuditor()
    desk = Desk(auditor, policy)
    opened.append(desk)
    one, other = Budget("run", calls=2), Budget("run", calls=2)
    tickets = [desk.offer(ask(f"one {i}", run=one)) for i in range(3)]
    tickets += [desk.offer(ask(f"other {i}", run=other)) for i in range(2)]
    desk.close(seconds=PATIENT)
    assert [ticket.reason for ticket in tickets] == ["", "", "calls a run", "", "calls a minute"]
    assert other.used[0] == 1  # what the minute refused costs the run nothing
    check_law(desk.ledger, tickets)


def test_what_a_failure_took_is_held_where_nobody_says_it(opened: list[Desk]) -> None:
    """And an answer without a cost ends what a budget of money allows."""
    policy = replace(FREE, question_tokens=500, question_money=0.2)
    failed = judged(Verdict(VerdictOutcome.ERROR, fault="timeout"), tokens_in=0, tokens_out=0, cost=None)
    for answer, used, then in (
        (failed, (1, 500, 0.2), ""),
        (replace(failed, cost=0.0), (1, 0, 0.0), ""),
        (judged(Verdict(VerdictOutcome.SAFE), cost=None), (1, 15, 0.2), "cost unknown"),
    ):
        desk = Desk(Answers(answer), policy)
        opened.append(desk)
        budget = Budget("run", money=1.0)
        desk.offer(ask("a", run=budget)).result(PATIENT)
        assert budget.used == used
        assert desk.offer(ask("b", run=budget)).reason in (then, "timeout")


def test_a_question_that_met_an_open_circuit_costs_no_call(opened: list[Desk]) -> None:
    desk = Desk(Answers(judged(Verdict(VerdictOutcome.ERROR, fault="circuit-open"), attempts=0)), FREE)
    opened.append(desk)
    budget = Budget("run", calls=1)
    for name in ("a", "b"):
        ticket = desk.offer(ask(name, run=budget))
        ticket.result(PATIENT)
        assert (ticket.ending, ticket.reason, budget.used) == ("dropped", "circuit open", (0, 0, 0.0))


def test_closing_with_drain_answers_all_and_without_drops_them(opened: list[Desk]) -> None:
    for drain in (True, False):
        desk = Desk(ScriptedAuditor(delay=0.01), FREE, workers=2)
        tickets = [desk.offer(ask(f"run {i}")) for i in range(20)]
        desk.close(drain=drain, seconds=PATIENT)
        check_law(desk.ledger, tickets)
        assert (desk.ledger.snapshot().answered == 20) is drain


def test_an_auditor_that_blocks_the_thread_does_not_hold_the_close(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    class Blocking(ScriptedAuditor):
        async def judge(self, records: Sequence[StepRecord], *, seconds: float | None = None) -> Judged:
            release.wait(PATIENT)
            return await super().judge(records, seconds=seconds)

    monkeypatch.setattr("prefixguard.escalate.desk._JOIN", 0.05)
    desk = Desk(Blocking(), FREE)
    tickets = [desk.offer(ask(f"run {i}")) for i in range(3)]
    thread = desk._thread
    desk.close(drain=True, seconds=0.05)
    check_law(desk.ledger, tickets)
    release.set()
    assert thread is not None
    thread.join(PATIENT)
    check_law(desk.ledger, tickets)  # what came too late counts no more


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

    monkeypatch.setattr("prefixguard.escalate.desk._JOIN", 0.05)
    auditor = Keyed(key)
    desk = Desk(auditor, FREE)
    ticket = desk.offer(ask())
    thread = desk._thread
    assert begun.wait(PATIENT) and thread is not None
    desk.close(drain=False)
    release.set()
    thread.join(PATIENT)
    assert (ticket.ending, ticket.reason, auditor.asked) == ("dropped", "closed", [])
    check_law(desk.ledger, [ticket])


@pytest.mark.parametrize("raised", [ValueError, SystemExit])
def test_a_key_that_cannot_be_made_costs_its_question_only(raised: type[BaseException], opened: list[Desk]) -> None:
    def key() -> str:
        raise raised

    desk = Desk(Keyed(key), FREE)
    opened.append(desk)
    for name in ("a", "b"):
        ticket = desk.offer(ask(name))
        ticket.result(PATIENT)
        assert (ticket.ending, ticket.reason) == ("dropped", "raised")


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
    desk = Desk(ScriptedAuditor(), FREE)
    tickets = [desk.offer(ask()), desk.offer(ask())]
    assert {(ticket.ending, ticket.reason) for ticket in tickets} == {("dropped", "no thread")}
    assert len(loops) == 2 and all(loop.is_closed() for loop in loops)
    desk.close()
    check_law(desk.ledger, tickets)


ACTS = st.lists(
    st.tuples(st.sampled_from(["offer", "same", "wait", "close", "drop"]), st.integers(0, 3)), min_size=1, max_size=25
)


@settings(max_examples=60, deadline=None)
@given(ACTS, st.integers(1, 4), st.integers(1, 4), st.integers(0, 6), st.booleans())
def test_the_law_under_any_order_of_offers_and_closings(
    acts: list[tuple[str, int]], workers: int, queue: int, calls: int, fails: bool
) -> None:
    auditor = ScriptedAuditor(nothing_wrong, failing=0.5 * fails, raising=0.3 * fails, delay=0.0005)
    policy = replace(FREE, queue=queue, calls_a_minute=calls + 5)
    desk = Desk(auditor, policy, workers=workers)
    budgets = [Budget("run", calls=calls) for _ in range(4)]
    tickets: list[Ticket] = []
    for number, (act, which) in enumerate(acts):
        if act == "offer":
            tickets.append(desk.offer(ask(f"{number}", run=budgets[which])))
        elif act == "same":
            tickets.append(desk.offer(ask(f"shared {which}", run=budgets[which])))
        elif act == "wait" and tickets:
            tickets[which % len(tickets)].result(PATIENT)
        elif act in ("close", "drop"):
            desk.close(drain=act == "close", seconds=PATIENT)
        told = desk.ledger.snapshot()
        assert told.offered == len(tickets) and 0 <= told.pending <= queue + workers
    desk.close(drain=False)
    check_law(desk.ledger, tickets)
    assert len(auditor.asked) <= calls + 5
    assert all(budget.used[0] <= calls for budget in budgets)


def test_many_threads_and_a_close_in_the_middle() -> None:
    auditor = ScriptedAuditor(failing=0.5, delay=0.001)
    desk = Desk(auditor, replace(FREE, queue=50), workers=8)
    start = threading.Barrier(9)
    tickets: list[list[Ticket]] = [[] for _ in range(8)]

    def work(number: int) -> None:
        start.wait()
        for i in range(300):
            tickets[number].append(desk.offer(ask(f"{number % 4} {i}")))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    tickets[0][0].result(PATIENT) if tickets[0] else None
    desk.close(drain=True, seconds=PATIENT)
    for thread in threads:
        thread.join()
    every = [ticket for some in tickets for ticket in some]
    assert len(every) == 2400
    check_law(desk.ledger, every)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_asks_nothing_and_lives() -> None:
    program = """
import os, sys
sys.path.insert(0, sys.argv[1])
from scripted_auditor import ScriptedAuditor
from prefixguard.escalate.desk import Desk
from prefixguard.escalate.ticket import Question
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.stepview import StepRecord
step = StepRecord(1, "agent", "", "find", "{}", "", "", "", "ok")
desk = Desk(ScriptedAuditor(stuck=True), EscalationPolicy(mark=0.5))
first = desk.offer(Question((step,), 1))
child = os.fork()
if child == 0:
    late = desk.offer(Question((step,), 1))
    told = desk.ledger.snapshot()
    good = (first.ending, first.reason, late.reason, told.pending, told.n_dropped) == (
        "dropped", "fork", "fork", 0, 2)
    desk.close()
    os._exit(0 if good else 1)
_, status = os.waitpid(child, 0)
assert first.ending == "pending"
desk.close(drain=False)
sys.exit(os.waitstatus_to_exitcode(status))
"""
    done = subprocess.run([sys.executable, "-c", program, SUPPORT], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_program_ends_without_a_close() -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from scripted_auditor import ScriptedAuditor
from prefixguard.escalate.desk import Desk
from prefixguard.escalate.ticket import Question
from prefixguard.escalate.policy import EscalationPolicy
from prefixguard.stepview import StepRecord
step = StepRecord(1, "agent", "", "find", "{}", "", "", "", "ok")
desk = Desk(ScriptedAuditor(stuck=True), EscalationPolicy(mark=0.5))
desk.offer(Question((step,), 1))
"""
    done = subprocess.run([sys.executable, "-c", program, SUPPORT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_workers_have_a_range() -> None:
    with pytest.raises(ConfigError, match="workers 0"):
        Desk(ScriptedAuditor(), FREE, workers=0)
