"""LangGraph, and all that runs on LangChain's callbacks: which agent of which run each callback belongs to.

    graph.invoke(state, config={"callbacks": [guard.langgraph()]})  # any graph; warns, stops

A graph within a graph, an agent within a tool, and branches that run beside each other are watched apart, each as an
agent path of its own. Callbacks cannot put a message before a model, so a nudge needs the middleware.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from prefixguard.errors import AgentStopped, missing_extra
from prefixguard.integrations.counts import ForkedLock
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.langchain import tell_input, tell_message, tell_result
from prefixguard.integrations.registry import task_digest
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


@dataclass(slots=True)
class GraphRun:
    """A run of a graph, which may be interrupted and go on. main : its first agent.

    owners : the agents below it, by the tool they are in and the name space of their graph or branch. steps : which
    node spoke first in a step of a graph. begun : how many agents of a name there are.
    """

    main: WatchedRun
    owners: dict[str, WatchedRun] = field(default_factory=dict)
    steps: dict[tuple[str, Any], str] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Root:
    """The outermost chain of a run. key : its thread's id and its name; None without a thread. task_id : of what it was
    given."""

    key: tuple[str, str] | None = None
    task_id: str = ""


#: Of every guard the runs that are interrupted, by thread and graph: another handler may see them go on.
_PAUSED: WeakKeyDictionary[RunKeeper, OrderedDict[tuple[str, str], GraphRun]] = WeakKeyDictionary()
_MOST_PAUSED = 10_000


class GraphWatcher:
    """Knows the run, and the agent of it, that a callback of LangChain belongs to, by the tree of its run ids.

    Nodes that run beside each other call it from threads of their own.
    """

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self.lock = ForkedLock()
        self._paused = _PAUSED.setdefault(guard, OrderedDict())
        self._above: dict[UUID, UUID | None] = {}
        self._roots: dict[UUID, Root] = {}
        self._interrupted: set[UUID] = set()  # roots
        self._runs: dict[UUID, GraphRun] = {}  # by root
        self._tools: dict[UUID, tuple[WatchedRun, str]] = {}  # open tool runs: whose, and the call's id
        self._models: dict[UUID, WatchedRun] = {}

    def begins(self, run_id: UUID, above: UUID | None) -> None:
        self._above[run_id] = above

    def begins_chain(self, run_id: UUID, above: UUID | None, inputs: Any, name: Any, metadata: Any) -> None:
        """A chain, a graph or a node of one begins. What the outermost is given is the run's task."""
        self.begins(run_id, above)
        if above is None:
            thread = field_of(metadata, "thread_id")
            key = None if thread is None else (str(thread), str(name or ""))
            self._roots[run_id] = Root(key, task_digest(_task_of(inputs)))

    def interrupted(self, run_id: UUID) -> None:
        """A graph waits for a person."""
        self._interrupted.add(self._ancestors(run_id)[0])

    def resumed(self, run_id: UUID) -> None:
        """A graph goes on from where it was interrupted, before anything of it runs: in the same run."""
        root, _ = self._ancestors(run_id)
        key = self._roots.get(root, Root()).key
        run = None if key is None else self._paused.pop(key, None)
        if run is not None and self._guard.is_open(run.main.id):
            self._runs[root] = run

    def asks(self, run_id: UUID, above: UUID | None, messages: Any, metadata: Any) -> None:
        """A model is about to be asked."""
        self.begins(run_id, above)
        run = self._models[run_id] = self._owner(run_id, metadata or {})
        tell_input(run, messages[0] if messages else ())

    def check(self, run_id: UUID) -> None:
        """Raises AgentStopped where the run of this model is to stop."""
        run = self._models.get(run_id)
        if run is not None:
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
        of = self._runs.get(root)
        near = [] if of is None else [owner for space, owner in of.owners.items() if self._is_in(space, tool)]
        if tool is None and of is not None:
            near.append(of.main)
        run = next((owner for owner in near if known and owner.is_open(known)), None)
        if run is None:
            run = self._owner(run_id, metadata or {})
            known = run.called(str(name or ""), inputs, call_id=known)
        self._tools[run_id] = (run, known)

    def returns(self, run_id: UUID, output: Any) -> None:
        run, call_id = self._tools.pop(run_id, (None, ""))
        if run is None:
            return
        if _is_interrupt(output):
            return
        if not isinstance(output, BaseException):  # what the agent is told of an error stands in its next messages
            tell_result(run, call_id, output)
        of = self._runs.get(self._ancestors(run_id)[0])
        owners = {} if of is None else of.owners
        for space in [space for space in owners if space.startswith(f"{run_id}/")]:
            owners.pop(space).end()

    def ends(self, run_id: UUID) -> None:
        self._end_if_root(run_id)
        self._above.pop(run_id, None)

    def _end_if_root(self, run_id: UUID) -> None:
        root, run = self._roots.pop(run_id, Root()), self._runs.pop(run_id, None)
        is_paused = run_id in self._interrupted
        self._interrupted.discard(run_id)
        if run is None:
            return
        if is_paused and root.key is not None:
            self._paused[root.key] = run
            if len(self._paused) > _MOST_PAUSED:
                self._paused.popitem(last=False)
        else:
            run.main.end()

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
        of = self._runs.get(root)
        if of is None:
            given = self._roots.get(root, Root())
            if given.key is not None and (left := self._paused.pop(given.key, None)) is not None:
                left.main.end()  # the thread begins anew: nobody answers what it waited for
            own = {"run_id": str(root), "task_id": given.task_id or None, **self._of_run}
            of = self._runs[root] = GraphRun(self._guard.run(**own))
            self._guard.no_nudges(
                of.main.id, "callbacks of LangChain cannot nudge: use the middleware, guard.langchain()"
            )
        space, _, task = str(metadata.get("langgraph_checkpoint_ns") or "").rpartition("|")
        first = of.steps.setdefault((space, metadata.get("langgraph_step")), task)
        is_sent = (metadata.get("langgraph_path") or ("",))[0] == "__pregel_push"
        if first != task or is_sent:  # a branch that runs beside others
            space = f"{space}|{task}"
        elif tool is not None:
            space = ""
        if tool is None and not space:
            return of.main
        over, call_id = (of.main, "") if tool is None else self._tools[tool]
        place = space if tool is None else f"{tool}/{space}"
        owner = of.owners.get(place)
        if owner is None:
            name = ".".join(part.partition(":")[0] for part in space.split("|") if part) or "agent"
            if space:
                of.begun[f"{call_id}/{name}"] += 1
                call_id = f"{call_id}.{of.begun[f'{call_id}/{name}']}".strip(".")
            owner = of.owners[place] = over.delegate(name, call_id=call_id, answers=False)
        return owner


