"""OpenTelemetry: agents watched by the spans that their instrumentation makes.

    provider.add_span_processor(guard.otel())

A trace in which a span holds the model's calls is a run, of its id. A model's call that no span holds is joined to the
run whose conversation it names, else to the one whose messages it repeats. An agent that works below a tool's
span, below an agent's span of its own, or on other messages is watched apart.

A span is seen when it is over. So a call's result is known from its tool's span, and else from what the model is
asked next (counted as `late_results`). Spans can neither stop nor nudge an agent: the host asks `guard.stopped`.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.conversation import tell_chat_input, tell_chat_reply
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.spans import (
    Kind,
    ModelCall,
    ToolCall,
    agent_name,
    calls_of,
    kind_of,
    model_call,
    said_digest,
    spelled,
    tool_call,
)
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun

logger = logging.getLogger("prefixguard")

#: Conversations without a span around them that are remembered.
_MOST_LOOSE = 10_000
#: Spans that are open at once.
_MOST_SPANS = 100_000
_CUT = (
    "Spans have lost attributes to the limit of their number, so messages are missing: set "
    "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000, or give the TracerProvider such a limit."
)


def span_processor(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A processor for `TracerProvider.add_span_processor`, for any number of runs. Raises MissingExtraError."""
    try:
        from opentelemetry.sdk.trace import SpanProcessor
    except ImportError as exc:
        raise missing_extra("watching OpenTelemetry", "otel", exc) from exc

    watcher = SpanWatcher(guard, of_run)

    class WatchedSpans(SpanProcessor):  # type: ignore[misc]
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            watcher.begins(span)

        def on_end(self, span: Any) -> None:
            watcher.ends(span)

        def shutdown(self) -> None:
            watcher.close()

        def force_flush(self, timeout_millis: int = 30000) -> bool:
            return True

    return WatchedSpans()


@dataclass(eq=False)
class SpanNode:
    """A span of a trace that goes on. below : spans under it that are not over. is_told : a call under it was told.

    run : of the topmost span, the run that it holds.
    """

    span: Any
    above: SpanNode | None
    kind: Kind = ""
    below: int = 0
    is_over: bool = False
    is_told: bool = False
    run: SpanRun | None = None

    def chain(self) -> Iterator[SpanNode]:
        """The spans above, the nearest first."""
        node = self.above
        while node is not None:
            yield node
            node = node.above

    @property
    def key(self) -> Any:
        return _key(field_of(self.span, "context"))

    @property
    def name(self) -> str:
        return str(field_of(self.span, "name") or "")

    def what(self) -> Kind:
        self.kind = self.kind or kind_of(self.span)
        return self.kind


@dataclass(eq=False)
class SpanAgent:
    """One agent of a run. scope : the span that it works below. until : the span that it ends with; None: with the run.

    head, tail, system : of its conversation, by `ModelCall`. since : when its model's last call ended, in nanoseconds.
    calls : id, tool and arguments of its last reply. failed : calls that went wrong and have no result yet.
    """

    watched: WatchedRun
    scope: SpanNode | None
    until: SpanNode | None = None
    head: str = ""
    tail: str = ""
    system: str = ""
    since: int = 0
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    is_over: bool = False

    def waiting(self) -> dict[str, tuple[str, str]]:
        return {call_id: call for call_id, call in self.calls.items() if self.watched.is_open(call_id)}

    def answers(self, call: ModelCall) -> bool:
        """Does this call of a model go on in the conversation of this agent?"""
        return bool(call.tail) and call.tail == self.tail and (not call.head or not self.head or call.head == self.head)

    def asks(self, guard: RunKeeper, call: ModelCall) -> None:
        """Its model was asked, and has answered."""
        waiting = list(self.waiting())
        for message in call.messages[call.behind :]:
            if message.get("role") != "tool":
                continue
            if not message.get("tool_call_id") and waiting:
                message["tool_call_id"] = waiting.pop(0)
            known = text_of(message.get("tool_call_id"))
            if self.watched.is_open(known):
                guard.count("late_results")
                failed = True if self.failed.pop(known, None) is not None else None
                self.watched.returned(known, message.get("content"), is_error=failed)
        tell_chat_input(self.watched, call.messages)
        self.head, self.system = call.head or self.head, call.system
        if call.reply is None:
            return
        tell_chat_reply(self.watched, call.reply, call.usage)
        self.calls = dict(zip(self.watched.waiting(), calls_of(call.reply), strict=False))
        self.tail = said_digest(call.reply)

    def returns(self, call_id: str, tool: ToolCall) -> None:
        if tool.result is not None:
            self.watched.returned(call_id, tool.result, is_error=tool.is_error)
        elif tool.error:  # what the agent is told of it stands in its next messages
            self.failed[call_id] = tool.error

    def end(self) -> None:
        self.is_over = True
        for call_id, error in self.failed.items():
            if self.watched.is_open(call_id):
                self.watched.returned(call_id, error, is_error=True)
        self.watched.end()


