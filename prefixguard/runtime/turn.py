"""Threads and forks: whose turn it is to judge a step, and how often this process was forked.

numpy, re2 and onnxruntime let go of Python's global lock for microseconds, some ten times a step. Where a second thread
waits for it, every such moment is a change of threads, which costs more than the step itself. So a thread takes the
turn for a call, and one that finds it taken sleeps, first shortly, then for a time in which the other gets many calls
done: few changes, and no wake-up at the end of every call.

The turn is advice. It protects nothing, nobody waits for it for more than a tenth of a second, and whoever has waited
that long goes on without it and puts a new one in its place. So it cannot make a deadlock, and one that an exception
left taken mends itself.
"""

from __future__ import annotations

import os
import threading
from threading import get_ident
from time import sleep


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
#: Times that a fork waits for the calls of other threads, and those for it, half a millisecond each.
_WAITS = 2000


class Turn:
    """The one of this interpreter, `TURN`."""

    __slots__ = ("_forker", "_holder", "_inside", "_lock")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """A new turn that nobody has."""
        self._lock = threading.Lock()
        self._holder: tuple[int, threading.Lock] | None = None  # a thread, and what it took
        self._inside: dict[int, int] = {}  # threads within a call: how many within one another
        self._forker: int | None = None  # a thread that is about to fork

    def enter(self) -> None:
        """A call begins: not while another thread forks, since a child would inherit the locks of libraries as they
        are at that moment, and wait for ever for threads that it does not have."""
        thread = get_ident()
        for _ in range(_WAITS):
            self._inside[thread] = self._inside.get(thread, 0) + 1
            if self._forker in (None, thread):
                break
            self._out(thread)
            sleep(0.0005)
        self.take()

    def leave(self) -> None:
        """A call is over, or a part of it that is the host's affair."""
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
        self._forker = None

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


TURN = Turn()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=TURN.before_fork, after_in_parent=TURN.after_fork, after_in_child=TURN.renew)
