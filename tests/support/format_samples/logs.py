"""Formats of steps and events: ATIF, Claude Code, MCP, smolagents, AutoGen, OpenHands."""

from __future__ import annotations

import json
from typing import Any

from .clock import SYSTEM, Clock, line, pretty
from .places import Written
from .stories import Story
from .truth import Told, serial


def atif(stories: tuple[Story, ...]) -> Written:
    """A folder a trial: agent/trajectory.json and the verifier's result.json."""
    written = Written(Told())
    seen: dict[str, int] = {}
    for story in stories:
        clock = Clock("atif", story)
        seen[story.task] = seen.get(story.task, 0) + 1
        trial = f"{story.task}__{clock.hex(7)}"
        steps: list[dict[str, Any]] = []

        def step(
            source: str, message: str, steps: list[dict[str, Any]] = steps, clock: Clock = clock
        ) -> dict[str, Any]:
            steps.append({"step_id": len(steps) + 1, "timestamp": clock.iso(), "source": source, "message": message})
            return steps[-1]

        step("system", SYSTEM)
        for turn in story.turns:
            if turn.user:
                step("user", turn.user)
            one_step = step("agent", turn.say) | {"model_name": "invented-4"}
            if turn.calls:
                ids = [f"call_{n + 1}" for n in range(len(turn.calls))]
                one_step["tool_calls"] = [
                    {"tool_call_id": i, "function_name": c.tool, "arguments": c.args}
                    for c, i in zip(turn.calls, ids, strict=True)
                ]
                results = [{"source_call_id": ids[i], "content": turn.calls[i].result} for i in turn.results]
                one_step["observation"] = {"results": results}
            one_step["metrics"] = {"prompt_tokens": 700 + 90 * len(steps), "completion_tokens": 30, "cost_usd": 0.004}
            steps[-1] = one_step
        trajectory = {
            "schema_version": "ATIF-v1.6",
            "session_id": clock.uuid(),
            "agent": {"name": "ops-cli", "version": "0.3.1", "model_name": "invented-4"},
            "steps": steps,
            "final_metrics": {"total_steps": len(steps), "total_cost_usd": round(0.004 * len(steps), 3)},
        }
        result = {
            "task_name": story.task,
            "trial_name": trial,
            "agent_info": {"name": "ops-cli", "version": "0.3.1"},
            "verifier_result": {"rewards": {"reward": 1.0 if story.success else 0.0}},
            "exception_info": None,
            "started_at": clock.iso(-200),
            "finished_at": clock.iso(300),
        }
        written.put(f"{trial}/agent/trajectory.json", line(trajectory), story)
        written.files[f"{trial}/result.json"] = pretty(result)
    return written


