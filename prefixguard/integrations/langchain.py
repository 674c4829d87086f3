"""LangChain and LangGraph: middleware for agents, callbacks for any graph.

    agent = create_agent(model, tools, middleware=[guard.langchain()])  # warns, nudges, stops
    graph.invoke(state, config={"callbacks": [guard.langgraph()]})  # any graph; warns, stops

A graph within a graph, an agent within a tool, and branches that run beside each other are watched apart, each as an
agent path of its own. Callbacks cannot put a message before a model, so a nudge needs the middleware.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from uuid import UUID

from prefixguard.errors import AgentStopped, missing_extra
from prefixguard.integrations.conversation import observe_again, result_of, tell_reply, tokens_of
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

#: The tool call that this context is in: the run that made it, and its id.
_WITHIN: ContextVar[tuple[WatchedRun, str] | None] = ContextVar("prefixguard_tool_call", default=None)


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


class GraphWatcher:
    """Knows the run, and the agent of it, that a callback of LangChain belongs to, by the tree of its run ids."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self._above: dict[UUID, UUID | None] = {}
        self._roots: dict[UUID, WatchedRun] = {}
        self._tools: dict[UUID, tuple[WatchedRun, str]] = {}  # open tool runs: whose, and the call's id
        self._owners: dict[tuple[UUID, str], WatchedRun] = {}  # by root, and name space of the graph or branch
        self._steps: dict[tuple[UUID, str, Any], str] = {}  # which node spoke first in a step of a graph
        self._models: dict[UUID, WatchedRun] = {}

    def begins(self, run_id: UUID, above: UUID | None) -> None:
        self._above[run_id] = above

    def asks(self, run_id: UUID, above: UUID | None, messages: Any, metadata: Any) -> None:
        """A model is about to be asked. Raises AgentStopped where the run is to stop."""
        self.begins(run_id, above)
        run = self._models[run_id] = self._owner(run_id, metadata or {})
        tell_input(run, messages)
        run.check()

    def answers(self, run_id: UUID, response: Any) -> None:
        run = self._models.pop(run_id, None)
        generations = field_of(response, "generations")
        if run is not None and generations and generations[0]:
            tell_message(run, field_of(generations[0][0], "message"))
        self._end_if_root(run_id)

    def calls(self, run_id: UUID, above: UUID | None, call_id: Any, name: Any, inputs: Any, metadata: Any) -> None:
        """A tool begins. One that no model has called, since a node calls it, is told as a call of its own."""
        self.begins(run_id, above)
        known = str(call_id or "")
        root, tool = self._ancestors(run_id)
        near = [owner for (of, space), owner in self._owners.items() if of == root and self._is_in(space, tool)]
        if tool is None and root in self._roots:
            near.append(self._roots[root])
        run = next((owner for owner in near if known and owner.is_open(known)), None)
        if run is None:
            run = self._owner(run_id, metadata or {})
            known = run.called(str(name or ""), inputs, call_id=known)
        self._tools[run_id] = (run, known)

    def returns(self, run_id: UUID, output: Any) -> None:
        run, call_id = self._tools.pop(run_id, (None, ""))
        if run is None:
            return
        below = [key for key in self._owners if key[1].startswith(f"{run_id}/")]
        if not isinstance(output, BaseException):  # what the agent is told of an error stands in its next messages
            tell_result(run, call_id, output)
        for key in below:
            self._owners.pop(key).end()

    def ends(self, run_id: UUID) -> None:
        self._end_if_root(run_id)
        self._above.pop(run_id, None)

    def _end_if_root(self, run_id: UUID) -> None:
        run = self._roots.pop(run_id, None)
        if run is not None:
            self._owners = {key: owner for key, owner in self._owners.items() if key[0] != run_id}
            self._steps = {key: node for key, node in self._steps.items() if key[0] != run_id}
            run.end()

    def _ancestors(self, run_id: UUID) -> tuple[UUID, UUID | None]:
        """The root of the tree that the callback belongs to, and the nearest tool above it."""
        root, tool = run_id, None
        while (above := self._above.get(root)) is not None:
            root = above
            tool = root if tool is None and root in self._tools else tool
        return root, tool

    @staticmethod
    def _is_in(space: str, tool: UUID | None) -> bool:
        return space.startswith(f"{tool}/") if tool is not None else "/" not in space

    def _owner(self, run_id: UUID, metadata: Any) -> WatchedRun:
        """The agent that a model's callback belongs to: begun where it is new."""
        root, tool = self._ancestors(run_id)
        main = self._roots.get(root)
        if main is None:
            main = self._roots[root] = self._guard.run(**{"run_id": str(root), **self._of_run})
        space, _, task = str(metadata.get("langgraph_checkpoint_ns") or "").rpartition("|")
        first = self._steps.setdefault((root, space, metadata.get("langgraph_step")), task)
        is_sent = (metadata.get("langgraph_path") or ("",))[0] == "__pregel_push"
        if first != task or is_sent:  # a branch that runs beside others
            space = f"{space}|{task}"
        elif tool is not None:
            space = ""
        if tool is not None:
            space = f"{tool}/{space}"
        if not space:
            return main
        owner = self._owners.get((root, space))
        if owner is None:
            over, call_id = self._tools[tool] if tool is not None else (main, "")
            name = str(metadata.get("langgraph_node") or "agent") if tool is None else "agent"
            owner = self._owners[root, space] = over.delegate(name, call_id=call_id, answers=False)
        return owner


