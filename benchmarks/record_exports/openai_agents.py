"""Traces and spans of the OpenAI Agents SDK, as an exporter that people write gets them, one a line."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from integration_players import PLAYERS, TASK, find
from integrations import SCENARIOS

from benchmarks.record_exports.recording import Export, Play, as_lines


class _Kept:
    """An exporter. full : with what the model was given and replied, which spans of Responses do not export."""

    def __init__(self, full: bool) -> None:
        self.full = full
        self.lines: list[dict[str, Any]] = []

    def export(self, items: list[Any]) -> None:
        for item in items:
            line = item.export()
            data = getattr(item, "span_data", None)
            if self.full and data is not None and data.type == "response":
                line["span_data"] |= {"input": data.input, "response": data.response.model_dump(mode="json")}
            self.lines.append(line)


class _Tracing:
    """In the place of the guard."""

    def openai_agents(self) -> None:
        from agents import set_tracing_disabled

        set_tracing_disabled(False)


def _spans(full: bool = False) -> Any:
    def record(play: Play) -> dict[str, str]:
        from agents import set_trace_processors
        from agents.tracing.processors import BatchTraceProcessor

        kept = _Kept(full)
        processor = BatchTraceProcessor(kept)
        set_trace_processors([processor])
        play(_Tracing())
        processor.shutdown()
        return {"traces.jsonl": as_lines(kept.lines)}

    return record


def _play_beside(guard: Any, url: str, scenario: Any) -> None:
    """Two agents at once and then one, in one trace."""
    import openai
    from agents import Agent, Runner, function_tool, set_default_openai_api, set_default_openai_client, trace

    guard.openai_agents()
    set_default_openai_api("chat_completions")

    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=url, api_key="none") as client:
            set_default_openai_client(client)
            tools: list[Any] = [function_tool(find)]
            asked = Agent(name="researcher", instructions="You are the researcher.", tools=tools)
            with trace("Two at once"):
                await asyncio.gather(Runner.run(asked, "one"), Runner.run(asked, "two"))
                await Runner.run(Agent(name="clerk", instructions="You are the clerk."), TASK)

    asyncio.run(run())


def _alone(scenario: Any) -> Any:
    """The one that comes last calls none."""
    return replace(scenario, scripts=scenario.scripts | {"clerk": scenario.scripts["clerk"][1:]})


_OTHERS = [name for name in SCENARIOS if name != "nested, parallel"]
_BESIDE = replace(PLAYERS["openai_agents_chat"], play=_play_beside, adapted=_alone)
EXPORTS = {
    "responses": Export("openai_agents", "openai-agents", _spans()),
    "responses_full": Export("openai_agents", "openai-agents", _spans(full=True)),
    "chat": Export("openai_agents_chat", "openai-agents", _spans()),
    "chat_beside": Export(_BESIDE, "openai-agents", _spans(), _OTHERS),
}
