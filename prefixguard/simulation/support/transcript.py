"""A run being written down: what customer and agent say, chat-completions messages, and what each step was.

Templates stand in `phrases.json`, with alternatives, so that no sentence gives a run away. Square brackets hold
alternatives, braces hold slots. None of this depends on the profile: how an agent talks says nothing about how good it
is; what it does and what comes back does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import Any

from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.tools import OUTAGE, Database

Line = tuple[str | tuple[str, ...], ...]  # a string, or alternatives


def _compile(template: str) -> Line:
    parts: list[str | tuple[str, ...]] = []
    rest = template
    while rest:
        before, bracket, rest = rest.partition("[")
        if before:
            parts.append(before)
        if bracket:
            inside, _, rest = rest.partition("]")
            parts.append(tuple(inside.split("|")))
    return tuple(parts)


@lru_cache(maxsize=1)
def _lines() -> tuple[str, dict[str, tuple[Line, ...]]]:
    """The system prompt, and the lines of every act."""
    text = json.loads(files(__package__).joinpath("phrases.json").read_text(encoding="utf-8"))
    acts = {**text["customer"], **text["agent"]}
    return text["system"], {act: tuple(_compile(line) for line in lines) for act, lines in acts.items()}


def acts() -> tuple[str, ...]:
    """Everything that can be said."""
    return tuple(_lines()[1])


def system_prompt() -> str:
    return _lines()[0]


def phrase(rng: Rng, act: str, **slots: str) -> str:
    """One way to say `act`. The slots of the template must be among `slots`."""
    parts = [part if isinstance(part, str) else rng.pick(part) for part in rng.pick(_lines()[1][act])]
    return "".join(parts).format(**slots).strip()


Call = tuple[str, "Mapping[str, Any] | str"]  # tool, arguments; a string is written as it is


class StepCap(Exception):
    """The run reached its step cap; what comes after does not happen."""


class ChatTranscript:
    """Messages of one run.

    A step is a tool call or a message of the agent without one; steps count from 1.
    on_step: called after every step that is complete (its result is in).
    cap: number of steps after which StepCap is raised; None: none.
    """

    def __init__(self, database: Database, rng: Rng, on_step: Callable[[], None], system: str, cap: int | None) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self.steps = 0
        self._database = database
        self._rng = rng
        self._on_step = on_step
        self._cap = cap

    def hear(self, *texts: str) -> None:
        """The customer speaks; several texts in a row are one message."""
        text = " ".join(filter(None, texts))
        if self.messages[-1]["role"] == "user":
            self.messages[-1]["content"] += " " + text
        else:
            self.messages.append({"role": "user", "content": text})

    def say(self, *texts: str) -> None:
        """The agent speaks."""
        self.messages.append({"role": "assistant", "content": " ".join(filter(None, texts))})
        self._step()

    def call(self, tool: str, arguments: Mapping[str, Any] | str, text: str = "", outage: bool = False) -> str:
        """The agent calls one tool, perhaps with a word beside it; returns the answer."""
        return self.calls([(tool, arguments)], text, outage)[0]

    def calls(self, calls: Sequence[Call], text: str = "", outage: bool = False) -> list[str]:
        """The agent calls several tools at once. outage: the service does not answer, nothing is done."""
        written = [(tool, given if isinstance(given, str) else json.dumps(given)) for tool, given in calls]
        ids = [self._call_id() for _ in written]
        self.messages.append(
            {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [
                    {"id": key, "type": "function", "function": {"name": tool, "arguments": arguments}}
                    for key, (tool, arguments) in zip(ids, written, strict=True)
                ],
            }
        )
        answers = []
        for key, (tool, arguments) in zip(ids, written, strict=True):
            answer = OUTAGE if outage else self._database.call(tool, arguments)
            self.messages.append({"role": "tool", "tool_call_id": key, "name": tool, "content": answer})
            answers.append(answer)
        for _ in written:
            self._step()
        return answers

    def _call_id(self) -> str:
        return f"call_{int(self._rng.unit() * 2**52):013x}"

    def _step(self) -> None:
        self.steps += 1
        self._on_step()
        if self.steps == self._cap:
            raise StepCap
