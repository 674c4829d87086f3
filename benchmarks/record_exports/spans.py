"""Spans as tracing packages export them: OpenInference, and OpenTelemetry's own conventions for generative AI.

Each export is played under the instrumentation of one package, and written by the OTLP file exporter, a line an export.
In those that end in `alone` no span stands around the agent's loop, so that every model call is a trace of its own.
`benchmarks/frameworks_spans.txt` names the releases.
"""

from __future__ import annotations

import asyncio
import importlib
import io
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from integration_players import PLAYERS, TASK, Player, _agents_of, _langchain_agent, _tool_text, play_pydantic_ai
from integrations import _heard

from benchmarks.record_exports.pydantic_ai import NoGuard
from benchmarks.record_exports.recording import Export, Play

#: Makes a package send its spans to a provider.
Instrument = Callable[[Any], None]
Converse = Callable[[Any, str, str, bool], Any]


async def _chat(client: Any, name: str, asked: str, is_streamed: bool) -> str:
    messages: list[Any] = [{"role": "system", "content": f"You are the {name}."}, {"role": "user", "content": asked}]
    while True:
        if is_streamed:
            message = await _streamed(await client.chat.completions.create(model="m", messages=messages, stream=True))
        else:
            reply = await client.chat.completions.create(model="m", messages=messages)
            message = reply.choices[0].message.model_dump(exclude_none=True)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return str(message.get("content") or "")
        again = partial(_chat, client, is_streamed=is_streamed)
        asked_for = [(call["function"]["name"], call["function"]["arguments"]) for call in calls]
        for call, result in zip(calls, await _results(again, asked_for), strict=True):
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})


async def _streamed(chunks: Any) -> dict[str, Any]:
    text, made = "", {}
    async for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                function = {"name": part.function.name, "arguments": ""}
                call = made.setdefault(part.index, {"id": part.id, "type": "function", "function": function})
                call["function"]["arguments"] += part.function.arguments or ""
    return {"role": "assistant", "content": text} | ({"tool_calls": list(made.values())} if made else {})


async def _responses(client: Any, name: str, asked: str, is_streamed: bool) -> str:
    items: list[Any] = [{"role": "user", "content": asked}]
    while True:
        options = {"model": "m", "input": items, "instructions": f"You are the {name}."}
        if is_streamed:
            async for event in await client.responses.create(stream=True, **options):
                if event.type == "response.completed":
                    response = event.response
        else:
            response = await client.responses.create(**options)
        items += [item.model_dump(exclude_none=True) for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return str(response.output_text)
        again = partial(_responses, client, is_streamed=is_streamed)
        asked_for = [(call.name, call.arguments) for call in calls]
        for call, result in zip(calls, await _results(again, asked_for), strict=True):
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


async def _results(again: Any, asked_for: list[tuple[str, str]]) -> list[str]:
    """What the tools return, all at once. again : asks another agent, by the same loop."""

    async def one(name: str, arguments: dict[str, Any]) -> str:
        return str(await again("researcher", arguments["input"])) if name == "research" else _tool_text(name, arguments)

    return list(await asyncio.gather(*(one(name, json.loads(arguments)) for name, arguments in asked_for)))


def _client(converse: Converse, *, is_wrapped: bool = True) -> Player:
    """A loop around the openai client. is_wrapped : in one span, as of a program that traces what it is asked."""

    def play(provider: Any, url: str, scenario: Any) -> None:
        import openai

        async def run() -> None:
            span = provider.get_tracer("shop").start_as_current_span("answer") if is_wrapped else nullcontext()
            async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
                with span:
                    await converse(client, "clerk", TASK, scenario.is_streamed)

        asyncio.run(run())

    return Player(play, ("openai",), ("openai",), 0, {"handoff": "one agent"})


def _agents(api: str) -> Player:
    def play(provider: Any, url: str, scenario: Any) -> None:
        import openai
        from agents import Runner, set_default_openai_api, set_default_openai_client

        set_default_openai_api(api)  # type: ignore[arg-type]

        async def run() -> None:
            async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
                set_default_openai_client(client, use_for_tracing=False)
                agent = _agents_of(scenario)
                if scenario.is_streamed:
                    result = Runner.run_streamed(agent, TASK)
                    async for _ in result.stream_events():
                        pass
                else:
                    await Runner.run(agent, TASK)

        asyncio.run(run())

    return Player(play, ("agents",), ("openai-agents",), 0)


def _play_langchain(provider: Any, url: str, scenario: Any) -> None:
    agent = _langchain_agent(url, scenario, list)
    given = {"messages": [("user", TASK)]}
    if scenario.is_streamed:
        for _ in agent.stream(given, stream_mode="messages"):
            pass
    else:
        agent.invoke(given)


def _spans(instrument: Instrument, settings: Mapping[str, str] | None = None) -> Callable[[Play], dict[str, str]]:
    """settings : of the environment. Each scenario has a process of its own: packages read their settings once."""

    def record(play: Play) -> dict[str, str]:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_recorded, args=(instrument, settings or {}, play, theirs))
        process.start()
        theirs.close()
        text = ours.recv()
        process.join()
        return {"traces.jsonl": text}

    return record


