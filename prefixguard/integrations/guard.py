"""The one object that stands between a running agent and a monitor."""

from __future__ import annotations

import atexit
import logging
import os
from collections.abc import Mapping, Sequence
from time import monotonic, time
from types import TracebackType
from typing import Any, Literal
from uuid import uuid4
from weakref import ref

from prefixguard.errors import AgentStopped, ConfigError, OtherAdapterError, OutputError, TraceError, UsageError
from prefixguard.escalate import Endpoint, EscalatedSession, Escalator
from prefixguard.integrations.alarms import ACTIONS, OnAlarm
from prefixguard.integrations.counts import GuardCounts
from prefixguard.integrations.escalation import VerdictThread, guard_escalator
from prefixguard.integrations.event_flow import EventFlow, unknown
from prefixguard.integrations.events import MAIN, Event, text_of
from prefixguard.integrations.frameworks import FrameworkHooks
from prefixguard.integrations.kept_run import kept_run, resumed_run
from prefixguard.integrations.reactions import Reactions
from prefixguard.integrations.recorder import Recorder
from prefixguard.integrations.registry import AgentStream, OpenRun, RunRegistry, task_digest
from prefixguard.integrations.sinks import Sink, SinkThreads
from prefixguard.integrations.watched_run import WatchedRun
from prefixguard.runtime import Monitor, Reading, Session, load, plain
from prefixguard.runtime.host import was_interrupted
from prefixguard.stepview import EVENTS, load_adapter, readable_offer

logger = logging.getLogger("prefixguard")


