"""Between the host and the sinks: what is handed over, and a bounded queue with a thread of its own for every sink."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from prefixguard.errors import OutputError
from prefixguard.runtime import Reading, plain

logger = logging.getLogger("prefixguard")

#: Readings that wait for a sink at most; what comes when so many wait is dropped and counted.
MOST_WAITING: Final = 10_000
#: Readings that a sink with `emit_all` is given at once at most.
MOST_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class SpanIds:
    """A span of OpenTelemetry: its ids in lower-case hex (32 and 16 digits); flags of its trace (1: sampled)."""

    trace_id: str
    span_id: str
    flags: int


def current_span() -> SpanIds | None:
    """The span that is current in this thread and context; None where there is none.

    OpenTelemetry is not imported for it: a host without OpenTelemetry has no span. Raises nothing.
    """
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    try:
        found = api.get_current_span().get_span_context()
        if not found.is_valid:
            return None
        return SpanIds(f"{found.trace_id:032x}", f"{found.span_id:016x}", int(found.trace_flags))
    except Exception:  # a package that is just being imported, or another tracer's object
        return None


@dataclass(frozen=True, slots=True)
class WatchedReading:
    """A reading, and where it belongs.

    run, agent_path, agent : of the event that completed the step. at : seconds since 1970, UTC.
    acted : what the alarm of this reading led to: warn, nudge or stop; "" where it was none or nothing was done.
    is_alarm : does the alarm of this agent sound with this reading? True once an agent and run, for the first of level
        ALARM.
    span : of OpenTelemetry, current in the host when the reading was made; None where there was none.
    """

    run: str
    agent_path: str
    agent: str
    at: float
    reading: Reading
    acted: str = ""
    is_alarm: bool = False
    span: SpanIds | None = None

    def to_json(self) -> dict[str, Any]:
        where = {"run": self.run, "agent_path": self.agent_path, "agent": self.agent, "at": self.at}
        span = {} if self.span is None else {"trace_id": self.span.trace_id, "span_id": self.span.span_id}
        return {**where, **self.reading.to_json(), "acted": self.acted, "is_alarm": self.is_alarm, **span}


class Sink(Protocol):
    """Takes readings, one at a time and in order, on a thread of its own; it may raise and may take its time.

    Two methods more are used where a sink has them: `emit_all(batch)` in place of `emit`, with the readings that wait,
    at most `MOST_AT_ONCE`; and `attach(counters)`, once for every guard, with a function that gives its counters.
    """

    def emit(self, watched: WatchedReading) -> None:
        """Send one reading."""

    def close(self) -> None:
        """Send what still waits; this guard emits nothing after it."""


class UndeliveredError(OutputError):
    """Some readings of a batch did not reach their receiver. readings : how many."""

    def __init__(self, message: str, readings: int) -> None:
        super().__init__(message)
        self.readings = readings


class SinkThreads:
    """Hands readings to sinks, to each on a thread behind the host's, so that a dead one holds up no other.

    counters : the guard's, for sinks that report them.
    """

    def __init__(self, sinks: Iterable[Sink], counters: Callable[[], Mapping[str, int]] = dict) -> None:
        self._threads = tuple(SinkThread(sink) for sink in sinks)
        for thread in self._threads:
            if callable(attach := getattr(thread.sink, "attach", None)):
                attach(counters)

    def put(self, watched: WatchedReading) -> None:
        """Hand over a reading. Returns at once and raises nothing."""
        for thread in self._threads:
            thread.put(watched)

    def close(self, seconds: float = 5.0) -> None:
        """Wait until the sinks have what waits, at most so long together; then close them."""
        ends = monotonic() + seconds
        for thread in self._threads:
            thread.finish()
        for thread in self._threads:
            if waiting := thread.join(max(0.0, ends - monotonic())):
                logger.warning(
                    "%s did not take all readings within %s s: %s are lost where the process ends now",
                    type(thread.sink).__name__, seconds, waiting,
                )  # fmt: skip

    @property
    def counters(self) -> dict[str, int]:
        """`emitted.NAME`, readings that a sink took; `failed.NAME`, that it could not send; `dropped.NAME`, that found
        its queue full. NAME is the class of the sink."""
        found: dict[str, int] = {}
        for thread in self._threads:
            for what, n in thread.counted().items():
                name = f"{what}.{type(thread.sink).__name__}"
                found[name] = found.get(name, 0) + n
        return found


class SinkThread:
    """The queue and the thread of one sink. A sink that raises is counted, and said once.

    Every reading that is put is counted once, or waits: put = emitted + failed + dropped + waiting.
    """

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self._waiting: SimpleQueue[WatchedReading | None] = SimpleQueue()  # its `put` is safe in signal handlers too
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._is_closed = False
        self._sending = 0
        self._counted = {"emitted": 0, "failed": 0, "dropped": 0}
        self._said: set[str] = set()

    def put(self, watched: WatchedReading) -> None:
        """Hand over a reading. Returns at once and raises nothing."""
        if self._is_closed:
            return
        if self._thread is None or self._process != os.getpid():
            self._start()
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(watched)
        else:
            self._count(
                "dropped", 1, f"is too slow: {MOST_WAITING} readings wait, further ones are dropped and counted"
            )

    def finish(self) -> None:
        """Nothing more is put: the thread sends what waits and closes the sink."""
        self._is_closed = True
        if self._thread is None:
            self._start()
        self._waiting.put(None)

    def join(self, seconds: float) -> int:
        """Wait for the thread, at most so long: the number of readings that still wait."""
        if self._thread is None or self._process != os.getpid():
            return 0
        self._thread.join(seconds)
        return self._sending + max(0, self._waiting.qsize() - 1) if self._thread.is_alive() else 0

    def counted(self) -> dict[str, int]:
        with self._lock:
            return {what: n for what, n in self._counted.items() if n}

    def _start(self) -> None:
        if (
            self._process != os.getpid()
        ):  # a child of a fork: what waited is the parent's, and who held the lock is gone
            self._process, self._lock, self._thread, self._waiting = os.getpid(), threading.Lock(), None, SimpleQueue()
        with self._lock:
            if self._thread is not None:
                return
            name = f"prefixguard-{type(self.sink).__name__}"
            self._thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._thread.start()

    def _work(self) -> None:
        emit_all = getattr(self.sink, "emit_all", None)
        is_open = True
        while is_open:
            batch = [self._waiting.get()]
            try:
                while callable(emit_all) and batch[-1] is not None and len(batch) < MOST_AT_ONCE:
                    batch.append(self._waiting.get_nowait())
            except Empty:
                pass
            is_open = batch[-1] is not None
            readings = [one for one in batch if one is not None]
            if readings:
                self._emit(readings, emit_all if callable(emit_all) else lambda one: self.sink.emit(one[0]))
        try:
            self.sink.close()
        except BaseException as exc:
            self._count("failed", 0, f"cannot be closed ({_in_words(exc)})")

    def _emit(self, readings: list[WatchedReading], emit: Callable[[Sequence[WatchedReading]], None]) -> None:
        self._sending, failed = len(readings), 0
        try:
            emit(readings)
        except (
            BaseException
        ) as exc:  # on this thread nothing is the host's: what ended it would end the sink in silence
            failed = exc.readings if isinstance(exc, UndeliveredError) else len(readings)
            self._count("failed", failed, f"cannot take readings ({_in_words(exc)}); further failures are only counted")
        self._count("emitted", len(readings) - failed)
        self._sending = 0

    def _count(self, what: str, n: int, sentence: str = "") -> None:
        with self._lock:
            self._counted[what] += n
            is_new = bool(sentence) and what not in self._said
            if is_new:
                self._said.add(what)
        if is_new:
            logger.warning("%s %s", type(self.sink).__name__, sentence)


def _in_words(exc: BaseException) -> str:
    return plain(str(exc) if isinstance(exc, OutputError) else f"{type(exc).__name__}: {exc}", 400)
