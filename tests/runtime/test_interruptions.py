"""A call that is interrupted, entered again, or cut off by a fork: never a hang, never a risk that differs."""

import asyncio
import ctypes
import json
import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from tiny_monitor import call, calm_run, failing_run, result, say

from prefixguard.bundle import write_bundle
from prefixguard.errors import UsageError
from prefixguard.runtime import Level, Monitor, Reading, Session, load
from prefixguard.runtime.host import CallTurn, is_hosts
from prefixguard.stepview import StepRecord


class HostError(Exception):
    """A class of the host's own, as one that a timeout raises."""


RAISED = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, TimeoutError, HostError, ValueError]
Trace = Callable[[FrameType, str, Any], Any]


@pytest.fixture(scope="module", params=["onnx", "typed automaton"])
def any_monitor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Monitor:
    parts = {"onnx": tiny_monitor.parts, "typed automaton": tiny_automaton.parts}[request.param]
    path = tmp_path_factory.mktemp("any") / "b"
    write_bundle(path, parts())
    return load(path)


def within(seconds: float, work: Callable[[], None]) -> None:
    """Runs it on a thread of its own, so that a deadlock is a failure and not a hang."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as exc:
            raised.append(exc)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "deadlock"
    if raised:
        raise raised[0]


def at_opcode(n: int, act: Callable[[], None]) -> Trace:
    """A trace function that acts before the n-th instruction, from 1, of this package; as a signal handler would."""
    left = n

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal left
        if not str(frame.f_globals.get("__name__")).startswith("prefixguard"):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left == 0:
                act()
        return trace

    return trace


def traced(work: Callable[[], Any], trace: Trace) -> Any:
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return work()
    finally:
        sys.settrace(before)


def length(work: Callable[[], Any]) -> int:
    """Instructions of this package that it takes."""
    n = 0

    def trace(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal n
        if not str(frame.f_globals.get("__name__")).startswith("prefixguard"):
            return None
        frame.f_trace_opcodes = True
        n += event == "opcode"
        return trace

    traced(work, trace)
    return n


def fed(monitor: Monitor, events: list[Any]) -> Session:
    session = monitor.start()
    for event in events:
        session.observe(event)
    return session


def told(readings: list[Reading]) -> list[dict[str, Any]]:
    return [reading.to_json() for reading in readings]


RUN = failing_run()
DONE = 4  # the event before which a session is interrupted: it completes step 2
REASON = " interrupted a call of this session, so what follows cannot be judged. Start a new session for the next run"


def uninterrupted(monitor: Monitor) -> dict[int, list[dict[str, Any]]]:
    """Readings by event; -1 for those of the end."""
    session = monitor.start()
    by_event = {i: told(session.observe(event)) for i, event in enumerate(RUN)}
    return by_event | {-1: told(session.end())}


def check_the_rest(session: Session, whole: dict[int, list[dict[str, Any]]], first: int, name: str) -> bool:
    """Feeds what is left of the run; whether the session went on as if nothing had been."""
    goes_on = [told(session.observe(event)) for event in RUN[first:]]
    goes_on.append(told(session.end()))
    if goes_on == [whole[i] for i in range(first, len(RUN))] + [whole[-1]]:
        return True
    for readings in goes_on:
        assert [(r["level"], r["unknown_reason"]) for r in readings] == [("UNKNOWN", name + REASON)]
    return False


@pytest.mark.parametrize("raised", RAISED)
def test_interrupted_anywhere_it_is_unknown_or_whole(any_monitor: Monitor, raised: type[BaseException]) -> None:
    """Before every instruction of a call: the host gets its exception, and no later reading differs silently."""
    whole = uninterrupted(any_monitor)
    counted = fed(any_monitor, RUN[:DONE])
    n = length(lambda: counted.observe(RUN[DONE]))
    chosen = random.Random(3)
    points = sorted({*range(1, 40), *range(n - 40, n + 1), *chosen.sample(range(1, n + 1), 60)})

    def raise_it() -> None:
        raise raised

    outcomes = []
    for point in points:
        session = fed(any_monitor, RUN[:DONE])
        with pytest.raises(raised):
            traced(lambda s=session: s.observe(RUN[DONE]), at_opcode(point, raise_it))
        was_taken = session.counters["events"] > DONE
        outcomes.append(check_the_rest(session, whole, DONE + was_taken, raised.__name__))
    assert not all(outcomes)
    assert sum(outcomes) < 60  # those before the call began and after it was over


def test_an_interrupted_end_and_record_are_unknown(monitor: Monitor) -> None:
    def stop() -> None:
        raise HostError

    record = StepRecord(1, "agent", "", "find", "{}", "", "", "ok", "ok")
    for work in (lambda s: s.end(), lambda s: s.observe_record(record)):
        session = fed(monitor, RUN[:DONE])
        with pytest.raises(HostError):
            traced(lambda w=work, s=session: w(s), at_opcode(60, stop))
        for readings in (session.observe(say("x")), [session.observe_record(record)], session.end()):
            assert [r.unknown_reason for r in readings] == [f"HostError{REASON}"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("raised", [KeyboardInterrupt, TimeoutError, HostError, RuntimeError])
def test_hundreds_of_signals_at_random_points(any_monitor: Monitor, raised: type[BaseException]) -> None:
    """Wherever they fall, in the call or beside it: never swallowed, and no risk differs."""
    whole = uninterrupted(any_monitor)
    chosen = random.Random(raised.__name__)
    sent = came = 0

    def handler(signum: int, frame: FrameType | None) -> None:
        nonlocal sent
        sent += 1
        raise raised

    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(150):
            session, i = any_monitor.start(), 0
            try:
                signal.setitimer(signal.ITIMER_REAL, chosen.uniform(1e-5, 2e-3))
                while sent == came:
                    session.observe(RUN[i % len(RUN)])
                    i += 1
                    if i % len(RUN) == 0:
                        session, i = any_monitor.start(), 0
            except raised:
                came += 1
            signal.setitimer(signal.ITIMER_REAL, 0)
            taken = session.counters["events"]
            assert taken <= len(RUN)
            check_the_rest(session, whole, taken, raised.__name__)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert sent == came == 150


def test_exceptions_sent_to_a_thread_arrive(monitor: Monitor) -> None:
    """PyThreadState_SetAsyncExc, as hosts stop a worker: 60 times, at any moment."""
    send = ctypes.pythonapi.PyThreadState_SetAsyncExc
    for _ in range(60):
        looping, came = threading.Event(), []

        def work(came: list[str] = came, looping: threading.Event = looping) -> None:
            try:
                looping.set()
                while True:
                    session = monitor.start()
                    for event in RUN:
                        session.observe(event)
            except HostError:
                came.append("host")

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        looping.wait()
        send(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(HostError))
        thread.join(30)
        assert came == ["host"]


def caught(work: FunctionType) -> BaseException:
    """What a function raises whose code belongs to this package, as far as its module's name says."""
    ours = FunctionType(work.__code__, {**work.__globals__, "__name__": "prefixguard.made_up"})
    try:
        ours()
    except BaseException as exc:
        assert exc.__traceback__ is not None
        return exc.with_traceback(exc.__traceback__.tb_next)  # without this function, which is none of ours
    raise AssertionError(f"{work.__name__} raises nothing")


