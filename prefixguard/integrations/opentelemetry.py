"""OpenTelemetry: agents watched by the spans that their instrumentation makes.

    provider.add_span_processor(guard.otel())

A trace in which a span holds the model's calls is a run, of its id. A model's call that no span holds is joined to the
run of the conversation that it names, else to the one whose messages it repeats. An agent that works below a
tool's span, below an agent's span of its own, or on other messages is watched apart.

A span is seen when it is over. So a call's result is known from its tool's span, and else from what the model is
asked next (counted as `late_results`). Spans can neither stop nor nudge an agent: the host asks `guard.stopped`.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict, deque
from typing import Any

from prefixguard.errors import missing_extra
from prefixguard.integrations.events import field_of
from prefixguard.integrations.span_runs import SpanNode, SpanRun, span_key
from prefixguard.integrations.spans import ModelCall, kind_of, model_call, said_digest, tool_call
from prefixguard.integrations.watched_run import RunKeeper

logger = logging.getLogger("prefixguard")

#: Spans that are open at once, and conversations without a span around them, that are remembered.
_MOST_SPANS, _MOST_LOOSE = 100_000, 10_000
#: Model calls among which one that another instrumentation told is looked for.
_LATEST = 256
_LOST = (
    "Spans have lost messages to the limit of attributes: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000, or give the "
    "TracerProvider such limits."
)
_TWICE = (
    "Two instrumentations tell of the same model calls, and the one that ends first is taken: leave one of them out, "
    "the client's where a framework has its own."
)


def span_processor(guard: RunKeeper, of_run: dict[str, Any]) -> Any:
    """A processor for `TracerProvider.add_span_processor`, for any number of runs. Raises MissingExtraError."""
    try:
        from opentelemetry.sdk.trace import SpanProcessor
        from opentelemetry.trace import NonRecordingSpan, use_span
    except ImportError as exc:
        raise missing_extra("watching OpenTelemetry", "otel", exc) from exc

    watcher = SpanWatcher(guard, of_run)

    class WatchedSpans(SpanProcessor):  # type: ignore[misc]
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            watcher.begins(span)

        def on_end(self, span: Any) -> None:
            with use_span(NonRecordingSpan(span.context)):  # where sinks put the readings
                watcher.ends(span)

        def shutdown(self) -> None:
            watcher.close()

        def force_flush(self, timeout_millis: int = 30000) -> bool:
            return True

    return WatchedSpans()


class SpanWatcher:
    """Knows the run that a span belongs to. Safe for threads; raises nothing."""

    def __init__(self, guard: RunKeeper, of_run: dict[str, Any]) -> None:
        """of_run : arguments of `Guard.run`."""
        self._guard, self._of_run = guard, of_run
        self._nodes: dict[Any, SpanNode] = {}
        self._loose: OrderedDict[Any, SpanRun] = OrderedDict()  # by conversation, or by the span that began it
        self._latest: deque[tuple[Any, ...]] = deque(maxlen=_LATEST)
        self._said: set[str] = set()
        self._lock = threading.RLock()

    def begins(self, span: Any) -> None:
        try:
            self._node(span)
        except Exception as exc:
            self._guard.failed("a span that begins", exc)

    def ends(self, span: Any) -> None:
        try:
            node = self._node(span)
            try:
                node.span, node.kind = span, kind_of(span)
                if node.kind == "model" and not node.is_told:
                    self._model(node)
                if (run := node.top.run) is not None:
                    run.ends_below(node)
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

    def _node(self, span: Any) -> SpanNode:
        """The node of the span, begun if it is new."""
        key, above = span_key(field_of(span, "context")), span_key(field_of(span, "parent"))
        with self._lock:
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = SpanNode(span, self._nodes.get(above), kind_of(span))
                if node.above is not None:
                    node.above.below += 1
                if len(self._nodes) > _MOST_SPANS:
                    del self._nodes[next(iter(self._nodes))]
            return node

    def _forget(self, node: SpanNode) -> None:
        """The span is over: it is forgotten when those below it are; with the topmost one its run ends."""
        with self._lock:
            node.is_over = True
            one: SpanNode | None = node
            run: SpanRun | None = None
            while one is not None and one.is_over and not one.below:
                self._nodes.pop(one.key, None)
                run, one = one.run, one.above
                if one is not None:
                    one.below -= 1
        if run is not None:
            run.end()

    def _model(self, node: SpanNode) -> None:
        call = model_call(node.span)
        if call.missing:
            self._say("spans_without_content", call.missing)
        elif call.is_cut and call.is_lost:
            self._say("spans_cut", _LOST)
        elif call.is_lost and call.messages:
            self._guard.count("spans_without_reply")
        if call.missing or not call.messages:
            return
        for above in node.chain:
            above.is_told = True
        times = (field_of(node.span, name) for name in ("start_time", "end_time"))
        since, until = (time if isinstance(time, int) else 0 for time in times)
        if self._is_told(node, call, since, until):
            self._say("doubled_model_calls", _TWICE)
            return
        self._run(node, call, since).model(node, call, since, until)

    def _is_told(self, node: SpanNode, call: ModelCall, since: int, until: int) -> bool:
        """Has another instrumentation told of this call, by a span of another trace?"""
        maker = field_of(field_of(node.span, "instrumentation_scope"), "name")
        what = call.tail, said_digest(call.reply or {})
        with self._lock:
            if any(of != maker and since <= a and b <= until and said == what for of, a, b, said in self._latest):
                return True
            self._latest.append((maker, since, until, what))
        return False

    def _run(self, node: SpanNode, call: ModelCall, since: int) -> SpanRun:
        """The run that a model's call belongs to; without an agent where it is new."""
        top = node.top
        with self._lock:
            if any(above.what() != "model" for above in node.chain):
                top.run = top.run or SpanRun(self._guard, self._of_run)
                return top.run
            known: Any = call.conversation or (node.key[0] if field_of(top.span, "parent") else None)
            run = self._loose.get(known) if known else self._continued(call, since)
            if run is None or run.is_over:
                run = self._loose[known or node.key] = SpanRun(self._guard, self._of_run)
            if len(self._loose) > _MOST_LOOSE:
                self._loose.popitem(last=False)
            return run

    def _continued(self, call: ModelCall, since: int) -> SpanRun | None:
        """The run without a span around it whose last messages the call repeats."""
        found = [
            (agent, run)
            for run in self._loose.values()
            for agent in run.agents
            if agent.since <= since and agent.answers(call) and not run.is_over
        ]
        if not found:
            if call.tail:
                self._guard.count("unjoined_model_calls")
            return None
        if len(found) > 1:
            self._guard.count("ambiguous_model_calls")
        agent, run = max(found, key=lambda one: one[0].since)
        agent.claim = call  # until it is told, so that no other call is taken for it
        return run

    def _tool(self, node: SpanNode) -> None:
        tool = tool_call(node.span)
        with self._lock:
            run = node.top.run or self._loose.get(tool.conversation)
            is_asking = any(one.kind == "model" and one.top is node.top for one in self._nodes.values())
        if run is None or not run.agents:
            self._guard.count("tools_outside_runs")
        else:
            run.tool(node, tool, is_asking)

    def _say(self, counter: str, sentence: str) -> None:
        """Something is missing: counted, and said once."""
        self._guard.count(counter)
        if sentence not in self._said:
            self._said.add(sentence)
            logger.warning("%s", sentence)
