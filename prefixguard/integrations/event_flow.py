"""How an event goes through a guard: to its run and agent, into the record, to the session, to what follows from it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from prefixguard.alarm import Level
from prefixguard.errors import OutputError
from prefixguard.escalate import EscalatedReading, EscalatedSession
from prefixguard.integrations.counts import GuardCounts
from prefixguard.integrations.events import MAIN, Event
from prefixguard.integrations.reactions import Reactions
from prefixguard.integrations.recorder import Recorder
from prefixguard.integrations.registry import AgentStream, OpenRun, RunRegistry
from prefixguard.runtime import Reading, Session, plain

logger = logging.getLogger("prefixguard")
#: Begins a session for an agent of a run, by its path; None where no monitor watches.
Begin = Callable[[OpenRun, str], Session | EscalatedSession | None]


class EventFlow:
    """Events of one run are taken one at a time, whatever threads they come from: recorded and judged in one order."""

    def __init__(
        self, runs: RunRegistry, recorder: Recorder | None, begin: Begin, reactions: Reactions, counts: GuardCounts
    ) -> None:
        self._runs, self._recorder, self._begin = runs, recorder, begin
        self._reactions, self._counts = reactions, counts

    def take(self, event: Event) -> list[Reading]:
        """The readings of the steps that the event completes."""
        run = self._runs.get(event.run)
        if run is None:
            if self._runs.is_over(event.run):
                self._counts.add("late_events")
                return [unknown("the run is over; an event of it came late. Begin a new run under another id")]
            run = self.open(event.run, event.task_id, None, event.agent)
        with run.lock:
            stream = run.stream(event.agent_path, lambda: self._begin(run, event.agent_path))
            if stream.is_over:
                self._counts.add("late_events")
                return [unknown(f"agent {plain(event.agent_path, 80)} has ended; an event of it came late")]
            joined = stream.join(event, run, self._counts.add)
            if joined is None:
                return []
            readings = self._reactions.take(run, stream, self._judge(stream, joined))
            if event.kind == "ended":
                readings += self._end(run, event.agent_path)
            return readings

    def take_verdict(self, run: OpenRun, path: str) -> None:
        """A question of this agent to the auditor has ended: take in what is new. Raises nothing."""
        try:
            with run.lock:
                stream = run.streams[path]
                said = stream.session.poll() if isinstance(stream.session, EscalatedSession) else None
                if said is not None:
                    self._reactions.take(run, stream, [said])
        except Exception as exc:
            self._counts.failed("a verdict", exc)

    def open(self, run: str, task_id: str, group: str | None, agent: str) -> OpenRun:
        """The run of this id, begun if it is not open."""
        opened, closed = self._runs.open(run, task_id, group, agent)
        self.close(closed, "evicted_runs")
        return opened

    def close(self, runs: Sequence[OpenRun], counted: str) -> None:
        """End runs that have no end of their own."""
        for run in runs:
            self._counts.add(counted)
            with run.lock:
                self._end(run, MAIN)

    def unrecorded(self, exc: OutputError) -> None:
        """What happens cannot be written: counted, and said once. It is judged all the same."""
        if self._counts.add("unrecorded_events") == 1:
            logger.warning("%s", plain(str(exc), 300))

    def _judge(self, stream: AgentStream, event: Event) -> Sequence[Reading | EscalatedReading]:
        line = event.to_json()
        self._counts.add("events")
        if self._recorder is not None:
            try:
                self._recorder.write(line)
            except OutputError as exc:
                self.unrecorded(exc)
        return [] if stream.session is None else stream.session.observe(line)

    def _end(self, run: OpenRun, path: str) -> list[Reading]:
        """The agent and all below it end, the deepest first."""
        found = []
        for stream in run.below(path):
            stream.is_over = True
            if stream.session is not None:
                found += self._reactions.take(run, stream, stream.session.end())
        if path == MAIN:
            self._runs.close(run.run)
        return found


def unknown(why: str) -> Reading:
    """A reading of no step, which says why nothing can be judged."""
    return Reading(0, None, None, Level.UNKNOWN, None, None, (), why, 0.0)
