"""CrewAI: crews, their agents and tasks, and agents that are asked alone.

    with guard.crewai():
        crew.kickoff()

Calls and results are told before the model is asked with them, and after the last reply: CrewAI shows them in the
conversation, without what the model said beside its calls, which it drops. Tasks that follow each other work in one
path; work that is delegated, and tasks beside others, are watched apart. A nudge is put into the conversation and stays
there; a stop is raised out of `kickoff`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Self

from prefixguard.errors import AgentStopped, missing_extra
from prefixguard.integrations.call_context import begin_run, set_call
from prefixguard.integrations.conversation import behind_last, result_of, tell_chat_reply
from prefixguard.integrations.events import field_of, plain_json, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


@dataclass(slots=True, eq=False)
class _Conversation:
    """An agent at a task. agent, task, messages : the framework's own. told : how many messages were.

    answer : the model's last text, as long as a tool may follow: models that cannot call functions name one in it.
    call_id : of such a call. is_done : the model has given a text.
    """

    run: WatchedRun
    agent: Any
    task: Any
    messages: list[Any]
    told: int = 0
    answer: str = ""
    call_id: str = ""
    is_done: bool = False


#: Of every watched block, the agent at a task whose tool this context is in.
_WITHIN: ContextVar[Mapping[int, _Conversation | None]] = ContextVar("prefixguard_crewai", default=MappingProxyType({}))


class WatchedCrew:
    """A context in which all that CrewAI does is one run. A context manager, plain or async."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        """of_run : arguments of `Guard.run`. Raises MissingExtraError."""
        try:
            from crewai.hooks.dispatch import HookAborted, InterceptionPoint, get_scoped_hooks, scoped_hooks
        except ImportError as exc:
            raise missing_extra("watching CrewAI", "crewai", exc) from exc

        class CrewStopped(AgentStopped, HookAborted):  # type: ignore[misc]
            """The framework lets nothing else out of a hook."""

            def __init__(self, why: str) -> None:
                Exception.__init__(self, why)
                self.reason, self.source = why, "prefixguard"

        self._guard, self._of_run, self._stopped = guard, of_run, CrewStopped
        self._hooks = {
            InterceptionPoint.PRE_MODEL_CALL: self._before_model,
            InterceptionPoint.POST_MODEL_CALL: self._after_model,
            InterceptionPoint.PRE_TOOL_CALL: self._before_tool,
            InterceptionPoint.POST_TOOL_CALL: self._after_tool,
        }
        self._scope: Callable[[], Any] = lambda: scoped_hooks(
            {at: [*get_scoped_hooks(at), hook] for at, hook in self._hooks.items()}
        )
        self._conversations: list[_Conversation] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self.run = begin_run(self._guard, self._of_run)
        self._entered = self._scope()
        self._entered.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(ValueError):  # left in another context than it was entered in
            self._entered.__exit__(kind, exc, trace)
        for found in self._conversations:
            self._try(self._tell, found)
        self.run.end()
        self._conversations.clear()

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, exc, trace)

    # Hooks, which the framework calls with a context of its own

    def _before_model(self, context: Any) -> None:
        found = self._try(self._conversation, context)
        if found is None:
            return
        self._try(self._tell, found)
        if (why := found.run.stopped) is not None:
            raise self._stopped(why)
        if (text := found.run.nudge()) is not None:
            found.messages.append({"role": "user", "content": text})
            found.told += 1

    def _after_model(self, context: Any) -> None:
        self._try(self._answered, context)

    def _before_tool(self, context: Any) -> None:
        found = self._known(context)
        _WITHIN.set({**_WITHIN.get(), id(self): found})
        set_call(self._guard, None if found is None else found.run)
        if found is not None and found.answer:
            self._try(self._called, found, context)

    def _after_tool(self, context: Any) -> None:
        _WITHIN.set({**_WITHIN.get(), id(self): None})
        set_call(self._guard, None)
        found = self._known(context)
        if found is not None and found.call_id:
            self._try(found.run.returned, found.call_id, field_of(context, "tool_result"))
            found.call_id = ""

    # What they tell

    def _known(self, context: Any) -> _Conversation | None:
        agent, task = field_of(context, "agent"), field_of(context, "task")
        same = (found for found in reversed(self._conversations) if found.agent is agent and found.task is task)
        return next(same, None)

    def _conversation(self, context: Any) -> _Conversation | None:
        """That of an agent at a task, which begins with its first request; None for questions that are no agent's."""
        messages = field_of(context, "messages")
        if field_of(context, "executor") is None or not isinstance(messages, list):
            return None
        with self._lock:
            found = self._known(context)
            if found is None:
                for other in self._conversations:
                    self._say(other)
                agent, task = field_of(context, "agent"), field_of(context, "task")
                found = _Conversation(self._path(text_of(field_of(agent, "role"))), agent, task, messages)
                self._conversations.append(found)
            elif found.messages is not messages or len(messages) < found.told:  # begun again, or summed up
                found.messages, found.told = messages, behind_last(messages, _is_agents)
            found.is_done = False
            return found

    def _path(self, name: str) -> WatchedRun:
        """Below the agent whose tool asks; else the run's own path, unless another agent is at work there."""
        within = _WITHIN.get().get(id(self))
        if within is not None and within in self._conversations:  # not of a block that is over
            return begin_run(self._guard, {}, agent=name)
        if all(found.is_done for found in self._conversations if found.run is self.run):
            return self.run
        return self.run.delegate(name)

    def _tell(self, found: _Conversation) -> None:
        """The messages that were not told yet."""
        self._say(found)
        name, new = text_of(field_of(found.agent, "role")), found.messages[found.told :]
        found.told = len(found.messages)
        for message in new:
            role, content = field_of(message, "role"), field_of(message, "content")
            if role == "assistant" and field_of(message, "tool_calls"):
                tell_chat_reply(found.run, message)
            elif role == "tool":
                result_of(found.run, field_of(message, "tool_call_id"), content)
            elif role == "user":
                found.run.observed(text_of(content), agent=name)

    def _answered(self, context: Any) -> None:
        """The model has given a text, and no calls: of them no hook is told."""
        found, text = self._known(context), field_of(context, "response")
        if found is not None and isinstance(text, str) and field_of(context, "executor") is not None:
            found.answer, found.is_done = text, True

    def _say(self, found: _Conversation) -> None:
        """The model's last text, which no tool has followed."""
        if found.answer:
            found.run.said(found.answer, agent=text_of(field_of(found.agent, "role")))
            found.answer = ""

    def _called(self, found: _Conversation, context: Any) -> None:
        """A tool that the model's last text names."""
        text, found.answer, name = found.answer, "", text_of(field_of(found.agent, "role"))
        given = plain_json(field_of(context, "tool_input"))
        found.call_id = found.run.called(
            text_of(field_of(context, "tool_name")), given, text=text, turn=found.run.next_turn(), agent=name
        )

    def _try(self, tell: Any, *args: Any) -> Any:
        """Nothing that an object of another release lacks reaches the host."""
        try:
            return tell(*args)
        except Exception as exc:
            self._guard.failed("an event of CrewAI", exc)
            return None


def _is_agents(message: Any) -> bool:
    return bool(field_of(message, "role") == "assistant")
