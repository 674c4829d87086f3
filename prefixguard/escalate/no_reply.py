"""A question that got no reply: why, in a word for counts and a sentence for a person, and what it cost."""

from __future__ import annotations

from enum import StrEnum

from prefixguard.errors import EndpointError


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
