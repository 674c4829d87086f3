"""A run being written down: chat-completions messages, and what each step was."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prefixguard.lab.dice import Dice
from prefixguard.lab.support.tools import OUTAGE, call_tool

Call = tuple[str, "Mapping[str, Any] | str"]  # tool, arguments; a string is written as it is


class StepCap(Exception):
    """The run reached its step cap; what comes after does not happen."""


class Transcript:
    """Messages of one run.

    A step is a tool call or a message of the agent without one; steps count from 1.
    on_step: called after every step that is complete (its result is in).
    cap: number of steps after which StepCap is raised; None: none.
    """

    def __init__(
        self, database: sqlite3.Connection, dice: Dice, on_step: Callable[[], None], system: str, cap: int | None
    ) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": system}]
        self.steps = 0
        self._database = database
        self._dice = dice
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
            answer = OUTAGE if outage else call_tool(self._database, tool, arguments)
            self.messages.append({"role": "tool", "tool_call_id": key, "name": tool, "content": answer})
            answers.append(answer)
        for _ in written:
            self._step()
        return answers

    def _call_id(self) -> str:
        return f"call_{int(self._dice.unit() * 2**52):013x}"

    def _step(self) -> None:
        self.steps += 1
        self._on_step()
        if self.steps == self._cap:
            raise StepCap
