"""Logs of Inspect, `.json` and `.eval`: a run is what one agent did in one sample of one epoch.

A sample's `messages` are what its main agent's conversation became: what sub-agents did is not there, nor a call that
submits the answer. So the messages of a run are put together from the events of models and tools, where the log has
them, in the order in which they were known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.compiling import Site
from prefixguard.stepview.found import Container, Counts, Found, Unread, contained
from prefixguard.stepview.paths import Companions
from prefixguard.stepview.zip_archives import Part, members
from prefixguard.trace.documents import LARGEST_DOCUMENT, Document, glob_pattern
from prefixguard.trace.named_file import read_bounded

_ATTACHMENT = "attachment://"
_SAMPLES = glob_pattern(["samples/*.json"])
_CONVERT = "write the log as JSON: inspect log convert LOG --to json --output-dir DIR"
_TOO_LARGE = "Write it as .eval: inspect log convert LOG --to eval --output-dir DIR."


@dataclass(slots=True, eq=False)
class SpanAgent:
    """An agent of a sample. call_id: of the call that began it, "" where none did. above: the agent that made it; None
    of the main agent."""

    name: str
    call_id: str = ""
    above: SpanAgent | None = None


@dataclass(slots=True, eq=False)
class _Span:
    """above: the span that it is in. call_id: of the call whose tool it is. agent: that works in it."""

    kind: str
    name: str
    above: _Span | None
    call_id: str = ""
    agent: SpanAgent | None = None


class AgentSpans:
    """Which agent works within a span of a sample's transcript.

    The outermost span of an agent is the main agent's, one after the other. An agent's span that is in another one's,
    in a tool's or beside one that is open, is a sub-agent's; so is a model that a tool asks, and a branch of a fork.
    """

    def __init__(self) -> None:
        self.main = SpanAgent("")
        self._spans: dict[str, _Span] = {}
        self._holder: str | None = None  # the span whose agent is the main one, while it is open
        self._tool: _Span | None = None  # a tool's span that has begun and whose call is not known yet

    def begins(self, span_id: str, parent_id: str, kind: str, name: str) -> None:
        """A span begins. kind: `agent`, `tool`, or anything else; what a scorer begins is the scorer's."""
        above = self._spans.get(parent_id)
        kind = "scorers" if above is not None and above.kind == "scorers" else kind
        span = self._spans[span_id] = _Span(kind, name, above)
        if kind == "tool":
            self._tool = span
        elif kind == "agent" and self._holder is None and self._nearest(span.above) is None:
            self._holder, span.agent, self.main.name = span_id, self.main, name
        elif kind in ("agent", "subtask"):
            self._delegate(span)

    def calls(self, call_id: str) -> None:
        """The event of a tool: right behind the beginning of its span."""
        if self._tool is not None:
            self._tool.call_id, self._tool = call_id, None

    def ends(self, span_id: str) -> SpanAgent | None:
        """A span ends. The sub-agent that is over with it."""
        span = self._spans.get(span_id)
        if span_id == self._holder:
            self._holder = None
            return None
        return None if span is None else span.agent

    def agent(self, span_id: str) -> SpanAgent | None:
        """Who works within a span; None: a scorer."""
        span = self._nearest(self._spans.get(span_id))
        if span is None:
            return self.main
        return None if span.kind == "scorers" else span.agent or self._delegate(span)

    def _nearest(self, span: _Span | None) -> _Span | None:
        """The innermost span, from this one outwards, that is an agent's, a tool's or the scorers'."""
        while span is not None and span.agent is None and span.kind not in ("tool", "scorers"):
            span = span.above
        return span

    def _delegate(self, span: _Span) -> SpanAgent:
        call_id, above = span.call_id, span.above
        while above is not None and above.agent is None:
            call_id = call_id or above.call_id
            above = above.above
        span.agent = SpanAgent(span.name, call_id, self.main if above is None else above.agent)
        return span.agent


@dataclass(slots=True, eq=False)
class _Conversation:
    """Messages of one agent, as its models were asked and answered. seen: ids of messages. open: calls without a
    result; told: all calls."""

    messages: list[Any] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    told: set[str] = field(default_factory=set)

    def hears(self, asked: list[Any]) -> None:
        """Messages of the user that are new, and results that no event tells. What other agents said is not the
        agent's."""
        for message in asked:
            key = _id(message) or str(message)
            if key in self.seen or not isinstance(message, dict):
                continue
            self.seen.add(key)
            if message.get("role") == "user" or _id(message, "tool_call_id") in self.open:
                self.open.discard(_id(message, "tool_call_id"))
                self.messages.append(message)

    def says(self, message: Any) -> None:
        self.seen.add(_id(message))
        calls = {_id(call) for call in _list(message, "tool_calls")}
        self.open |= calls
        self.told |= calls
        self.messages.append(message)

    def gets(self, event: dict[str, Any]) -> None:
        """What a tool returned, where it has returned."""
        call_id = _id(event)
        if call_id not in self.told:  # no model's event has told the call
            call = {"id": call_id, "function": event.get("function"), "arguments": event.get("arguments")}
            self.says({"role": "assistant", "content": "", "tool_calls": [call]})
        if not event.get("pending") and call_id in self.open:
            self.open.remove(call_id)
            self.seen.add(_id(event, "message_id"))
            result = {"role": "tool", "tool_call_id": call_id, "content": event.get("result")}
            error = {name: event[name] for name in ("error",) if event.get(name) is not None}
            self.messages.append(result | error | _took(event))