def callback_handler(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A handler for `config={"callbacks": [...]}`, for any number of runs. Raises MissingExtraError."""
    try:
        from langchain_core.callbacks import BaseCallbackHandler
    except ImportError as exc:
        raise missing_extra("watching LangGraph", "langchain", exc) from exc

    watcher = GraphWatcher(guard, of_run)

    def told(what: Callable[..., None], *given: Any) -> None:
        try:
            what(*given)
        except AgentStopped:
            raise
        except Exception as exc:
            guard.failed("a callback of LangChain", exc)

    class WatchedCallbacks(BaseCallbackHandler):  # type: ignore[misc]
        raise_error = True  # only AgentStopped leaves it
        run_inline = True  # in the order in which things happen

        def on_chain_start(
            self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: Any = None, **_: Any
        ) -> None:
            told(watcher.begins, run_id, parent_run_id)

        def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
            told(watcher.ends, run_id)

        def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
            told(watcher.ends, run_id)

        def on_chat_model_start(
            self,
            serialized: Any,
            messages: Any,
            *,
            run_id: UUID,
            parent_run_id: Any = None,
            metadata: Any = None,
            **_: Any,
        ) -> None:
            told(watcher.asks, run_id, parent_run_id, messages[0] if messages else (), metadata)

        def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
            told(watcher.answers, run_id, response)

        def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
            told(watcher.ends, run_id)

        def on_tool_start(
            self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: Any = None, metadata: Any = None,
            inputs: Any = None, **given: Any,
        ) -> None:  # fmt: skip
            name = field_of(serialized, "name") or given.get("name")
            told(watcher.calls, run_id, parent_run_id, given.get("tool_call_id"), name, inputs or input_str, metadata)

        def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
            told(watcher.returns, run_id, output)

        def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
            told(watcher.returns, run_id, error)

    return WatchedCallbacks()


def agent_middleware(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """Middleware for `create_agent`, for any number of runs. Raises MissingExtraError."""
    try:
        from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
        from langchain.agents.middleware.types import PrivateStateAttr
        from langchain_core.messages import AIMessage, HumanMessage
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

    class WatchedMiddleware(AgentMiddleware):  # type: ignore[misc]
        state_schema = WatchedState

        def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            def begin() -> dict[str, Any]:
                within = _WITHIN.get()
                run = (
                    guard.run(**of_run)
                    if within is None
                    else within[0].delegate("agent", call_id=within[1], answers=False)
                )
                agents[run.key] = run
                return {"prefixguard_agent": run.key}

            found: dict[str, Any] | None = safely(begin)
            return found

        @hook_config(can_jump_to=["end"])  # type: ignore[untyped-decorator]
        def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            run = agents.get(state.get("prefixguard_agent", ""))
            if run is None:
                return None
            safely(tell_input, run, state["messages"])
            if (why := run.stopped) is not None:
                return {"jump_to": "end", "messages": [AIMessage(f"This run was stopped by its monitor ({why}).")]}
            text = run.nudge()
            return None if text is None else {"messages": [HumanMessage(text)]}

        def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            run = agents.get(state.get("prefixguard_agent", ""))
            if run is not None:
                safely(tell_message, run, state["messages"][-1])
            return None

        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            with self._call(request) as tell:
                return tell(handler(request))

        async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
            with self._call(request) as tell:
                return tell(await handler(request))

        def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
            run = agents.pop(state.get("prefixguard_agent", ""), None)
            if run is not None:
                safely(run.end)
            return None

        @contextmanager
        def _call(self, request: Any) -> Iterator[Callable[[Any], Any]]:
            """A tool call, within which another agent may run; gives what tells its result, which it hands on."""
            run = agents.get(field_of(field_of(request, "state") or {}, "prefixguard_agent") or "")
            call_id = str(field_of(request.tool_call, "id") or "")

            def tell(result: Any) -> Any:
                if run is not None:
                    safely(tell_result, run, call_id, result)
                return result

            mark = _WITHIN.set(_WITHIN.get() if run is None else (run, call_id))
            try:
                yield tell
            except Exception as exc:
                tell(exc)
                raise
            finally:
                _WITHIN.reset(mark)

    return WatchedMiddleware()
