"""Questions that got no reply, and the circuit breaker: an endpoint that failed several times in a row is left alone.

Source of the pattern: Nygard, Release It!, "Circuit Breaker" (states closed, open, half-open).
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from prefixguard.errors import ConfigError, EndpointError

#: Characters of a cause that are kept.
_CAUSE = 200


class CircuitState(StrEnum):
    """CLOSED: requests go. OPEN: none goes. HALF_OPEN: the rest is over; one request at a time tries."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one request; its outcome is told with it. era: number of openings and closings before it."""

    era: int
    is_probe: bool


class CircuitBreaker:
    """Opens after so many failures without a success between; after a rest one probe at a time may close it.

    The caller says what came of each request (`ended`): a failure is what speaks of the endpoint (no connection, a
    time-out, 5xx), a success any other answer (a 400 shows a server that lives, a 429 one that is busy), and of a
    question that was cancelled nothing is learned. Requests that were sent before the circuit opened are not counted
    any more. Thread-safe; several clients of one endpoint may share one.
    """

    def __init__(
        self, failures: int = 5, reset_seconds: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """failures: in a row, 1 or more. reset_seconds: of rest after it opens, more than 0. clock: seconds, rising."""
        if failures < 1:
            raise ConfigError(f"failures {failures}: a number of requests, 1 or more.")
        if not (math.isfinite(reset_seconds) and reset_seconds > 0):
            raise ConfigError(f"reset_seconds {reset_seconds}: seconds, more than 0.")
        self.failures, self.reset_seconds = failures, reset_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._row = 0  # failures since the last success
        self._cause = ""  # of the first of them
        self._opened: float | None = None  # when; None while closed
        self._probing = False
        self._era = 0

    @property
    def state(self) -> CircuitState:
        """As of now."""
        with self._lock:
            if self._opened is None:
                return CircuitState.CLOSED
            return CircuitState.OPEN if self._left() > 0 else CircuitState.HALF_OPEN

    @property
    def retry_in(self) -> float:
        """Seconds until a request may go; 0 where one may go now (or after the probe that is under way)."""
        with self._lock:
            return self._left()

    def check(self) -> None:
        """Raises CircuitOpenError where a request would be refused now. Takes no leave."""
        with self._lock:
            self._refuse()

    def admit(self) -> Permit:
        """Leave to send one request. CircuitOpenError where none may go. Every permit is told how it ended."""
        with self._lock:
            self._refuse()
            is_probe = self._opened is not None
            self._probing = is_probe
            return Permit(self._era, is_probe)

    def ended(self, permit: Permit, is_down: bool | None, cause: str = "") -> None:
        """What came of a request. is_down: whether the endpoint failed; False: it answered; None: nothing was learned.

        cause: how it failed, for a person; what is refused later says the first one since a success.
        """
        with self._lock:
            if permit.era != self._era:
                return
            self._probing = self._probing and not permit.is_probe
            if is_down:
                self._row += 1
                self._cause = self._cause or cause[:_CAUSE].rstrip(". ")
                if permit.is_probe or self._row >= self.failures:
                    self._opened, self._row = self._clock(), 0
                    self._era += 1
            elif is_down is not None:
                self._row, self._cause = 0, ""
                if permit.is_probe:
                    self._opened = None
                    self._era += 1

    def _left(self) -> float:
        return 0.0 if self._opened is None else max(0.0, self._opened + self.reset_seconds - self._clock())

    def _refuse(self) -> None:
        left = self._left()
        if left <= 0 and not self._probing:
            return
        following = f"the next try is in {left:.1f} s" if left > 0 else "one request is trying it"
        since = f" (since: {self._cause})" if self._cause else ""
        raise CircuitOpenError(f"nothing was sent: the endpoint failed too often{since}; {following}.", left)


class NoReplyFault(StrEnum):
    """TIMEOUT: the time was up. UNREACHED: no connection, or one that broke. REFUSED: an error status that asking
    again does not change (4xx, redirects). OVERLOADED: 408, 409, 425, 429. SERVER_ERROR: 5xx, or an error in the body
    without a status. UNREADABLE: an answer that is no chat completion. CIRCUIT_OPEN: nothing was sent, since the
    endpoint failed too often lately.
    """

    TIMEOUT = "timeout"
    UNREACHED = "unreached"
    REFUSED = "refused"
    OVERLOADED = "overloaded"
    SERVER_ERROR = "server-error"
    UNREADABLE = "unreadable"
    CIRCUIT_OPEN = "circuit-open"


class NoReplyError(EndpointError):
    """There is no reply. The message never holds the key.

    fault: one of few words. attempts: requests sent, each of which may have cost money. seconds: of the whole question.
    status: of the last answer; None where there was none. notes: what was tried, as in a Reply.
    """

    def __init__(
        self,
        message: str,
        fault: NoReplyFault,
        *,
        attempts: int = 0,
        seconds: float = 0.0,
        status: int | None = None,
        notes: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.fault, self.attempts, self.seconds, self.status, self.notes = fault, attempts, seconds, status, notes


class CircuitOpenError(NoReplyError):
    """The circuit breaker is open: the last try was not sent. attempts: 0 but for a question that failed before, while
    the circuit closed and opened. retry_in: seconds until a question may try again, 0 or more."""

    def __init__(self, message: str, retry_in: float) -> None:
        super().__init__(message, NoReplyFault.CIRCUIT_OPEN)
        self.retry_in = retry_in