def _is_interrupt(output: Any) -> bool:
    """Is this what LangGraph raises where a graph waits for a person, or hands over to another one?"""
    return any(kind.__name__ == "GraphBubbleUp" for kind in type(output).__mro__)


def _task_of(inputs: Any) -> str:
    """What a graph is asked: its first new message of a person, else all of its input as text."""
    messages = field_of(inputs, "messages")
    if messages:
        from langchain_core.messages import convert_to_messages

        try:
            found = convert_to_messages(messages if isinstance(messages, list | tuple) else [messages])
        except Exception:
            return text_of(inputs)
        start = next((n for n in range(len(found), 0, -1) if found[n - 1].type == "ai"), 0)
        asked = (text_of(message.content) for message in found[start:] if message.type == "human")
        return next(filter(None, asked), "")
    return text_of(inputs)


def callback_handler(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A handler for `config={"callbacks": [...]}`, for any number of runs. Raises MissingExtraError."""
    try:
        from langchain_core.callbacks import BaseCallbackHandler as Handler
    except ImportError as exc:
        raise missing_extra("watching LangGraph", "langchain", exc) from exc

    with suppress(ImportError):  # LangChain without LangGraph, or a release without these events
        from langgraph.callbacks import GraphCallbackHandler as Handler
    watcher = GraphWatcher(guard, of_run)

    def told(what: Callable[..., None], *given: Any) -> None:
        try:
            with watcher.lock:
                what(*given)
        except Exception as exc:
            guard.failed("a callback of LangChain", exc)

    class WatchedCallbacks(Handler):  # type: ignore[misc]
        raise_error = True  # only AgentStopped leaves it
        run_inline = True  # in the order in which things happen

        def on_chain_start(
            self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: Any = None, metadata: Any = None,
            **given: Any,
        ) -> None:  # fmt: skip
            told(watcher.begins_chain, run_id, parent_run_id, inputs, given.get("name"), metadata)

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
            try:  # it may wait for a function of the host's: others go on meanwhile
                watcher.check(run_id)
            except AgentStopped:
                raise
            except Exception as exc:
                guard.failed("a callback of LangChain", exc)

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

        def on_interrupt(self, event: Any) -> None:
            told(watcher.interrupted, field_of(event, "run_id"))

        def on_resume(self, event: Any) -> None:
            told(watcher.resumed, field_of(event, "run_id"))

    return WatchedCallbacks()
