"""No budget of calls is ever passed, others by no more than answers take beyond what was held; and counts add up."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.escalate.request_accounts import Budget, Held, RequestStatistics
from prefixguard.escalate.verdict import AuditResult, Verdict, VerdictOutcome


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def held(budget: Budget, tokens: int = 1) -> Held:
    found = budget.hold(tokens, 0.0)
    assert isinstance(found, Held)
    return found


@pytest.mark.parametrize(
    ("name", "limits", "tokens", "reason"),
    [
        ("run", {"calls": 0}, 1, "calls a run"), ("run", {"tokens": 0}, 1, "tokens a run"),
        ("minute", {"money": 0.0}, 1, "money a minute"), ("run", {"tokens": 10}, 11, "tokens a run"),
    ],
)  # fmt: skip
def test_reasons_name_what_is_used_up(name: str, limits: dict[str, Any], tokens: int, reason: str) -> None:
    assert Budget(name, **limits).hold(tokens, 0.0) == reason
    assert isinstance(Budget(name).hold(10**9, 1e9), Held)


def test_what_was_not_sent_is_given_back() -> None:
    budget = Budget("run", calls=1, money=1.0)
    first = held(budget, 10)
    assert budget.hold(10, 0.5) == "calls a run"
    budget.release(first)
    budget.release(first)
    assert budget.used == (0, 0, 0.0)
    held(budget)


def test_an_answer_counts_as_what_it_took() -> None:
    budget = Budget("run", tokens=100)
    first = held(budget, 80)
    assert budget.hold(80, 0.0) == "tokens a run"
    budget.settle(first, 20, 0.0)
    budget.settle(first, 10**6, 0.0)  # only the first settlement counts
    assert budget.used == (1, 20, 0.0)
    held(budget, 80)


@pytest.mark.parametrize(("money", "then"), [(None, "cost unknown"), (1.0, "money a run")])
def test_money_that_is_spent_or_that_nobody_can_count(money: float | None, then: str) -> None:
    """Also where questions are held to be free; without a limit of money it does not matter."""
    for limits, refused in ({"money": 1.0}, then), ({"calls": 5}, None):
        budget = Budget("run", **limits)  # type: ignore[arg-type]
        budget.settle(held(budget), 1, money)
        found = budget.hold(1, 0.0)
        assert found == refused or (refused is None and isinstance(found, Held))


def test_a_minute_later_there_is_a_new_one() -> None:
    clock = Clock()
    budget = Budget("minute", calls=1, window=60, clock=clock)
    first = held(budget)
    budget.sent(first)
    clock.now = 59.9
    assert budget.hold(1, 0.0) == "calls a minute"
    budget.settle(first, 1, 0.0)
    assert budget.hold(1, 0.0) == "calls a minute"
    clock.now = 60.0
    held(budget)


ACTS = st.tuples(st.sampled_from(["hold", "send", "settle", "release", "wait"]), st.integers(0, 5), st.integers(0, 15))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 4), st.integers(0, 40), st.lists(ACTS, max_size=80))
def test_in_no_window_more_is_sent_than_allowed(calls: int, tokens: int, acts: list[tuple[str, int, int]]) -> None:
    """Any order of holding, sending, settling and waiting: in every window of 10 s at most `calls` are sent, and where
    answers take no more than was held (8), at most `tokens` are taken."""
    clock = Clock()
    budget = Budget("minute", calls=calls, tokens=tokens, window=10, clock=clock)
    ready: list[Held] = []
    way: list[tuple[Held, int]] = []
    taken: list[tuple[float, int]] = []
    for act, which, amount in acts:
        if act == "hold" and isinstance(one := budget.hold(8, 0.0), Held):
            ready.append(one)
        elif act == "send" and ready:
            way.append((ready.pop(which % len(ready)), len(taken)))
            budget.sent(way[-1][0])
            taken.append((clock.now, 8))
        elif act == "settle" and way:
            one, place = way.pop(which % len(way))
            budget.settle(one, min(amount, 8), 0.0)
            taken[place] = (taken[place][0], min(amount, 8))
        elif act == "release" and ready:
            budget.release(ready.pop(which % len(ready)))
        elif act == "wait":
            clock.now += amount
        for begin in {at for at, _ in taken}:
            inside = [n for at, n in taken if begin <= at < begin + 10]
            assert len(inside) <= calls
            assert sum(inside) <= tokens


@pytest.mark.parametrize("window", [None, 1e9])
def test_threads_together_get_no_more_than_there_is(window: float | None) -> None:
    budget = Budget("run", calls=1000, window=window)
    start = threading.Barrier(8)

    def take() -> int:
        start.wait()
        return sum(isinstance(budget.hold(1, 0.0), Held) for _ in range(400))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(lambda _: take(), range(8))) == 1000


SAFE = AuditResult(Verdict(VerdictOutcome.SAFE), "k", False, 100, 10, True, 0.25, 2.0, 1, "raw")


@given(st.lists(st.sampled_from(["answered", "cached", "dropped", "failed", "none"]), max_size=60))
def test_offered_is_the_sum_of_its_ends(ends: list[str]) -> None:
    statistics = RequestStatistics()
    for end in ends:
        statistics.offer()
        if end != "none":
            statistics.end(end, None if end == "dropped" else SAFE, "timeout", sent=end != "dropped")
    told = statistics.snapshot()
    of = {end: ends.count(end) for end in ("answered", "cached", "dropped", "failed", "none")}
    assert told.offered == len(ends) and told.pending == of["none"]
    assert (told.answered, told.cached, told.n_dropped, told.n_failed) == tuple(of.values())[:4]
    spent = of["answered"] + of["failed"]
    assert (told.tokens_in, told.tokens_out, told.estimated, told.attempts) == (100 * spent, 10 * spent, spent, spent)
    assert (told.cost, told.seconds) == (0.25 * spent, 2.0 * spent)


def test_reasons_are_counted_apart_and_written_in_order() -> None:
    statistics = RequestStatistics()
    for reason in ("queue full", "closed", "queue full"):
        statistics.offer()
        statistics.end("dropped", None, reason)
    statistics.offer()
    statistics.end("failed", None, "timeout")
    told = statistics.snapshot().as_json()
    assert told["dropped_by_reason"] == {"closed": 1, "queue full": 2}
    assert (told["dropped"], told["failed_by_reason"], told["pending"]) == (3, {"timeout": 1}, 0)


def test_a_cost_that_is_not_known_is_said() -> None:
    statistics = RequestStatistics()
    for cost in (None, 0.5):
        statistics.end("answered", replace(SAFE, cost=cost))
    assert (statistics.snapshot().cost, statistics.snapshot().cost_unknown) == (0.5, 1)
    for sent in (True, False):  # sent, and nobody knows what it took; and one that waited for the very same one
        statistics.end("failed", None, "late", sent=sent)
    assert statistics.snapshot().cost_unknown == 2