class OddEvent(dict):  # type: ignore[type-arg]
    def __getitem__(self, name: str) -> Any:
        raise HostError


def handler(*args: Any) -> None:
    raise ValueError


class Handler:
    def __call__(self, signum: int, frame: FrameType | None) -> None:
        raise RuntimeError


handlers = Handler()
event = OddEvent()


def raises_host_error() -> None:  # as PyThreadState_SetAsyncExc does
    raise HostError


def raises_timeout() -> None:
    raise TimeoutError


def raises_interrupt() -> None:
    raise KeyboardInterrupt


def raises_exit() -> None:
    raise GeneratorExit


def opens_a_missing_file() -> None:
    Path("/nowhere/at/all").read_text()


def is_in_a_handler() -> None:
    handler(14, sys._getframe())


def is_in_an_object_that_handles() -> None:
    handlers(15, sys._getframe())


def divides() -> None:
    1 / 0  # noqa: B018


def reads_an_odd_event() -> None:
    event["x"]


def reads_bad_json() -> None:
    json.loads("{")


def reshapes() -> None:
    np.zeros(3).reshape(2)


def runs_out_of_memory() -> None:
    raise MemoryError


def calls_a_function_of_the_hosts() -> None:
    handler()


HOSTS = [raises_host_error, raises_timeout, raises_interrupt, raises_exit, opens_a_missing_file, is_in_a_handler]
HOSTS += [is_in_an_object_that_handles]
OURS = [divides, reads_an_odd_event, reads_bad_json, reshapes, runs_out_of_memory, calls_a_function_of_the_hosts]