def claude_code(stories: tuple[Story, ...]) -> Written:
    """JSON lines, a session a file: a reply over several lines with one message id; verdicts in another folder."""
    written = Written(Told())
    for story in stories:
        clock = Clock("claude-code", story)
        session = clock.uuid()
        lines: list[dict[str, Any]] = [{"type": "summary", "summary": "Work at Relay", "leafUuid": clock.uuid()}]
        parent: str | None = None

        def add(
            kind: str,
            message: dict[str, Any],
            lines: list[dict[str, Any]] = lines,
            clock: Clock = clock,
            session: str = session,
            **more: Any,
        ) -> None:
            nonlocal parent
            own = clock.uuid()
            lines.append(
                {
                    "parentUuid": parent,
                    "isSidechain": False,
                    "userType": "external",
                    "cwd": "/home/mo/relay",
                    "sessionId": session,
                    "version": "2.1.9",
                    "gitBranch": "main",
                    "type": kind,
                    "message": message,
                    "uuid": own,
                    "timestamp": clock.iso(),
                    **more,
                }
            )
            parent = own

        caveat = "<command-name>/clear</command-name>"
        add("user", {"role": "user", "content": caveat}, isMeta=True)
        for n, turn in enumerate(story.turns):
            if turn.user:
                add("user", {"role": "user", "content": turn.user})
            reply = f"msg_{clock.hex(20)}"
            blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.say}] if turn.say else []
            ids = [f"toolu_{clock.hex(20)}" for _ in turn.calls]
            for one, name in zip(turn.calls, ids, strict=True):
                blocks.append({"type": "tool_use", "id": name, "name": one.tool, "input": one.args})
            for block in blocks:
                stop = "tool_use" if turn.calls else "end_turn"
                message = {
                    "id": reply,
                    "type": "message",
                    "role": "assistant",
                    "model": "claude-invented-4",
                    "content": [block],
                    "stop_reason": stop,
                    "usage": {"input_tokens": 4, "output_tokens": 60, "cache_read_input_tokens": 900 * n},
                }
                add("assistant", message, requestId=f"req_{clock.hex(16)}")
            for i in turn.results:
                one = turn.calls[i]
                block = {"tool_use_id": ids[i], "type": "tool_result", "content": one.result}
                if one.error:
                    block["is_error"] = True
                more: Any = {"stdout": one.result, "stderr": "", "interrupted": False}
                add("user", {"role": "user", "content": [block]}, toolUseResult=one.result if one.error else more)
            if n == 1:
                lines.append(
                    {
                        "type": "file-history-snapshot",
                        "messageId": clock.uuid(),
                        "snapshot": {},
                        "isSnapshotUpdate": False,
                    }
                )
                lines.append(dict(lines[-2]))  # written twice when a session is resumed
        written.put(f"projects/-home-mo-relay/{session}.jsonl", "".join(map(line, lines)), story)
        verdict = {"session": session, "task": story.task, "passed": story.success, "checked_by": "tests"}
        written.files[f"projects/verdicts/{session}.json"] = pretty(verdict)
    return written


def mcp(stories: tuple[Story, ...]) -> Written:
    """A folder a session: the traffic of a proxy, where only tools are seen; a verdict beside it."""
    written = Written(Told(texts=False, users=False, late=True))
    for story in stories:
        clock = Clock("mcp", story)
        session = f"session-{clock.hex(8)}"
        lines: list[dict[str, Any]] = []
        number = 0

        def send(sender: str, lines: list[dict[str, Any]] = lines, clock: Clock = clock, **message: Any) -> None:
            lines.append({"time": clock.iso(0.3), "from": sender, "message": {"jsonrpc": "2.0", **message}})

        info = {"name": "ops-client", "version": "1.2.0"}
        send(
            "client",
            id=0,
            method="initialize",
            params={"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info},
        )
        send(
            "server",
            id=0,
            result={
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "relay", "version": "3"},
            },
        )
        send("client", method="notifications/initialized")
        waiting: list[dict[str, Any]] = []
        for turn in story.turns:
            numbers = []
            for one in turn.calls:
                number += 1
                numbers.append(number)
                params = {"name": one.tool, "arguments": one.args, "_meta": {"progressToken": f"p{number}"}}
                send("client", id=number, method="tools/call", params=params)
            if number == 2 and turn.calls:
                note = {"progressToken": "p2", "progress": 1, "total": 3}
                send("server", method="notifications/progress", params=note)
            late, waiting = waiting, []
            for i in turn.results:
                one = turn.calls[i]
                answer: dict[str, Any]
                if one.error and numbers[i] % 2:
                    answer = {"id": numbers[i], "error": {"code": -32000, "message": one.result}}
                else:
                    answer = {
                        "id": numbers[i],
                        "result": {"content": [{"type": "text", "text": one.result}], "isError": one.error},
                    }
                if i in turn.late:
                    waiting.append(answer)
                else:
                    send("server", **answer)
            for answer in late:
                send("server", **answer)
        written.put(f"{session}/traffic.jsonl", "".join(map(line, lines)), story)
        written.files[f"{session}/verdict.json"] = pretty({"task": story.task, "ok": story.success})
    return written


