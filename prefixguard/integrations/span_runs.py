"""Spans as a tree, and which agent of a run each of them tells of."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from prefixguard.integrations.conversation import tell_chat_input, tell_chat_reply
from prefixguard.integrations.events import field_of, text_of
from prefixguard.integrations.spans import (
    Kind,
    Message,
    ModelCall,
    ToolCall,
    agent_name,
    calls_of,
    kind_of,
    said_digest,
    spelled,
)
from prefixguard.integrations.watched_run import RunKeeper, WatchedRun


@dataclass(eq=False)
class SpanNode:
    """A span of a trace that goes on. below : spans under it that are not over. is_told : a call under it was told.

    run : of the topmost span, the run that it holds.
    """

    span: Any
    above: SpanNode | None = None
    kind: Kind = ""
    below: int = 0
    is_over: bool = False
    is_told: bool = False
    run: SpanRun | None = None

    @property
    def key(self) -> tuple[Any, Any]:
        """Ids of the trace and the span."""
        return span_key(field_of(self.span, "context"))

    @property
    def name(self) -> str:
        return str(field_of(self.span, "name") or "")

    @property
    def chain(self) -> Iterator[SpanNode]:
        """The spans above, the nearest first."""
        node = self.above
        while node is not None:
            yield node
            node = node.above

    @property
    def top(self) -> SpanNode:
        *_, top = self, *self.chain
        return top

    def what(self) -> Kind:
        self.kind = self.kind or kind_of(self.span)
        return self.kind


def span_key(context: Any) -> tuple[Any, Any]:
    return field_of(context, "trace_id"), field_of(context, "span_id")


@dataclass(eq=False)
class TracedAgent:
    """One agent of a run. scope : the span that it works below. until : the span that it ends with; None: with the run.

    head, tail, system : of its conversation, by `ModelCall`. since : when its model's last call ended, in nanoseconds.
    calls : tool and arguments of its last reply's calls, by id. failed : what went wrong in calls that have no result
    yet. is_lost : its last reply was lost; the next call's messages repeat it, where the model gave one. behind : where
    the last call's new messages began. claim : the call that is about to be told as its own.
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
    is_lost: bool = False
    behind: int = 0
    claim: ModelCall | None = None
    is_over: bool = False

    @property
    def waiting(self) -> dict[str, tuple[str, str]]:
        """Its calls that have no result yet."""
        return {call_id: call for call_id, call in self.calls.items() if self.watched.is_open(call_id)}

    def answers(self, call: ModelCall) -> bool:
        """Does this call of a model repeat the end of this agent's conversation, or bring results that it waits for?"""
        if self.claim is not None:
            return self.claim is call
        if not call.behind:
            results = [text_of(m.get("tool_call_id")) for m in call.messages if m.get("role") == "tool"]
            return any(known in self.calls and self.watched.is_open(known) for known in results)
        return bool(call.tail) and call.tail == self.tail and (not call.head or not self.head or call.head == self.head)

    def asks(self, guard: RunKeeper, call: ModelCall) -> None:
        """Its model was asked, and has answered."""
        if self.is_lost and call.tail and (call.tail != self.tail or call.behind > self.behind):
            self._says(call.before, {})
        waiting = list(self.waiting)
        for message in call.messages[call.behind :]:
            if message.get("role") != "tool":
                continue
            if not message.get("tool_call_id") and waiting:
                message["tool_call_id"] = waiting.pop(0)
            call_id = text_of(message.get("tool_call_id"))
            if self.watched.is_open(call_id):
                guard.count("late_results")
                is_error = True if self.failed.pop(call_id, None) is not None else None
                self.watched.returned(call_id, message.get("content"), is_error=is_error)
        tell_chat_input(self.watched, call.messages)
        self.head, self.system, self.is_lost = call.head or self.head, call.system, call.is_lost
        self.behind = call.behind
        if call.reply is not None:
            self._says(call.reply, call.usage)

    def _says(self, reply: Message, usage: Any) -> None:
        tell_chat_reply(self.watched, reply, usage)
        self.calls = dict(zip(self.watched.waiting(), calls_of(reply), strict=False))
        self.tail = said_digest(reply)

    def call_of(self, tool: ToolCall, name: str) -> list[str]:
        """The calls without a result that a tool's span may be of, by its id, its arguments, or its name."""
        waiting = self.waiting
        if tool.call_id in waiting:
            return [tool.call_id]
        named = [call_id for call_id, (known, _) in waiting.items() if known == name]
        return [call_id for call_id in named if waiting[call_id][1] == spelled(tool.arguments)] or named

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


