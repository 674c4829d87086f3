"""No budget of calls is ever passed; others by no more than answers take beyond what was held."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.escalate.budgets import Budget, Held


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_reasons_name_what_is_used_up() -> None:
    assert Budget("run", calls=0).hold(1, 0.0) == "calls a run"
    assert Budget("run", tokens=0).hold(1, 0.0) == "tokens a run"
    assert Budget("minute", money=0.0).hold(1, 0.0) == "money a minute"
    assert Budget("run", tokens=10).hold(11, 0.0) == "tokens a run"
    assert isinstance(Budget("run").hold(10**9, 1e9), Held)


def test_what_was_not_sent_is_given_back() -> None:
    budget = Budget("run", calls=1, money=1.0)
    held = budget.hold(10, 0.5)
    assert isinstance(held, Held) and budget.hold(10, 0.5) == "calls a run"
    budget.release(held)
    budget.release(held)
    assert budget.used == (0, 0, 0.0)
    assert isinstance(budget.hold(10, 0.5), Held)


def test_an_answer_counts_as_what_it_took() -> None:
    budget = Budget("run", tokens=100)
    held = budget.hold(80, 0.0)
    assert isinstance(held, Held) and budget.hold(80, 0.0) == "tokens a run"
    budget.settle(held, 20, 0.0)
    budget.settle(held, 10**6, 0.0)  # only the first settlement counts
    assert budget.used == (1, 20, 0.0)
    assert isinstance(budget.hold(80, 0.0), Held)


def test_money_that_nobody_can_count_is_not_spent() -> None:
    budget = Budget("run", money=5.0)
    held = budget.hold(1, 0.0)
    assert isinstance(held, Held)
    budget.settle(held, 100, None)
    assert budget.hold(1, 0.0) == "cost unknown"
    free = Budget("run", calls=5)
    held = free.hold(1, 0.0)
    assert isinstance(held, Held)
    free.settle(held, 100, None)
    assert isinstance(free.hold(1, 0.0), Held)


def test_money_is_spent_up_to_its_limit_even_where_questions_are_held_to_be_free() -> None:
    budget = Budget("run", money=1.0)
    held = budget.hold(1, 0.0)
    assert isinstance(held, Held)
    budget.settle(held, 1, 1.0)
    assert budget.hold(1, 0.0) == "money a run"


def test_a_minute_later_there_is_a_new_one() -> None:
    clock = Clock()
    budget = Budget("minute", calls=1, window=60, clock=clock)
    held = budget.hold(1, 0.0)
    assert isinstance(held, Held)
    budget.sent(held)
    clock.now = 59.9
    assert budget.hold(1, 0.0) == "calls a minute"
    budget.settle(held, 1, 0.0)
    assert budget.hold(1, 0.0) == "calls a minute"
    clock.now = 60.0
    assert isinstance(budget.hold(1, 0.0), Held)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 4),
    st.integers(0, 40),
    st.lists(
        st.tuples(
            st.sampled_from(["hold", "send", "settle", "release", "wait"]), st.integers(0, 5), st.integers(0, 15)
        ),
        max_size=80,
    ),
)
def test_in_no_window_more_is_sent_than_allowed(calls: int, tokens: int, acts: list[tuple[str, int, int]]) -> None:
    """Any order of holding, sending, settling and waiting: in every window of 10 s at most `calls` are sent, and where
    answers take no more than was held (8), at most `tokens` are taken."""
    clock = Clock()
    budget = Budget("minute", calls=calls, tokens=tokens, window=10, clock=clock)
    held: list[Held] = []
    way: list[Held] = []
    taken: dict[int, tuple[float, int]] = {}
    alive: list[Held] = []  # so that no id comes twice
    for act, which, amount in acts:
        if act == "hold":
            one = budget.hold(8, 0.0)
            if isinstance(one, Held):
                held.append(one)
                alive.append(one)
        elif act == "send" and held:
            one = held.pop(which % len(held))
            budget.sent(one)
            way.append(one)
            taken[id(one)] = (clock.now, 8)
        elif act == "settle" and way:
            one = way.pop(which % len(way))
            budget.settle(one, min(amount, 8), 0.0)
            taken[id(one)] = (taken[id(one)][0], min(amount, 8))
        elif act == "release" and held:
            budget.release(held.pop(which % len(held)))
        elif act == "wait":
            clock.now += amount
        for begin in {at for at, _ in taken.values()}:
            inside = [n for at, n in taken.values() if begin <= at < begin + 10]
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
