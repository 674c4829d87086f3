"""AutoGen (autogen-agentchat): agents and teams of agents, whichever model they ask, whole replies and streams.

    agent = guard.autogen(AssistantAgent("clerk", model_client, tools=tools))

A team works in one path, whose steps its agents make under their names. An agent or team that a tool runs is watched
apart, where it was given to the guard too. A nudge is put into the agent's model context behind the results, and stays
there; a stop is raised before the next reply, out of `await agent.run(...)` (a team wraps it in a RuntimeError).
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

from prefixguard.errors import ConfigError
from prefixguard.integrations.call_context import begin_run, is_watched, watched_by, within_call
from prefixguard.integrations.conversation import observe_again, result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

A = TypeVar("A")


@dataclass(slots=True)
class _Conversation:
    """What an agent, or a team of them, works on. runner : which one. members : the names of its agents.

    heard : ids of messages that were told: each agent of a team gets them. thought : text beside the calls that follow.
    """

    run: WatchedRun
    runner: Any
    members: frozenset[str]
    heard: set[str] = field(default_factory=set)
    thought: str = ""
    is_user: bool = False  # what comes next a person was asked for


#: Of every guard, since several may watch one agent.
_CURRENT: ContextVar[Mapping[int, _Conversation]] = ContextVar("prefixguard_autogen", default=MappingProxyType({}))


def watch_runner(guard: RunKeeper, runner: A, of_run: dict[str, Any]) -> A:
    """The same agent or team, watched in all its runs. of_run : arguments of `Guard.run`.

    Raises ConfigError for what is neither.
    """
    agents = list(_agents(runner))
    if not agents or not all(callable(getattr(runner, name, None)) for name in ("run", "run_stream")):
        raise ConfigError(
            f"{type(runner).__name__} is no agent or team of autogen-agentchat: give an AssistantAgent or a group chat."
        )
    if not is_watched(runner.run, guard):  # type: ignore[attr-defined]
        watched = _WatchedRunner(guard, runner, frozenset(text_of(field_of(one, "name")) for one in agents), of_run)
        runner.run = watched_by(guard, watched.whole(runner.run))  # type: ignore[attr-defined]
        runner.run_stream = watched_by(guard, watched.streamed(runner.run_stream))  # type: ignore[attr-defined]
    for agent in agents:
        if not is_watched(agent.on_messages_stream, guard):
            agent.on_messages_stream = watched_by(guard, _turns(guard, agent, agent.on_messages_stream))
    return runner


def _agents(runner: Any) -> list[Any]:
    """An agent itself, or those of a team and of the teams in it."""
    if callable(getattr(runner, "on_messages_stream", None)):
        return [runner]
    members = getattr(runner, "_participants", None)
    return [agent for one in members for agent in _agents(one)] if isinstance(members, list | tuple) else []


class _WatchedRunner:
    def __init__(self, guard: RunKeeper, runner: Any, members: frozenset[str], of_run: dict[str, Any]) -> None:
        self._guard, self._runner, self._members, self._of_run = guard, runner, members, of_run

    def _begin(self) -> _Conversation | None:
        """The conversation that begins; None within one of the same runner, whose `run` calls its `run_stream`."""
        now = _CURRENT.get().get(id(self._guard))
        if now is not None and now.runner is self._runner:
            return None
        run = begin_run(self._guard, self._of_run, agent=text_of(field_of(self._runner, "name")))
        return _Conversation(run, self._runner, self._members)

    @contextmanager
    def _in(self, now: _Conversation | None) -> Iterator[None]:
        if now is None:
            yield
            return
        mark = _CURRENT.set({**_CURRENT.get(), id(self._guard): now})
        try:
            with within_call(self._guard, now.run, ""):
                yield
        finally:
            _CURRENT.reset(mark)

    def whole(self, original: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(original)
        async def run(*args: Any, **options: Any) -> Any:
            begun = self._begin()
            try:
                with self._in(begun):
                    return await original(*args, **options)
            finally:
                if begun is not None:
                    begun.run.end()

        return run

    def streamed(self, original: Callable[..., AsyncGenerator[Any, None]]) -> Callable[..., Any]:
        @functools.wraps(original)
        async def run_stream(*args: Any, **options: Any) -> AsyncIterator[Any]:
            begun, items = self._begin(), original(*args, **options)
            try:
                while True:
                    try:
                        with self._in(begun):  # a generator has the context of whoever asks for its next item
                            item = await anext(items)
                    except StopAsyncIteration:
                        return
                    yield item
            finally:
                await items.aclose()
                if begun is not None:
                    begun.run.end()

        return run_stream


def _turns(guard: RunKeeper, agent: Any, original: Callable[..., AsyncGenerator[Any, None]]) -> Callable[..., Any]:
    """`on_messages_stream`, in which an agent takes its turn: it gives what it does, and at last its answer."""

    @functools.wraps(original)
    async def on_messages_stream(messages: Any, *args: Any, **options: Any) -> AsyncIterator[Any]:
        now, name = _CURRENT.get().get(id(guard)), text_of(field_of(agent, "name"))
        if now is not None:
            _try(guard, _tell_input, now, messages)
            await now.run.answered()
            now.run.check()
        async with aclosing(original(messages, *args, **options)) as items:
            async for item in items:
                is_own = now is not None and field_of(item, "source", name) == name  # not of an agent that a tool runs
                if now is not None and is_own:
                    _try(guard, _tell, now, item, name)
                yield item
                if now is not None and is_own and _kind(item) == "ToolCallExecutionEvent":
                    await now.run.answered()
                    now.run.check()
                    if (text := now.run.nudge()) is not None:
                        await _put(guard, agent, text)

    return on_messages_stream


async def _put(guard: RunKeeper, agent: Any, text: str) -> None:
    from autogen_core.models import UserMessage

    try:
        await agent.model_context.add_message(UserMessage(content=text, source="user"))
    except Exception as exc:
        guard.failed("a nudge in AutoGen", exc)


def _try(guard: RunKeeper, tell: Callable[..., None], *args: Any) -> None:
    """Nothing that an object of another release lacks reaches the host."""
    try:
        tell(*args)
    except Exception as exc:
        guard.failed("an event of AutoGen", exc)


def _kind(item: Any) -> str:
    return text_of(field_of(item, "type"))


def _tell_input(now: _Conversation, messages: Any) -> None:
    """What came since the agent's last turn, but for what agents of the same conversation said."""
    for position, message in enumerate(messages):
        key = text_of(field_of(message, "id")) or str(position)
        if field_of(message, "source") not in now.members and key not in now.heard:
            now.heard.add(key)
            observe_again(now.run, text_of(field_of(message, "content")), len(now.heard))


