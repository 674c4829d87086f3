"""LangChain agents, by middleware; and what its messages say, for LangGraph's callbacks too.

    agent = create_agent(model, tools, middleware=[guard.langchain()])  # warns, nudges, stops

An agent that a tool runs is watched apart, as an agent path of its own, where it has the middleware too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.call_context import begin_run, within_call
from prefixguard.integrations.conversation import observe_again, result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


def tell_input(run: WatchedRun, messages: Any) -> None:
    """What a chat model is asked with: the messages behind the agent's last one are new."""
    messages = list(messages or ())
    start = next((n for n in range(len(messages), 0, -1) if field_of(messages[n - 1], "type") == "ai"), 0)
    for position in range(start, len(messages)):
        message = messages[position]
        kind, content = field_of(message, "type"), field_of(message, "content")
        if kind == "tool":
            failed = True if field_of(message, "status") == "error" else None
            result_of(run, field_of(message, "tool_call_id"), content, failed)
        elif kind in ("human", "user"):
            observe_again(run, text_of(content), position)


def tell_message(run: WatchedRun, message: Any, agent: str = "") -> None:
    """What a chat model answered."""
    calls = [
        (str(field_of(call, "id") or ""), field_of(call, "name"), field_of(call, "args"))
        for call in (*(field_of(message, "tool_calls") or ()), *(field_of(message, "invalid_tool_calls") or ()))
    ]
    fields = {"agent": agent or str(field_of(message, "name") or ""), **tokens_of(field_of(message, "usage_metadata"))}
    content = field_of(message, "content")
    if isinstance(content, list):  # the calls stand among the blocks too
        content = [
            block for block in content if field_of(block, "type") not in ("tool_call", "tool_use", "function_call")
        ]
    tell_reply(run, text_of(content) if content else "", calls, fields)


def tell_result(run: WatchedRun, call_id: Any, output: Any) -> None:
    """What a tool returned: a message, or what it is made of."""
    failed = True if field_of(output, "status") == "error" or isinstance(output, BaseException) else None
    content = field_of(output, "content") if field_of(output, "type") == "tool" else output
    result_of(run, call_id or field_of(output, "tool_call_id"), content, failed)


def agent_middleware(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """Middleware for `create_agent`, for any number of runs. Raises MissingExtraError."""
    try:
        from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
        from langchain.agents.middleware.types import PrivateStateAttr
        from langchain_core.messages import AIMessage, HumanMessage
        from langgraph.errors import GraphBubbleUp
    except ImportError as exc:
        raise missing_extra("watching LangChain agents", "langchain", exc) from exc
    from typing import Annotated, NotRequired

    class WatchedState(AgentState[Any]):  # type: ignore[misc]
        prefixguard_agent: str

    # LangChain evaluates the annotation where it does not see our imports
    WatchedState.__annotations__["prefixguard_agent"] = NotRequired[Annotated[str, PrivateStateAttr]]

    agents: dict[str, WatchedRun] = {}

    def safely(what: Callable[..., Any], *given: Any) -> Any:
        try:
            return what(*given)
        except Exception as exc:
            guard.failed("a hook of LangChain", exc)
            return None

    def watched(state: Any) -> WatchedRun | None:
        """The run of an agent by its state."""
        key = field_of(state, "prefixguard_agent")
        return agents.get(key) if isinstance(key, str) else None

    def heard(state: Any) -> WatchedRun | None:
        """The run, told what its model is about to be asked with."""
        run = watched(state)
        if run is not None:
            safely(tell_input, run, field_of(state, "messages"))
        return run

    def acted(run: WatchedRun | None) -> dict[str, Any] | None:
        """What the agent's state becomes by a stop or a nudge."""
        if run is None:
            return None
        if (why := run.stopped) is not None:
            return {"jump_to": "end", "messages": [AIMessage(f"This run was stopped by its monitor ({why}).")]}
        text = run.nudge()
        return None if text is None else {"messages": [HumanMessage(text)]}

    class WatchedMiddleware(AgentMiddleware):  # type: ignore[misc]
        state_schema = WatchedState

        def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            def begin() -> dict[str, Any]:
                run = begin_run(guard, of_run)
                agents[run.key] = run
                return {"prefixguard_agent": run.key}

            found: dict[str, Any] | None = safely(begin)
            return found

        @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            return acted(heard(state))

        @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]
        async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            if (run := heard(state)) is not None:
                await run.answered()
            return acted(run)

        def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            run, messages = watched(state), field_of(state, "messages")
            if run is not None and messages:
                safely(lambda: tell_message(run, messages[-1]))
            return None

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            with self._call(request) as tell:
                return tell(handler(request))

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
            with self._call(request) as tell:
                return tell(await handler(request))

        def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            run = watched(state)
            if run is not None:
                del agents[run.key]
                safely(run.end)
            return None

        @contextmanager
        def _call(self, request: Any) -> Iterator[Callable[[Any], Any]]:
            """A tool call, within which another agent may run; gives what tells its result, which it hands on."""
            run = watched(field_of(request, "state"))
            call_id = text_of(field_of(field_of(request, "tool_call"), "id"))

            def tell(result: Any) -> Any:
                if run is not None:
                    safely(tell_result, run, call_id, result)
                return result

            with within_call(guard, run, call_id):
                try:
                    yield tell
                except GraphBubbleUp:  # it waits for a person: the call stays open, and is made again
                    raise
                except Exception as exc:
                    tell(exc)
                    raise

    return WatchedMiddleware()