@dataclass(eq=False)
class SpanRun:
    """A run, its agents in the order in which they began. lock : held while something of it is told."""

    agents: list[SpanAgent] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def end(self) -> None:
        with self.lock:
            for agent in reversed(self.agents):
                agent.end()


class SpanWatcher:
    """Knows the run, and the agent of it, that a span belongs to. Safe for threads."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        self._guard, self._of_run = guard, of_run
        self._nodes: dict[Any, SpanNode] = {}
        self._loose: OrderedDict[Any, SpanRun] = OrderedDict()  # by conversation, or by the span that began it
        self._lock = threading.RLock()
        self._said: set[str] = set()

    def begins(self, span: Any) -> None:
        try:
            self._node(span)
        except Exception as exc:
            self._guard.failed("a span that began", exc)

    def ends(self, span: Any) -> None:
        try:
            node = self._node(span)
            try:
                node.kind, node.span = kind_of(span), span
                if node.kind == "model":
                    self._model(node)
                self._ends_below(node)
                if node.kind == "tool":
                    self._tool(node)
            finally:
                self._forget(node)
        except Exception as exc:
            self._guard.failed("a span", exc)

    def close(self) -> None:
        """No more spans come: all runs are over."""
        with self._lock:
            runs = [*self._loose.values(), *(node.run for node in self._nodes.values() if node.run is not None)]
            self._loose.clear()
            self._nodes.clear()
        for run in runs:
            run.end()

    # Spans

    def _node(self, span: Any) -> SpanNode:
        """The node of the span, begun if it is new."""
        key, above = _key(field_of(span, "context")), _key(field_of(span, "parent"))
        with self._lock:
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = SpanNode(span, self._nodes.get(above))
                if len(self._nodes) > _MOST_SPANS:  # spans that never end
                    del self._nodes[next(iter(self._nodes))]
                if node.above is not None:
                    node.above.below += 1
            return node

    def _forget(self, node: SpanNode) -> None:
        """The span is over: it is forgotten when those below it are; with the topmost one its run ends."""
        over: SpanRun | None = None
        with self._lock:
            node.is_over = True
            one: SpanNode | None = node
            while one is not None and one.is_over and not one.below:
                self._nodes.pop(one.key, None)
                over = one.run
                one = one.above
                if one is not None:
                    one.below -= 1
        if over is not None:
            over.end()

    def _ends_below(self, node: SpanNode) -> None:
        run = _topmost(node).run
        if run is not None:
            with run.lock:
                for agent in run.agents:
                    if agent.until is node and not agent.is_over:
                        agent.end()

    # Models

    def _model(self, node: SpanNode) -> None:
        if node.is_told:
            return
        call = model_call(node.span)
        if call.missing or call.is_cut:
            self._say("spans_without_content" if call.missing else "spans_cut", call.missing or _CUT)
            if call.missing:
                return
        for above in node.chain():
            above.is_told = True
        since, until = field_of(node.span, "start_time") or 0, field_of(node.span, "end_time") or 0
        run = self._run(node, call, since)
        with run.lock:
            agent = self._agent(run, node, call, since)
            agent.since = max(agent.since, until)
            agent.asks(self._guard, call)

    def _say(self, counter: str, sentence: str) -> None:
        self._guard.count(counter)
        if sentence not in self._said:
            self._said.add(sentence)
            logger.warning("%s", sentence)

    def _run(self, node: SpanNode, call: ModelCall, since: int) -> SpanRun:
        """The run that a model's call belongs to; without an agent where it is new."""
        with self._lock:
            if any(above.what() != "model" for above in node.chain()):
                top = _topmost(node)
                top.run = top.run or SpanRun()
                return top.run
            known: Any = call.conversation or (field_of(_topmost(node).span, "parent") and node.key[0])
            run = self._loose.get(known) if known else self._continued(call, since)
            if run is None or (run.agents and not self._guard.is_open(run.agents[0].watched.id)):
                run = SpanRun()
            if known or not run.agents:
                self._loose[known or node.key] = run
            while len(self._loose) > _MOST_LOOSE:
                self._loose.popitem(last=False)
            return run

    def _continued(self, call: ModelCall, since: int) -> SpanRun | None:
        """The run without a span around it whose last messages the call repeats."""
        found = [
            run
            for run in self._loose.values()
            for agent in run.agents
            if agent.answers(call) and agent.since <= since and self._guard.is_open(agent.watched.id)
        ]
        if len(found) > 1:
            self._guard.count("ambiguous_model_calls")
        elif not found and call.tail:
            self._guard.count("unjoined_model_calls")
        return found[0] if found else None

    def _agent(self, run: SpanRun, node: SpanNode, call: ModelCall, since: int) -> SpanAgent:
        """The agent of the run whose model was asked, begun where it is new."""
        scope = self._scope(run, node)
        free = [agent for agent in run.agents if not agent.is_over and agent.since <= since]
        known = [agent for agent in free if agent.answers(call)]
        here = [agent for agent in known if agent.scope is scope]
        beside = [  # its history was written anew
            agent
            for agent in free
            if agent.scope is scope and agent.system == call.system and (call.tail or not agent.waiting())
        ]
        for agent in [*here, *known, *beside]:
            agent.scope = scope
            return agent
        if not run.agents:
            agent = SpanAgent(self._begin(node, call, scope), scope)
        else:
            agent = self._below(run, node, scope)
        run.agents.append(agent)
        return agent

    def _scope(self, run: SpanRun, node: SpanNode) -> SpanNode | None:
        """The nearest span above of a tool or an agent, else the topmost one. A span that does not say what it is, and
        has the name of a call without a result, is a tool's."""
        if _topmost(node).run is None:
            return None
        names = {name for agent in run.agents if not agent.is_over for name, _ in agent.waiting().values()}
        for above in node.chain():
            if above.what() == "" and above.name in names:
                above.kind = "tool"
            if above.what() in ("tool", "agent"):
                return above
        return _topmost(node)

    def _begin(self, node: SpanNode, call: ModelCall, scope: SpanNode | None) -> WatchedRun:
        run_id = f"{trace:032x}" if isinstance(trace := node.key[0], int) else None
        if scope is None:
            run_id = call.conversation or run_id
        agent = agent_name(scope.span) if scope is not None and scope.what() == "agent" else ""
        return self._guard.run(**{"run_id": run_id, "agent": agent, **self._of_run})

    def _below(self, run: SpanRun, node: SpanNode, scope: SpanNode | None) -> SpanAgent:
        """An agent that begins below another one, or beside it."""
        owner, until, tool = run.agents[0], None, None
        at = scope
        while at is not None and at.above is not None:
            if (found := next((a for a in run.agents if a.scope is at and not a.is_over), None)) is not None:
                owner = found
                break
            until = at if at.what() in ("tool", "agent") else until
            tool = at if at.what() == "tool" else tool
            at = at.above
        else:
            owner = next((a for a in run.agents if a.scope is at and not a.is_over), owner)
        named = [
            call_id for call_id, (name, _) in owner.waiting().items() if tool is not None and name in tool.name.split()
        ]
        made = named[0] if len(named) == 1 else f"{(node if until is None else until).key[1]:016x}"
        name = "agent" if scope is None or scope.above is None else agent_name(scope.span)
        return SpanAgent(owner.watched.delegate(name, call_id=made, answers=False), scope, until or owner.until)

    # Tools

    def _tool(self, node: SpanNode) -> None:
        tool, run = tool_call(node.span), _topmost(node).run
        with self._lock:
            run = run or self._loose.get(tool.conversation)
        if run is None or not run.agents:
            self._guard.count("tools_outside_runs")
            return
        with run.lock:
            chain = list(node.chain())
            open_agents = [a for a in run.agents if not a.is_over]
            agents = [a for above in chain for a in open_agents if a.scope is above] or open_agents
            for agent in agents:
                waiting = agent.waiting()
                call = (tool.name or node.name, spelled(tool.arguments))
                named = [known for known, (name, _) in waiting.items() if name == call[0]]
                found = [known for known in named if waiting[known] == call] or named
                if tool.call_id in waiting:
                    found = [tool.call_id]
                if len(found) == 1:
                    agent.returns(found[0], tool)
                if found:  # of several that are alike the next messages tell the results
                    return
            owner = agents[0] if agents else None
            is_inner = any(above.what() == "tool" for above in chain) or tool.call_id in (owner.calls if owner else ())
            if owner is not None and tool.name and not is_inner and not owner.waiting():  # called by no model
                call_id = owner.watched.called(tool.name, tool.arguments)
                owner.returns(call_id, tool)


def _topmost(node: SpanNode) -> SpanNode:
    *_, top = node, *node.chain()
    return top


def _key(context: Any) -> Any:
    """(trace, span) ids."""
    return field_of(context, "trace_id"), field_of(context, "span_id")
