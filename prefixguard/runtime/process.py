"""How often this process is the child of a fork, so that what is locked by threads that are no more can be told."""

from __future__ import annotations

import os
import threading


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