def smolagents(stories: tuple[Story, ...]) -> Written:
    """JSON lines, a run a line: steps told apart by their keys, one call a step, the answer through a tool."""
    written = Written(Told(final="final_answer"))
    lines = []
    for n, told in enumerate(stories, 1):
        story = serial(told)
        clock = Clock("smolagents", story)
        steps: list[dict[str, Any]] = [{"system_prompt": SYSTEM}, {"task": story.turns[0].user, "task_images": None}]
        for k, turn in enumerate(story.turns, 1):
            begun = clock.tick().timestamp()
            ended = clock.tick().timestamp()
            final = not turn.calls
            tool, args, result, failed = "final_answer", {"answer": turn.say}, turn.say, False
            if turn.calls:
                one = turn.calls[0]
                tool, args, result, failed = one.tool, one.args, one.result, one.error
            steps.append(
                {
                    "step_number": k,
                    "timing": {"start_time": begun, "end_time": ended, "duration": round(ended - begun, 3)},
                    "tool_calls": [
                        {
                            "id": f"call_{clock.hex(10)}",
                            "type": "function",
                            "function": {"name": tool, "arguments": args},
                        }
                    ],
                    "error": {"type": "AgentToolExecutionError", "message": result} if failed else None,
                    "model_output": "" if final else turn.say,
                    "code_action": None,
                    "observations": None if failed else result,
                    "action_output": result if final else None,
                    "token_usage": {"input_tokens": 800 + 70 * k, "output_tokens": 40, "total_tokens": 840 + 70 * k},
                    "is_final_answer": final,
                }
            )
        run = {
            "id": clock.hex(10),
            "question_id": story.task,
            "question": story.turns[0].user,
            "agent": "tool-calling",
            "model_id": "invented-4",
            "steps": steps,
            "state": "success",
            "output": story.turns[-1].say,
            "correct": story.success,
            "end_timestamp": clock.iso(),
        }
        lines.append(line(run))
        written.at("answers.jsonl", n, story)
    written.files["answers.jsonl"] = "".join(lines)
    return written


def autogen(stories: tuple[Story, ...]) -> Written:
    """A folder a task, in it one a repetition: messages.json, and score.json beside it."""
    written = Written(Told(split=True))
    seen: dict[str, int] = {}
    for story in stories:
        clock = Clock("autogen", story)
        repetition = seen.get(story.task, 0)
        seen[story.task] = repetition + 1
        messages: list[dict[str, Any]] = []

        def add(
            kind: str, source: str, content: Any, messages: list[dict[str, Any]] = messages, clock: Clock = clock
        ) -> None:
            usage = (
                {"prompt_tokens": 500 + 40 * len(messages), "completion_tokens": 25}
                if kind == "TextMessage" and source != "user"
                else None
            )
            messages.append(
                {
                    "id": clock.uuid(),
                    "source": source,
                    "models_usage": usage,
                    "metadata": {},
                    "created_at": clock.iso(),
                    "content": content,
                    "type": kind,
                }
            )

        for turn in story.turns:
            if turn.user:
                add("TextMessage", "user", turn.user)
            if not turn.calls:
                add("TextMessage", "ops_agent", turn.say)
                continue
            if turn.say:
                add("ThoughtEvent", "ops_agent", turn.say)
            ids = [f"call_{clock.hex(16)}" for _ in turn.calls]
            add(
                "ToolCallRequestEvent",
                "ops_agent",
                [
                    {"id": i, "arguments": json.dumps(c.args), "name": c.tool}
                    for c, i in zip(turn.calls, ids, strict=True)
                ],
            )
            results = []
            for i in turn.results:
                one = turn.calls[i]
                results.append({"content": one.result, "name": one.tool, "call_id": ids[i], "is_error": one.error})
            add("ToolCallExecutionEvent", "ops_agent", results)
        reason = "Text 'TERMINATE' mentioned" if int(story.name[1:]) % 3 else "Maximum number of messages 20 reached"
        folder = f"results/{story.task}/{repetition}"
        written.put(f"{folder}/messages.json", line({"messages": messages, "stop_reason": reason}), story)
        written.files[f"{folder}/score.json"] = pretty({"is_correct": story.success, "scorer": "exact"})
    return written


