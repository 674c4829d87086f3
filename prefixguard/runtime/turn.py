"""Whose turn it is among threads that judge steps, so that they do not wrest Python's global lock from each other.

numpy, re2 and onnxruntime let go of the global lock for microseconds, some ten times a step. Where a second thread
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

#: Seconds of sleep between tries: a call takes a tenth of a millisecond; a sleep of ten is some fifty calls of others.
_NAPS = (0.0001, 0.001, *[0.01] * 9)


class Turn:
    """The one of this interpreter, `TURN`."""

    __slots__ = ("_holder", "_lock")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """A new turn that nobody has."""
        self._lock = threading.Lock()
        self._holder: tuple[int, threading.Lock] | None = None  # a thread, and what it took

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
    # A fork waits until no call is under way, where that is soon, so that a child rarely finds one cut off.
    os.register_at_fork(before=TURN.take, after_in_parent=TURN.give, after_in_child=TURN.renew)