@pytest.mark.parametrize("work", HOSTS)
def test_what_is_the_hosts(work: FunctionType) -> None:
    assert is_hosts(caught(work))


@pytest.mark.parametrize("work", OURS)
def test_what_is_ours(work: FunctionType) -> None:
    assert not is_hosts(caught(work))


def test_an_event_that_raises_is_its_own_fault(monitor: Monitor) -> None:
    class Event(dict):  # type: ignore[type-arg]
        def get(self, *_: Any) -> Any:
            raise HostError

        __getitem__ = __contains__ = __iter__ = keys = items = get

    session = monitor.start()
    for event in (Event(role="user"), [Event(role="user")]):
        for reading in session.observe(event):
            assert "could not be read" in str(reading.unknown_reason)
    assert session.observe(say("hello"))[0].level is Level.OK


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_a_keeper_raises_that_is_no_exception_passes_through(
    monitor: Monitor, raised: type[BaseException]
) -> None:
    def keep(_: StepRecord) -> None:
        raise raised

    session = monitor.start(keep=keep)
    with pytest.raises(raised):
        session.observe(say("hello"))
    (reading,) = session.observe(say("hello"))
    assert reading.unknown_reason == raised.__name__ + REASON


WITHIN = (
    "not taken in: another call of this session is under way on the same thread (a callback, signal handler or "
    "finaliser)"
)


def test_a_call_from_the_callback_is_unknown_and_the_outer_goes_on(any_monitor: Monitor) -> None:
    inner: list[Reading] = []
    refused: list[str] = []

    def keep(record: StepRecord) -> None:
        inner.extend(session.observe(say("again")) + session.end() + [session.observe_record(record)])
        try:
            session.save()
        except UsageError as exc:
            refused.append(str(exc))

    session = any_monitor.start(keep=keep)

    def run() -> None:
        readings = [reading for event in RUN for reading in session.observe(event)] + session.end()
        assert told(readings) == [one for many in uninterrupted(any_monitor).values() for one in many]

    within(30, run)
    assert len(inner) == 15
    assert {(reading.level, reading.unknown_reason) for reading in inner} == {(Level.UNKNOWN, WITHIN)}
    assert len(refused) == 5
    assert refused[0].endswith("Save it between two calls.")