class Guard(FrameworkHooks):
    """Watches any number of running agents by one monitor, records them, and acts when an alarm sounds.

        guard = prefixguard.Guard("monitors/mine", on_alarm="nudge", record="runs/")
        with guard.run(task="Where is order A1?") as run:
            run.called("find_order", {"id": "A1"}, call_id="c1")
            run.returned("c1", "no such order", is_error=True)
            if (text := run.nudge()) is not None:
                ...  # give it to the agent with the next message
        guard.outcome(run.id, success=False)

    Safe for threads and event loops. Nothing that goes wrong inside is raised into the host, but for `AgentStopped`,
    which `on_alarm="stop"` asks for; `counters` say what went wrong.
    """

    def __init__(
        self,
        monitor: Monitor | str | os.PathLike[str] | None,
        *,
        on_alarm: OnAlarm = "warn",
        record: str | os.PathLike[str] | None = None,
        shadow: bool = False,
        sinks: Sequence[Sink] = (),
        escalate: Escalator | Endpoint | None = None,
        max_open_runs: int = 10_000,
        idle_seconds: float = 3600.0,
    ) -> None:
        """monitor : an opened monitor, or the folder of its bundle, trained through the adapter `events` (`train` on
            recorded runs, or on older ones after `prefixguard convert`); None to record only.
        on_alarm : `warn` logs; `nudge` has a text for the agent; `stop` ends the run; or a function of the `Alarm`,
            plain or async, that may answer one of these or a text for the agent. It has a second; what it raises is
            counted.
        record : folder to which all events are written, as `prefixguard train` reads it.
        shadow : judge and tell the sinks, and do nothing to the agent.
        sinks : where readings go besides.
        escalate : an `Endpoint`, or an `Escalator` of this monitor: steps of high risk are shown to an auditor, whose
            verdict comes later, to the sinks and to `on_alarm`. Nobody waits for it. `close` closes the escalator.
        max_open_runs, idle_seconds : runs open at once, above 0 (each keeps `Monitor.session_bytes` for every agent); a
            run without an event for so long is closed.
        Raises BundleError, OtherAdapterError, ConfigError, OutputError, MissingExtraError.
        """
        if on_alarm not in ACTIONS if isinstance(on_alarm, str) else not callable(on_alarm):
            raise ConfigError(f"on_alarm is {on_alarm!r}: say {', '.join(ACTIONS)}, or give a function of the alarm.")
        if monitor is None and record is None:
            raise ConfigError("Guard has neither a monitor nor a folder to record to: name one of them.")
        self.monitor = monitor if isinstance(monitor, Monitor) or monitor is None else load(monitor)
        if self.monitor is not None:
            _refuse_other(self.monitor)
        self.recorder = None if record is None else Recorder(record)
        self._runs = RunRegistry(max_open_runs, idle_seconds)
        self._counts = GuardCounts()
        self._sinks = SinkThreads(sinks, lambda: self.counters)
        self._reactions = Reactions(on_alarm, shadow, self._sinks, self.count)
        self._flow = EventFlow(self._runs, self.recorder, lambda *of: self._session(*of), self._reactions, self._counts)
        self._verdicts: VerdictThread | None = None
        if escalate is not None:
            self._verdicts = VerdictThread(guard_escalator(escalate, self.monitor), self._flow.take_verdict)
        if sinks or escalate is not None:
            atexit.register(_close_at_exit, ref(self))

    @classmethod
    def recording(cls, folder: str | os.PathLike[str], **options: Any) -> Guard:
        """A guard that only records, before there is a monitor. options : as of `Guard`."""
        return cls(None, record=folder, **options)

    # What a host calls

    def run(
        self,
        task: str = "",
        *,
        run_id: str | None = None,
        task_id: str | None = None,
        agent: str = "",
        group: str | None = None,
        tools: Sequence[str] | None = None,
        step_limit: int | None = None,
    ) -> WatchedRun:
        """Begin a run of a loop made by hand; a context manager, plain or async.

        task : what the agent is asked; "" where the first message that arrives says it. run_id : of your own; where it
        is taken, a number is put behind it
        (`WatchedRun.id` has it). task_id : runs of one task have the same; by default a digest of the task's text.
        agent : its name.
        group : picks the alarm's threshold, for monitors that have thresholds by group.
        tools, step_limit : names of the tools that the agent can call, and steps that it may have. They are recorded
        with the task; behaviours rest on them (a missing tool, a limit that is near), and no risk does.
        """
        name, task, agent = self.new_id(run_id), text_of(task), text_of(agent)
        group = None if group is None else text_of(group)
        opened = self._flow.open(name, text_of(task_id) or task_digest(task), group, agent)
        opened.offer = readable_offer(tools, step_limit)
        for given, read in ((tools, opened.offer.tools), (step_limit, opened.offer.step_limit)):
            if given is not None and read is None:
                self.count("unread_fields")
        watched = WatchedRun(self, name, agent=agent)
        if task:
            self.feed(Event(name, "task", text=task, agent=agent, at=time()))
        return watched

    def feed(self, event: Event | Mapping[str, Any]) -> list[Reading]:
        """Take one event: record it, judge it, and act at an alarm. Returns the readings of the steps it completes.

        Raises nothing of its own. An event that is none, or of a run that is over, gives one reading of level UNKNOWN
        that says why.
        """
        try:
            return self._feed(Event.of(event))
        except TraceError as exc:
            self.count("unread_events")
            return [unknown(f"the event could not be read: {plain(str(exc), 300)}")]
        except Exception as exc:
            if was_interrupted(exc):
                raise
            self.failed("an event", exc)
            return [unknown(f"the event could not be taken in: {type(exc).__name__}")]

    def outcome(self, run_id: str, success: bool | Literal["success", "failure"]) -> bool:
        """Say how a run ended, for training: appended to its record. Said again, the last one counts.

        run_id : the run that this guard began last under that id, whatever was put behind it; else the recorded one.
        success : True or False, or one of the words. Returns False, and counts `outcomes_lost`, for anything else,
        where no such run is recorded, or where it cannot be written. Raises UsageError for a guard that does not
        record.
        """
        if self.recorder is None:
            raise UsageError("This guard does not record, so an outcome stands nowhere: give it record=FOLDER.")
        said = text_of(success)
        ended = {"success": "success", "failure": "failure", "true": "success", "false": "failure"}.get(said.lower())
        try:
            if ended is None:
                raise TraceError(f"it is {plain(said, 60)!r}, and must be True, False, success or failure.")
            name = text_of(run_id)
            self.recorder.outcome(self._runs.named(name), ended, time())  # type: ignore[arg-type]
        except (TraceError, OutputError) as exc:
            self.count("outcomes_lost")
            logger.warning("the outcome of run %s is lost: %s", plain(text_of(run_id), 100), plain(str(exc), 300))
            return False
        return True

    def close(self, seconds: float = 5.0) -> None:
        """End all runs that are open, and wait at most so long until verdicts have come and the sinks have all."""
        until = monotonic() + seconds
        self._flow.close(self._runs.all(), "closed_open")
        if self._verdicts is not None:
            self._verdicts.close(seconds)
        self._reactions.wait()
        self._sinks.close(max(0.0, until - monotonic()))

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def counters(self) -> dict[str, int]:
        """What was counted: `events`, `readings`, `alarms`; and what went wrong, where something did: `late_events` (of
        runs that are over), `second_tasks`, `second_results`, `results_without_call`,
        `unread_events`, `unread_fields`, `evicted_runs`,
        `unrecorded_events`, `failed_callbacks`, `slow_callbacks`, `outcomes_lost`, `internal_errors`; of spans
        `late_results` and what could not be read or joined (docs/integrations.md); of each sink `sinks.emitted.NAME`,
        `sinks.failed.NAME` and `sinks.dropped.NAME`, readings, by its class
        (`NAME-2` for a second of one class); and what became of questions to the
        auditor, `escalation.offered` and others, `verdicts.alarm`, `.safe`, `.abstain`."""
        asked = {} if self._verdicts is None else dict(self._verdicts.counters)
        return self._counts.as_dict() | {f"sinks.{name}": n for name, n in self._sinks.counters.items()} | asked

    @property
    def open_runs(self) -> int:
        return len(self._runs)

    # What the hooks of frameworks call besides

    def new_id(self, wanted: str | None = None) -> str:
        """An id for a run that begins: the wanted one where it is free."""
        name = text_of(wanted) or f"run-{uuid4().hex[:16]}"
        free = name
        try:
            free = name if self.recorder is None else self.recorder.free_id(name)
        except OutputError as exc:
            self._flow.unrecorded(exc)
        return self._runs.new_id(name, free)

    def stream(self, run: str, agent_path: str = MAIN) -> AgentStream | None:
        """What is known of an agent of an open run; None where it is not open."""
        found = self._runs.get(run)
        return None if found is None or not isinstance(agent_path, str) else found.streams.get(agent_path)

    def stopped(self, run: str) -> str | None:
        """Why the run is to stop; None while it may go on. A function that is asked is waited for.

        run : its id; where no run has it, the run that began last under that id, whatever was put behind it.
        """
        found = self._runs.get(run) or self._runs.get(self._runs.named(run))
        if found is None:
            return None
        self._reactions.wait(found)
        return found.stopped

    async def answered(self, run: str) -> None:
        """Wait until an `on_alarm` function that is asked of this run has answered, a second at most: for hooks that
        are async, before they ask what to do."""
        if (found := self._runs.get(run)) is not None:
            await self._reactions.answered(found)

    def check(self, run: str) -> None:
        """Raise AgentStopped where the run is to stop."""
        why = self.stopped(run)
        if why is not None:
            raise AgentStopped(why)

    def no_nudges(self, run: str, why: str) -> None:
        """Agents of this run can be given no text: a nudge is a warning, and the log says once why."""
        if (found := self._runs.get(run)) is not None:
            found.no_nudge = why

    def is_open(self, run: str) -> bool:
        """Is a run of this id going on?"""
        return self._runs.get(run) is not None

    def save_run(self, run: str) -> dict[str, Any] | None:
        """An open run as plain JSON values, which `resume_run` takes in another process; None where it is not open."""
        found = self._runs.get(run)
        if found is None:
            return None
        self._reactions.wait(found)
        with found.lock:
            return kept_run(found)

    def resume_run(self, kept: Any) -> None:
        """Go on with a run that `save_run` gave. Raises SavedSessionError where it is damaged, or of another
        monitor."""
        self._flow.close(self._runs.adopt(resumed_run(kept, self.monitor)), "evicted_runs")

    def go_on(self, run: str) -> None:
        """The run need not stop any more: a person has spoken, who knows of it."""
        found = self._runs.get(run)
        if found is not None:
            found.stopped = None

    def take_nudge(self, run: str, agent_path: str = MAIN) -> str | None:
        """The text that the agent is to be given before it goes on, once; None where there is none. It is recorded."""
        found = self._runs.get(run)
        if found is not None:
            self._reactions.wait(found)
        stream = self.stream(run, agent_path)
        if stream is None or not stream.nudges:
            return None
        text = "\n".join(stream.nudges)
        stream.nudges.clear()
        self.feed(Event(run, "injected", agent_path, text=text, at=time()))
        return text

    def next_turn(self, run: str, agent_path: str = MAIN) -> int:
        """Number of the model's reply that begins now; calls of the replies before it that are open stay without a
        result."""
        stream = self.stream(run, agent_path)
        if stream is None:
            return 0
        stream.next_turn()
        return stream.turn

    def count(self, name: str) -> None:
        """One more of this name, in `counters`."""
        self._counts.add(name)

    def failed(self, what: str, exc: BaseException) -> None:
        """Something of ours went wrong: counted, said once, never the host's affair."""
        self._counts.failed(what, exc)

    def _feed(self, event: Event) -> list[Reading]:
        return self._flow.take(event)

    def _session(self, run: OpenRun, path: str) -> Session | EscalatedSession | None:
        if self._verdicts is not None:
            return self._verdicts.start(run, path)
        return None if self.monitor is None else self.monitor.start(group=run.group)


def _close_at_exit(guard: ref[Guard]) -> None:
    """The program ends: what the sinks have not sent yet gets two seconds."""
    found = guard()
    if found is not None:
        found.close(2.0)


def _refuse_other(monitor: Monitor) -> None:
    """OtherAdapterError unless the monitor reads events."""
    own = monitor.bundle.adapter
    if own.sha256 != load_adapter(EVENTS).sha256:
        raise OtherAdapterError(
            f"{monitor.bundle.path}: was trained through adapter {own.name}, and a guard feeds events. Turn its "
            f"training runs into events: prefixguard convert RUNS --adapter {own.name} --to events --out runs/; train "
            "on those: prefixguard train runs/. Or feed its own format: Monitor.start, Session.observe."
        )
