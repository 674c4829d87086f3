"""LlamaIndex: its agents and workflows of agents, whichever way they call tools, whole replies and streams.

    agent = guard.llama_index(FunctionAgent(tools=tools, llm=llm))

A nudge is put behind the last result, which is what the model reads next, and stays there; a stop raises before the
next step, out of `await agent.run(...)`. Agents that tools run are watched apart; one that takes over goes on in the
same path.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
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
    """What this context's agents work on. heard : how many messages of the user were told."""

    run: WatchedRun
    heard: int = 0


#: Of every guard, since several may watch one agent.
_CURRENT: ContextVar[Mapping[int, _Conversation]] = ContextVar("prefixguard_llama_index", default=MappingProxyType({}))


def watch_workflow(guard: RunKeeper, workflow: A, of_run: dict[str, Any]) -> A:
    """The same agent, or workflow of agents, watched in all its runs. of_run : arguments of `Guard.run`.

    Raises ConfigError for what is neither.
    """
    members = getattr(workflow, "agents", None)
    agents = list(members.values()) if isinstance(members, dict) else [workflow]
    hooked = [(workflow, "run"), *((one, name) for one in agents for name in ("take_step", "handle_tool_call_results"))]
    if not agents or not all(callable(getattr(one, name, None)) for one, name in hooked):
        raise ConfigError(
            f"{type(workflow).__name__} is no agent of LlamaIndex: give a FunctionAgent, ReActAgent, CodeActAgent or "
            "AgentWorkflow."
        )
    watcher = _Watcher(guard, of_run)
    for agent in agents:
        _replace(guard, agent, "take_step", watcher.step)
        _replace(guard, agent, "handle_tool_call_results", watcher.results)
    _replace(guard, workflow, "run", watcher.begun)
    return workflow


def _replace(guard: RunKeeper, agent: Any, name: str, watched: Callable[..., Callable[..., Any]]) -> None:
    original = getattr(agent, name)
    if not is_watched(original, guard):
        made = functools.wraps(original)(watched(original, text_of(field_of(agent, "name"))))
        object.__setattr__(agent, name, watched_by(guard, made))  # agents are models of pydantic, which refuse others


class _Watcher:
    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self._ends: set[Any] = set()  # a loop holds its tasks weakly

    def begun(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`run`, which starts the tasks that the steps are taken in, and gives a handler that is awaited."""

        def run(*args: Any, **options: Any) -> Any:
            watched = begin_run(self._guard, self._of_run, agent=name)
            mark = _CURRENT.set({**_CURRENT.get(), id(self._guard): _Conversation(watched)})
            try:
                with within_call(self._guard, watched, ""):
                    handler = original(*args, **options)
                self._ends.add(task := asyncio.ensure_future(_end(handler, watched)))
                task.add_done_callback(self._ends.discard)
                return handler
            except BaseException:
                watched.end()
                raise
            finally:
                _CURRENT.reset(mark)

        return run

    def step(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`take_step`, which asks the model once."""

        async def take_step(ctx: Any, llm_input: Any, *args: Any, **options: Any) -> Any:
            now = _CURRENT.get().get(id(self._guard))
            if now is None:
                return await original(ctx, llm_input, *args, **options)
            self._try(_tell_input, now, llm_input)
            await now.run.answered()
            now.run.check()
            output = await original(ctx, llm_input, *args, **options)
            self._try(_tell_output, now, output, name)
            return output

        return take_step

    def results(self, original: Callable[..., Any], name: str) -> Callable[..., Any]:
        """`handle_tool_call_results`, which puts the results of one reply before the model."""

        async def handle(ctx: Any, results: Any, *args: Any, **options: Any) -> Any:
            now = _CURRENT.get().get(id(self._guard))
            if now is not None:
                self._try(_tell_results, now, results)
                await now.run.answered()
                if (text := now.run.nudge()) is not None:
                    self._try(_put, results, text)
            return await original(ctx, results, *args, **options)

        return handle

    def _try(self, tell: Callable[..., None], *args: Any) -> None:
        """Nothing that an object of another release lacks reaches the host."""
        try:
            tell(*args)
        except Exception as exc:
            self._guard.failed("a step in LlamaIndex", exc)


async def _end(handler: Any, run: WatchedRun) -> None:
    """The agent is done when its handler is; what it raises is its awaiter's affair."""
    try:
        await handler.stop_event_result()
    except Exception:
        return
    finally:
        run.end()


def _tell_input(now: _Conversation, messages: Any) -> None:
    """What the agent is asked with: messages of the user behind its last one that were not told yet."""
    said = [n for n, message in enumerate(messages) if _role(message) == "assistant"]
    users = [n for n, message in enumerate(messages) if _role(message) == "user"]
    for n in users[now.heard :]:
        if not said or n > said[-1]:
            observe_again(now.run, text_of(field_of(messages[n], "content")), n)
    now.heard = len(users)


def _role(message: Any) -> str:
    role = field_of(message, "role")
    return str(field_of(role, "value", role))


def _tell_output(now: _Conversation, output: Any, name: str) -> None:
    calls = [
        (str(field_of(call, "tool_id") or ""), field_of(call, "tool_name"), field_of(call, "tool_kwargs"))
        for call in field_of(output, "tool_calls") or ()
    ]
    fields = {"agent": name, **tokens_of(field_of(field_of(output, "raw"), "usage"))}
    tell_reply(now.run, text_of(field_of(field_of(output, "response"), "content")), calls, fields)


def _tell_results(now: _Conversation, results: Any) -> None:
    for result in results:
        output = field_of(result, "tool_output")
        failed = True if field_of(output, "is_error") is True else None
        result_of(now.run, field_of(result, "tool_id"), field_of(output, "content"), failed)


def _put(results: Any, text: str) -> None:
    from llama_index.core.llms import TextBlock

    results[-1].tool_output.blocks.append(TextBlock(text=text))
