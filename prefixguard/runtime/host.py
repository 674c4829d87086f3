"""What a session owes to the program that it runs in: threads, forks and exceptions.

*Threads and forks.* numpy, re2 and onnxruntime let go of Python's global lock for microseconds, some ten times a step.
Where a second thread waits for it, every such moment is a change of threads, which costs more than the step itself. So
a thread takes the turn for a call, and one that finds it taken sleeps, first shortly, then for a time in which the
other gets many calls done: few changes, and no wake-up at the end of every call.

The turn is advice. It protects nothing, nobody waits for it for more than a tenth of a second, and whoever has waited
that long goes on without it and puts a new one in its place. So it cannot make a deadlock, and one that an exception
left taken mends itself.

*The end of the process.* Python ends a daemon thread at the moment at which it asks for the global lock again. Where
that is within re2 or onnxruntime, C++ says "terminate called without an active exception" and aborts the process. So
calls that are under way at the end are waited for, and none begins after it: its thread sleeps until the process is
gone.

*Exceptions.* Raised while a session works, some are the host's and must reach it:

- everything that is no `Exception`: KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError;
- every OSError, TimeoutError among them: a session reads and writes nothing, so it cannot be its own;
- what was raised in code that interrupted ours: a signal handler, a trace function. Such code was handed the frame that
  it interrupted, and by that it is known;
- an exception of a class of the host's with no code of the host's under ours, as PyThreadState_SetAsyncExc raises it.

Ours, so reported in a reading of level UNKNOWN: other exceptions of the classes of Python, numpy, onnxruntime, re2,
orjson and this package, and whatever an event's own methods raise.

A StopIteration that interrupts is beyond this rule: Python itself takes it for the end of the loop that it meets. A
host must not raise one.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from threading import get_ident
from time import sleep
from types import FrameType


class Process:
    """The one of this interpreter, `PROCESS`.

    generation: forks between the first process and this one. forker: the thread that forked it, the only one that
    lives on in the child; 0 before the first fork. mending: held while what another generation locked is replaced.
    """

    __slots__ = ("forker", "generation", "mending")

    def __init__(self) -> None:
        self.generation = self.forker = 0
        self.mending = threading.RLock()

    def forked(self) -> None:
        """In the child, before any of its code."""
        self.generation += 1
        self.forker = threading.get_ident()
        self.mending = threading.RLock()


PROCESS = Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.forked)


#: Seconds of sleep between tries: a call takes a tenth of a millisecond; a sleep of ten is some fifty calls of others.
_NAPS = (0.0001, 0.001, *[0.01] * 9)
#: Seconds that a thread sleeps which must not go on; the process is gone before.
_TO_THE_END = 3600.0
#: Times that a fork waits for the calls of other threads, and those for it, half a millisecond each.
_WAITS = 2000


class CallTurn:
    """The one of this interpreter, `TURN`."""

    __slots__ = ("_forker", "_holder", "_inside", "_is_over", "_lock")

    def __init__(self) -> None:
        self.renew()

    def __enter__(self) -> None:
        """As `enter`, without taking the turn: for C++ that no session calls."""
        self._begin()

    def __exit__(self, *_: object) -> None:
        self._out(get_ident())

    def renew(self) -> None:
        """A new turn that nobody has."""
        self._lock = threading.Lock()
        self._holder: tuple[int, threading.Lock] | None = None  # a thread, and what it took
        self._inside: dict[int, int] = {}  # threads within a call: how many within one another
        self._forker: int | None = None  # a thread that is about to fork, or that ends the process
        self._is_over = False  # the process ends

    def enter(self) -> None:
        """A call begins: not while another thread forks, since a child would inherit the locks of libraries as they
        are at that moment, and wait for ever for threads that it does not have; and not while the process ends."""
        self._begin()
        self.take()

    def _begin(self) -> None:
        thread = get_ident()
        if thread in self._inside:
            self._inside[thread] += 1
            return
        for _ in range(_WAITS):
            self._inside[thread] = self._inside.get(thread, 0) + 1
            if self._forker in (None, thread):
                break
            self._out(thread)
            sleep(0.0005)
        while self._is_over and self._forker != thread:
            sleep(_TO_THE_END)

    def leave(self) -> None:
        """A call is over, or the host's own code runs within it."""
        self._out(get_ident())
        self.give()

    def _out(self, thread: int) -> None:
        within = self._inside.pop(thread, 1) - 1
        if within:
            self._inside[thread] = within

    def before_fork(self) -> None:
        """Waits until no other thread is within a call, but for a second at most."""
        self._forker = thread = get_ident()
        for _ in range(_WAITS):
            if not self._inside.keys() - {thread}:
                break
            sleep(0.0005)

    def after_fork(self) -> None:
        """In the parent: calls go on."""
        if not self._is_over:
            self._forker = None

    def before_exit(self) -> None:
        """The process ends with this thread: waits as `before_fork`, and no other thread calls any more."""
        self._is_over = True
        self.before_fork()

    def take(self) -> None:
        """Waits for the turn, but not for long; nothing where this thread has it."""
        lock = self._lock
        if not lock.acquire(False):
            holder = self._holder
            if holder is not None and holder[0] == get_ident():
                return
            for nap in _NAPS:
                sleep(nap)
                lock = self._lock
                if lock.acquire(False):
                    break
            else:
                self._lock = threading.Lock()
                return
        self._holder = get_ident(), lock

    def give(self) -> None:
        """Gives it up; nothing where this thread has none."""
        holder = self._holder
        if holder is not None and holder[0] == get_ident():
            self._holder = None
            holder[1].release()


TURN = CallTurn()
atexit.register(TURN.before_exit)  # what is registered later runs before it: guards close first
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=TURN.before_fork, after_in_parent=TURN.after_fork, after_in_child=TURN.renew)


#: Top-level modules whose classes of exceptions, and whose frames, are not the host's.
_OURS = sys.stdlib_module_names | {"builtins", "numpy", "onnxruntime", "orjson", "re2", "_re2", "prefixguard"}


def is_hosts(exc: BaseException) -> bool:
    """Whether this exception, just caught in our code, belongs to the host."""
    if not isinstance(exc, Exception) or isinstance(exc, OSError) or was_interrupted(exc):
        return True
    if _is_ours(type(exc).__module__):
        return False
    trace = exc.__traceback__
    while trace is not None:
        if not _is_ours(trace.tb_frame.f_globals.get("__name__")):
            return False  # our code called this one: a method of the event
        trace = trace.tb_next
    return True


def was_interrupted(exc: BaseException) -> bool:
    """Whether it was raised in a function that interrupted the one before it in the traceback."""
    trace = exc.__traceback__
    while trace is not None and trace.tb_next is not None:
        if _was_handed(trace.tb_next.tb_frame, trace.tb_frame):
            return True
        trace = trace.tb_next
    return False


def _was_handed(frame: FrameType, interrupted: FrameType) -> bool:
    """Whether an argument of the frame's function, or one of its *args, is the other frame."""
    return any(
        value is interrupted or (type(value) is tuple and any(one is interrupted for one in value))
        for value in frame.f_locals.values()
    )


def _is_ours(module: object) -> bool:
    return isinstance(module, str) and module.partition(".")[0] in _OURS
