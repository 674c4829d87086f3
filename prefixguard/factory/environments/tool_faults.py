"""Faults that an agent with tools can make at any of its actions, made from what else occurs in its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.factory.environments.replayable import Action

#: Kinds that `faults_of` makes.
TOOL_FAULTS = ("gave_up", "left_out", "mistyped_value", "repeated_call", "wrong_tool", "wrong_value")


def faults_of(place: int, actions: Sequence[Action]) -> dict[str, Action]:
    """Kind to the faulty action, for the action at a place. None for an action without a tool.

    left_out: says so and does not do it. wrong_value: an argument has a value that another call gave for it.
    mistyped_value: an argument has two characters changed. wrong_tool: the arguments go to another tool that takes the
    same ones. repeated_call: an earlier other call is made once more instead. gave_up: ends the run.
    Each says what it stands for: the agent goes on as if it had been done.
    """
    right = actions[place]
    if "tool" not in right or not isinstance(right["arguments"], dict):
        return {}
    found: dict[str, dict[str, Any]] = {"left_out": {"say": "That is done."}, "gave_up": {"stop": True}}
    calls = [one for one in actions if "tool" in one and isinstance(one["arguments"], dict)]
    arguments: Mapping[str, Any] = right["arguments"]
    for name in sorted(arguments):
        value = arguments[name]
        other = next((one["arguments"][name] for one in calls if one["arguments"].get(name, value) != value), None)
        if other is not None:
            found.setdefault("wrong_value", {"tool": right["tool"], "arguments": {**arguments, name: other}})
        if isinstance(value, str) and len(value) > 2:
            typed = value[:-2] + value[-1] + value[-2] if value[-1] != value[-2] else value[:-1]
            found.setdefault("mistyped_value", {"tool": right["tool"], "arguments": {**arguments, name: typed}})
    alike = [one["tool"] for one in calls if set(one["arguments"]) == set(arguments)]
    tool = next((one for one in alike if one != right["tool"]), None)
    if tool is not None:
        found["wrong_tool"] = {"tool": tool, "arguments": dict(arguments)}
    earlier = [one for one in actions[:place] if "tool" in one and one != right]
    if earlier:
        found["repeated_call"] = {"tool": earlier[-1]["tool"], "arguments": earlier[-1]["arguments"]}
    return {kind: {**fault, "instead_of": dict(right)} for kind, fault in found.items()}