def _recorded(instrument: Instrument, settings: Mapping[str, str], play: Play, out: Any) -> None:
    """Sends what was exported, without the places of files on this machine, which stack traces hold."""
    os.environ.update(settings)
    from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    stream = io.StringIO()
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(stream=stream)))
    instrument(provider)
    play(provider)
    provider.force_flush()
    text = stream.getvalue()
    for place in (str(Path(__file__).parents[2]), sys.prefix, sys.base_prefix):
        text = text.replace(place, "")
    out.send(text)


def _instrumentor(name: str) -> Instrument:
    """name : module and class of an OpenTelemetry instrumentor."""
    module, _, kind = name.rpartition(".")
    return lambda provider: getattr(importlib.import_module(module), kind)().instrument(tracer_provider=provider)


def _pydantic_ai(provider: Any) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))


def _raised(body: dict[str, Any]) -> list[tuple[str, str]]:
    """What pydantic-ai's spans say of a tool that failed: the error, without the JSON that the model gets it in."""
    return [(role, text.removeprefix('{"error":"').removesuffix('"}')) for role, text in _heard(body)]


_CONTENT = {
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
}
_V2 = "opentelemetry-instrumentation-openai-v2"
_OPENAI = "openinference-instrumentation-openai"
_AGENTS = "openinference-instrumentation-openai-agents"
_LANGCHAIN = "openinference-instrumentation-langchain"
_OF_V2 = _instrumentor("opentelemetry.instrumentation.openai_v2.OpenAIInstrumentor")
_OF_OPENAI = _instrumentor("openinference.instrumentation.openai.OpenAIInstrumentor")
_OF_AGENTS = _instrumentor("openinference.instrumentation.openai_agents.OpenAIAgentsInstrumentor")
_OF_LANGCHAIN = _instrumentor("openinference.instrumentation.langchain.LangChainInstrumentor")
_LANGGRAPH = Player(_play_langchain, ("langchain",), ("langchain",), 0, {"handoff": "has none"})
_PYDANTIC_AI = replace(
    PLAYERS["pydantic_ai"], play=lambda _, url, scenario: play_pydantic_ai(NoGuard(), url, scenario), heard=_raised
)
EXPORTS = {
    "otel_chat": Export(_client(_chat), _V2, _spans(_OF_V2, _CONTENT)),
    "otel_chat_alone": Export(_client(_chat, is_wrapped=False), _V2, _spans(_OF_V2, _CONTENT)),
    "otel_chat_defaults": Export(_client(_chat), _V2, _spans(_OF_V2)),
    "otel_pydantic_ai": Export(_PYDANTIC_AI, "pydantic-ai-slim", _spans(_pydantic_ai)),
    "openai_chat": Export(_client(_chat), _OPENAI, _spans(_OF_OPENAI)),
    "openai_chat_alone": Export(_client(_chat, is_wrapped=False), _OPENAI, _spans(_OF_OPENAI)),
    "openai_responses": Export(_client(_responses), _OPENAI, _spans(_OF_OPENAI)),
    "agents_chat": Export(_agents("chat_completions"), _AGENTS, _spans(_OF_AGENTS)),
    "agents_responses": Export(_agents("responses"), _AGENTS, _spans(_OF_AGENTS)),
    "langchain_agent": Export(_LANGGRAPH, _LANGCHAIN, _spans(_OF_LANGCHAIN)),
}
