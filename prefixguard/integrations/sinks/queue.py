"""Between the host and the sinks: what is handed over, and a bounded queue with a thread of its own for every sink."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from queue import SimpleQueue
from time import monotonic
from typing import Any, Final, Protocol

from prefixguard.errors import OutputError
from prefixguard.escalate import Verdict, VerdictOutcome
from prefixguard.runtime import Reading, plain

logger = logging.getLogger("prefixguard")

#: Readings that wait for a sink at most; what comes when so many wait is dropped and counted.
MOST_WAITING: Final = 10_000
#: Readings that a sink with `emit_all` is given at once at most.
MOST_AT_ONCE: Final = 100
#: Seconds for which readings are gathered before a sink that was idle is given them.
GATHERED: Final = 0.05


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
    """A reading, and where it belongs; or a verdict, with the latest reading of its agent once more.

    run, agent_path, agent : of the event that completed the step. at : seconds since 1970, UTC.
    acted : what the alarm of this reading led to: warn, nudge or stop; "" where it was none or nothing was done.
    is_alarm : does the alarm of this agent sound with this reading, or with this verdict? True once an agent and run,
        for the first of level ALARM.
    span : of OpenTelemetry, current in the host when the reading was made; None where there was none.
    verdict, about : what an auditor said of the run up to this step; None where this is a reading that is new.
    """

    run: str
    agent_path: str
    agent: str
    at: float
    reading: Reading
    acted: str = ""
    is_alarm: bool = False
    span: SpanIds | None = None
    verdict: Verdict | None = None
    about: int | None = None

    def to_json(self) -> dict[str, Any]:
        where = {"run": self.run, "agent_path": self.agent_path, "agent": self.agent, "at": self.at}
        span = {} if self.span is None else {"trace_id": self.span.trace_id, "span_id": self.span.span_id}
        said = {} if self.verdict is None else {"verdict": self.verdict.as_json(), "verdict_about": self.about}
        return {**where, **self.reading.to_json(), "acted": self.acted, "is_alarm": self.is_alarm, **span, **said}


def blames(watched: WatchedReading) -> bool:
    """Is it a verdict that blames a step?"""
    return watched.verdict is not None and watched.verdict.outcome is VerdictOutcome.ALARM


def verdict_in_words(verdict: Verdict) -> str:
    """What an auditor said, in one sentence; its reason is text from outside.

    >>> verdict_in_words(Verdict(VerdictOutcome.ALARM, 3, "clerk", "It asks again."))
    'the auditor blames step 3 by clerk: It asks again.'
    """
    what = {VerdictOutcome.SAFE: "finds nothing", VerdictOutcome.ABSTAIN: "cannot tell"}.get(verdict.outcome)
    who = f" by {verdict.agent}" if verdict.agent else ""
    return f"the auditor {what or f'blames step {verdict.step}{who}'}: {verdict.reason}".rstrip(": ")


class Sink(Protocol):
    """Takes readings, and verdicts, one at a time and in order, on a thread of its own; it may raise and may take its
    time.

    Four methods more are used where a sink has them: `wants(watched)`, on the host's thread: what it answers False for
    is left out and not counted; `emit_all(batch)` in place of `emit`, with the readings that wait, at most
    `MOST_AT_ONCE`; `close()` after the last reading of a guard; and `attach(counters)`, once for every guard, with a
    function that gives the guard's counters.
    """

    def emit(self, watched: WatchedReading) -> None:
        """Send one reading."""


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
        seen: Counter[str] = Counter()
        threads = []
        for sink in sinks:
            seen[name := type(sink).__name__] += 1
            threads.append(SinkThread(sink, name if seen[name] == 1 else f"{name}-{seen[name]}"))
        self._threads = tuple(threads)
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
                sentence = "%s did not take all readings within %.3g s: %s are lost where the process ends now"
                logger.warning(sentence, thread.name, seconds, waiting)

    @property
    def counters(self) -> dict[str, int]:
        """`emitted.NAME`, readings that a sink took; `failed.NAME`, that it could not send; `dropped.NAME`, that found
        its queue full. NAME is the class of the sink, with a number where there are several."""
        return {f"{what}.{thread.name}": n for thread in self._threads for what, n in thread.counted().items()}


class SinkThread:
    """The queue and the thread of one sink. A sink that raises is counted, and said once.

    Every reading that is put is counted once, or waits: put = emitted + failed + dropped + waiting.
    """

    def __init__(self, sink: Sink, name: str) -> None:
        self.sink, self.name = sink, name
        self._wants: Callable[[WatchedReading], bool] | None = getattr(sink, "wants", None)
        self._waiting: SimpleQueue[WatchedReading | None] = SimpleQueue()  # its `put` is safe in signal handlers too
        self._lock = threading.RLock()  # a signal handler may put, too
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        self._closing = threading.Event()
        self._sending = 0
        self._counted = {"emitted": 0, "failed": 0, "dropped": 0}
        self._said: set[str] = set()

    def put(self, watched: WatchedReading) -> None:
        """Hand over a reading, if the sink wants it. Returns at once and raises nothing."""
        try:
            if self._wants is not None and not self._wants(watched):
                return
        except Exception as exc:
            self._count("failed", 1, f"cannot say what it wants ({_in_words(exc)})")
            return
        if self._closing.is_set():
            why = "is closed"
        elif not self._is_running():
            why = "cannot be given a thread"
        elif self._waiting.qsize() >= MOST_WAITING:
            why = f"is too slow: {MOST_WAITING} readings wait"
        else:
            self._waiting.put(watched)
            return
        self._count("dropped", 1, f"{why}; further readings are dropped and counted")

    def finish(self) -> None:
        """Nothing more is put: the thread sends what waits and closes the sink."""
        is_running = self._is_running()
        self._closing.set()
        if is_running:
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

    def _is_running(self) -> bool:
        """Is there a thread? It is begun where there is none yet; that fails in a process that ends."""
        if self._thread is not None and self._process == os.getpid():
            return True
        if self._process != os.getpid():  # a child of a fork: what waited is the parent's, and so is who held a lock
            was_closing, self._closing = self._closing.is_set(), threading.Event()
            if was_closing:
                self._closing.set()
            self._process, self._lock, self._thread, self._waiting = os.getpid(), threading.RLock(), None, SimpleQueue()
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name=f"prefixguard-{self.name}", daemon=True)
                try:
                    thread.start()
                except RuntimeError:
                    return False
                self._thread = thread
        return True

    def _work(self) -> None:
        emit_all = getattr(self.sink, "emit_all", None)
        is_open = True
        while is_open:
            batch = [self._waiting.get()]
            if self._waiting.empty():
                self._closing.wait(GATHERED)  # to be woken for every reading would cost the host more than the reading
            while batch[-1] is not None and len(batch) < MOST_AT_ONCE and not self._waiting.empty():
                batch.append(self._waiting.get())
            is_open = batch[-1] is not None
            readings = [one for one in batch if one is not None]
            self._sending = len(readings)
            if callable(emit_all) and readings:
                self._emit(emit_all, readings, len(readings))
            else:
                for one in readings:
                    self._emit(self.sink.emit, one, 1)
        try:
            if callable(close := getattr(self.sink, "close", None)):
                close()
        except BaseException as exc:
            self._count("failed", 0, f"cannot be closed ({_in_words(exc)})")

    def _emit(self, emit: Callable[[Any], None], given: Any, readings: int) -> None:
        failed = 0
        try:
            emit(given)
        except BaseException as exc:  # nothing on this thread is the host's, and what ended it would end the sink
            failed = exc.readings if isinstance(exc, UndeliveredError) else readings
            self._count("failed", failed, f"cannot take readings ({_in_words(exc)}); further failures are only counted")
        self._count("emitted", readings - failed)
        self._sending -= readings

    def _count(self, what: str, n: int, sentence: str = "") -> None:
        with self._lock:
            self._counted[what] += n
            is_new = bool(sentence) and what not in self._said
            if is_new:
                self._said.add(what)
        if is_new:
            logger.warning("%s %s", self.name, sentence)


def _in_words(exc: BaseException) -> str:
    return plain(str(exc) if isinstance(exc, OutputError) else f"{type(exc).__name__}: {exc}", 400)
