"""What becomes of a call in frameworks that run the tools: one that raises, that a person approves, or that a stream
leaves behind."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from prefixguard.integrations import Guard

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the frameworks


def told(folder: Path, name: str = "r") -> list[tuple[str, str, Any]]:
    """(kind, call or text, whether it failed) of all events behind the task; of `returned` id and text."""
    lines = [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]
    assert lines[0]["kind"] == "task"
    return [
        (e["kind"], " ".join(filter(None, (e.get("call_id"), e.get("text")))), e.get("is_error")) for e in lines[1:]
    ]


def test_a_result_is_of_the_agent_that_called(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    with guard.run("x", run_id="r", agent="triage") as run:
        run.returned(run.called("hand_over", call_id="c1"), "seller")
        run.returned(run.called("sell", call_id="c2", agent="seller"), "sold")
        with run.delegate("helper", call_id="c3") as below:
            below.returned(below.called("look", call_id="c4"), "seen")
    agents = [json.loads(line)["agent"] for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    assert agents == ["triage"] * 3 + ["seller"] * 2 + ["helper"] * 3 + ["seller"]


class Sdk:
    """The OpenAI Agents SDK, with a model whose replies are given: calls by name, or a text."""

    def __init__(self, *replies: str | list[str]) -> None:
        pytest.importorskip("agents")
        from agents import Agent, Model, ModelResponse, Usage, function_tool, set_trace_processors
        from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

        set_trace_processors([])
        self.said: Iterator[str | list[str]] = iter(replies)
        sdk = self

        class Scripted(Model):  # type: ignore[misc]
            async def get_response(self, *_: Any, **__: Any) -> Any:
                reply = next(sdk.said)
                output: list[Any] = [
                    ResponseFunctionToolCall(type="function_call", call_id=f"c-{name}", name=name, arguments="{}")
                    for name in reply
                ]
                if isinstance(reply, str):
                    text = ResponseOutputText(type="output_text", text=reply, annotations=[])
                    output = [
                        ResponseOutputMessage(
                            id="m", type="message", role="assistant", status="completed", content=[text]
                        )
                    ]
                return ModelResponse(output=output, usage=Usage(), response_id=None)

            def stream_response(self, *_: Any, **__: Any) -> Any:
                raise NotImplementedError

        @function_tool
        async def look() -> str:
            return "seen"

        @function_tool(needs_approval=True)
        async def pay() -> str:
            return "paid"

        @function_tool(failure_error_function=None)
        async def fail() -> str:
            raise LookupError("no such order")

        self.agent = Agent(name="A", tools=[look, pay, fail], model=Scripted())

    def run(self, hooks: Any, given: Any = "go") -> Any:
        from agents import Runner

        return asyncio.run(Runner.run(self.agent, given, hooks=hooks))


@pytest.mark.parametrize("approves", [True, False])
@pytest.mark.parametrize("saved", [True, False])
def test_agents_sdk_goes_on_in_the_run_that_waits_for_a_person(approves: bool, saved: bool, tmp_path: Path) -> None:
    sdk, guard = Sdk(["pay", "look"], ["look"], "done", "done"), Guard.recording(tmp_path)
    from agents import RunState

    hooks = guard.openai_agents(run_id="r")
    state = sdk.run(hooks).to_state()
    gc.collect()
    assert guard.open_runs == 1
    if saved:
        state = asyncio.run(RunState.from_string(sdk.agent, state.to_string()))
    for asked in state.get_interruptions():
        (state.approve if approves else state.reject)(asked)
    sdk.run(hooks, state)
    answer = "paid" if approves else "Tool execution was not approved."
    assert told(tmp_path) == [
        ("called", "c-pay", None), ("called", "c-look", None), ("returned", "c-look seen", None),
        ("returned", f"c-pay {answer}", None), ("called", "c-look", None), ("returned", "c-look seen", None),
        ("said", "done", None), ("ended", "", None),
    ]  # fmt: skip
    assert set(guard.counters) == {"events"} and guard.open_runs == 0
    sdk.run(hooks)
    assert told(tmp_path, "r-2") == [("said", "done", None), ("ended", "", None)]


def test_agents_sdk_tells_what_a_tool_raised(tmp_path: Path) -> None:
    sdk, guard = Sdk(["fail"]), Guard.recording(tmp_path)
    with pytest.raises(Exception, match="no such order"):
        sdk.run(guard.openai_agents(run_id="r"))
    gc.collect()
    assert told(tmp_path) == [
        ("called", "c-fail", None),
        ("returned", "c-fail no such order", True),
        ("ended", "", None),
    ]


def pydantic_agent(guard: Guard, *replies: Any, **options: Any) -> Any:
    """An agent of pydantic-ai. replies : of its model, calls by name, a text, or both."""
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import DeltaToolCall, FunctionModel

    said = iter(replies)

    def answer(*_: Any) -> Any:
        reply = next(said)
        calls = [ToolCallPart(name, {}, tool_call_id=f"c-{name}") for name in reply if not isinstance(reply, str)]
        return ModelResponse(parts=calls or [TextPart(reply)])

    async def stream(*_: Any) -> Any:
        yield "I look."
        yield {n: DeltaToolCall(name, "{}", tool_call_id=f"c-{name}") for n, name in enumerate(next(said))}

    model = FunctionModel(answer, stream_function=stream)
    agent = Agent(model, name="A", capabilities=[guard.pydantic_ai(run_id="r")], retries=2, **options)

    @agent.tool_plain
    def look() -> dict[str, int]:
        return {"n": 1}

    @agent.tool_plain
    def again() -> str:
        raise ModelRetry("say it again")

    @agent.tool_plain
    def fail() -> str:
        raise LookupError("no such order")

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        return "paid"

    return agent


def test_pydantic_ai_tells_what_a_tool_raised(tmp_path: Path) -> None:
    guard = Guard.recording(tmp_path)
    agent = pydantic_agent(guard, ["look"], ["fail"])
    with pytest.raises(LookupError):
        asyncio.run(agent.run("go"))
    assert told(tmp_path)[2:] == [
        ("called", "c-fail", None), ("returned", "c-fail LookupError: no such order", True), ("ended", "", None)
    ]  # fmt: skip


def test_pydantic_ai_tells_results_behind_the_text_of_a_stream(tmp_path: Path) -> None:
    """The text is the answer: the tools that came with it are run, and no model is asked with their results."""
    guard = Guard.recording(tmp_path)
    agent = pydantic_agent(guard, ["look", "again"])

    async def play() -> None:
        async with agent.run_stream("go") as result:
            async for _ in result.stream_text():
                pass

    asyncio.run(play())
    assert told(tmp_path) == [
        ("called", "c-look I look.", None), ("called", "c-again", None), ("returned", 'c-look {"n":1}', None),
        ("returned", "c-again ToolRetryError: say it again", True), ("ended", "", None),
    ]  # fmt: skip


@pytest.mark.parametrize("approves", [True, False])
def test_pydantic_ai_goes_on_in_the_run_that_waits_for_a_person(approves: bool, tmp_path: Path) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import DeferredToolRequests, DeferredToolResults

    guard = Guard.recording(tmp_path)
    agent = pydantic_agent(guard, ["pay", "look"], "done", "done", output_type=[str, DeferredToolRequests])
    first = asyncio.run(agent.run("go"))
    assert guard.open_runs == 1
    answers = DeferredToolResults(approvals={call.tool_call_id: approves for call in first.output.approvals})
    asyncio.run(agent.run(message_history=first.all_messages(), deferred_tool_results=answers))
    (asked, second, seen, paid, *rest) = told(tmp_path)
    assert (asked[1], second[1], seen[:2]) == ("c-pay", "c-look", ("returned", 'c-look {"n":1}'))
    assert paid[:2] == ("returned", "c-pay paid" if approves else "c-pay The tool call was denied.")
    assert rest == [("said", "done", None), ("ended", "", None)]
    assert set(guard.counters) == {"events"} and guard.open_runs == 0
    asyncio.run(agent.run("go"))
    assert told(tmp_path, "r-2") == [("said", "done", None), ("ended", "", None)]
