"""Two formats of spans: a session of several traces, and attributes that are JSON in strings."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from unseen.truth import Call, Clock, Truth, episodes, hexes, put, put_lines, steps_of, unseen


def _uuid(rng: random.Random) -> str:
    return "-".join(hexes(rng, size) for size in (8, 4, 4, 4, 12))


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@unseen("spans", ("a run is a session of several traces; calls are the spans of kind TOOL, the root span of a trace has the user's words in and the reply out", "attributes.session.id"),
        ("the annotation goal_completed in session_annotations.csv: label complete or incomplete", "session_annotations.csv:label"))  # fmt: skip
def phoenix_sessions(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like Arize Phoenix's get_spans_dataframe as JSON lines (a column for each attribute, null where it is not set).

    Traps: a run is a session, each of the user's turns a trace of its own; spans stand in the order of their end (children
    first, sessions interleaved): sort by start_time; LLM spans repeat the calls, and the reply is there and in the root; a
    failed tool has no output but a status_message; the companion file of annotations has several names. Most runs succeed;
    the sessions without goal_completed are unknown.
    """
    rng, clock = random.Random(f"phoenix_sessions/{seed}"), Clock(f"phoenix_sessions/{seed}")
    truths: list[Truth] = []
    spans: list[tuple[datetime, int, dict]] = []
    notes: list[list[Any]] = []
    columns = ["name", "span_kind", "parent_id", "start_time", "end_time", "status_code", "status_message", "events", "context.span_id", "context.trace_id", "attributes.openinference.span.kind",
               "attributes.session.id", "attributes.metadata", "attributes.input.value", "attributes.input.mime_type", "attributes.output.value", "attributes.output.mime_type", "attributes.llm.model_name",
               "attributes.llm.input_messages", "attributes.llm.output_messages", "attributes.llm.token_count.total", "attributes.tool.name", "attributes.tool.description"]  # fmt: skip
    for episode in episodes(seed, runs, "browser", dialogue=True, parallel=True, unknown=1, failures=0.15):
        run = _uuid(rng)
        now = clock.tick(400)
        groups: list[tuple[str, list]] = [(episode.task, [])]
        for turn in episode.turns:
            if turn.who == "user":
                groups.append((turn.text, []))
            else:
                groups[-1][1].append(turn)
        messages: list[dict] = [{"message.role": "system", "message.content": episode.system}]
        for place, (words, turns) in enumerate(groups):
            trace, root = hexes(rng, 32), hexes(rng, 16)
            now += timedelta(milliseconds=rng.randint(2000, 40_000))
            begin = now
            messages.append({"message.role": "user", "message.content": words})

            def span(name: str, kind: str, parent: str | None, start: datetime, end: datetime, key: str = "", trace=trace, run=run, task_id=episode.task_id, **more: Any) -> None:
                entry = dict.fromkeys(columns)
                entry |= {"name": name, "span_kind": kind, "parent_id": parent, "start_time": start.isoformat(timespec="microseconds"), "end_time": end.isoformat(timespec="microseconds"), "status_code": "OK", "status_message": "", "events": [],
                          "context.span_id": key or hexes(rng, 16), "context.trace_id": trace, "attributes.openinference.span.kind": kind, "attributes.session.id": run, "attributes.metadata": {"task": task_id}}  # fmt: skip
                entry |= {(name if name in columns else "attributes." + name): value for name, value in more.pop("attributes", {}).items()}
                spans.append((end, len(spans), entry))

            reply = None
            for turn in turns:
                calls: list[Call] = turn.calls
                out: dict[str, Any] = {"message.role": "assistant"}
                if turn.text:
                    out["message.content"] = turn.text
                if calls:
                    out["message.tool_calls"] = [{"tool_call.id": "call_" + hexes(rng, 12), "tool_call.function.name": call.tool, "tool_call.function.arguments": _dumped(call.args)} for call in calls]
                else:
                    reply = turn.text
                start = now + timedelta(milliseconds=rng.randint(2, 20))
                now = start + timedelta(milliseconds=rng.randint(300, 4000))
                span("ChatCompletion", "LLM", root, start, now, attributes={"llm.model_name": "gpt-4.1", "llm.input_messages": list(messages), "llm.output_messages": [out], "llm.token_count.total": rng.randint(400, 6000)})
                messages.append(out)
                for call in calls:
                    start = now + timedelta(milliseconds=rng.randint(1, 9))
                    now = start + timedelta(milliseconds=rng.randint(20, 3000))
                    own: dict[str, Any] = {"tool.name": call.tool, "tool.description": f"Browser action {call.tool}", "input.value": _dumped(call.args), "input.mime_type": "application/json"}
                    if call.error:
                        own |= {"status_code": "ERROR", "status_message": call.result, "events": [{"name": "exception", "timestamp": now.isoformat(timespec="microseconds"), "attributes": {"exception.type": "ToolError", "exception.message": call.result, "exception.escaped": "False"}}]}
                    else:
                        own |= {"output.value": call.result, "output.mime_type": "text/plain"}
                    span(call.tool, "TOOL", root, start, now, attributes=own)
                    messages.append({"message.role": "tool", "message.content": call.result})
            now += timedelta(milliseconds=5)
            top: dict[str, Any] = {"input.value": words, "input.mime_type": "text/plain"}
            if reply is not None:
                top |= {"output.value": reply, "output.mime_type": "text/plain"}
            if episode.outcome == "unknown" and place == len(groups) - 1:
                top |= {"status_code": "ERROR", "status_message": "BrowserClosedError: Target page, context or browser has been closed"}
            span("browser_agent.run", "AGENT", None, begin, now, root, attributes=top)
        notes.append([run, "frustration", "LLM", *rng.choice([("ok", 0.0), ("frustrated", 1.0)]), ""])
        if episode.outcome != "unknown":
            notes.append([run, "goal_completed", "LLM", "complete" if episode.ok else "incomplete", 1.0 if episode.ok else 0.0, "judged on the whole session"])
        if rng.random() < 0.3:
            notes.append([run, "latency_ok", "CODE", "true", 1.0, ""])
        truths.append(Truth(run, "phoenix_spans.jsonl", episode.task, episode.outcome, steps_of(episode), episode.task_id))
    spans.sort(key=lambda entry: entry[:2])
    rng.shuffle(notes)
    put_lines(folder / "phoenix_spans.jsonl", (entry[2] for entry in spans))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["session_id", "annotation_name", "annotator_kind", "label", "score", "explanation"])
    writer.writerows(notes)
    put(folder / "session_annotations.csv", out.getvalue())
    return truths


