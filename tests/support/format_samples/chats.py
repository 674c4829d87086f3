"""Formats that keep a conversation as a list: Anthropic, LangGraph, OpenAI Responses, A2A, Inspect."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from .clock import SYSTEM, Clock, line, pretty
from .places import Written
from .stories import Story
from .truth import Told


def anthropic_messages(stories: tuple[Story, ...]) -> Written:
    """One JSON file a run: a request's messages and how a grader judged the run."""
    written = Written(Told())
    for story in stories:
        clock = Clock("anthropic", story)
        messages: list[dict[str, Any]] = []
        for n, turn in enumerate(story.turns):
            if turn.user:
                block = {"type": "text", "text": turn.user}
                if messages and messages[-1]["role"] == "user":
                    messages[-1]["content"].append(block)
                else:
                    messages.append({"role": "user", "content": turn.user if n == 0 else [block]})
            blocks: list[dict[str, Any]] = []
            if turn.say:
                blocks.append({"type": "text", "text": turn.say})
            ids = [f"toolu_{clock.hex(20)}" for _ in turn.calls]
            for one, name in zip(turn.calls, ids, strict=True):
                blocks.append({"type": "tool_use", "id": name, "name": one.tool, "input": one.args})
            messages.append({"role": "assistant", "content": blocks if turn.calls else turn.say})
            answers = []
            for i in turn.results:
                one = turn.calls[i]
                content: Any = one.result if i % 2 else [{"type": "text", "text": one.result}]
                answers.append({"type": "tool_result", "tool_use_id": ids[i], "content": content})
                if one.error:
                    answers[-1]["is_error"] = True
            if answers:
                messages.append({"role": "user", "content": answers})
        run = {
            "run": f"run-{clock.hex(8)}",
            "case": story.task,
            "model": "claude-invented-4",
            "max_tokens": 2048,
            "system": SYSTEM,
            "messages": messages,
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 4000 + 13 * len(messages), "output_tokens": 310},
            "grade": {"score": 1 if story.success else 0, "grader": "rubric-2"},
        }
        written.put(f"{run['run']}.json", pretty(run), story)
    return written


def _langchain(story: Story, clock: Clock) -> list[tuple[str, dict[str, Any]]]:
    """(class, fields) of the messages of a run."""
    out: list[tuple[str, dict[str, Any]]] = [
        ("SystemMessage", {"content": SYSTEM, "type": "system", "id": clock.uuid()})
    ]
    for turn in story.turns:
        if turn.user:
            out.append(("HumanMessage", {"content": turn.user, "type": "human", "id": clock.uuid(), "name": None}))
        ids = [f"call_{clock.hex(16)}" for _ in turn.calls]
        calls = [
            {"name": c.tool, "args": c.args, "id": i, "type": "tool_call"} for c, i in zip(turn.calls, ids, strict=True)
        ]
        out.append(
            (
                "AIMessage",
                {
                    "content": turn.say,
                    "type": "ai",
                    "id": f"run--{clock.uuid()}",
                    "name": None,
                    "response_metadata": {
                        "model_name": "invented-small",
                        "finish_reason": "tool_calls" if calls else "stop",
                    },
                    "tool_calls": calls,
                    "invalid_tool_calls": [],
                    "usage_metadata": {
                        "input_tokens": 900,
                        "output_tokens": 40 + len(turn.say),
                        "total_tokens": 940 + len(turn.say),
                    },
                },
            )
        )
        for i in turn.results:
            one = turn.calls[i]
            out.append(
                (
                    "ToolMessage",
                    {
                        "content": one.result,
                        "type": "tool",
                        "name": one.tool,
                        "id": clock.uuid(),
                        "tool_call_id": ids[i],
                        "artifact": None,
                        "status": "error" if one.error else "success",
                    },
                )
            )
    return out


def langgraph(stories: tuple[Story, ...]) -> Written:
    """One JSON file a thread: the state's messages, flat."""
    written = Written(Told())
    for story in stories:
        clock = Clock("langgraph", story)
        thread = clock.uuid()
        state = {
            "thread_id": thread,
            "created_at": clock.iso(),
            "metadata": {"task": story.task, "graph": "ops_agent", "step": 2 * len(story.turns)},
            "values": {"messages": [fields for _, fields in _langchain(story, clock)], "remaining_steps": 25},
            "next": [],
            "evaluation": {"key": "task_success", "passed": story.success},
        }
        written.put(f"threads/{thread}.json", line(state), story)
    return written


