"""Invented runs in the formats that agents are recorded in, and what they should be read as.

    python -m tests.support.format_samples      writes tests/induce/samples and tests/induce/truth

Every format is written from its public description, every truth from the same stories without any adapter.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from .chats import a2a, anthropic_messages, inspect, langgraph, langgraph_dumpd, openai_responses
from .logs import atif, autogen, claude_code, mcp, openhands, smolagents
from .places import Written
from .spans import openai_agents, openinference, otel_genai, otel_genai_old
from .stories import STORIES, Story
from .truth import records

Writer = Callable[[tuple[Story, ...]], Written]

#: name of a format -> what writes the stories in it
FORMATS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        otel_genai,
        otel_genai_old,
        openinference,
        atif,
        claude_code,
        openai_agents,
        openai_responses,
        a2a,
        mcp,
        anthropic_messages,
        langgraph,
        langgraph_dumpd,
        smolagents,
        autogen,
        inspect,
        openhands,
    )
}


#: Formats in which every step repeats the whole conversation: fewer runs, or they grow large.
_REPEATING = ("otel_genai", "otel_genai_old", "openinference", "openai_agents")


def _written(name: str) -> Written:
    stories = STORIES[:3] + STORIES[4:6] + STORIES[8:] if name in _REPEATING else STORIES
    return FORMATS[name](stories)


def files_of(name: str) -> dict[str, str]:
    """Path to text of the samples of a format."""
    return _written(name).files


def truth_of(name: str) -> str:
    """JSON lines: the records of a format's samples, run by run, in the order of the files and the places in them."""
    written = _written(name)
    lines = []
    for run, (file, position, story) in enumerate(sorted(written.stands, key=lambda s: (s[0], s[1])), 1):
        head = {
            "run": run,
            "file": file,
            "position": position,
            "task_id": story.task,
            "outcome": "success" if story.success else "failure",
        }
        lines += [json.dumps({**head, **record}, ensure_ascii=False) + "\n" for record in records(story, written.told)]
    return "".join(lines)


def write_all(induce: Path) -> None:
    """Writes samples/FORMAT/... and truth/FORMAT.jsonl below this folder."""
    for name in FORMATS:
        for path, text in files_of(name).items():
            target = induce / "samples" / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        truth = induce / "truth" / f"{name}.jsonl"
        truth.parent.mkdir(parents=True, exist_ok=True)
        truth.write_text(truth_of(name), encoding="utf-8")
