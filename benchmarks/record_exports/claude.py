"""Session files of Claude Code, and the messages of the Claude Agent SDK, dumped as dataclasses, one a line."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from benchmarks.record_exports.recording import Export, Play, as_lines

#: Lines of session files that hold Claude Code's own prompts and tools, and nothing of the run.
_OWN = ("attachment", "api-request", "api-request-blob", "api-request-shape")


class _Nothing:
    """In the place of the guard."""

    def claude_agent(self) -> dict[str, Any]:
        return {}


def _sessions(play: Play) -> dict[str, str]:
    _, files = play(_Nothing())
    kept = {name: [line for line in map(json.loads, text.splitlines()) if line["type"] not in _OWN]
            for name, text in files.items()}  # fmt: skip
    return {f"projects/{name}": as_lines(lines) for name, lines in kept.items()}


def _messages(play: Play) -> dict[str, str]:
    messages, _ = play(_Nothing())
    return {"messages.jsonl": as_lines([{"type": type(m).__name__} | dataclasses.asdict(m) for m in messages])}


EXPORTS = {
    "sessions": Export("claude_agent", "claude-agent-sdk", _sessions),
    "messages": Export("claude_agent", "claude-agent-sdk", _messages),
}
