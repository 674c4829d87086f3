"""Two formats of spans: an OpenTelemetry export, a workflow engine's executions."""

from __future__ import annotations

import csv
import io
import json
import random
from pathlib import Path
from typing import Any

from unseen.truth import Clock, Truth, episodes, hexes, put, steps_of, unseen


def _attributes(values: dict[str, Any]) -> list[dict]:
    def wrapped(value: Any) -> dict:
        if isinstance(value, int):
            return {"intValue": str(value)}
        return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}

    return [{"key": key, "value": wrapped(value)} for key, value in values.items()]


@unseen(
    "spans",
    ("annotations.csv has a task_success label, correct or incorrect, for the root span of each trace that was judged", "label"),
    ("the question is input.value of the AGENT span", "input.value"),
)
def otlp_openinference(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like an OTLP/JSON export of OpenInference spans (Arize Phoenix), several traces in a batch file.

    Attributes are lists of key and typed value; spans stand in the order of their ends, the root last; the order of
    events is startTimeUnixNano. LLM spans hold what the model said (prompts redacted) and repeat the calls; TOOL spans
    hold arguments (JSON string), result and status (code 2: error). HTTP spans are noise. The verdict is an annotation by
    the root's span id in a CSV, among annotations of other names; unjudged traces have none.
    """
    rng, clock = random.Random(f"otlp_openinference/{seed}"), Clock(f"otlp_openinference/{seed}")
    truths: list[Truth] = []
    batches: dict[str, list[dict]] = {}
    notes: list[list[Any]] = []

    def now() -> int:
        return int(clock.tick(3).timestamp() * 1000) * 1_000_000 + rng.randint(1, 999_999)

    for episode in episodes(seed, runs, "research", parallel=True, unknown=2):
        trace, root = hexes(rng, 32), hexes(rng, 16)
        spans: list[dict] = []

        def span(name: str, start: int, values: dict[str, Any], *, id_: str = "", parent: str = root, code: int = 1, why: str = "",
                 trace: str = trace, spans: list[dict] = spans) -> None:  # fmt: skip
            spans.append({"traceId": trace, "spanId": id_ or hexes(rng, 16), "parentSpanId": parent, "flags": 256, "name": name, "kind": 1,
                          "startTimeUnixNano": str(start), "endTimeUnixNano": str(now()), "attributes": _attributes(values),
                          "events": [], "status": {"code": code} | ({"message": why} if why else {})})  # fmt: skip

        begun = now()
        final = ""
        for turn in episode.turns:
            at, inner = now(), hexes(rng, 16)
            if rng.random() < 0.4:
                span("POST", now(), {"http.request.method": "POST", "url.full": "https://llm.example/v1/responses", "http.response.status_code": 200}, parent=inner)
            said = {"openinference.span.kind": "LLM", "llm.model_name": "heron-4", "input.value": "__REDACTED__",
                    "llm.output_messages.0.message.role": "assistant"}  # fmt: skip
            if turn.text:
                said["llm.output_messages.0.message.content"] = turn.text
            for number, call in enumerate(turn.calls):
                said[f"llm.output_messages.0.message.tool_calls.{number}.tool_call.function.name"] = call.tool
                said[f"llm.output_messages.0.message.tool_calls.{number}.tool_call.function.arguments"] = json.dumps(call.args)
            span("Responses.create", at, {**said, "llm.token_count.prompt": rng.randint(300, 9000), "llm.token_count.completion": rng.randint(10, 400)}, id_=inner)
            final = "" if turn.calls else turn.text
            starts = [now() for _ in turn.calls]
            pending = list(zip(turn.calls, starts, strict=True))
            rng.shuffle(pending)  # they end in another order
            for call, start in pending:
                span(call.tool, start, {"openinference.span.kind": "TOOL", "tool.name": call.tool, "input.value": json.dumps(call.args), "input.mime_type": "application/json",
                                        "output.value": call.result}, code=2 if call.error else 1, why="ToolError" if call.error else "")  # fmt: skip
        values = {"openinference.span.kind": "AGENT", "input.value": episode.task, "session.id": hexes(rng, 8), "metadata": json.dumps({"question_id": episode.task_id, "env": "eval"})}
        span("agent.run", begun, {**values, "output.value": final} if final else values, id_=root, parent="")
        if episode.outcome != "unknown":
            notes.append([root, "task_success", "correct" if episode.ok else "incorrect", 1 if episode.ok else 0, "HUMAN"])
        notes += [[root, "politeness", rng.choice(["good", "fair"]), round(rng.random(), 2), "LLM"]] if rng.random() < 0.6 else []
        name = f"traces/batch-{1 + episode.number // 4:04}.json"
        batches.setdefault(name, []).extend(spans)
        truths.append(Truth(trace, name, episode.task, episode.outcome, steps_of(episode, task=False), episode.task_id))
    for name, spans in batches.items():
        put(folder / name, {"resourceSpans": [{"resource": {"attributes": _attributes({"service.name": "reading-room", "openinference.project.name": "default", "telemetry.sdk.language": "python"})},
                                               "scopeSpans": [{"scope": {"name": "openinference.instrumentation.agents", "version": "0.1.12"}, "spans": spans}]}]})  # fmt: skip
    rng.shuffle(notes)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([["span_id", "name", "label", "score", "annotator_kind"], *notes])
    put(folder / "annotations.csv", out.getvalue())
    put(folder / "collector.yaml", "receivers:\n  otlp:\n    protocols:\n      grpc:\nexporters:\n  file:\n    path: /data/traces\n")
    return truths


@unseen(
    "spans",
    ("customData.verdict is resolved or not_resolved; status only says whether the workflow itself ran through", "$.customData.verdict"),
    ("every node has a list of its runs, the true order is executionIndex over all nodes", "$.data.resultData.runData"),
)
def workflow_executions(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like n8n's executions with an AI agent node: a file for each execution.

    Runs of nodes are grouped by node, so the course has to be put together by executionIndex (or startTime). The alert is
    the webhook's output; the chat model's generations are thoughts and the answer, which the agent node repeats; a tool's
    run has its arguments in inputOverride and its result in data, or an error's message with executionStatus error.
    status is success even where the alert stayed open; crashed executions have no verdict.
    """
    rng, clock = random.Random(f"workflow_executions/{seed}"), Clock(f"workflow_executions/{seed}")
    truths: list[Truth] = []
    number = rng.randint(30_000, 50_000)
    for episode in episodes(seed, runs, "ops", parallel=True, unknown=2):
        number += rng.randint(1, 40)
        started = clock.iso()
        data: dict[str, list[dict]] = {}
        index = 0

        def node(name: str, more: dict, status: str = "success", data: dict[str, list[dict]] = data) -> None:
            nonlocal index
            data.setdefault(name, []).append({"startTime": clock.ms(), "executionIndex": index, "executionTime": rng.randint(1, 9000), "source": [{"previousNode": "On-call agent"}] if index else [],
                                              "hints": [], "executionStatus": status, **more})  # fmt: skip
            index += 1

        node("Alert webhook", {"data": {"main": [[{"json": {"headers": {"user-agent": "Alertmanager/0.27"}, "params": {}, "body": {"alert": episode.task, "severity": rng.choice(["page", "warn"])}}, "pairedItem": {"item": 0}}]]}})
        final = ""
        for turn in episode.turns:
            made = {"response": {"generations": [[{"text": turn.text, "generationInfo": {"finish_reason": "tool_calls" if turn.calls else "stop"}}]]},
                    "tokenUsage": {"completionTokens": rng.randint(10, 300), "promptTokens": rng.randint(300, 6000)}}  # fmt: skip
            node("Chat model", {"inputOverride": {"ai_languageModel": [[{"json": {"options": {"model": "heron-4", "timeout": 60_000}}}]]}, "data": {"ai_languageModel": [[{"json": made}]]}})
            final = "" if turn.calls else turn.text
            for call in turn.calls:
                more: dict = {"inputOverride": {"ai_tool": [[{"json": {"query": call.args}}]]}}
                if call.error:
                    node(call.tool, {**more, "error": {"level": "error", "name": "NodeOperationError", "message": call.result, "tags": {}}}, "error")
                else:
                    node(call.tool, {**more, "data": {"ai_tool": [[{"json": {"response": call.result}}]]}})
        crashed = episode.outcome == "unknown"
        if final:
            node("On-call agent", {"data": {"main": [[{"json": {"output": final}, "pairedItem": {"item": 0}}]]}})
        names = list(data)
        rng.shuffle(names)
        nodes = [{"name": name, "type": "@n8n/n8n-nodes-langchain.agent" if name == "On-call agent" else "n8n-nodes-base.webhook" if name == "Alert webhook" else "@n8n/n8n-nodes-langchain.toolWorkflow",
                  "position": [rng.randint(0, 900), rng.randint(0, 500)], "parameters": {"options": {"systemMessage": episode.system}} if name == "On-call agent" else {}} for name in sorted({*data, "On-call agent"})]  # fmt: skip
        execution = {"id": str(number), "finished": not crashed, "mode": "webhook", "retryOf": None, "status": "crashed" if crashed else "success",
                     "startedAt": started, "stoppedAt": None if crashed else clock.iso(), "workflowId": "Qx81LmZb", "waitTill": None,
                     "customData": {} if crashed else {"verdict": "resolved" if episode.ok else "not_resolved", "ticket": episode.task_id},
                     "workflowData": {"name": "On-call agent", "active": True, "nodes": nodes, "connections": {}, "settings": {"executionOrder": "v1"}},
                     "data": {"startData": {}, "resultData": {"runData": {name: data[name] for name in names}, "lastNodeExecuted": "On-call agent"}, "executionData": {}}}  # fmt: skip
        name = f"executions/{number}.json"
        put(folder / name, execution, indent=2)
        truths.append(Truth(str(number), name, episode.task, episode.outcome, steps_of(episode), "" if crashed else episode.task_id))
    return truths
