"""Where readings go besides the agent's own process. No sink blocks the host or raises into it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Protocol

from prefixguard.alarm import Level
from prefixguard.runtime import Reading, plain

logger = logging.getLogger("prefixguard")

#: Readings that wait for the sinks at most; what comes when so many wait is dropped and counted.
MOST_WAITING = 10_000


@dataclass(frozen=True, slots=True)
class WatchedReading:
    """A reading, and where it belongs.

    run, agent_path, agent : of the event that completed the step. at : seconds since 1970, UTC.
    acted : what the alarm of this reading led to: warn, nudge or stop; "" where it was none or nothing was done.
    """

    run: str
    agent_path: str
    agent: str
    at: float
    reading: Reading
    acted: str = ""

    def to_json(self) -> dict[str, Any]:
        where = {"run": self.run, "agent_path": self.agent_path, "agent": self.agent, "at": self.at}
        return {**where, **self.reading.to_json(), "acted": self.acted}


class Sink(Protocol):
    """Takes readings, one at a time and in order, on a thread of its own; it may raise and may take its time."""

    def emit(self, watched: WatchedReading) -> None:
        """Send one reading."""

    def close(self) -> None:
        """Send what still waits; nothing is emitted after this."""


class LogSink:
    """Readings as lines of a Python logger: alarms as warnings, all others at the level `info`."""

    def __init__(self, name: str = "prefixguard.readings") -> None:
        self._logger = logging.getLogger(name)

    def emit(self, watched: WatchedReading) -> None:
        self._logger.log(logging.WARNING if watched.reading.level is Level.ALARM else logging.INFO, in_words(watched))

    def close(self) -> None:
        pass


class FileSink:
    """Readings as JSON lines in a file, which its owner alone can read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def emit(self, watched: WatchedReading) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "ab", buffering=0) as file:
            file.write((json.dumps(watched.to_json(), ensure_ascii=False) + "\n").encode("utf-8", "replace"))

    def close(self) -> None:
        pass


def in_words(watched: WatchedReading) -> str:
    """A reading as one harmless line; names and reasons come from outside."""
    reading = watched.reading
    who = plain(f"{watched.run} {watched.agent_path}", 160)
    if reading.outcome_risk is None:
        return f"{who} step {reading.step}: UNKNOWN: {plain(reading.unknown_reason or '', 300)}"
    why = "".join(f"; {plain(reason, 120)}" for reason in reading.reasons)
    return f"{who} step {reading.step}: {reading.level.value}, {reading.outcome_risk:.0%} risk of failure{why}"


class SinkThread:
    """Hands readings to sinks on one thread behind the host's. A sink that raises is counted, and said once.

    counters : `emitted`; `dropped`, as too many waited; `failed.NAME`, by class of the sink.
    """

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)
        self._waiting: queue.Queue[WatchedReading | None] = queue.Queue(MOST_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._is_closed = False
        self.counters: dict[str, int] = {"emitted": 0, "dropped": 0}

    def put(self, watched: WatchedReading) -> None:
        """Hand over a reading. Returns at once and raises nothing."""
        if not self._sinks or self._is_closed:
            return
        if self._thread is None or self._process != os.getpid():
            self._start()
        try:
            self._waiting.put_nowait(watched)
        except queue.Full:
            self.counters["dropped"] += 1
            if self.counters["dropped"] == 1:
                logger.warning(
                    "sinks are too slow: %s readings wait, further ones are dropped and counted", MOST_WAITING
                )

    def close(self, seconds: float = 5.0) -> None:
        """Wait until the sinks have what waits, at most so long; then close them."""
        self._is_closed = True
        if self._thread is None or self._process != os.getpid():
            return
        ends = monotonic() + seconds
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=seconds)
        self._thread.join(max(0.0, ends - monotonic()))
        if self._thread.is_alive():
            logger.warning("sinks did not take all readings within %s s: %s are lost", seconds, self._waiting.qsize())

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None and self._process == os.getpid():
                return
            if self._process != os.getpid():  # a child of a fork: what waited is the parent's
                self._process, self._waiting = os.getpid(), queue.Queue(MOST_WAITING)
            self._thread = threading.Thread(target=self._work, name="prefixguard-sinks", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while (watched := self._waiting.get()) is not None:
            for sink in self._sinks:
                self._try(sink, watched)
            self.counters["emitted"] += 1
        for sink in self._sinks:
            self._try(sink, None)

    def _try(self, sink: Sink, watched: WatchedReading | None) -> None:
        try:
            sink.close() if watched is None else sink.emit(watched)
        except Exception as exc:
            name = f"failed.{type(sink).__name__}"
            self.counters[name] = self.counters.get(name, 0) + 1
            if self.counters[name] == 1:
                said = plain(f"{type(exc).__name__}: {exc}", 200)
                logger.warning(
                    "%s cannot take readings (%s); further failures are only counted", type(sink).__name__, said
                )
