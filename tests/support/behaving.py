"""Runs written down step by step, and the behaviours that are found in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from prefixguard import behaviours, context
from prefixguard.behaviours import BehaviourFinding, BehaviourTracker
from prefixguard.encoder import tokenize
from prefixguard.stepview import StepRecord, serialize


def call(tool: str, arguments: str = "{}", result: str = "done", status: str = "ok", **fields: str) -> StepRecord:
    """A call with its result."""
    blank: dict[str, Any] = {"actor": "agent", "agent": "", "observation": "", "action": ""}
    return StepRecord(1, tool=tool, arguments=arguments, result=result, **{**blank, "status": status, **fields})


def fail(tool: str, arguments: str = "{}", result: str = "Error: it does not work", **fields: str) -> StepRecord:
    """A call that failed."""
    return call(tool, arguments, result, "error", **fields)


def bash(command: str, result: str = "", status: str = "ok", **fields: str) -> StepRecord:
    """A call of a shell."""
    return call("bash", command, result, status, **fields)


def say(action: str, observation: str = "", **fields: str) -> StepRecord:
    """A message of the agent. observation: what had arrived before it."""
    return call("respond", "", "", action=action, observation=observation, **fields)


class Watched:
    """A run that is watched: context and tracker, step by step."""

    def __init__(self, tracker: BehaviourTracker) -> None:
        self.tracker, self.context = tracker, context.start()

    def step(self, record: StepRecord) -> tuple[BehaviourFinding, ...]:
        """What holds at this step."""
        tokens = tokenize(serialize(record))
        numbers = context.update(self.context, record, tokens)
        return behaviours.update(self.tracker, record, tokens, self.context, numbers)


def found_in(
    run: Iterable[StepRecord], *, tools: Sequence[str] | None = None, cap: int | None = None
) -> list[tuple[BehaviourFinding, ...]]:
    """What holds at each step of a run."""
    watched = Watched(behaviours.start(tools, cap))
    return [watched.step(record) for record in run]


def names_in(run: Iterable[StepRecord], **given: Any) -> list[set[str]]:
    """Names of what holds at each step of a run."""
    return [{finding.behaviour.name for finding in findings} for findings in found_in(run, **given)]
