"""A monitor with an auditor behind it: readings as before, and what the auditor says of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.alarm import Level
from prefixguard.errors import ConfigError
from prefixguard.escalate.circuit import CircuitBreaker
from prefixguard.escalate.interventions import Effect, nudge
from prefixguard.escalate.policy import MAX_SECONDS, Asking, EscalationPolicy
from prefixguard.escalate.request_accounts import Budget, RequestCounts
from prefixguard.escalate.request_queue import CIRCUIT_OPEN, LATE, PendingRequest, RequestQueue
from prefixguard.escalate.transcript_buffer import TranscriptBuffer
from prefixguard.escalate.verdict import Auditor, Verdict, VerdictCache
from prefixguard.runtime import Drift, Monitor, Reading, plain
from prefixguard.stepview import StepRecord
from prefixguard.trace import NO_OFFER, RunOffer

#: Reasons that speak of the endpoint, not of the question.
_DOWN = frozenset({CIRCUIT_OPEN, LATE, "circuit-open", "timeout", "unreached", "overloaded", "server-error"})
_MOST_NOTE = 200


@dataclass(frozen=True, slots=True)
class EscalatedReading:
    """What is known after a step: the monitor's reading, and what the auditor made of the run.

    reading: the monitor's own, unchanged.
    level: the level after verdicts (`EscalationPolicy`); without one, the reading's.
    escalation: what became of the question that this step asked: "asked" (on its way), "answered", "cached",
        "dropped: REASON", "failed: REASON"; None where it asked none.
    verdict: the newest verdict, by the step it is about, that is no ERROR; None before the first. about: that step.
    news: whether a verdict came in since the reading before.
    note: why the auditor is silent, after a question that was dropped or failed; None where it is not.
    message: for the agent, by the interventions "nudge" and "stop", where the level becomes ALARM or a new verdict
        ALARM came.
    stop: by the intervention "stop": whether the level is ALARM.
    again: whether the step's reading was given before: `poll` gives it again after a question has ended.
    """

    reading: Reading
    level: Level
    escalation: str | None = None
    verdict: Verdict | None = None
    about: int | None = None
    news: bool = False
    note: str | None = None
    message: str | None = None
    stop: bool = False
    again: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields of `Reading.to_json`, `level` being the one after verdicts; the monitor's own is
        `monitor_level`."""
        return {
            **self.reading.to_json(),
            "level": self.level.value,
            "monitor_level": self.reading.level.value,
            "escalation": self.escalation,
            "verdict": self.verdict.as_json() if self.verdict is not None else None,
            "verdict_about": self.about,
            "verdict_news": self.news,
            "escalation_note": self.note,
            "message": self.message,
            "stop": self.stop,
            "again": self.again,
        }


