"""LangGraph, and all that runs on LangChain's callbacks: which agent of which run each callback belongs to.

    graph.invoke(state, config={"callbacks": [guard.langgraph()]})  # any graph; warns, stops

A graph within a graph, an agent within a tool, and branches that run beside each other are watched apart, each as an
agent path of its own. Callbacks cannot put a message before a model, so a nudge needs the middleware.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

from prefixguard.errors import AgentStopped, missing_extra
from prefixguard.integrations.events import field_of
from prefixguard.integrations.langchain import tell_input, tell_message, tell_result
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


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
        try:
            tell_input(run, messages[0] if messages else ())
        finally:
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
            told(watcher.asks, run_id, parent_run_id, messages, metadata)

        def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
            told(watcher.answers, run_id, response)

        def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
            told(watcher.ends, run_id)

        def on_tool_start(
            self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: Any = None, metadata: Any = None,
            inputs: Any = None, **given: Any,
        ) -> None:  # fmt: skip
            told(
                lambda: watcher.calls(
                    run_id, parent_run_id, given.get("tool_call_id"),
                    field_of(serialized, "name") or given.get("name"), inputs or input_str, metadata,
                )
            )  # fmt: skip

        def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
            told(watcher.returns, run_id, output)

        def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
            told(watcher.returns, run_id, error)

    return WatchedCallbacks()
