"""What is done when an alarm sounds: what the host asked for, or what its function answers in time."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, Literal

from prefixguard.escalate import Verdict
from prefixguard.runtime import Reading, plain

logger = logging.getLogger("prefixguard")

_ASKED = threading.local()
#: Seconds that an `on_alarm` function may take before the agent goes on without its answer.
CALLBACK_SECONDS: Final = 1.0
ACTIONS: Final = ("warn", "nudge", "stop")


@dataclass(frozen=True, slots=True)
class Alarm:
    """The first ALARM of an agent in a run; and once more, the first verdict that blames a step of it.

    run, agent_path, agent : which. reading : the step's. nudge : what would be said to the agent. verdict : the
    auditor's, which names a step and an agent; None where none has come in. Reasons quote the run: they are text from
    outside.
    """

    run: str
    agent_path: str
    agent: str
    reading: Reading
    nudge: str
    verdict: Verdict | None = None


#: What to do at an alarm: a name, or a function that may answer "nudge", "stop", "warn", or a text to nudge with.
OnAlarm = Literal["warn", "nudge", "stop"] | Callable[[Alarm], Any]


def answer_of(function: Callable[[Alarm], Any], alarm: Alarm, count: Callable[[str], None]) -> Any:
    """What the host's function answers; "warn" where it raises or takes too long, which is counted.

    The function is called on a thread of its own, one that is async in an event loop of its own.
    """
    answer: Future[Any] = Future()

    def call() -> None:
        _ASKED.now = True
        try:
            found = function(alarm)
            answer.set_result(asyncio.run(_awaited(found)) if inspect.isawaitable(found) else found)
        except BaseException as exc:
            answer.set_exception(exc)

    try:
        threading.Thread(target=call, name="prefixguard-on-alarm", daemon=True).start()
    except RuntimeError as exc:  # the process ends, or has too many threads
        answer.set_exception(exc)
    try:
        return answer.result(CALLBACK_SECONDS)
    except BaseException as exc:
        if not answer.done():
            if not isinstance(exc, TimeoutError):
                raise  # the host's own, which came while we waited
            count("slow_callbacks")
            logger.warning("on_alarm did not answer within %s s; the agent goes on", CALLBACK_SECONDS)
        else:
            count("failed_callbacks")
            logger.warning("on_alarm raised %s; the agent goes on", plain(f"{type(exc).__name__}: {exc}", 200))
    return "warn"


def is_asked() -> bool:
    """Is this thread the one on which a function of the host's is asked?"""
    return getattr(_ASKED, "now", False)


async def _awaited(found: Any) -> Any:
    return await found
