"""A run of a loop made by hand, as its host sees it: say what happens, ask what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from time import time
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self
from uuid import uuid4

from prefixguard.alarm import Level
from prefixguard.integrations.events import MAIN, Event, fits, plain_json, text_of
from prefixguard.integrations.registry import AgentStream
from prefixguard.runtime import Reading


class RunKeeper(Protocol):
    """What a watched run, and the hooks of frameworks, need of a `Guard`; each is said there."""

    def run(
        self, task: str = "", *, run_id: str | None = None, task_id: str | None = None, agent: str = "",
        group: str | None = None, tools: Sequence[str] | None = None, step_limit: int | None = None,
    ) -> WatchedRun: ...  # fmt: skip

    def feed(self, event: Event | Mapping[str, Any]) -> list[Reading]: ...

    def outcome(self, run_id: str, success: bool) -> bool: ...

    def stream(self, run: str, agent_path: str = MAIN) -> AgentStream | None: ...

    def stopped(self, run: str) -> str | None: ...

    def check(self, run: str) -> None: ...

    async def answered(self, run: str) -> None: ...

    def take_nudge(self, run: str, agent_path: str = MAIN) -> str | None: ...

    def next_turn(self, run: str, agent_path: str = MAIN) -> int: ...

    def is_open(self, run: str) -> bool: ...

    def go_on(self, run: str) -> None: ...

    def no_nudges(self, run: str, why: str) -> None: ...

    def count(self, name: str) -> None: ...

    def failed(self, what: str, exc: BaseException) -> None: ...


#: Of every guard the run that this task or thread is in: the innermost `with guard.run(...)`, or `run.delegate(...)`.
_CURRENT: ContextVar[Mapping[int, WatchedRun]] = ContextVar("prefixguard_runs", default=MappingProxyType({}))


def current_run(guard: RunKeeper) -> WatchedRun | None:
    """The run of this guard that the task or thread is in; None outside any."""
    return _CURRENT.get().get(id(guard))


class WatchedRun:
    """One agent of one run that a `Guard` watches, from `Guard.run` or `delegate`. A context manager, plain or async.

    Every method that tells of an event returns the readings of the steps that it completes, and takes further fields of
    the event by name (`tokens_in=812`, `cost=0.003`, `metadata={...}`). Contents may be texts, content blocks or
    objects of a framework.
    """

    def __init__(
        self,
        guard: RunKeeper,
        run: str,
        path: str = MAIN,
        agent: str = "",
        call_id: str = "",
        parent: WatchedRun | None = None,
    ) -> None:
        """agent : its name. call_id : the call that gets its last words. parent : the agent that delegated to it."""
        self._agent = agent
        self._guard, self.id, self.agent_path = guard, run, path
        self._call_id, self.parent = call_id, parent
        self._is_over = False
        self._outer: list[Token[Mapping[int, WatchedRun]]] = []

    # What happens

    def observed(self, text: Any, **fields: Any) -> list[Reading]:
        """Something arrived that answers no call: a user's message, a page, a notice."""
        return self._feed("observed", text=text_of(text), **fields)

    def said(self, text: Any, **fields: Any) -> list[Reading]:
        """The agent said something and called nothing: a step of its own. Text beside calls belongs to `called`."""
        return self._feed("said", text=text_of(text), **fields)

    def called(self, tool: str, arguments: Any = None, *, call_id: str = "", text: Any = "", **fields: Any) -> str:
        """The agent calls a tool. Returns the call's id, made up where none is given: a step once its result is in.

        text : what the agent said with it; with the first of several calls. turn : of calls that are made in parallel
        and do not begin together, the number of the model's reply.
        """
        call_id = text_of(call_id) or f"call-{uuid4().hex[:12]}"
        self._feed(
            "called", tool=text_of(tool), arguments=plain_json(arguments), call_id=call_id, text=text_of(text), **fields
        )
        return call_id

    def returned(self, call_id: str, result: Any = "", *, is_error: bool | None = None, **fields: Any) -> list[Reading]:
        """What came back for a call. is_error : did it fail? None: the text decides. An exception is an error."""
        if isinstance(result, BaseException):
            is_error = True if is_error is None else is_error
            result = f"{type(result).__name__}: {text_of(plain_json(result))}"
        return self._feed("returned", call_id=text_of(call_id), text=text_of(result), is_error=is_error, **fields)

    def delegate(self, agent: str, *, task: str = "", call_id: str = "", answers: bool = True) -> WatchedRun:
        """A sub-agent begins, or a branch that runs beside others: watched apart.

        agent : its name. task : what it is asked. call_id : the call by which it was asked, if one was. answers : that
        call gets the sub-agent's last words as its result as the sub-agent ends, unless it has one.
        """
        agent, call_id, task = text_of(agent), text_of(call_id), text_of(task)
        path = f"{self.agent_path}/{agent.replace('/', '_') or 'agent'}#{call_id or uuid4().hex[:8]}"
        below = WatchedRun(self._guard, self.id, path, agent, call_id if answers else "", self)
        if task:
            below._feed("task", text=task)
        return below

    def has_returned(self, call_id: str) -> bool:
        """Has a call of this agent its result?"""
        stream = self._guard.stream(self.id, self.agent_path)
        return stream is not None and text_of(call_id) in stream.returned

    def waiting(self) -> list[str]:
        """Ids of calls of this agent that have no result yet, in the order in which they were made."""
        stream = self._guard.stream(self.id, self.agent_path)
        return [] if stream is None else list(stream.open_calls)

    def is_open(self, call_id: str) -> bool:
        """Has a call of this agent been told, and no result of it?"""
        stream = self._guard.stream(self.id, self.agent_path)
        return stream is not None and text_of(call_id) in stream.open_calls

    def claim(self, tool: str, arguments: Any = None) -> str | None:
        """Id of the call that the model has asked for, and that somebody makes now; None where it asked for no such
        call, or another one has claimed it."""
        stream = self._guard.stream(self.id, self.agent_path)
        return None if stream is None else stream.claim(text_of(tool), plain_json(arguments))

    @property
    def key(self) -> str:
        """Run and agent path in one."""
        return f"{self.id}/{self.agent_path}"

    def next_turn(self) -> int:
        """Number of the model's reply that begins now, for calls that belong to one reply."""
        return self._guard.next_turn(self.id, self.agent_path)

    def failed(self, what: str, exc: BaseException) -> None:
        """Something of ours went wrong while an event was made: counted, said once, never raised."""
        self._guard.failed(what, exc)

    def end(self) -> list[Reading]:
        """The agent is done: readings of calls that have no result. Nothing more is taken of it."""
        if self._is_over:
            return []
        self._is_over = True
        stream = self._guard.stream(self.id, self.agent_path)
        readings = self._feed("ended")
        if self.parent is not None and self._call_id and stream is not None:
            above = self._guard.stream(self.id, self.parent.agent_path)
            if above is not None and self._call_id in above.open_calls:
                readings = readings + self.parent.returned(self._call_id, stream.last_text)
        return readings

    def outcome(self, success: bool) -> bool:
        """How the run ended, for training; as `Guard.outcome`."""
        return self._guard.outcome(self.id, success)

    # What to do

    def nudge(self) -> str | None:
        """A text to give to the agent before it goes on, once; None where there is none."""
        return self._guard.take_nudge(self.id, self.agent_path)

    @property
    def stopped(self) -> str | None:
        """Why the run is to stop; None while it may go on."""
        return self._guard.stopped(self.id)

    def check(self) -> None:
        """Raise AgentStopped where the run is to stop."""
        self._guard.check(self.id)

    async def answered(self) -> None:
        """Wait until an `on_alarm` function that is asked has answered, a second at most; the event loop goes on."""
        await self._guard.answered(self.id)

    @property
    def reading(self) -> Reading | None:
        """The latest reading of this agent; None before the first, or once it has ended."""
        stream = self._guard.stream(self.id, self.agent_path)
        return None if stream is None else stream.last

    @property
    def alarmed(self) -> bool:
        """Has the latest reading of this agent the level ALARM?"""
        reading = self.reading
        return reading is not None and reading.level is Level.ALARM

    def __enter__(self) -> Self:
        self._outer.append(_CURRENT.set({**_CURRENT.get(), id(self._guard): self}))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ValueError, IndexError):  # left in another context than it was entered in, or twice
            _CURRENT.reset(self._outer.pop())
        self.end()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, exc, trace)

    def _feed(self, kind: Any, **fields: Any) -> list[Reading]:
        for name in [name for name, value in fields.items() if value is not None and not fits(name, value)]:
            self._guard.count("unread_fields")
            del fields[name]
        try:
            agent = self._agent if kind not in ("returned", "ended") else ""  # those are of the agent that acted last
            fields = {"at": time(), **fields, "agent": fields.get("agent") or agent}
            event = Event(self.id, kind, self.agent_path, **fields)
        except TypeError as exc:  # a field that events do not have
            self._guard.failed(f"an event of kind {kind}", exc)
            return []
        return self._guard.feed(event)