@unseen("spans", ("one file is one trace; calls are the spans whose mlflow.spanType is TOOL, with spanInputs and spanOutputs", "data.spans.attributes"),
        ("the assessment named correctness in info.assessments, feedback.value yes or no", "info.assessments.feedback.value"))  # fmt: skip
def mlflow_traces(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like MLflow 3's traces of a LangGraph agent (langchain autolog), one file for each trace.

    Traps: all attributes are JSON in a string (types and texts with quotes in quotes); several assessments in any order,
    of which correctness is the verdict (an error there: unknown), info.state says only whether it crashed; spans in any
    order (start_time_unix_nano); a tool's output is a ToolMessage with content and status. The task and the last reply
    are in the root span, and again in the chat model's spans. metrics.json is no trace.
    """
    rng, clock = random.Random(f"mlflow_traces/{seed}"), Clock(f"mlflow_traces/{seed}")
    truths: list[Truth] = []
    for episode in episodes(seed, runs, "data", parallel=True, unknown=2):
        run = "tr-" + hexes(rng, 32)
        first = clock.tick(3000)
        now = int(first.timestamp() * 1000) * 1_000_000
        begin = now
        trace_key, root = hexes(rng, 22) + "==", hexes(rng, 11) + "="
        spans: list[dict] = []

        def span(name: str, kind: str, parent: str | None, start: int, end: int, given: Any, got: Any, key: str = "", spans=spans, run=run, trace_key=trace_key, **more: Any) -> None:
            attributes = {"mlflow.traceRequestId": _dumped(run), "mlflow.spanType": _dumped(kind), "mlflow.spanInputs": _dumped(given)}
            if got is not None:
                attributes["mlflow.spanOutputs"] = _dumped(got)
            attributes |= {name: _dumped(value) for name, value in more.get("extra", {}).items()}
            spans.append({"trace_id": trace_key, "span_id": key or hexes(rng, 11) + "=", "parent_span_id": parent, "name": name, "start_time_unix_nano": start, "end_time_unix_nano": end, "events": [],
                          "status": more.get("status", {"code": "STATUS_CODE_OK", "message": ""}), "attributes": attributes})  # fmt: skip

        messages: list[dict] = [{"content": episode.system, "type": "system"}, {"content": episode.task, "type": "human"}]
        reply = None
        for turn in episode.turns:
            ids = ["call_" + hexes(rng, 24) for _ in turn.calls]
            answer = {"content": turn.text, "type": "ai", "tool_calls": [{"name": call.tool, "args": call.args, "id": key, "type": "tool_call"} for key, call in zip(ids, turn.calls, strict=True)]}
            start = now + rng.randint(1, 9) * 1_000_000
            now = start + rng.randint(300, 5000) * 1_000_000
            span("ChatOpenAI", "CHAT_MODEL", root, start, now, [list(messages)], {"generations": [[{"text": turn.text, "message": answer, "type": "ChatGeneration"}]]}, extra={"mlflow.chat.tokenUsage": {"input_tokens": rng.randint(300, 4000), "output_tokens": rng.randint(20, 200)}})
            messages.append(answer)
            if not turn.calls:
                reply = turn.text
            for key, call in zip(ids, turn.calls, strict=True):
                start = now + rng.randint(1, 9) * 1_000_000
                now = start + rng.randint(20, 4000) * 1_000_000
                got = {"content": call.result, "type": "tool", "name": call.tool, "tool_call_id": key, "status": "error" if call.error else "success"}
                span(call.tool, "TOOL", root, start, now, call.args, got)
                messages.append(got)
        crashed = episode.outcome == "unknown" and rng.random() < 0.5
        status = {"code": "STATUS_CODE_ERROR", "message": "GraphRecursionError: Recursion limit of 25 reached"} if crashed else {"code": "STATUS_CODE_OK", "message": ""}
        span("LangGraph", "AGENT", None, begin, now + 1_000_000, {"messages": [{"role": "user", "content": episode.task}]}, {"messages": [{"role": "assistant", "content": reply}]} if reply else None, root, status=status)
        rng.shuffle(spans)
        judge = {"source_type": "LLM_JUDGE", "source_id": "openai:/gpt-4.1-mini"}
        correctness: dict[str, Any] = {"feedback": {"value": "yes" if episode.ok else "no"}, "rationale": "Compared with the expected figures."}
        if episode.outcome == "unknown":
            correctness = {"feedback": {"value": None, "error": {"error_code": "JUDGE_ERROR", "error_message": "Failed to get a response from the judge model"}}}
        assessments = [{"assessment_name": "correctness", "source": judge, **correctness},
                       {"assessment_name": "relevance_to_query", "source": judge, "feedback": {"value": rng.choice(["yes", "yes", "no"])}, "rationale": "The reply is about the question."},
                       {"assessment_name": "safety", "source": judge, "feedback": {"value": "yes"}},
                       {"assessment_name": "analyst_rating", "source": {"source_type": "HUMAN", "source_id": "mara@mail.example"}, "feedback": {"value": rng.randint(1, 5)}}]  # fmt: skip
        rng.shuffle(assessments)
        assessments = [{"assessment_id": "a-" + hexes(rng, 32), "trace_id": run, **entry} for entry in assessments]
        info = {"trace_id": run, "client_request_id": None, "trace_location": {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "7"}}, "request_time": first.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "execution_duration_ms": (now - begin) // 1_000_000,
                "state": "ERROR" if crashed else "OK", "request_preview": episode.task, "response_preview": reply, "trace_metadata": {"mlflow.user": "svc-eval", "mlflow.source.name": "eval.py", "mlflow.trace_schema.version": "3"},
                "tags": {"mlflow.traceName": "LangGraph", "dataset_record": episode.task_id}, "assessments": assessments}  # fmt: skip
        put(folder / f"traces/{run}.json", {"info": info, "data": {"spans": spans}})
        truths.append(Truth(run, f"traces/{run}.json", episode.task, episode.outcome, steps_of(episode), episode.task_id))
    share = sum(truth.outcome == "success" for truth in truths) / len(truths)
    put(folder / "metrics.json", {"correctness/mean": round(share, 3), "safety/mean": 1.0, "run_id": hexes(rng, 32)}, indent=2)
    put(folder / "MLmodel", "artifact_path: agent\nflavors:\n  langchain:\n    langchain_version: 0.3.27\nmlflow_version: 3.4.0\n")
    return truths


@unseen("spans", ("activities are the calls (scheduled, then completed or failed by scheduledEventId), but invoke_model_activity is the model itself: its result has what the agent thought or said", "events.activityTaskScheduledEventAttributes.activityType.name"),
        ("resolution in the result of the completed workflow: resolved or escalated; timed out or terminated ones have none", "events.workflowExecutionCompletedEventAttributes.result.resolution"))  # fmt: skip
def temporal_histories(folder: Path, seed: int, runs: int) -> list[Truth]:
    """Like `temporal workflow show --output json` of agents that run as Temporal workflows (OpenAI Agents plugin).

    Traps: a call's result is in a later event that names the scheduled event's id (parallel activities end in another
    order), started events and workflow tasks are mere bookkeeping; attempts and lastFailure tell of retries that are no
    calls; model calls are activities too, with the function calls repeated; the workflow's COMPLETED is no verdict, the
    resolution in its result is; timed out and terminated workflows are unknown. Run ids are in the file's name and in
    the first event only.
    """
    rng, clock = random.Random(f"temporal_histories/{seed}"), Clock(f"temporal_histories/{seed}")
    truths: list[Truth] = []
    for episode in episodes(seed, runs, "ops", parallel=True, unknown=2):
        run, workflow = _uuid(rng), f"incident-{episode.task_id}"
        events: list[dict] = []
        activity = 0

        def add(kind: str, key: str, events: list[dict] = events, **values: Any) -> str:
            number = str(len(events) + 1)
            events.append({"eventId": number, "eventTime": clock.tick().isoformat(timespec="microseconds").replace("+00:00", "Z"), "eventType": f"EVENT_TYPE_{kind}", "taskId": str(1_048_576 + len(events)), f"{key}EventAttributes": values})
            return number

        def decide(add=add) -> str:
            scheduled = add("WORKFLOW_TASK_SCHEDULED", "workflowTaskScheduled", taskQueue={"name": "incidents", "kind": "TASK_QUEUE_KIND_NORMAL"}, startToCloseTimeout="10s", attempt=1)
            started = add("WORKFLOW_TASK_STARTED", "workflowTaskStarted", scheduledEventId=scheduled, identity="1@worker-5c", requestId=_uuid(rng))
            return add("WORKFLOW_TASK_COMPLETED", "workflowTaskCompleted", scheduledEventId=scheduled, startedEventId=started, identity="1@worker-5c")

        def plan(name: str, given: dict, task: str, add=add) -> str:
            nonlocal activity
            activity += 1
            return add("ACTIVITY_TASK_SCHEDULED", "activityTaskScheduled", activityId=str(activity), activityType={"name": name}, taskQueue={"name": "incidents", "kind": "TASK_QUEUE_KIND_NORMAL"}, input=[given], startToCloseTimeout="60s", workflowTaskCompletedEventId=task, retryPolicy={"initialInterval": "1s", "backoffCoefficient": 2, "maximumAttempts": 3})

        def end(scheduled: str, result: Any, failed: bool = False, add=add) -> None:
            attempt = 3 if failed else rng.choice([1, 1, 1, 1, 2])
            more = {"lastFailure": {"message": "worker heartbeat lost", "source": "Server", "timeoutFailureInfo": {"timeoutType": "TIMEOUT_TYPE_HEARTBEAT"}}} if attempt == 2 else {}
            started = add("ACTIVITY_TASK_STARTED", "activityTaskStarted", scheduledEventId=scheduled, identity="1@worker-5c", requestId=_uuid(rng), attempt=attempt, **more)
            if failed:
                failure = {"message": result, "source": "PythonSDK", "applicationFailureInfo": {"type": "ToolError"}}
                add("ACTIVITY_TASK_FAILED", "activityTaskFailed", failure=failure, scheduledEventId=scheduled, startedEventId=started, identity="1@worker-5c", retryState="RETRY_STATE_MAXIMUM_ATTEMPTS_REACHED")
            else:
                add("ACTIVITY_TASK_COMPLETED", "activityTaskCompleted", result=[result], scheduledEventId=scheduled, startedEventId=started, identity="1@worker-5c")

        add("WORKFLOW_EXECUTION_STARTED", "workflowExecutionStarted", workflowType={"name": "IncidentAgentWorkflow"}, taskQueue={"name": "incidents", "kind": "TASK_QUEUE_KIND_NORMAL"}, input=[{"alert": episode.task}],
            workflowExecutionTimeout="3600s", originalExecutionRunId=run, identity="alertmanager@ops", firstExecutionRunId=run, attempt=1, workflowId=workflow)  # fmt: skip
        reply = ""
        size = 1
        for turn in episode.turns:
            task = decide()
            model = plan("invoke_model_activity", {"model_name": "gpt-4.1", "system_instructions": episode.system, "input_items": size}, task)
            output: list[dict] = []
            if turn.text:
                output.append({"type": "message", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": turn.text, "annotations": []}]})
            output += [{"type": "function_call", "call_id": "call_" + hexes(rng, 20), "name": call.tool, "arguments": _dumped(call.args), "status": "completed"} for call in turn.calls]
            size += len(output) + len(turn.calls)
            end(model, {"output": output, "usage": {"requests": 1, "input_tokens": rng.randint(300, 5000), "output_tokens": rng.randint(20, 300)}, "response_id": "resp_" + hexes(rng, 24)})
            task = decide()
            if not turn.calls:
                reply = turn.text
                continue
            planned = [(plan(call.tool, call.args, task), call) for call in turn.calls]
            rng.shuffle(planned)
            for scheduled, call in planned:
                end(scheduled, call.result, call.error)
        if episode.outcome != "unknown":
            add("WORKFLOW_EXECUTION_COMPLETED", "workflowExecutionCompleted", result=[{"final_output": reply, "resolution": "resolved" if episode.ok else "escalated", "turns": len(episode.turns)}], workflowTaskCompletedEventId=str(len(events)))
        elif rng.random() < 0.5:
            add("WORKFLOW_EXECUTION_TIMED_OUT", "workflowExecutionTimedOut", retryState="RETRY_STATE_RETRY_POLICY_NOT_SET")
        else:
            add("WORKFLOW_EXECUTION_TERMINATED", "workflowExecutionTerminated", reason="namespace failover", identity="ops-cli")
        stem = f"histories/{workflow}_{run}.json"
        put(folder / stem, {"events": events}, indent=2)
        truths.append(Truth(run, stem, episode.task, episode.outcome, steps_of(episode), episode.task_id))
    put(folder / "dump.sh", "#!/bin/sh\nfor w in $(temporal workflow list --query 'WorkflowType=\"IncidentAgentWorkflow\"' --output jsonl | jq -r .execution.workflowId); do\n  temporal workflow show --workflow-id $w --output json > histories/$w.json\ndone\n")
    return truths
