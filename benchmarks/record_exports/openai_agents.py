"""Traces and spans of the OpenAI Agents SDK, as an exporter that people write gets them, one a line."""

from __future__ import annotations

from typing import Any

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


EXPORTS = {
    "responses": Export("openai_agents", "openai-agents", _spans()),
    "responses_full": Export("openai_agents", "openai-agents", _spans(full=True)),
    "chat": Export("openai_agents_chat", "openai-agents", _spans()),
}
