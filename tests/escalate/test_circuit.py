"""The breaker opens, rests, probes and closes; what belongs to the time before does not count."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, EndpointError
from prefixguard.escalate.circuit import CircuitBreaker, CircuitOpenError, CircuitState, NoReplyFault, Permit


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock, failures: int = 3) -> CircuitBreaker:
    breaker = CircuitBreaker(failures, 10.0, clock)
    for _ in range(failures):
        breaker.ended(breaker.admit(), True)
    return breaker


def test_it_opens_after_failures_in_a_row(clock: Clock) -> None:
    breaker = CircuitBreaker(3, 10.0, clock)
    breaker.ended(breaker.admit(), True)
    breaker.ended(breaker.admit(), True)
    breaker.ended(breaker.admit(), False)
    breaker.ended(breaker.admit(), True)
    breaker.ended(breaker.admit(), True)
    assert breaker.state is CircuitState.CLOSED
    breaker.ended(breaker.admit(), True)
    assert (breaker.state, breaker.retry_in) == (CircuitState.OPEN, 10.0)
    clock.now += 4
    for refused in (breaker.check, breaker.admit):
        with pytest.raises(CircuitOpenError, match=r"next try is in 6\.0 s") as caught:
            refused()
    assert (caught.value.retry_in, caught.value.fault) == (6.0, NoReplyFault.CIRCUIT_OPEN)
    assert isinstance(caught.value, EndpointError)


def test_what_opened_it_is_said(clock: Clock) -> None:
    breaker = CircuitBreaker(2, 10.0, clock)
    breaker.ended(breaker.admit(), True, "an old one")
    breaker.ended(breaker.admit(), False)
    breaker.ended(breaker.admit(), True, "the server answered 500: no." + "x" * 1000)
    breaker.ended(breaker.admit(), True, "another")
    with pytest.raises(CircuitOpenError, match=r"\(since: the server answered 500: no\.x+\); the next try") as caught:
        breaker.check()
    assert len(str(caught.value)) < 300
    clock.now += 10
    breaker.ended(breaker.admit(), False)
    for _ in range(2):
        breaker.ended(breaker.admit(), True, "a new one")
    with pytest.raises(CircuitOpenError, match="since: a new one"):
        breaker.admit()


def test_one_probe_at_a_time_closes_it(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    assert (breaker.state, breaker.retry_in) == (CircuitState.HALF_OPEN, 0.0)
    breaker.check()
    probe = breaker.admit()
    assert probe.is_probe
    with pytest.raises(CircuitOpenError, match="one request is trying"):
        breaker.admit()
    breaker.ended(probe, False)
    assert breaker.state is CircuitState.CLOSED
    assert not breaker.admit().is_probe and not breaker.admit().is_probe


def test_a_probe_that_fails_opens_it_for_a_whole_rest(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 15
    breaker.ended(breaker.admit(), True)
    assert (breaker.state, breaker.retry_in) == (CircuitState.OPEN, 10.0)


def test_a_probe_that_was_cancelled_makes_room_for_the_next(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    breaker.ended(breaker.admit(), None)
    assert breaker.admit().is_probe


def test_requests_of_an_earlier_era_do_not_count(clock: Clock) -> None:
    breaker = CircuitBreaker(2, 10.0, clock)
    late = [breaker.admit() for _ in range(5)]
    breaker.ended(late[0], True)
    breaker.ended(late[1], True)
    clock.now += 9
    breaker.ended(late[2], True)
    assert breaker.retry_in == 1.0, "the rest is not prolonged"
    breaker.ended(late[3], False)
    assert breaker.state is CircuitState.OPEN
    clock.now += 1
    breaker.ended(breaker.admit(), False)
    breaker.ended(late[4], True)
    breaker.ended(breaker.admit(), True)
    assert breaker.state.value == "closed"


@pytest.mark.parametrize("options", [{"failures": 0}, {"reset_seconds": 0.0}, {"reset_seconds": float("nan")}])
def test_options_out_of_range_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(options))):
        CircuitBreaker(**options)  # type: ignore[arg-type]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(["admit", "fail", "succeed", "release", "wait"]), st.integers(0, 9))))
def test_never_two_probes_and_never_a_request_while_open(acts: list[tuple[str, int]]) -> None:
    clock = Clock()
    breaker = CircuitBreaker(2, 10.0, clock)
    under_way: list[Permit] = []
    for act, number in acts:
        if act == "wait":
            clock.now += number
        elif act == "admit":
            state = breaker.state
            try:
                under_way.append(breaker.admit())
            except CircuitOpenError:
                assert state is not CircuitState.CLOSED
            else:
                assert state is not CircuitState.OPEN
                assert under_way[-1].is_probe is (state is CircuitState.HALF_OPEN)
        elif under_way:
            permit = under_way.pop(number % len(under_way))
            breaker.ended(permit, {"fail": True, "succeed": False, "release": None}[act])
        assert sum(permit.is_probe for permit in under_way) <= 1
    clock.now += 10
    for permit in under_way:
        breaker.ended(permit, None)
    breaker.ended(breaker.admit(), False)  # whatever happened, it can be used again


def test_threads_get_one_probe_between_them(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    admitted: list[Permit] = []
    start = threading.Barrier(16)

    def work() -> None:
        start.wait()
        try:
            admitted.append(breaker.admit())
        except CircuitOpenError:
            return

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(admitted) == 1
