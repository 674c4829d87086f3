"""The auditor behind a guard: sessions that ask it, and a thread that takes in what it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from queue import SimpleQueue
from time import monotonic
from weakref import WeakMethod, finalize

from prefixguard.errors import ConfigError
from prefixguard.escalate import Endpoint, EscalatedSession, Escalator, model_escalator
from prefixguard.integrations.registry import OpenRun
from prefixguard.runtime import Monitor

#: A run, and the path of its agent of which a question has ended.
Ended = tuple[OpenRun, str]


def guard_escalator(escalate: Escalator | Endpoint, monitor: Monitor | None) -> Escalator:
    """The escalator that a guard was given, or one that asks its endpoint. Raises ConfigError, MissingExtraError."""
    if monitor is None:
        raise ConfigError("escalate needs a monitor, whose risk says when the auditor is asked: name one.")
    if isinstance(escalate, Endpoint):
        return model_escalator(monitor, escalate)
    if not isinstance(escalate, Escalator):
        raise ConfigError(f"escalate is {escalate!r:.80}: give an Endpoint, or an Escalator of the same monitor.")
    if escalate.monitor.bundle.id != monitor.bundle.id:
        raise ConfigError(
            f"the Escalator is of the monitor {escalate.monitor.bundle.path}, and the guard of {monitor.bundle.path}: "
            "give Guard(escalator.monitor, escalate=escalator)."
        )
    if escalate.policy.mode != "async" or escalate.policy.intervention != "warn":
        raise ConfigError(
            "a guard never waits for the auditor and acts by its own on_alarm: leave mode and intervention of the "
            "EscalationPolicy as they are by default."
        )
    return escalate


class VerdictThread:
    """Hands the guard what has news, on a thread of its own: the agent does not wait for the auditor, and the auditor
    not for what the guard does with a verdict. The thread ends with the guard."""

    def __init__(self, escalator: Escalator, take: Callable[[OpenRun, str], object]) -> None:
        """take : a method of the guard, which raises nothing."""
        self._escalator = escalator
        self._ended: SimpleQueue[Ended | None] = SimpleQueue()
        given = self._ended, WeakMethod(take)
        self._thread = threading.Thread(target=_hand_over, args=given, name="prefixguard-verdicts", daemon=True)
        self._thread.start()
        finalize(take.__self__, self._ended.put, None).atexit = False  # type: ignore[attr-defined]

    def start(self, run: OpenRun, path: str) -> EscalatedSession:
        """A session for an agent of a run."""
        return self._escalator.start(group=run.group, ended=partial(self._ended.put, (run, path)))

    @property
    def counters(self) -> Mapping[str, int]:
        """`escalation.offered`, questions, and what became of them: `.answered`, `.cached`, `.dropped`, `.failed`;
        `verdicts.alarm`, `.safe` and `.abstain`. What is 0 is left out."""
        counts = self._escalator.counts
        found = {name: getattr(counts, name) for name in ("offered", "answered", "cached")}
        found |= {"dropped": counts.n_dropped, "failed": counts.n_failed}
        asked = {f"escalation.{name}": n for name, n in found.items() if n}
        return asked | {f"verdicts.{outcome}": n for outcome, n in counts.verdicts.items()}

    def close(self, seconds: float) -> None:
        """Ask nothing more; wait at most so long for the verdicts that are on their way."""
        until = monotonic() + seconds
        self._escalator.close(drain=True, seconds=seconds)
        self._ended.put(None)
        if self._thread is not threading.current_thread():
            self._thread.join(max(0.0, until - monotonic()))


def _hand_over(ended: SimpleQueue[Ended | None], take: WeakMethod[Callable[[OpenRun, str], object]]) -> None:
    while (news := ended.get()) is not None:
        if (method := take()) is None:
            return
        method(*news)
        del method, news  # nothing is held while it waits