def openhands(stories: tuple[Story, ...]) -> Written:
    """JSON lines of an evaluation, an instance a line, its history the events of the SDK."""
    written = Written(Told(late=True))
    seen: dict[str, int] = {}
    lines: dict[str, list[str]] = {}
    for story in stories:
        clock = Clock("openhands", story)
        seen[story.task] = seen.get(story.task, 0) + 1
        history: list[dict[str, Any]] = []

        def add(
            kind: str, source: str, history: list[dict[str, Any]] = history, clock: Clock = clock, **fields: Any
        ) -> str:
            name = clock.uuid()
            history.append({"kind": kind, "id": name, "timestamp": clock.iso(), "source": source, **fields})
            return name

        def text(value: str) -> list[dict[str, Any]]:
            return [{"type": "text", "text": value, "cache_prompt": False}]

        add("SystemPromptEvent", "agent", system_prompt={"type": "text", "text": SYSTEM}, tools=[])
        waiting: list[dict[str, Any]] = []
        for turn in story.turns:
            if turn.user:
                add(
                    "MessageEvent",
                    "user",
                    llm_message={"role": "user", "content": text(turn.user)},
                    activated_skills=[],
                )
            response = f"chatcmpl-{clock.hex(16)}"
            if not turn.calls:
                add(
                    "MessageEvent",
                    "agent",
                    llm_message={"role": "assistant", "content": text(turn.say)},
                    llm_response_id=response,
                )
            ids, actions = [], []
            for n, one in enumerate(turn.calls):
                name = f"toolu_{clock.hex(16)}"
                ids.append(name)
                actions.append(
                    add(
                        "ActionEvent",
                        "agent",
                        thought=text(turn.say) if turn.say and n == 0 else [],
                        reasoning_content=None,
                        action={"kind": "".join(map(str.title, one.tool.split("_"))) + "Action", **one.args},
                        tool_name=one.tool,
                        tool_call_id=name,
                        llm_response_id=response,
                        security_risk="LOW",
                        tool_call={
                            "id": name,
                            "name": one.tool,
                            "arguments": json.dumps(one.args),
                            "origin": "completion",
                        },
                    )
                )
            late, waiting = waiting, []
            for i in turn.results:
                one = turn.calls[i]
                head = {"tool_name": one.tool, "tool_call_id": ids[i]}
                if one.error and i == 1:
                    fields = {"kind": "AgentErrorEvent", "source": "agent", **head, "error": one.result}
                else:
                    seen_text = {"content": text(one.result), "is_error": one.error, "kind": "ToolObservation"}
                    fields = {
                        "kind": "ObservationEvent",
                        "source": "environment",
                        **head,
                        "observation": seen_text,
                        "action_id": actions[i],
                    }
                if i in turn.late:
                    waiting.append(fields)
                else:
                    add(**fields)
            for fields in late:
                add(**fields)
        add("ConversationStateUpdateEvent", "environment", key="execution_status", value="finished")
        run = {
            "instance_id": story.task,
            "attempt": seen[story.task],
            "test_result": {"git_patch": "", "report": {"resolved": story.success, "empty_generation": False}},
            "instruction": story.turns[0].user,
            "metadata": {"llm": {"model": "invented-4"}, "max_iterations": 100},
            "history": history,
            "metrics": {"accumulated_cost": 0.12, "accumulated_token_usage": {"prompt_tokens": 9000}},
            "error": None,
        }
        name = f"run_{seen[story.task]}/output.jsonl"
        lines.setdefault(name, []).append(line(run))
        written.at(name, len(lines[name]), story)
    written.files |= {name: "".join(parts) for name, parts in lines.items()}
    return written