def test_a_call_from_a_signal_handler_or_finaliser_anywhere(monitor: Monitor) -> None:
    """Before any instruction of the outer call: one UNKNOWN, or, before it began or after it was over, an event more.

    The event that comes in is one that no rule takes, so that it changes no reading.
    """
    whole = uninterrupted(monitor)
    counted = fed(monitor, RUN[:DONE])
    n = length(lambda: counted.observe(RUN[DONE]))
    points = sorted({*range(1, 40), *range(n - 30, n + 1), *range(40, n, n // 60)})
    unknown = 0
    for point in points:
        session = fed(monitor, RUN[:DONE])
        inner: list[list[Reading]] = []

        def act(session: Session = session, inner: list[list[Reading]] = inner) -> None:
            inner.append(session.observe({"role": "odd"}))

        def run(session: Session = session, act: Callable[[], None] = act, point: int = point) -> None:
            outer = traced(lambda: session.observe(RUN[DONE]), at_opcode(point, act))
            assert told(outer) == whole[DONE]
            assert check_the_rest(session, whole, DONE + 1, "")

        within(30, run)
        ((*readings,),) = inner
        assert [r.unknown_reason for r in readings] in ([], [WITHIN])
        unknown += len(readings)
    assert unknown > len(points) // 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
class TestFork:
    """What a child finds that was forked while sessions are in use."""

    def in_child(self, check: Callable[[], bool]) -> None:
        """The check holds in a child of this process, and comes to an end there."""
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            done = 1
            try:
                done = 0 if check() else 2
            finally:
                os._exit(done)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

    def test_a_call_of_another_thread_was_under_way(self, any_monitor: Monitor) -> None:
        inside, go_on = threading.Event(), threading.Event()

        def keep(_: StepRecord) -> None:
            inside.set()
            go_on.wait(30)

        torn, calm = any_monitor.start(keep=keep), fed(any_monitor, RUN[:DONE])
        readings: list[Reading] = []
        thread = threading.Thread(target=lambda: readings.extend(torn.observe(say("hello"))))
        thread.start()
        inside.wait(30)
        why = "the process was forked during a call of this session, so what follows cannot be judged. Start a new "

        def check() -> bool:
            said = [torn.observe(say("x")), torn.observe(RUN[DONE]), torn.end()]
            is_unknown = all(len(one) == 1 and str(one[0].unknown_reason).startswith(why) for one in said)
            saved = any_monitor.restore(torn.save()).observe(say("x"))
            is_unknown = is_unknown and str(saved[0].unknown_reason).startswith(why)
            return is_unknown and check_the_rest(calm, uninterrupted(any_monitor), DONE, "")

        try:
            self.in_child(check)
        finally:
            go_on.set()
            thread.join(30)
        assert [reading.level for reading in readings] == [Level.OK]
        assert torn.observe(say("more"))[0].level is Level.OK

    def test_the_thread_that_forks_is_itself_inside(self, monitor: Monitor) -> None:
        """Its call goes on in the child as in the parent."""
        children: list[int] = []

        def keep(_: StepRecord) -> None:
            children.append(os.fork())

        session = monitor.start(keep=keep)
        is_right = [r.level for r in session.observe(say("hello"))] == [Level.OK]
        if children[0] == 0:
            signal.alarm(20)
            os._exit(0 if is_right and session.end() == [] else 2)
        assert is_right
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0

    def test_forks_while_threads_are_busy(self, any_monitor: Monitor, tmp_path: Path) -> None:
        """At any moment of other threads' calls: every session of the child answers."""
        stop = threading.Event()
        sessions = [any_monitor.start() for _ in range(3)]

        def work(session: Session) -> None:
            i = 0
            while not stop.is_set():
                session.observe(call(i))
                session.observe(result(i))
                i += 1

        threads = [threading.Thread(target=work, args=(session,)) for session in sessions]
        for thread in threads:
            thread.start()
        try:
            for _ in range(20):
                self.in_child(
                    lambda: (
                        all(isinstance(session.end(), list) for session in sessions)
                        and len([r for e in calm_run(3) for r in any_monitor.start().observe(e)]) >= 0
                    )
                )
        finally:
            stop.set()
            for thread in threads:
                thread.join(30)


def test_a_fork_waits_for_calls_and_calls_wait_for_it() -> None:
    """So that a child never inherits a lock that a library holds for a thread that the child does not have."""
    turn, inside, go_on, order = CallTurn(), threading.Event(), threading.Event(), []

    def call() -> None:
        turn.enter()
        inside.set()
        go_on.wait(30)
        turn.give()  # a part of the call beside which other threads may work
        order.append("call")
        turn.leave()

    def late() -> None:
        turn.enter()
        order.append("late call")
        turn.leave()

    caller = threading.Thread(target=call)
    caller.start()
    inside.wait(30)
    threading.Timer(0.05, go_on.set).start()
    turn.before_fork()
    order.append("fork")
    latecomer = threading.Thread(target=late)
    latecomer.start()
    latecomer.join(0.05)
    turn.enter()  # the thread that forks may itself be within a call
    turn.leave()
    order.append("forked")
    turn.after_fork()
    latecomer.join(30)
    caller.join(30)
    assert order == ["call", "fork", "forked", "late call"]