def _tell(now: _Conversation, item: Any, name: str) -> None:
    kind, content = _kind(item), field_of(item, "content")
    tokens = tokens_of(field_of(item, "models_usage"))
    if kind == "ThoughtEvent":
        now.thought = text_of(content)
    elif kind == "ToolCallRequestEvent":
        calls = [(text_of(field_of(c, "id")), field_of(c, "name"), field_of(c, "arguments")) for c in content or ()]
        text, now.thought = now.thought, ""
        tell_reply(now.run, text, calls, {"agent": name, **tokens})
    elif kind == "ToolCallExecutionEvent":
        for result in content or ():
            failed = True if field_of(result, "is_error") is True else None
            result_of(now.run, field_of(result, "call_id"), field_of(result, "content"), failed)
    elif kind == "UserInputRequestedEvent":
        now.is_user = True
    elif (answer := field_of(item, "chat_message")) is not None and now.is_user:
        now.is_user = False
        observe_again(now.run, text_of(field_of(answer, "content")), len(now.heard))
    elif answer is not None:
        now.thought = ""
        if _kind(answer) not in ("ToolCallSummaryMessage", "HandoffMessage"):  # those say again what calls returned
            tokens = tokens_of(field_of(answer, "models_usage"))
            tell_reply(now.run, text_of(field_of(answer, "content")), (), {"agent": name, **tokens})
