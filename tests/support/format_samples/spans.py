"""Formats of spans: OpenTelemetry GenAI in two generations, OpenInference, the OpenAI Agents SDK."""

from __future__ import annotations

import json
from typing import Any

from .clock import SYSTEM, Clock, line, pretty
from .places import Written
from .stories import Call, Story, Turn
from .truth import Told


def attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    """OTLP's typed attributes."""
    out = []
    for key, value in values.items():
        if isinstance(value, bool):
            typed: dict[str, Any] = {"boolValue": value}
        elif isinstance(value, int):
            typed = {"intValue": str(value)}
        elif isinstance(value, float):
            typed = {"doubleValue": value}
        elif isinstance(value, list):
            typed = {"arrayValue": {"values": [{"stringValue": str(one)} for one in value]}}
        else:
            typed = {"stringValue": value}
        out.append({"key": key, "value": typed})
    return out


class _Trace:
    """Spans of one run, children before their parents as an exporter writes them."""

    def __init__(self, format_name: str, story: Story) -> None:
        self.clock = Clock(format_name, story)
        self.trace = self.clock.hex(32)
        self.root = self.clock.hex(16)
        self.start = self.clock.nanos(0)
        self.spans: list[dict[str, Any]] = []

    def span(
        self,
        name: str,
        kind: int,
        values: dict[str, Any],
        *,
        failed: str = "",
        events: list[dict[str, Any]] | None = None,
    ) -> None:
        start = self.clock.nanos(0.4)
        span = {
            "traceId": self.trace,
            "spanId": self.clock.hex(16),
            "parentSpanId": self.root,
            "name": name,
            "kind": kind,
            "startTimeUnixNano": start,
            "endTimeUnixNano": self.clock.nanos(1.1),
            "attributes": attributes(values),
            "events": events or [],
            "status": {"code": 2, "message": failed} if failed else {},
        }
        self.spans.append(span)

    def close(self, name: str, values: dict[str, Any], events: list[dict[str, Any]] | None = None) -> None:
        self.spans.append(
            {
                "traceId": self.trace,
                "spanId": self.root,
                "parentSpanId": "",
                "name": name,
                "kind": 1,
                "startTimeUnixNano": self.start,
                "endTimeUnixNano": self.clock.nanos(),
                "attributes": attributes(values),
                "events": events or [],
                "status": {},
            }
        )

    def requests(self, service: str, scope: str, *, size: int = 6) -> list[dict[str, Any]]:
        """Export requests; tools that ended in another order than they began are exported so."""
        resource = {"attributes": attributes({"service.name": service, "telemetry.sdk.language": "python"})}
        return [
            {
                "resourceSpans": [
                    {
                        "resource": resource,
                        "scopeSpans": [{"scope": {"name": scope}, "spans": self.spans[i : i + size]}],
                    }
                ]
            }
            for i in range(0, len(self.spans), size)
        ]


def _ids(clock: Clock, calls: tuple[Call, ...]) -> list[str]:
    return [f"call_{clock.hex(12)}" for _ in calls]


def _swap(spans: list[dict[str, Any]], turn: Turn) -> None:
    """The last spans, one a call, in the order of the results."""
    if turn.calls:
        tail = spans[-len(turn.calls) :]
        spans[-len(turn.calls) :] = [tail[i] for i in turn.results]


def otel_genai(stories: tuple[Story, ...]) -> Written:
    """JSON lines of export requests: messages as JSON strings on chat spans, tools with their results on their own."""
    written = Written(Told())
    lines = []
    for n, story in enumerate(stories, 1):
        trace = _Trace("otel", story)
        history: list[dict[str, Any]] = []
        for turn in story.turns:
            if turn.user:
                history.append({"role": "user", "parts": [{"type": "text", "content": turn.user}]})
            ids = _ids(trace.clock, turn.calls)
            parts: list[dict[str, Any]] = [{"type": "text", "content": turn.say}] if turn.say else []
            for one, name in zip(turn.calls, ids, strict=True):
                parts.append({"type": "tool_call", "id": name, "name": one.tool, "arguments": one.args})
            finish = "tool_call" if turn.calls else "stop"
            trace.span(
                "chat invented-4",
                3,
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": "invented",
                    "gen_ai.request.model": "invented-4",
                    "gen_ai.response.id": f"resp-{trace.clock.hex(10)}",
                    "gen_ai.response.finish_reasons": [finish],
                    "gen_ai.usage.input_tokens": 400 + 60 * len(history),
                    "gen_ai.usage.output_tokens": 30 + len(turn.say),
                    "gen_ai.input.messages": json.dumps(history),
                    "gen_ai.output.messages": json.dumps(
                        [{"role": "assistant", "parts": parts, "finish_reason": finish}]
                    ),
                },
            )
            history.append({"role": "assistant", "parts": parts})
            for one, name in zip(turn.calls, ids, strict=True):
                values = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": one.tool,
                    "gen_ai.tool.call.id": name,
                    "gen_ai.tool.type": "function",
                    "gen_ai.tool.call.arguments": json.dumps(one.args),
                    "gen_ai.tool.call.result": one.result,
                }
                if one.error:
                    values["error.type"] = "ToolError"
                trace.span(f"execute_tool {one.tool}", 1, values, failed=one.result if one.error else "")
            _swap(trace.spans, turn)
            for i in turn.results:
                part = {"type": "tool_call_response", "id": ids[i], "response": turn.calls[i].result}
                history.append({"role": "tool", "parts": [part]})
        judged = attributes(
            {
                "gen_ai.evaluation.name": "task_success",
                "gen_ai.evaluation.score.value": 1.0 if story.success else 0.0,
                "gen_ai.evaluation.score.label": "pass" if story.success else "fail",
            }
        )
        trace.close(
            "invoke_agent ops",
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": "ops",
                "gen_ai.conversation.id": f"conv_{trace.clock.hex(10)}",
                "benchmark.task": story.task,
            },
            [{"timeUnixNano": trace.clock.nanos(), "name": "gen_ai.evaluation.result", "attributes": judged}],
        )
        lines.extend(map(line, trace.requests("ops-agent", "opentelemetry.instrumentation.invented", size=50)))
        written.at("traces.jsonl", n, story)
    written.files["traces.jsonl"] = "".join(lines)
    return written


