"""The scenarios of `integrations.py`, watched by the spans of instrumentation packages."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from integration_players import (
    NO_AGENTS,
    NO_HANDOFF,
    Player,
    agents_player,
    play_chat,
    play_langgraph,
    play_pydantic_ai,
    play_responses,
)

Play = Callable[[Any, str, Any], None]


class Unwatched:
    """In a guard's place, where the host's program has no hook but the span processor."""

    def run(self, task: str) -> Any:
        return nullcontext()

    def openai(self, client: Any) -> Any:
        return client

    def openai_agents(self) -> None:
        return None

    def pydantic_ai(self) -> Any:
        from pydantic_ai.capabilities import AbstractCapability

        class Nothing(AbstractCapability[Any]):  # type: ignore[misc]
            pass

        return Nothing()

    def langgraph(self) -> Any:
        from langchain_core.callbacks import BaseCallbackHandler

        return BaseCallbackHandler()


def spans_player(module: str, instrumentor: str, play: Play, *, is_wrapped: bool = False) -> Play:
    """A program that is instrumented by `module.instrumentor`. is_wrapped : it has a span around its loop."""

    def watched(guard: Any, url: str, scenario: Any) -> None:
        os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
        os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
        from opentelemetry.sdk.trace import TracerProvider

        provider = TracerProvider()
        provider.add_span_processor(guard.otel())
        instrumented = getattr(importlib.import_module(module), instrumentor)()
        instrumented.instrument(tracer_provider=provider)
        try:
            tracer = provider.get_tracer("host")
            with tracer.start_as_current_span("answer") if is_wrapped else nullcontext():
                play(Unwatched(), url, scenario)
        finally:
            instrumented.uninstrument()
            provider.shutdown()

    return watched


def play_traced_pydantic_ai(guard: Any, url: str, scenario: Any) -> None:
    """pydantic-ai with the spans that it makes itself."""
    from opentelemetry.sdk.trace import TracerProvider
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings

    provider = TracerProvider()
    provider.add_span_processor(guard.otel())
    Agent.instrument_all(InstrumentationSettings(tracer_provider=provider))
    try:
        play_pydantic_ai(Unwatched(), url, scenario)
    finally:
        Agent.instrument_all(False)
        provider.shutdown()


def traced_agents(guard: Any, url: str, scenario: Any) -> None:
    """The OpenAI Agents SDK with its own tracing, which its instrumentation stands on."""
    agents_player("responses", has_tracing=True)(guard, url, scenario)


_CAN = {"stop": "guard.stopped says it", "nudge": "no"}


def _player(package: str, instrumentor: str, play: Play, of: str, not_there: dict[str, str], **how: Any) -> Player:
    module = package.replace("-", ".", 2).replace("-", "_")
    play = spans_player(module, instrumentor, play, **how)
    parts = module.split(".")
    modules = (of, *(".".join(parts[: n + 1]) for n in range(len(parts))))  # a module is looked for in its parent
    return Player(play, modules, (package,), 1, not_there, _CAN)


_V2 = ("opentelemetry-instrumentation-openai-v2", "OpenAIInstrumentor")
_OPENAI = ("openinference-instrumentation-openai", "OpenAIInstrumentor")
_AGENTS = ("openinference-instrumentation-openai-agents", "OpenAIAgentsInstrumentor")
_LANGCHAIN = ("openinference-instrumentation-langchain", "LangChainInstrumentor")
TELEMETRY: dict[str, Player] = {
    "otel_genai": _player(*_V2, play_chat, "openai", NO_AGENTS),
    "otel_genai_wrapped": _player(*_V2, play_chat, "openai", NO_AGENTS, is_wrapped=True),
    "openinference_openai": _player(*_OPENAI, play_chat, "openai", NO_AGENTS),
    "openinference_openai_wrapped": _player(*_OPENAI, play_responses, "openai", NO_AGENTS, is_wrapped=True),
    "openinference_openai_agents": _player(*_AGENTS, traced_agents, "agents", {}),
    "openinference_langchain": _player(*_LANGCHAIN, play_langgraph, "langchain", NO_HANDOFF),
    "otel_pydantic_ai": Player(
        play_traced_pydantic_ai, ("pydantic_ai", "openai", "opentelemetry", "opentelemetry.sdk"), ("pydantic-ai-slim",),
        1, NO_HANDOFF | {"error": "its span has the error in other words than the model"}, _CAN
    ),
}  # fmt: skip