def conversations(sample: dict[str, Any]) -> list[tuple[str | None, list[Any]]]:
    """The messages of every agent of a sample: of the main agent first, under None, then of sub-agents, under
    `NAME#CALL`, with those that they began below: `NAME#CALL/NAME#CALL`. Where no event holds what a model answered,
    the sample's messages are the main agent's."""
    if not any(_answer(event) for event in _list(sample, "events")):
        return [(None, _list(sample, "messages"))]
    pool = _list(sample.get("events_data"), "messages")
    spans = AgentSpans()
    found: dict[SpanAgent, _Conversation] = {spans.main: _Conversation()}
    for event in _list(sample, "events"):
        kind = event.get("event") if isinstance(event, dict) else None
        if kind == "span_begin":
            spans.begins(_id(event), _id(event, "parent_id"), _id(event, "type"), _id(event, "name"))
        elif kind == "span_end":
            spans.ends(_id(event))
        elif kind in ("model", "tool"):
            if kind == "tool":
                spans.calls(_id(event))
            agent = spans.agent(_id(event, "span_id"))
            if agent is None:
                continue
            of = found.setdefault(agent, _Conversation())
            if kind == "tool":
                of.gets(event)
            elif (answer := _answer(event)) is not None:
                of.hears(_asked(event, pool))
                of.says(answer | _took(event) if isinstance(answer, dict) else answer)
    keys: dict[SpanAgent | None, str] = {None: "", spans.main: ""}
    for agent in found:
        if agent not in keys:
            above = keys.get(agent.above, "")
            keys[agent] = f"{above}{'/' if above else ''}{agent.name.replace('/', '_')}#{agent.call_id or len(keys)}"
    return [(keys[agent] or None, of.messages) for agent, of in found.items() if of.messages or agent is spans.main]


def _answer(event: Any) -> Any:
    """The message that a model's event holds; None where it has failed or is not over, and of any other event."""
    if not isinstance(event, dict) or event.get("event") != "model" or event.get("error") or event.get("pending"):
        return None
    choices = _list(event.get("output"), "choices")
    return choices[0].get("message") if choices and isinstance(choices[0], dict) else None


def _took(event: dict[str, Any]) -> dict[str, Any]:
    """What an event says that it took, as a key of its message: no message does."""
    output = event.get("output")
    usage = output.get("usage") if isinstance(output, dict) else None
    return {"took": {"began": event.get("timestamp"), "ended": event.get("completed"), "usage": usage}}


def _asked(event: dict[str, Any], pool: list[Any]) -> list[Any]:
    """What a model was asked with; a log keeps messages that come again once, and names them by their places."""
    asked = _list(event, "input")
    for place in _list(event, "input_refs"):
        if isinstance(place, list) and len(place) == 2 and all(isinstance(n, int) and n >= 0 for n in place):
            asked = [*asked, *pool[place[0] : place[1]]]
    return asked


def _resolved(value: Any, attachments: dict[str, Any]) -> Any:
    """The value with the texts that the log keeps apart."""
    if isinstance(value, str) and value.startswith(_ATTACHMENT):
        return attachments.get(value.removeprefix(_ATTACHMENT), value)
    if isinstance(value, list):
        return [_resolved(one, attachments) for one in value]
    if isinstance(value, dict):
        return {key: _resolved(one, attachments) for key, one in value.items()}
    return value


def _list(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _id(value: Any, name: str = "id") -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def _agents(sample: Any, where: str, position: int) -> Iterator[Found]:
    if not isinstance(sample, dict):
        yield Found(sample, sample, position, where, is_json=True)
        return
    attachments = sample.get("attachments")
    for delegate, messages in conversations(sample):
        if isinstance(attachments, dict) and attachments:
            messages = _resolved(messages, attachments)
        run, place = sample | {"messages": messages}, where if delegate is None else f"{where} {delegate}"
        yield Found(run, sample, position, place, is_json=True, delegate=delegate, whole=sample)


def _samples(document: Document, counts: Counts) -> Iterator[Part | Unread]:
    with document.seekable() as stream:
        start = stream.read(2)
        stream.seek(0)
        if start == b"PK" or document.path.endswith(".eval"):
            yield from members(stream, document.where, _SAMPLES, counts, _CONVERT)
            return
        log = counts.json(read_bounded(stream, LARGEST_DOCUMENT, document.where, _TOO_LARGE), document.where)
    if not isinstance(log, dict) or not isinstance(log.get("samples"), list):
        raise TraceError(
            f"{document.where}: no samples; a log of Inspect is an object with `samples`. One that was written without "
            "them holds no runs; see what an adapter reads with prefixguard parse."
        )
    for position in range(1, len(log["samples"]) + 1):
        yield f"{document.where} run {position}", partial(log["samples"].__getitem__, position - 1)


def _inspect(spec: dict[str, Any], site: Site) -> Container:
    def runs(document: Document, companions: Companions, counts: Counts) -> Iterator[Found | Unread]:
        for position, part in enumerate(_samples(document, counts), 1):
            if isinstance(part, Unread):
                yield part
                continue
            where, read = part
            try:
                with contained(where):
                    found = list(_agents(read(), where, position))
            except TraceError as exc:
                yield Unread(where, str(exc))
                continue
            yield from found

    return Container(runs, ("**/*.json", "**/*.eval"))


#: What compiles the container, and the keys that it may have besides `format`, `files` and `comment`.
INSPECT_FORMATS = {"inspect": (_inspect, ())}