def otel_genai_old(stories: tuple[Story, ...]) -> Written:
    """One document a trace: messages as events on chat spans, the history again on each; tools without content."""
    written = Written(Told())
    good = []
    for story in stories:
        trace = _Trace("otel-old", story)
        history: list[tuple[str, dict[str, Any]]] = [("gen_ai.system.message", {"role": "system", "content": SYSTEM})]
        for turn in story.turns:
            if turn.user:
                history.append(("gen_ai.user.message", {"role": "user", "content": turn.user}))
            ids = _ids(trace.clock, turn.calls)
            message: dict[str, Any] = {"role": "assistant", "content": turn.say}
            if turn.calls:
                message["tool_calls"] = [
                    {"id": i, "type": "function", "function": {"name": c.tool, "arguments": json.dumps(c.args)}}
                    for c, i in zip(turn.calls, ids, strict=True)
                ]
            finish = "tool_calls" if turn.calls else "stop"
            choice = ("gen_ai.choice", {"index": 0, "finish_reason": finish, "message": message})
            events = [
                {
                    "timeUnixNano": trace.clock.nanos(0.01),
                    "name": name,
                    "attributes": attributes(
                        {"gen_ai.system": "invented", "gen_ai.event.content": json.dumps(content)}
                    ),
                }
                for name, content in [*history, choice]
            ]
            trace.span(
                "chat invented-3",
                3,
                {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.system": "invented",
                    "gen_ai.request.model": "invented-3",
                    "gen_ai.usage.input_tokens": 300 + 50 * len(history),
                    "gen_ai.usage.output_tokens": 20 + len(turn.say),
                },
                events=events,
            )
            history.append(("gen_ai.assistant.message", message))
            for one, name in zip(turn.calls, ids, strict=True):
                trace.span(
                    f"execute_tool {one.tool}",
                    1,
                    {
                        "gen_ai.operation.name": "execute_tool",
                        "gen_ai.tool.name": one.tool,
                        "gen_ai.tool.call.id": name,
                    },
                )
            for i in turn.results:
                history.append(("gen_ai.tool.message", {"role": "tool", "id": ids[i], "content": turn.calls[i].result}))
        trace.close(
            "invoke_agent ops",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "ops", "case": story.task},
        )
        if story.success:
            good.append(trace.trace)
        (request,) = trace.requests("ops-agent", "invented.instrumentation", size=500)
        written.put(f"traces/{trace.trace}.json", line(request), story)
    written.files["verdicts.json"] = pretty({"resolved": sorted(good), "judge": "by hand", "n": len(stories)})
    return written


