"""The questions to a verifier: the run first, the hypothesis last.

All questions about one run begin with the same bytes (system text, transcript, list of agents), so a server that keeps
prefixes reads the run once. Only the transcript is cut to a budget; what is asked stands outside it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prefixguard.escalate.agent_names import AgentNames, shown_name
from prefixguard.escalate.chat import Message
from prefixguard.escalate.hypotheses.modes import MODES, FailureMode
from prefixguard.escalate.transcript_text import Excerpt, fit
from prefixguard.stepview import StepRecord

_FOLDER = Path(__file__).parent
_WORDING = json.loads((_FOLDER / "wording.json").read_bytes())


@dataclass(frozen=True, slots=True)
class Questions:
    """What can be asked about one run. head: the text that all questions begin with, after the system text."""

    names: AgentNames
    excerpt: Excerpt
    head: str

    @classmethod
    def about(cls, records: Sequence[StepRecord], names: AgentNames, budget_tokens: int) -> Questions:
        """budget_tokens: of the transcript alone, see `transcript_text.fit`, which also says what is refused."""
        excerpt = fit(records, budget_tokens)
        agents = "\n".join(f"- {shown_name(name)}" for name in names.names)
        after = _WORDING["after"].format(mark=excerpt.mark)
        return cls(names, excerpt, f"{excerpt.text}\n\n{after}\n\n{_WORDING['agents']}\n{agents}\n\n")

    def one(self, mode: FailureMode, among: Sequence[FailureMode] = MODES) -> tuple[Message, ...]:
        """Messages that ask about one mode. among: where its near modes are looked up."""
        near = "; ".join(other.name for code in mode.near for other in among if other.code == code)
        text = "\n".join(_WORDING["one"])
        return self._messages(
            text.format(hypothesis=mode.hypothesis, against=mode.against, near=near or "nothing in particular")
        )

    def all(self, modes: Sequence[FailureMode]) -> tuple[Message, ...]:
        """Messages that ask about several modes at once."""
        statements = "\n".join(f"- {m.code}: {m.hypothesis} Against it: {m.against}." for m in modes)
        return self._messages("\n".join(_WORDING["all"]).format(statements=statements))

    def _messages(self, question: str) -> tuple[Message, ...]:
        return (
            {"role": "system", "content": "\n".join(_WORDING["system"])},
            {"role": "user", "content": self.head + question},
        )


def _version() -> str:
    texts = b"".join((_FOLDER / name).read_bytes() for name in ("wording.json", "modes.json"))
    return f"hypotheses-{_WORDING['version']}-{hashlib.sha256(texts).hexdigest()[:12]}"


#: Which wording asks: its number, and a hash of all its texts.
PROMPT_VERSION = _version()

__all__ = ["PROMPT_VERSION", "Questions"]
