"""What a guard counts, and locks that a child of a fork does not inherit."""

from __future__ import annotations

import logging
import threading
from collections import Counter

from prefixguard.integrations.events import well_formed
from prefixguard.runtime.host import PROCESS

logger = logging.getLogger("prefixguard")


class ForkedLock:
    """A lock that may be taken again by the thread that has it. A child of a fork gets it free, whoever held it."""

    __slots__ = ("_generation", "_lock")

    def __init__(self) -> None:
        self._generation, self._lock = PROCESS.generation, threading.RLock()

    def __enter__(self) -> None:
        if self._generation != PROCESS.generation:
            self._generation, self._lock = PROCESS.generation, threading.RLock()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class GuardCounts:
    """Counters by name. Safe for threads and forks."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()
        self._lock = ForkedLock()

    def add(self, name: str) -> int:
        """One more; how many there are now."""
        with self._lock:
            self._counted[name] += 1
            return self._counted[name]

    def failed(self, what: str, exc: BaseException) -> None:
        """Something of ours went wrong: counted, said once, never the host's affair."""
        if self.add("internal_errors") == 1:
            logger.warning("%s could not be watched; the agent goes on", well_formed(what), exc_info=exc)

    def as_dict(self) -> dict[str, int]:
        with self._lock:
            return dict(self._counted)
