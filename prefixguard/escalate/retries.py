"""What goes wrong with a request, whether it is worth trying again and when, and how it is told."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from prefixguard.errors import EndpointError
from prefixguard.escalate.circuit import NoReplyFault
from prefixguard.escalate.endpoint import Endpoint
from prefixguard.escalate.request_forms import speaks_of_length
from prefixguard.escalate.wire import ServerFault

_OVERLOADED = (408, 409, 425, 429)
#: Seconds of a Retry-After from which it is taken instead of our own backoff.
_LONG = 1.0


class Unreached(Exception):
    """No answer: a time-out, or a connection that failed. told: was the endpoint given its time (a question that
    waited for its turn until nothing was left says nothing about the endpoint)."""

    def __init__(self, message: str, *, timed_out: bool, told: bool = True) -> None:
        super().__init__(message)
        self.timed_out, self.told = timed_out, told


def worth_trying_again(exc: BaseException) -> bool:
    """Is this fault of one that passes?"""
    if isinstance(exc, ServerFault):
        return exc.status in _OVERLOADED or exc.status >= 500
    return isinstance(exc, Unreached)


def is_busy(exc: BaseException | None) -> bool:
    """Does it show a server that lives and has no room now: 429, or 503 that says when to come back?"""
    if not isinstance(exc, ServerFault):
        return False
    return exc.status == 429 or (exc.status == 503 and exc.retry_after is not None)


def endpoint_failed(exc: BaseException) -> bool | None:
    """Does it show that the endpoint is out of order? False: it shows that it lives. None: it shows nothing."""
    if isinstance(exc, ServerFault) and exc.status:
        return not is_busy(exc) and (exc.status >= 500 or exc.status == 408)
    if isinstance(exc, Unreached) and exc.told:
        return True
    return None


def retrying(endpoint: Endpoint, end: float, say: Callable[[str], None], is_over: Callable[[], bool]) -> Any:
    """tenacity's AsyncRetrying: exponential backoff, or as long as the server asks (Retry-After), with jitter.

    A busy server that says when to come back is asked again until `end`, however often: that is its rate limit and no
    fault. Other tries are counted (`Endpoint.max_retries`; with 0 nothing is asked again).
    end: by time.monotonic(); a wait that would reach it is not begun. is_over: no further try, whatever is left.
    """
    import tenacity

    first = endpoint.first_wait
    jitter = tenacity.wait_random(0, min(1.0, first))
    backoff = tenacity.wait_exponential(multiplier=first, max=60) + jitter
    asked_to_wait = 0  # times

    def wait(state: Any) -> float:
        fault = state.outcome.exception()
        asked = fault.retry_after if isinstance(fault, ServerFault) else None
        if asked is not None and asked >= _LONG:  # it knows better; a short one would be asked for ever in a hurry
            return asked + float(jitter(state))
        return max(float(backoff(state)), asked or 0.0)

    def stop(state: Any) -> bool:
        nonlocal asked_to_wait
        fault = state.outcome.exception()
        if endpoint.max_retries and is_busy(fault) and fault.retry_after is not None:
            asked_to_wait += 1
            too_often = False
        else:
            too_often = state.attempt_number - asked_to_wait > endpoint.max_retries
        return bool(too_often or is_over() or time.monotonic() + state.upcoming_sleep >= end)

    def told(state: Any) -> None:
        say(f"{why(state.outcome.exception())}; trying again in {state.next_action.sleep:.1f} s")

    return tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(worth_trying_again),
        wait=wait,
        stop=stop,
        before_sleep=told,
        reraise=True,
    )


def why(exc: BaseException | None) -> str:
    """What happened, for a person."""
    if isinstance(exc, ServerFault):
        return f"the server answered {exc.status or 'with an error'}: {exc.message[:300]}"
    return str(exc)


def remedy(exc: BaseException) -> str:
    """What to do about it; "" where the fault says so itself."""
    if isinstance(exc, EndpointError):
        return ""
    status = exc.status if isinstance(exc, ServerFault) else None
    if status in (401, 403):
        return "Check the key and what it may use."
    if status == 404:
        return "Check the base URL (it usually ends in /v1) and the name of the model."
    if status is not None and 300 <= status < 400:
        return "Redirects are not followed; name the server's own URL."
    if status in (400, 413, 422):
        if status != 413 and not speaks_of_length(str(exc)):
            return "The message says what the server does not take."
        return "If the prompt is too long for the model, ask with fewer tokens."
    if status == 429:
        return "Wait, or ask for a higher limit."
    return "Is the server up? A slow model needs a longer time-out."


def fault_of(exc: BaseException) -> NoReplyFault:
    """The word for counts."""
    if isinstance(exc, ServerFault):
        if exc.status in _OVERLOADED:
            return NoReplyFault.OVERLOADED
        return NoReplyFault.REFUSED if 300 <= exc.status < 500 else NoReplyFault.SERVER_ERROR
    if isinstance(exc, Unreached):
        return NoReplyFault.TIMEOUT if exc.timed_out else NoReplyFault.UNREACHED
    return NoReplyFault.UNREADABLE