def openinference(stories: tuple[Story, ...]) -> Written:
    """A folder a trace: spans with flattened messages, and what a person said of the run beside them."""
    written = Written(Told())
    for story in stories:
        trace = _Trace("openinference", story)
        history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        for turn in story.turns:
            if turn.user:
                history.append({"role": "user", "content": turn.user})
            ids = _ids(trace.clock, turn.calls)
            answer: dict[str, Any] = {"role": "assistant"}
            if turn.say:
                answer["content"] = turn.say
            for k, (one, name) in enumerate(zip(turn.calls, ids, strict=True)):
                at = f"tool_calls.{k}.tool_call"
                answer |= {
                    f"{at}.id": name,
                    f"{at}.function.name": one.tool,
                    f"{at}.function.arguments": json.dumps(one.args),
                }
            values: dict[str, Any] = {"openinference.span.kind": "LLM", "llm.model_name": "invented-4"}
            for side, messages in (("input", history), ("output", [answer])):
                for i, message in enumerate(messages):
                    values |= {f"llm.{side}_messages.{i}.message.{key}": value for key, value in message.items()}
            trace.span("ChatCompletion", 1, values | {"llm.token_count.prompt": 100 + 40 * len(history)})
            history.append(answer)
            for one in turn.calls:
                arguments = json.dumps(one.args)
                values = {
                    "openinference.span.kind": "TOOL",
                    "tool.name": one.tool,
                    "tool.parameters": arguments,
                    "input.value": arguments,
                    "input.mime_type": "application/json",
                    "output.value": one.result,
                }
                raised = [
                    {
                        "timeUnixNano": trace.clock.nanos(0.1),
                        "name": "exception",
                        "attributes": attributes({"exception.type": "ToolError", "exception.message": one.result}),
                    }
                ]
                trace.span(
                    one.tool, 1, values, failed="ToolError" if one.error else "", events=raised if one.error else None
                )
            _swap(trace.spans, turn)
            for i in turn.results:
                history.append({"role": "tool", "content": turn.calls[i].result, "tool_call_id": ids[i]})
        trace.close(
            "ops",
            {
                "openinference.span.kind": "AGENT",
                "agent.name": "ops",
                "session.id": trace.clock.hex(12),
                "metadata": json.dumps({"example": story.task}),
            },
        )
        folder = f"{trace.trace[:12]}"
        text = "".join(map(line, trace.requests("ops", "openinference.instrumentation.invented", size=7)))
        written.put(f"{folder}/spans.jsonl", text, story)
        note = {"name": "correctness", "annotator_kind": "HUMAN", "label": "correct" if story.success else "incorrect"}
        written.files[f"{folder}/annotation.json"] = pretty(note)
    return written


def openai_agents(stories: tuple[Story, ...]) -> Written:
    """JSON lines of exported traces and spans; functions have no call id; grades beside them."""
    written = Written(Told())
    lines, passed, failed = [], [], []
    for n, story in enumerate(stories, 1):
        clock = Clock("agents", story)
        trace = f"trace_{clock.hex(32)}"
        agent = f"span_{clock.hex(24)}"
        lines.append(
            line(
                {
                    "object": "trace",
                    "id": trace,
                    "workflow_name": "Ops workflow",
                    "group_id": None,
                    "metadata": {"task_id": story.task, "channel": "web"},
                }
            )
        )
        begun = clock.iso()
        history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]
        for k, turn in enumerate(story.turns, 1):
            parent = f"span_{clock.hex(24)}"
            turn_start = clock.iso(0.1)

            def span(
                data: dict[str, Any], clock: Clock = clock, trace: str = trace, parent: str = parent, **more: Any
            ) -> dict[str, Any]:
                return {
                    "object": "trace.span",
                    "id": f"span_{clock.hex(24)}",
                    "trace_id": trace,
                    "parent_id": parent,
                    "started_at": clock.iso(0.2),
                    "ended_at": clock.iso(1.0),
                    "span_data": data,
                    "error": more.get("error"),
                }

            if turn.user:
                history.append({"role": "user", "content": turn.user})
            ids = _ids(clock, turn.calls)
            answer: dict[str, Any] = {"role": "assistant", "content": turn.say or None, "tool_calls": None}
            if turn.calls:
                answer["tool_calls"] = [
                    {"id": i, "type": "function", "function": {"name": c.tool, "arguments": json.dumps(c.args)}}
                    for c, i in zip(turn.calls, ids, strict=True)
                ]
            usage = {"input_tokens": 100 * k, "output_tokens": 20}
            lines.append(
                line(
                    span(
                        {
                            "type": "generation",
                            "input": list(history),
                            "output": [answer],
                            "model": "invented-4",
                            "usage": usage,
                        }
                    )
                )
            )
            history.append(answer)
            done = []
            for one in turn.calls:
                error = {"message": "Error running tool", "data": {"tool_name": one.tool}} if one.error else None
                data = {
                    "type": "function",
                    "name": one.tool,
                    "input": json.dumps(one.args),
                    "output": one.result,
                    "mcp_data": None,
                }
                done.append(span(data, error=error))
            lines.extend(line(done[i]) for i in turn.results)
            for i in turn.results:
                history.append({"role": "tool", "tool_call_id": ids[i], "content": turn.calls[i].result})
            turn_span = span(
                {"type": "custom", "name": "turn", "data": {"sdk_span_type": "turn", "turn": k}}, parent=agent
            )
            lines.append(line(turn_span | {"id": parent, "started_at": turn_start}))
        tools = sorted({one.tool for turn in story.turns for one in turn.calls})
        lines.append(
            line(
                {
                    "object": "trace.span",
                    "id": agent,
                    "trace_id": trace,
                    "parent_id": None,
                    "started_at": begun,
                    "ended_at": clock.iso(),
                    "error": None,
                    "span_data": {"type": "agent", "name": "Ops", "handoffs": [], "tools": tools, "output_type": "str"},
                }
            )
        )
        (passed if story.success else failed).append(trace)
        written.at("traces.jsonl", n, story)
    written.files["traces.jsonl"] = "".join(lines)
    written.files["grades.json"] = pretty({"passed": sorted(passed), "failed": sorted(failed)})
    return written