class Escalator:
    """A monitor, an auditor and when to ask it. Thread-safe; one for any number of runs. Close it when done.

    >>> with Escalator(monitor, auditor) as escalator:  # doctest: +SKIP
    ...     session = escalator.start()
    ...     readings = session.observe(event)
    """

    def __init__(
        self,
        monitor: Monitor,
        auditor: Auditor,
        policy: EscalationPolicy | None = None,
        cache: VerdictCache | None = None,
        *,
        workers: int = 8,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        """policy: None for the defaults. workers, breaker: see `RequestQueue`.

        ConfigError where the policy names no mark and the monitor's watch mark is not of the risk that it goes by.
        """
        self.policy = policy if policy is not None else EscalationPolicy()
        if self.policy.mark is None and self.policy.risk != "outcome":
            raise ConfigError(
                f"the monitor's watch mark is one of the outcome risk, and the policy goes by the {self.policy.risk} "
                "risk: name a mark."
            )
        self.monitor, self.auditor = monitor, auditor
        self.queue = RequestQueue(auditor, self.policy, cache=cache, workers=workers, breaker=breaker)

    def start(
        self,
        header: Mapping[str, Any] | None = None,
        *,
        group: str | None = None,
        ended: Callable[[], None] | None = None,
        offer: RunOffer = NO_OFFER,
    ) -> EscalatedSession:
        """A session for a run that begins now; as `Monitor.start`, which says what is raised. ended: called when a
        question has ended that was on its way, so that `poll` has news; on another thread, and it must not wait. offer:
        the tools and the limit of steps."""
        return EscalatedSession(self, header, group, ended, offer)

    def mark_of(self, group: str | None = None) -> float:
        """The mark for runs of this group: the policy's, or where the monitor's level becomes WATCH."""
        if self.policy.mark is not None:
            return self.policy.mark
        return self.monitor.bundle.calibration.thresholds_of(group).watched_from

    @property
    def counts(self) -> RequestCounts:
        """What became of all questions so far."""
        return self.queue.counts

    def close(self, drain: bool = True, seconds: float = 10.0) -> RequestCounts:
        """Ask nothing more, end every question (see `RequestQueue.close`); the final counts. Sessions may go on."""
        self.queue.close(drain, seconds)
        return self.counts

    def __enter__(self) -> Escalator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class EscalatedSession:
    """One run. Never raises once it is made, and never waits for the auditor unless the policy's mode is "block".

    Calls from several threads wait for each other, as with `Session`.
    """

    def __init__(
        self,
        escalator: Escalator,
        header: Mapping[str, Any] | None,
        group: str | None,
        ended: Callable[[], None] | None = None,
        offer: RunOffer = NO_OFFER,
    ) -> None:
        """Made by `Escalator.start`."""
        policy = escalator.policy
        self._ended = ended
        self._policy = policy
        self._queue = escalator.queue
        self._arrived: list[StepRecord] = []  # records of the call that is under way
        self._session = escalator.monitor.start(
            header, group=group, keep=self._arrived.append, tools=offer.tools, step_limit=offer.step_limit
        )
        self._steps = TranscriptBuffer(policy.keep_texts)
        self._asking = Asking(policy, escalator.mark_of(group))
        self._budget = Budget("run", calls=policy.calls_a_run, tokens=policy.tokens_a_run, money=policy.money_a_run)
        self._effect = Effect(policy)
        self._open: list[PendingRequest] = []
        self._moved = False  # a question has ended since the last reading
        self._news = self._new_alarm = self._was_alarm = False
        self._note: str | None = None
        self._last: EscalatedReading | None = None
        self._last_request: PendingRequest | None = None
        self._lock = threading.Lock()

    def observe(self, event: Any) -> list[EscalatedReading]:
        """Take one raw event; as `Session.observe`, with what verdicts that came in meanwhile change."""
        return self._escalate(lambda: self._session.observe(event))

    def observe_record(self, record: StepRecord) -> EscalatedReading:
        """Take one step that is a record already."""
        return self._escalate(lambda: [self._session.observe_record(record)])[0]

    def end(self) -> list[EscalatedReading]:
        """End the run: readings of steps that were still open. Questions that are on their way stay so: `poll`."""
        return self._escalate(self._session.end)

    def poll(self) -> EscalatedReading | None:
        """The last reading again, where a question of this run has ended since; None where none has, or before the
        first reading. Never waits."""
        with self._lock:
            last = self._last
            try:
                self._collect()
                if not self._moved or last is None:
                    return None
                self._last = replace(self._tell(last.reading, self._last_request), again=True)
            except Exception as exc:
                self._moved = False
                self._last = replace(_monitor_alone(last.reading, exc), again=True) if last is not None else None
            return self._last

    def wait(self, seconds: float) -> EscalatedReading | None:
        """Waits until all questions of this run have ended, `seconds` at most; then as `poll`. More than MAX_SECONDS is
        never waited."""
        until = time.monotonic() + min(seconds, MAX_SECONDS)
        for request in tuple(self._open):
            request.result(max(0.0, until - time.monotonic()))
        return self.poll()

    def save(self) -> bytes:
        """The monitor's session, as `Session.save`; questions and verdicts are not kept."""
        return self._session.save()

    @property
    def pending(self) -> int:
        """Questions of this run that have not ended."""
        return sum(not request.done for request in tuple(self._open))

    @property
    def counters(self) -> Mapping[str, int]:
        """The monitor's session's, see `Session.counters`."""
        return self._session.counters

    @property
    def drift(self) -> Drift:
        """Whether the run looks like those the monitor was trained on."""
        return self._session.drift

    def _escalate(self, take: Callable[[], list[Reading]]) -> list[EscalatedReading]:
        with self._lock:
            self._arrived.clear()
            readings = take()
            # A session hands a record over before it gives the reading of it; other readings come alone.
            records = self._arrived if len(self._arrived) == len(readings) else [None] * len(readings)
            return [self._told(reading, record) for reading, record in zip(readings, records, strict=True)]

    def _told(self, reading: Reading, record: StepRecord | None) -> EscalatedReading:
        """A new reading with what is known of it; the step, where there is one, is kept and perhaps asked about."""
        request = None
        try:
            self._collect()
            request = self._ask(reading, record) if record is not None else None
            last = self._tell(reading, request)
        except Exception as exc:
            last = _monitor_alone(reading, exc)
        self._last, self._last_request = last, request
        return last

    def _ask(self, reading: Reading, record: StepRecord) -> PendingRequest | None:
        """Keeps the step; asks about the run so far where the policy says so."""
        if not self._steps.add(record):
            return None
        if self._asking.wants(reading.step, self._risk(reading), reading.level) is None:
            return None
        request = self._queue.offer(self._steps.prefix(), reading.step, self._budget, self._ended)
        self._open.append(request)
        if self._policy.mode == "block":
            request.result(self._policy.deadline)
            if not request.done:
                self._note = f"no verdict on step {reading.step} within {self._policy.deadline:g} s"
        if request.done:
            self._collect()
        return request

    def _collect(self) -> None:
        """Takes in what has ended, each question once."""
        ended = [request for request in self._open if request.done]
        # First: a question that cannot be taken in shall not come again.
        self._open = [request for request in self._open if request not in ended]
        for request in ended:
            self._moved = True
            if request.ending in ("answered", "cached") and request.judged is not None:
                self._note, self._news = None, True
                self._new_alarm |= self._effect.take(request.step, request.judged.verdict)
            else:
                self._note = _why_silent(request)

    def _tell(self, reading: Reading, request: PendingRequest | None) -> EscalatedReading:
        effect, intervention = self._effect, self._policy.intervention
        above = self._asking.is_above(self._risk(reading))
        level = effect.level(reading.level, reading.step, above=above)
        is_alarm = level is Level.ALARM
        message = None
        if is_alarm and intervention != "warn" and (self._new_alarm or not self._was_alarm):
            message = nudge(reading, effect.alarm)
        news, self._news, self._moved, self._new_alarm, self._was_alarm = self._news, False, False, False, is_alarm
        return EscalatedReading(
            reading,
            level,
            "asked" if request in self._open else _escalation(request),
            effect.verdict,
            effect.about,
            news,
            self._note,
            message,
            is_alarm and intervention == "stop",
        )

    def _risk(self, reading: Reading) -> float | None:
        return reading.outcome_risk if self._policy.risk == "outcome" else reading.imminent_risk


def _monitor_alone(reading: Reading, exc: Exception) -> EscalatedReading:
    """The reading where an answer cannot be worked with: an auditor of the host's own may answer anything."""
    return EscalatedReading(reading, reading.level, note=f"escalation failed ({type(exc).__name__})")


def _escalation(request: PendingRequest | None) -> str | None:
    if request is None:
        return None
    return f"{request.ending}: {plain(request.reason, 60)}" if request.reason else request.ending


def _why_silent(request: PendingRequest) -> str:
    """A question that got no verdict, for a person."""
    what = request.reason
    if request.judged is not None and request.judged.verdict.detail:
        what = f"{what}: {request.judged.verdict.detail}"
    down = "endpoint down; " if request.reason in _DOWN else ""
    return plain(f"{down}no verdict on step {request.step} ({what})", _MOST_NOTE)
