"""smolagents: agents that call tools and agents that write code, with the agents that they manage.

    agent = guard.smolagents(ToolCallingAgent(tools, model))

The text of each step is told as it ends. A nudge is put behind the observations of the step, which is what the model
reads next; a stop interrupts the agent before its next step.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

from prefixguard.errors import ConfigError
from prefixguard.integrations.call_context import begin_run, is_watched, watched_by, within_call
from prefixguard.integrations.events import field_of, plain_json, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

A = TypeVar("A")


def watch_agent(guard: RunKeeper, agent: A, of_run: dict[str, Any]) -> A:
    """The same agent, watched in every run of it, and the agents that it manages. of_run : arguments of `Guard.run`.

    Raises ConfigError for what is no agent of smolagents.
    """
    callbacks = getattr(agent, "step_callbacks", None)
    if callbacks is None or not hasattr(callbacks, "register") or not callable(getattr(agent, "run", None)):
        raise ConfigError(f"{type(agent).__name__} is no agent of smolagents: give a ToolCallingAgent or a CodeAgent.")
    _watch(guard, agent, of_run, None)
    return agent


def _watch(guard: RunKeeper, agent: Any, of_run: dict[str, Any], above: _WatchedAgent | None) -> None:
    if is_watched(agent.run, guard):
        return
    from smolagents import ActionStep

    watched = _WatchedAgent(guard, agent, of_run, above)
    for managed in (getattr(agent, "managed_agents", None) or {}).values():
        _watch(guard, managed, {}, watched)
    agent.run = watched_by(guard, watched.run(agent.run))
    if hasattr(agent, "process_tool_calls"):
        agent.process_tool_calls = watched.tool_calls(agent.process_tool_calls)
        agent.execute_tool_call = watched.tool_call(agent.execute_tool_call)
    agent.step_callbacks.register(ActionStep, watched.step)


class _WatchedAgent:
    def __init__(
        self, guard: RunKeeper, agent: Any, of_run: dict[str, Any], above: _WatchedAgent | None = None
    ) -> None:
        """above : the agent that manages it. Code that calls it is run on a thread that knows no context."""
        self._guard, self._agent, self._of_run, self._above = guard, agent, of_run, above
        self._going_on: list[WatchedRun] = []  # runs of the agent, the latest last
        self._run: ContextVar[WatchedRun | None] = ContextVar("prefixguard_agent", default=None)
        self._told: dict[str, tuple[str, Any]] = {}  # calls of the step that is under way

    def run(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`agent.run`, whose whole is a run, or a sub-agent's part of one."""

        @functools.wraps(original)
        def run(task: Any, *args: Any, **options: Any) -> Any:
            name, above = text_of(field_of(self._agent, "name")), self._above
            under = above._going_on[-1] if above is not None and above._going_on else None
            watched = begin_run(self._guard, self._of_run, task=text_of(task), agent=name, under=under)
            self._going_on.append(watched)
            before = self._run.set(watched)
            is_stream = False
            try:
                result = original(task, *args, **options)
                is_stream = inspect.isgenerator(result)
                return self._streamed(result, watched) if is_stream else result
            finally:
                self._run.reset(before)
                if not is_stream:
                    self._end(watched)

        return run

    def _streamed(self, steps: Iterator[Any], watched: WatchedRun) -> Generator[Any, Any, Any]:
        try:
            while True:
                before = self._run.set(watched)
                try:
                    step = next(steps)
                except StopIteration as end:
                    return end.value
                finally:
                    self._run.reset(before)
                yield step
        finally:
            self._end(watched)

    def _end(self, watched: WatchedRun) -> None:
        self._going_on.remove(watched)
        watched.end()

    def tool_calls(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`process_tool_calls`, which yields the calls of a reply and then their outputs."""

        @functools.wraps(original)
        def process(message: Any, step: Any) -> Iterator[Any]:
            run = self._run.get()
            turn, text = 0 if run is None else run.next_turn(), text_of(field_of(message, "content"))
            for found in original(message, step):
                try:
                    if run is not None and hasattr(found, "observation"):
                        run.returned(str(found.id), found.observation)
                        self._told.pop(str(found.id), None)
                    elif run is not None and hasattr(found, "arguments"):
                        run.called(found.name, plain_json(found.arguments), call_id=str(found.id), text=text, turn=turn)
                        text = ""
                        self._told[str(found.id)] = (found.name, found.arguments or {})
                except Exception as exc:
                    self._guard.failed("a tool call of smolagents", exc)
                yield found

        return process

    def tool_call(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`execute_tool_call`, within which a managed agent may run."""

        @functools.wraps(original)
        def execute(name: str, arguments: Any) -> Any:
            run = self._run.get()
            with within_call(self._guard, run, self._call_of(name, arguments)):
                return original(name, arguments)

        return execute

    def _call_of(self, name: str, arguments: Any) -> str:
        """Id of the call that is under way: the first one told of this tool and these arguments."""
        try:
            return next((key for key, told in self._told.items() if told == (name, arguments)), "")
        except Exception as exc:  # arguments may be objects that compare to no truth value
            self._guard.failed("the arguments of a call of smolagents", exc)
            return ""

    def step(self, step: Any, agent: Any = None) -> None:
        """A step has ended: tell what the tool calls have not told, then say what is to be done."""
        run = self._run.get()
        self._told.clear()
        if run is None:
            return
        try:
            self._tell(run, step)
            if (text := run.nudge()) is not None:
                step.observations = f"{step.observations}\n{text}" if step.observations else text
            if run.stopped is not None:
                self._agent.interrupt()
        except Exception as exc:
            self._guard.failed("a step of smolagents", exc)

    def _tell(self, run: WatchedRun, step: Any) -> None:
        error, text = field_of(step, "error"), text_of(field_of(step, "model_output"))
        usage = field_of(step, "token_usage")
        fields = {f"tokens_{way}": n for way in ("in", "out") if (n := field_of(usage, f"{way}put_tokens")) is not None}
        problem = str(field_of(error, "message") or error) if error is not None else ""
        if (code := field_of(step, "code_action")) is not None:
            call_id = run.called("python_interpreter", code, text=text, turn=run.next_turn(), **fields)
            run.returned(call_id, problem or field_of(step, "observations") or "", is_error=error is not None)
        elif waiting := run.waiting():
            for call_id in waiting:  # the SDK gives up on all calls of a step when one of them fails
                run.returned(call_id, problem, is_error=True)
        elif not field_of(step, "tool_calls") and (text or problem):
            if text:
                run.said(text, **fields)
            if problem:
                run.observed(problem)