def langgraph_dumpd(stories: tuple[Story, ...]) -> Written:
    """JSON lines, a traced run a line: messages as serialised constructors."""
    written = Written(Told())
    lines = []
    for n, story in enumerate(stories, 1):
        clock = Clock("dumpd", story)
        started = clock.iso()
        messages = [
            {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": fields}
            for name, fields in _langchain(story, clock)
        ]
        run = {
            "id": clock.uuid(),
            "name": "LangGraph",
            "run_type": "chain",
            "start_time": started,
            "end_time": clock.iso(60),
            "error": None,
            "inputs": {"messages": [["user", story.turns[0].user]]},
            "outputs": {"messages": messages},
            "reference_example_id": story.task,
            "feedback_stats": {"correctness": {"n": 1, "avg": 1.0 if story.success else 0.0}},
            "tags": ["seq:step"],
        }
        lines.append(line(run))
        written.at("runs.jsonl", n, story)
    written.files["runs.jsonl"] = "".join(lines)
    return written


def openai_responses(stories: tuple[Story, ...]) -> Written:
    """JSON lines, a conversation a line: items of all its responses in order."""
    written = Written(Told(late=True, split=True))
    lines = []
    for n, story in enumerate(stories, 1):
        clock = Clock("responses", story)
        items: list[dict[str, Any]] = []
        waiting: list[dict[str, Any]] = []
        for turn in story.turns:
            if turn.user:
                part = {"type": "input_text", "text": turn.user}
                items.append({"type": "message", "role": "user", "content": [part]})
            if turn.calls:
                items.append(
                    {"type": "reasoning", "id": f"rs_{clock.hex(16)}", "summary": [], "encrypted_content": None}
                )
            if turn.say:
                text = {"type": "output_text", "text": turn.say, "annotations": []}
                items.append(
                    {
                        "type": "message",
                        "id": f"msg_{clock.hex(16)}",
                        "role": "assistant",
                        "status": "completed",
                        "content": [text],
                    }
                )
            ids = [f"call_{clock.hex(12)}" for _ in turn.calls]
            for one, name in zip(turn.calls, ids, strict=True):
                items.append(
                    {
                        "type": "function_call",
                        "id": f"fc_{clock.hex(16)}",
                        "call_id": name,
                        "name": one.tool,
                        "arguments": json.dumps(one.args),
                        "status": "completed",
                    }
                )
            late, waiting = waiting, []
            for i in turn.results:
                item = {"type": "function_call_output", "call_id": ids[i], "output": turn.calls[i].result}
                (waiting if i in turn.late else items).append(item)
            items.extend(late)
        lines.append(
            line(
                {
                    "conversation": f"conv_{clock.hex(20)}",
                    "created_at": int(clock.tick().timestamp()),
                    "model": "invented-mini",
                    "instructions": SYSTEM,
                    "metadata": {"example": story.task},
                    "items": items,
                    "status": "completed",
                    "grade": {"passed": story.success, "grader": "string_check"},
                }
            )
        )
        written.at("conversations.jsonl", n, story)
    written.files["conversations.jsonl"] = "".join(lines)
    return written


def _in_two(text: str) -> str:
    """A long text as two parts: they are read as lines."""
    return text.replace(". ", ".\n", 1) if len(text) > 60 else text


def a2a(stories: tuple[Story, ...]) -> Written:
    """One JSON file a task: only what agents say to each other."""
    written = Written(Told(calls=False))
    for told in stories:
        turns = [replace(turn, user=_in_two(turn.user), say=_in_two(turn.say)) for turn in told.turns]
        story = replace(told, turns=tuple(turns))
        clock = Clock("a2a", story)
        task, context = clock.uuid(), clock.uuid()
        history = []
        for turn in story.turns:
            for role, text in (("ROLE_USER", turn.user), ("ROLE_AGENT", turn.say)):
                if text:
                    history.append(
                        {
                            "messageId": clock.uuid(),
                            "contextId": context,
                            "taskId": task,
                            "role": role,
                            "parts": [{"text": part} for part in text.split("\n")],
                        }
                    )
        value = {
            "id": task,
            "contextId": context,
            "status": {
                "state": "TASK_STATE_COMPLETED" if story.success else "TASK_STATE_FAILED",
                "timestamp": clock.iso(60),
            },
            "artifacts": [],
            "history": history,
            "metadata": {"https://relay.example/case": story.task, "priority": "normal"},
        }
        written.put(f"{task}.json", pretty(value), story)
    return written


def inspect(stories: tuple[Story, ...]) -> Written:
    """Evaluation logs: one JSON file an evaluation, its samples the runs."""
    written = Written(Told())
    seen: dict[str, int] = {}
    logs: list[list[dict[str, Any]]] = [[], []]
    names = ("logs/2026-03-02T09-00-00_ops_kT3v.json", "logs/2026-03-03T09-00-00_ops_Qx81.json")
    for story in stories:
        clock = Clock("inspect", story)
        seen[story.task] = seen.get(story.task, 0) + 1
        messages: list[dict[str, Any]] = [{"id": clock.hex(22), "content": SYSTEM, "role": "system"}]
        events: list[dict[str, Any]] = [
            {"event": "sample_init", "timestamp": clock.iso(), "working_start": 0.1, "sample": {"id": story.task}}
        ]
        for turn in story.turns:
            if turn.user:
                messages.append({"id": clock.hex(22), "content": turn.user, "source": "input", "role": "user"})
            ids = [f"call_{clock.hex(14)}" for _ in turn.calls]
            calls = [
                {"id": name, "function": one.tool, "arguments": one.args, "type": "function"}
                for one, name in zip(turn.calls, ids, strict=True)
            ]
            message: dict[str, Any] = {
                "id": clock.hex(22),
                "content": turn.say,
                "source": "generate",
                "role": "assistant",
                "model": "invented/small",
            }
            if calls:
                message["tool_calls"] = calls
            messages.append(message)
            for i in turn.results:
                one = turn.calls[i]
                messages.append(
                    {
                        "id": clock.hex(22),
                        "content": one.result,
                        "role": "tool",
                        "tool_call_id": ids[i],
                        "function": one.tool,
                    }
                )
                if one.error:
                    messages[-1]["error"] = {"type": "unknown", "message": one.result}
                events.append(
                    {
                        "event": "tool",
                        "timestamp": clock.iso(),
                        "working_start": 1.5,
                        "id": ids[i],
                        "function": one.tool,
                        "arguments": {},
                        "result": "",
                        "events": [],
                    }
                )
        events.append({"event": "score", "timestamp": clock.iso(), "working_start": 9.5, "intermediate": False})
        value = "C" if story.success else "I"
        sample = {
            "id": story.task,
            "epoch": seen[story.task],
            "input": story.turns[0].user,
            "target": "see the rubric",
            "messages": messages,
            "output": {"model": "invented/small", "choices": [], "completion": story.turns[-1].say},
            "scores": {"rubric": {"value": value, "answer": story.turns[-1].say, "explanation": "judged by hand"}},
            "metadata": {},
            "store": {},
            "events": events,
            "model_usage": {"invented/small": {"input_tokens": 5100, "output_tokens": 400, "total_tokens": 5500}},
            "uuid": clock.hex(22),
            "attachments": {},
        }
        which = 0 if seen[story.task] == 1 else 1
        logs[which].append(sample)
        written.at(names[which], len(logs[which]), story)
    for name, samples in zip(names, logs, strict=True):
        correct = sum(s["scores"]["rubric"]["value"] == "C" for s in samples)
        log = {
            "version": 2,
            "status": "success",
            "eval": {"task": "ops", "task_id": "kT3v", "model": "invented/small", "dataset": {"samples": len(samples)}},
            "plan": {"name": "plan", "steps": [{"solver": "react", "params": {}}]},
            "results": {
                "total_samples": len(samples),
                "scores": [{"name": "rubric", "metrics": {"accuracy": correct / len(samples)}}],
            },
            "stats": {"started_at": "2026-03-02T09:00:00Z", "completed_at": "2026-03-02T19:00:00Z"},
            "samples": samples,
        }
        written.files[name] = line(log)
    return written
