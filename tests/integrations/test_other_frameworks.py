"""Hooks of litellm, LlamaIndex, AutoGen, CrewAI and Google ADK on objects as another release may have them: nothing is
raised into the host, and no run is wrong. What they see of the real ones: test_frameworks.py."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextvars import copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prefixguard.errors import AgentStopped, ConfigError
from prefixguard.integrations import Guard
from prefixguard.runtime import Monitor

ODD = (None, 7, "text", [object()], [{"role": ["a"]}], [{"role": "tool"}], {"role": "user"})


def chat(model: str, messages: Any = None, **options: Any) -> Any:
    return SimpleNamespace(of_a_later_release=messages)


async def respond(input: Any, model: str) -> Any:
    return SimpleNamespace(output=[{"type": "message", "content": "Hello."}])


def test_functions_are_called_as_before(events_monitor: Monitor) -> None:
    guard = Guard(events_monitor)
    asked, answered = guard.litellm(chat), guard.litellm(respond)
    assert guard.litellm(asked) is asked
    with guard.run("x") as run:
        for given in ODD:
            assert asked("m", given).of_a_later_release is given
            assert asked(messages=given, model="m").of_a_later_release is given
        asyncio.run(answered("Hi?", "m"))
    assert run.id and guard.counters["readings"] >= 1
    asked("m", [])
    assert guard.counters["calls_outside_runs"] == 1


@pytest.mark.parametrize("no_function", [print, 7, lambda prompt: prompt])
def test_what_is_asked_with_neither_is_refused(no_function: Any, events_monitor: Monitor) -> None:
    with pytest.raises(ConfigError, match="takes neither messages nor input: give a function such as litellm"):
        Guard(events_monitor).litellm(no_function)


class Agent:
    """As much of an agent of LlamaIndex as is hooked. replies : what its steps give; None ends."""

    def __init__(self, *replies: Any, results: Any = (), name: Any = "clerk") -> None:
        self.name, self.replies, self.given = name, replies, results

    def run(self, user_msg: Any = None) -> Any:
        task = asyncio.ensure_future(self._go(user_msg))
        return SimpleNamespace(stop_event_result=lambda: task)

    async def _go(self, user_msg: Any) -> str:
        for reply in self.replies:
            assert await self.take_step(None, user_msg, [], None) is reply
            await self.handle_tool_call_results(None, self.given, None)
        return "done"

    async def take_step(self, ctx: Any, llm_input: Any, tools: Any, memory: Any) -> Any:
        return next(reply for reply in self.replies)

    async def handle_tool_call_results(self, ctx: Any, results: Any, memory: Any) -> None:
        assert results is self.given


@pytest.mark.parametrize("odd", [*ODD, SimpleNamespace(tool_calls=[None], response=3), {"tool_calls": {1: 2}}])
def test_odd_steps_go_through(odd: Any, events_monitor: Monitor) -> None:
    async def go() -> Any:
        return await guard.llama_index(Agent(odd, results=odd, name=odd)).run(user_msg=odd).stop_event_result()

    guard = Guard(events_monitor)
    assert asyncio.run(go()) == "done"
    assert guard.open_runs == 0


def test_what_ends_badly_ends(events_monitor: Monitor) -> None:
    """A run that is to stop stops where its agent is awaited, and is over then."""

    async def go() -> Any:
        return await guard.llama_index(Agent(reply, reply, results=results)).run(user_msg=task).stop_event_result()

    call = {"tool_id": "c", "tool_name": "find", "tool_kwargs": {"id": "BROKEN"}}
    reply = {"response": {"content": ""}, "tool_calls": [call]}
    results = [{"tool_id": "c", "tool_output": {"content": "no order BROKEN", "is_error": True}}]
    task = [{"role": "user", "content": "Where is order A1?"}]
    guard = Guard(events_monitor, on_alarm="stop")
    guard.stopped = lambda run: "stopped at 90%"  # type: ignore[method-assign]
    with pytest.raises(AgentStopped):
        asyncio.run(go())
    assert guard.open_runs == 0


def test_what_is_no_agent_is_refused(events_monitor: Monitor) -> None:
    for other in (None, SimpleNamespace(run=print), SimpleNamespace(agents={}, run=print)):
        with pytest.raises(ConfigError, match="is no agent of LlamaIndex: give a FunctionAgent, ReActAgent"):
            Guard(events_monitor).llama_index(other)
        with pytest.raises(ConfigError, match="is no agent or team of autogen-agentchat: give an AssistantAgent"):
            Guard(events_monitor).autogen(other)


class Chatter:
    """As much of an agent of AutoGen as is hooked. items : what a turn of it gives."""

    def __init__(self, *items: Any, name: Any = "clerk") -> None:
        self.name, self.items = name, items

    async def run(self, *, task: Any) -> list[Any]:
        return [item async for item in self.run_stream(task=task)]

    async def run_stream(self, *, task: Any) -> AsyncIterator[Any]:
        async for item in self.on_messages_stream(task, None):
            yield item

    async def on_messages_stream(self, messages: Any, token: Any) -> AsyncIterator[Any]:
        for item in self.items:
            yield item


def test_odd_turns_go_through(tmp_path: Path) -> None:
    """What agents of AutoGen give reaches the host as it was; sound events beside odd ones make the true run."""
    sound = [
        {"type": "ThoughtEvent", "source": "clerk", "content": "I look."},
        {
            "type": "ToolCallRequestEvent",
            "source": "clerk",
            "content": [{"id": "c", "name": "find", "arguments": "{}"}],
        },
        {
            "type": "ToolCallRequestEvent",
            "source": "other",
            "content": [{"id": "d", "name": "find", "arguments": "{}"}],
        },
        {
            "type": "ToolCallExecutionEvent",
            "source": "clerk",
            "content": [{"call_id": "c", "content": "no", "is_error": 1}],
        },
        {
            "type": "ToolCallExecutionEvent",
            "source": "clerk",
            "content": [{"call_id": "c", "content": "no", "is_error": 1}],
        },
        {"chat_message": {"type": "HandoffMessage", "content": "Over."}},
        {"chat_message": {"type": "TextMessage", "content": "There is none."}},
    ]
    odd = [
        {"type": kind, "source": "clerk", "content": one} for one in ODD for kind in ("ToolCallRequestEvent", "T", 3)
    ]
    items = [*ODD, *odd[:1], *sound]
    guard = Guard.recording(tmp_path)
    for n, given in enumerate((*ODD, [{"source": "user", "content": "Hi", "id": "m"}] * 2)):
        assert asyncio.run(guard.autogen(Chatter(*ODD, *odd, name=given), run_id=f"odd-{n}").run(task=given))
        assert asyncio.run(guard.autogen(Chatter(*items), run_id=f"r-{n}").run(task=given)) == items
    assert guard.open_runs == 0
    events = [json.loads(line) for line in (tmp_path / f"r-{n}.jsonl").read_text().splitlines()]
    assert [(e["kind"], e.get("text")) for e in events] == [
        ("task", "Hi"), ("called", "I look."), ("returned", "no"), ("said", "There is none."), ("ended", None),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_events_of_another_kit_go_through(tmp_path: Path) -> None:
    """Callbacks of the plugin with whatever their arguments are, before, within and behind a run, which stays right."""
    pytest.importorskip("google.adk")
    guard = Guard.recording(tmp_path)
    plugin = guard.google_adk()

    async def odd_ones(invocation: Any) -> None:
        for odd in (
            *ODD,
            SimpleNamespace(invocation_id="o", branch=7, content=3),
            {"invocation_id": "o", "branch": "x"},
        ):
            event = SimpleNamespace(invocation_id=invocation or odd, author=odd, content={"role": odd, "parts": [odd]})
            await plugin.before_run_callback(invocation_context=odd)
            await plugin.on_event_callback(invocation_context=odd, event=odd)
            await plugin.on_event_callback(invocation_context=odd, event=event)
            assert await plugin.before_model_callback(callback_context=odd, llm_request=odd) is None
            await plugin.before_tool_callback(tool=odd, tool_args=odd, tool_context=odd)
            await plugin.on_tool_error_callback(tool=odd, tool_args=odd, tool_context=odd, error=odd)
            await plugin.after_tool_callback(tool=odd, tool_args=odd, tool_context=odd, result=odd)
            await plugin.on_run_error_callback(invocation_context=odd, error=odd)

    async def tell(**part: Any) -> None:
        event = SimpleNamespace(invocation_id="i", author="clerk", content=SimpleNamespace(role="model", parts=[part]))
        await plugin.on_event_callback(invocation_context=None, event=event)

    async def go() -> None:
        await odd_ones(None)
        context = SimpleNamespace(invocation_id="i", branch=None, agent=None, user_content={"parts": [{"text": "Hi"}]})
        await plugin.before_run_callback(invocation_context=context)
        await odd_ones("i")
        await tell(function_call={"id": "c", "name": "find", "args": {"id": "A1"}})
        await tell(function_response={"id": "c", "response": {"error": "no order"}})
        await tell(text="There is none.")
        await plugin.after_run_callback(invocation_context=context)
        await odd_ones("i")

    asyncio.run(go())
    events = [json.loads(line) for line in (tmp_path / "i.jsonl").read_text().splitlines()]
    assert [(e["kind"], e.get("text"), e.get("is_error")) for e in events] == [
        ("task", "Hi", None), ("called", None, None), ("returned", "no order", True), ("said", "There is none.", None),
        ("ended", None, None),
    ]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_hooks_of_another_crew_go_through(tmp_path: Path) -> None:
    """Hooks of CrewAI with whatever their contexts are, beside those of an agent at a task, whose run stays right."""
    hooks = pytest.importorskip("crewai.hooks.dispatch")

    def at(point: str, context: Any) -> None:
        hooks.dispatch(hooks.InterceptionPoint[point], context, verbose=False)

    def odd_ones() -> None:
        for odd in (*ODD, *(SimpleNamespace(executor=3, messages=[one], agent=one, response=one) for one in ODD)):
            for point in ("PRE_MODEL_CALL", "POST_MODEL_CALL", "PRE_TOOL_CALL", "POST_TOOL_CALL"):
                beside = threading.Thread(target=copy_context().run, args=(at, point, odd))  # as tools run
                beside.start()
                beside.join()

    agent, messages = SimpleNamespace(role="clerk"), [{"role": "user", "content": "Hi"}]
    context = SimpleNamespace(
        executor=1, agent=agent, task=None, messages=messages, tool_name="find", tool_input={"id": 1}
    )
    guard = Guard.recording(tmp_path)
    with guard.crewai(run_id="r"):
        at("PRE_MODEL_CALL", context)
        odd_ones()
        call = {"id": "c", "function": {"name": "find", "arguments": "{}"}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": "c", "content": "Error: no order"})
        at("PRE_MODEL_CALL", context)
        odd_ones()
        context.response, context.tool_result = (
            "I look. Action: find",
            "in Bern",
        )  # of a model that cannot call functions
        for point in ("POST_MODEL_CALL", "PRE_TOOL_CALL", "POST_TOOL_CALL", "PRE_MODEL_CALL"):
            at(point, context)
        context.response = "In Bern."
        at("POST_MODEL_CALL", context)
    at("PRE_MODEL_CALL", context)  # outside the block
    assert guard.open_runs == 0
    events = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert [(e["kind"], e.get("text")) for e in events if e["agent_path"] == "main"] == [
        ("task", "Hi"), ("called", None), ("returned", "Error: no order"), ("called", "I look. Action: find"),
        ("returned", "in Bern"), ("said", "In Bern."), ("ended", None),
    ]  # fmt: skip