class SpanRun:
    """A run, and its agents in the order in which they began. Safe for threads."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        """of_run : arguments of `Guard.run`."""
        self._guard, self._of_run = guard, of_run
        self._lock = threading.RLock()  # held while something is told
        self.agents: list[TracedAgent] = []

    @property
    def is_over(self) -> bool:
        return bool(self.agents) and not self._guard.is_open(self.agents[0].watched.id)

    def model(self, node: SpanNode, call: ModelCall, since: int, until: int) -> None:
        """A model's call is over. since, until : its times, in nanoseconds."""
        with self._lock:
            agent = self._agent(node, call, since)
            try:
                agent.asks(self._guard, call)
            finally:
                agent.since, agent.claim = max(agent.since, until), None

    def tool(self, node: SpanNode, tool: ToolCall, is_asking: bool) -> None:
        """A tool's call is over. is_asking : the span of a model's call is not, which may have made it."""
        with self._lock:
            chain, agents = list(node.chain), [agent for agent in self.agents if not agent.is_over]
            agents = [agent for above in chain for agent in agents if agent.scope is above] or agents
            for agent in agents:
                found = agent.call_of(tool, tool.name or node.name)
                if len(found) == 1:
                    agent.returns(found[0], tool)
                if found:  # of several that are alike the next messages tell the results
                    return
            is_inner = any(above.what() == "tool" for above in chain)
            owner = agents[0] if agents and tool.name and not is_inner and not is_asking else None
            if owner is not None and not (owner.waiting or owner.is_lost or tool.call_id in owner.calls):
                owner.returns(owner.watched.called(tool.name, tool.arguments), tool)  # no model has called it

    def ends_below(self, node: SpanNode) -> None:
        """A span is over, and with it the agents that it held."""
        with self._lock:
            for agent in self.agents:
                if agent.until is node and not agent.is_over:
                    agent.end()

    def end(self) -> None:
        with self._lock:
            for agent in reversed(self.agents):
                agent.end()

    def _agent(self, node: SpanNode, call: ModelCall, since: int) -> TracedAgent:
        """The agent whose model was asked, begun where it is new. A call that began before an agent's last one was over
        is not that agent's."""
        scope = None if node.top.run is None else self._scope(node)
        free = [agent for agent in self.agents if not agent.is_over and agent.since <= since]
        known = [agent for agent in free if agent.answers(call)]
        here = [agent for agent in known if agent.scope is scope]
        anew = [  # its messages were written anew
            agent
            for agent in free
            if agent.scope is scope
            and (agent.system == call.system or call.is_cut)
            and (call.behind or not agent.waiting)
        ]
        for agent in (*here, *known, *anew):
            agent.scope = scope
            return agent
        agent = self._below(node, scope) if self.agents else TracedAgent(self._begin(node, call, scope), scope)
        self.agents.append(agent)
        return agent

    def _scope(self, node: SpanNode) -> SpanNode:
        """The nearest span above of a tool or an agent, else the topmost one. A span that does not say what it is, and
        has the name of a call without a result, is a tool's."""
        names = {name for agent in self.agents if not agent.is_over for name, _ in agent.waiting.values()}
        for above in node.chain:
            if above.what() == "" and above.name in names:
                above.kind = "tool"
            if above.what() in ("tool", "agent"):
                return above
        return node.top

    def _begin(self, node: SpanNode, call: ModelCall, scope: SpanNode | None) -> WatchedRun:
        run_id = f"{trace:032x}" if isinstance(trace := node.key[0], int) else None
        agent = agent_name(scope.span) if scope is not None and scope.what() == "agent" else ""
        given = {"run_id": (call.conversation if scope is None else "") or run_id, "agent": agent}
        run = self._guard.run(**{**given, **self._of_run})
        self._guard.no_nudges(run.id, "spans of OpenTelemetry cannot nudge: use a hook that can")
        return run

    def _below(self, node: SpanNode, scope: SpanNode | None) -> TracedAgent:
        """An agent that begins below another one, or beside it."""
        owner, until, tool = self.agents[0], None, ""
        for at in () if scope is None else (scope, *scope.chain):
            found = next((agent for agent in self.agents if agent.scope is at and not agent.is_over), None)
            if found is not None:
                owner = found
                break
            until = at if at.above is not None and at.what() in ("tool", "agent") else until
            tool = at.name if at.what() == "tool" else tool
        named = [call_id for call_id, (name, _) in owner.waiting.items() if name in tool.split()]
        call_id = named[0] if len(named) == 1 else f"{node.key[1] if until is None else until.key[1]:x}"
        name = "agent" if scope is None or scope.above is None else agent_name(scope.span)
        below = owner.watched.delegate(name, call_id=call_id, answers=False)
        return TracedAgent(below, scope, until or owner.until)
