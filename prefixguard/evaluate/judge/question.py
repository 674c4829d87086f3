"""What a judge is asked about one prefix, and the wording it is asked in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from prefixguard.escalate import Endpoint, Message, shown_url
from prefixguard.evaluate.judge.transcript import LETTERS_A_TOKEN, shown
from prefixguard.stepview import StepRecord

#: Tokens of an answer where nothing is known yet: a short sentence and two numbers.
TOKENS_OUT = 60
_PARTED = "\n---\n"


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One prefix to be judged.

    run: position of its run among those evaluated. step: its last step, from 1. messages: what is sent.
    left_out, shortened: steps and fields of it that do not fit the budget.
    """

    run: int
    step: int
    messages: tuple[Message, ...]
    left_out: int = 0
    shortened: int = 0

    @property
    def tokens(self) -> int:
        """Tokens that are sent, about."""
        return sum(len(message["content"]) for message in self.messages) // LETTERS_A_TOKEN

    def key(self, endpoint: Endpoint) -> str:
        """SHA-256 of all that an answer depends on: model, place, options and every word that is sent."""
        sent = {
            "model": endpoint.model,
            "base_url": None if endpoint.base_url is None else shown_url(endpoint.base_url),
            "max_reply_tokens": endpoint.max_reply_tokens,
            "temperature": endpoint.temperature,
            "messages": [dict(message) for message in self.messages],
        }
        return hashlib.sha256(json.dumps(sent, sort_keys=True).encode()).hexdigest()


def ask_about(run: int, records: Sequence[StepRecord], *, horizon: int, budget_tokens: int) -> JudgeQuestion:
    """The question about these steps, the first ones of a run. horizon: H. budget_tokens: of the transcript.

    The judge is shown what a monitor sees, the step records, and nothing of the run's name, file, agent or end.
    """
    view = shown(records, budget_tokens)
    system, asked = _wording()
    steps = f"the first {len(records)} steps" if len(records) > 1 else "the first step"
    parts = []
    if view.left_out:
        parts.append(f"{view.left_out} of its steps")
    if view.shortened:
        parts.append("the middle of long texts")
    cut = f" To keep it short, {' and '.join(parts)} are left out where that is marked." if parts else ""
    facts = {"horizon": str(horizon), "steps": steps, "cut": cut}
    return JudgeQuestion(
        run,
        len(records),
        (
            {"role": "system", "content": _filled(system, facts)},
            # The transcript goes in last: text of a run that looks like a blank of the form stays as it is.
            {"role": "user", "content": _filled(asked, facts).replace("{transcript}", _fenced(view.text), 1)},
        ),
        view.left_out,
        view.shortened,
    )


def prompt_version() -> str:
    """Which wording asks: the beginning of its SHA-256."""
    return hashlib.sha256(_prompt().encode()).hexdigest()[:12]


@cache
def _prompt() -> str:
    file = resources.files("prefixguard.evaluate") / "prompts" / "judge.md"
    return file.read_text(encoding="utf-8").strip()


@cache
def _wording() -> tuple[str, str]:
    """System message and question, with blanks in braces."""
    system, _, asked = _prompt().partition(_PARTED)
    return system.strip(), asked.strip()


def _filled(text: str, facts: dict[str, str]) -> str:
    for name, said in facts.items():
        text = text.replace(f"{{{name}}}", said)
    return text


def _fenced(text: str) -> str:
    """Data between two marks that carry its own hash, so that nothing in it can close them."""
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be sent
    mark = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"<<<TRANSCRIPT {mark}\n{text}\nTRANSCRIPT {mark}>>>"
