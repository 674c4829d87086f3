"""Histories of pydantic-ai: `result.all_messages_json()`, one file a run."""

from __future__ import annotations

from benchmarks.record_exports.recording import Export, Play


class NoGuard:
    """In the place of the guard."""

    def pydantic_ai(self) -> object:
        from pydantic_ai.capabilities import AbstractCapability

        return AbstractCapability()


def _history(play: Play) -> dict[str, str]:
    return {"history.json": play(NoGuard()).all_messages_json().decode()}


EXPORTS = {"history": Export("pydantic_ai", "pydantic-ai-slim", _history)}
