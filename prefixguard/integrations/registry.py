"""The runs that are open: which session judges which agent of which run, and which calls of it are open."""

from __future__ import annotations

import hashlib
import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any, Literal

from prefixguard.errors import ConfigError
from prefixguard.escalate import EscalatedSession
from prefixguard.integrations.counts import ForkedLock
from prefixguard.integrations.events import MAIN, Event
from prefixguard.integrations.sinks import SpanIds
from prefixguard.integrations.spans import spelled
from prefixguard.runtime import Reading, Session, plain
from prefixguard.stepview import readable_offer
from prefixguard.trace import NO_OFFER, RunOffer

logger = logging.getLogger("prefixguard")
#: Calls of an agent that are remembered as returned, so that a second result is known; ids of runs that are over, and
#: ids as hosts said them.
_RETURNED, _OVER = 256, 100_000
#: Calls that are open at most, and results after which one that is still open counts as lost.
_MOST_OPEN, _LOST = 256, 16


@dataclass(slots=True)
class AgentStream:
    """One agent of one run. session : None where no monitor watches. turn : number of its model's last reply.

    open_calls : calls without a result, by id: tool, and digest of the arguments; None where somebody makes the call,
    or the id is all that is known. last : its latest reading, span : that of the host at that time. alarm : its first
    ALARM. is_blamed : has an auditor blamed a step? is_over : its `ended` came.
    """

    path: str
    session: Session | EscalatedSession | None
    agent: str = ""
    turn: int = 0
    open_calls: dict[str, tuple[str, bytes] | None] = field(default_factory=dict)
    returned: deque[str] = field(default_factory=lambda: deque(maxlen=_RETURNED))
    came_back: int = 0  # results since the turn began
    task: str | None = None  # what it was asked; None as long as nothing has arrived
    last: Reading | None = None
    span: SpanIds | None = None
    alarm: Reading | None = None
    is_blamed: bool = False
    nudges: list[str] = field(default_factory=list)
    last_text: str = ""
    is_over: bool = False

    def called(self, event: Event) -> int:
        """The agent calls a tool: the number of the turn, where nobody says which. Calls that are made while others are
        open are of their turn, unless one of those seems lost: others came back and it did not."""
        turn = event.turn
        if turn is None and (not self.open_calls or self.came_back >= _LOST):
            self.next_turn()
        elif turn is not None and turn != self.turn:
            self.next_turn()
            self.turn = turn
        self.open_calls[event.call_id] = event.tool, _digest(event.arguments)
        if len(self.open_calls) > _MOST_OPEN:
            del self.open_calls[next(iter(self.open_calls))]
        return self.turn

    def join(self, event: Event, run: OpenRun, count: Callable[[str], object]) -> Event | None:
        """The event with what it belongs to: turn, task, name of the agent; None for one that says nothing new."""
        self.agent = event.agent or self.agent
        if event.kind in ("returned", "ended") and not event.agent and self.agent:
            event = replace(event, agent=self.agent)
        if event.kind == "returned":
            match self.result(event.call_id):
                case "second":
                    count("second_results")
                    return None
                case "alone":
                    count("results_without_call")
        elif event.kind == "called":
            return replace(event, turn=self.called(event))
        elif event.kind in ("task", "observed") and self.task is None:  # what arrives first is the task
            self.task = event.text
            task_id = event.task_id or run.task_id or task_digest(event.text)
            run.task_id = run.task_id or task_id
            given = readable_offer(event.tools, event.step_limit, run.offer if self.path == MAIN else NO_OFFER)
            return replace(
                event, kind="task", task_id=task_id, agent=self.agent,
                tools=given.tools, step_limit=given.step_limit,
            )  # fmt: skip
        elif event.kind == "task" and event.text == self.task:
            count("second_tasks")
            return None
        elif event.kind == "observed" and event.text == self.task and not self.turn:
            return None  # the host said the task, and now the messages that begin with it
        elif event.kind in ("said", "observed"):
            self.next_turn()
            self.last_text = event.text if event.kind == "said" else self.last_text
        return event

    def next_turn(self) -> None:
        """The agent acts anew: what was called before and is open has no result."""
        self.turn += 1
        self.came_back = 0
        self.open_calls.clear()

    def claim(self, tool: str, arguments: Any) -> str | None:
        """Id of the call that is made now, where the model has asked for it: the first that is open, of the tool of
        this name (or of one whose name ends with it) and with these arguments. No other claim finds it again."""
        for call_id, call in list(self.open_calls.items()):
            name, given = call or ("", b"")
            before, found, behind = name.rpartition(tool)
            if found and not behind and not before[-1:].isalnum() and given == _digest(arguments):
                self.open_calls[call_id] = None
                return call_id
        return None

    def result(self, call_id: str) -> Literal["joined", "second", "alone"]:
        """A result came: of an open call, of one that has its result, or of none that is known."""
        if call_id in self.open_calls:
            del self.open_calls[call_id]
            self.returned.append(call_id)
            self.came_back += 1
            return "joined"
        return "second" if call_id in self.returned else "alone"


