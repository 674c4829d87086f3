"""The steps that a prompt shows, read back from its text.

A training row holds the prompt alone, exactly as `audit` sends it. What a reply to it is worth is decided by the parser
that `audit` uses, which needs the steps that were shown: so they are read from the transcript in the prompt. Only the
recorder's own lines begin with the transcript's mark, so no text of a run can be taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.errors import DataError
from prefixguard.escalate import AgentNames
from prefixguard.stepview import StepRecord

_MARK = re.compile(r"#[0-9a-f]{8} begin: transcript of a run")
_HEADING = re.compile(r"step (\d+) \| ([^|]*?)((?: \| .*)?)")
_GONE = re.compile(r"left out: steps? (\d+)(?: to (\d+) are| is) not shown")
_FIELDS = {"saw:": "observation", "said:": "action", "arguments:": "arguments", "result:": "result"}


@dataclass(frozen=True, slots=True)
class PromptSteps:
    """What a prompt shows of a run. elided: ranges of steps that it does not show. question: what follows the
    transcript."""

    records: tuple[StepRecord, ...]
    elided: tuple[tuple[int, int], ...]
    question: str

    @property
    def names(self) -> AgentNames:
        """Its agents."""
        return AgentNames.of(self.records)


def steps_of(messages: Sequence[Mapping[str, str]]) -> PromptSteps:
    """The steps in these messages, as `ask_for_verdict` or the hypotheses' prompts have them.

    Texts are as they are shown, so cut ones are shorter than the run's. DataError where there is no transcript.
    """
    text = messages[-1]["content"] if messages else ""
    if not _MARK.match(text):
        raise DataError("a prompt without a transcript: its last message begins with none. Build the rows again.")
    mark = text[:9]
    steps: list[dict[str, Any]] = []
    elided: list[tuple[int, int]] = []
    field = ""
    shown, _, question = text.partition(f"\n{mark} end: ")
    for line in shown.split("\n")[1:]:
        if line.startswith(f"{mark} "):
            said = line[10:]
            if heading := _HEADING.fullmatch(said):
                steps.append(_step(int(heading[1]), heading[2], heading[3]))
                field = ""
            elif gone := _GONE.fullmatch(said):
                elided.append((int(gone[1]), int(gone[2] or gone[1])))
        elif line in _FIELDS:
            field = _FIELDS[line]
        elif steps and field:
            steps[-1][field] += f"{line[2:]}\n"
    return PromptSteps(tuple(StepRecord(**step) for step in steps), tuple(elided), question.partition("\n")[2])


def _step(index: int, actor: str, more: str) -> dict[str, Any]:
    """The fields of a record by a heading's parts: step 4 | agent Clerk | tool search | status error."""
    parts = [part for part in more.split(" | ") if part]
    tool = next((part[5:] for part in parts if part.startswith("tool ")), "")
    status = "error" if "status error" in parts else "ok"
    is_agent = actor == "agent" or actor.startswith("agent ")
    return {
        "index": index,
        "actor": "agent" if is_agent else actor,
        "agent": actor[6:] if is_agent else "",
        "tool": tool,
        "status": status,
        **dict.fromkeys(_FIELDS.values(), ""),
    }