@dataclass(slots=True, eq=False)
class OpenRun:
    """One run while it goes on. lock : held while an event of it is recorded and judged, so that both have one order.

    stopped : why the run is to stop; None while it may go on. no_nudge : why its agents can be given no text.
    offer : what its main agent is given.
    """

    run: str
    task_id: str
    group: str | None
    agent: str = ""
    lock: ForkedLock = field(default_factory=ForkedLock)
    streams: dict[str, AgentStream] = field(default_factory=dict)
    stopped: str | None = None
    no_nudge: str = ""
    used: float = 0.0
    offer: RunOffer = NO_OFFER

    def stream(self, path: str, start: Callable[[], Session | EscalatedSession | None]) -> AgentStream:
        """The agent's stream, begun if it is new."""
        found = self.streams.get(path)
        if found is None:
            found = self.streams[path] = AgentStream(path, start(), self.agent if path == MAIN else "")
        return found

    def below(self, path: str) -> list[AgentStream]:
        """This agent's stream and those of the agents below it that are not over, the deepest first. Below `main` are
        all."""
        mine = [
            s
            for s in self.streams.values()
            if not s.is_over and (path in (MAIN, s.path) or s.path.startswith(f"{path}/"))
        ]
        return sorted(mine, key=lambda stream: -stream.path.count("/"))


def task_digest(task: str) -> str:
    """An id for a task that has none: runs that are asked the same belong to one task."""
    return "task-" + hashlib.blake2b(task.encode("utf-8", "replace"), digest_size=12).hexdigest() if task else ""


def _digest(arguments: Any) -> bytes:
    return hashlib.blake2b(spelled(arguments or {}).encode("utf-8", "replace"), digest_size=8).digest()


class RunRegistry:
    """Open runs by id, the one that was used last at the end. Safe for threads.

    most : runs that are open at once at most; the one that was idle longest makes room. idle_seconds : a run without an
    event for so long is closed when another one begins.
    """

    def __init__(self, most: int, idle_seconds: float) -> None:
        """Raises ConfigError unless both are above 0."""
        if most < 1 or not idle_seconds > 0:
            raise ConfigError(f"max_open_runs is {most} and idle_seconds {idle_seconds}: both must be above 0.")
        self._most, self._idle = most, idle_seconds
        self._open: OrderedDict[str, OpenRun] = OrderedDict()
        self._over: OrderedDict[str, None] = OrderedDict()
        self._named: OrderedDict[str, str] = OrderedDict()  # ids as hosts said them, and as the runs have them
        self._lock = ForkedLock()

    def __len__(self) -> int:
        return len(self._open)

    def get(self, run: str) -> OpenRun | None:
        """The open run of this id, which has been used now; None where there is none."""
        with self._lock:
            found = self._open.get(run) if isinstance(run, str) else None  # ids of hosts may be anything
            if found is not None:
                found.used = monotonic()
                self._open.move_to_end(run)
            return found

    def is_over(self, run: str) -> bool:
        """Was a run of this id open and is no more?"""
        with self._lock:
            return run in self._over

    def new_id(self, name: str, free: str) -> str:
        """An id for a run that begins, which no run here has or had: `free`, or with a number behind `name`, as the
        host said it."""
        n = 1
        with self._lock:
            while free in self._open or free in self._over:
                n += 1
                free = f"{name}-{n}"
            self._named[name] = free
            if len(self._named) > _OVER:
                self._named.popitem(last=False)
        if free != name:
            logger.info("the id %s is taken: this run is %s", plain(name, 100), plain(free, 100))
        return free

    def named(self, name: str) -> str:
        """The id of the run that began last under the id that the host said."""
        with self._lock:
            return self._named.get(name, name) if isinstance(name, str) else name

    def open(
        self, run: str, task_id: str = "", group: str | None = None, agent: str = ""
    ) -> tuple[OpenRun, list[OpenRun]]:
        """The run of this id, begun if it is not open; and the runs that had to be closed for it."""
        now = monotonic()
        with self._lock:
            found = self._open.get(run)
            if found is None:
                found = self._open[run] = OpenRun(run, task_id, group, agent)
                self._over.pop(run, None)
            found.used = now
            self._open.move_to_end(run)
            return found, list(self._too_many(now))

    def adopt(self, run: OpenRun) -> list[OpenRun]:
        """Go on with a run that was open in another process; returns those that had to be closed for it."""
        with self._lock:
            run.used = monotonic()
            self._open[run.run] = run
            self._over.pop(run.run, None)
            return list(self._too_many(run.used))

    def _too_many(self, now: float) -> Iterator[OpenRun]:
        while len(self._open) > 1:
            oldest = next(iter(self._open.values()))
            if len(self._open) <= self._most and now - oldest.used < self._idle:
                return
            self._remove(oldest.run)
            yield oldest

    def close(self, run: str) -> None:
        """The run is over; its id is remembered."""
        with self._lock:
            self._remove(run)

    def all(self) -> list[OpenRun]:
        with self._lock:
            return list(self._open.values())

    def _remove(self, run: str) -> None:
        if self._open.pop(run, None) is not None:
            self._over[run] = None
            if len(self._over) > _OVER:
                self._over.popitem(last=False)
