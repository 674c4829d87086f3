"""A spec in the making, and what led to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.offline.text_ends import Ends
from prefixguard.induce.offline.text_roles import Roles
from prefixguard.induce.offline.text_runs import RunPlan
from prefixguard.induce.proposal import Choice, LeftOut, Mapped

BUDGETS = {"observation": [1200, 800], "action": [1200, 800], "arguments": [1500, 500], "result": [1200, 800]}


@dataclass(slots=True)
class Draft:
    """A spec, and what led to it. sure: in [0, 1]."""

    spec: dict[str, Any]
    plan: RunPlan
    roles: Roles
    ends: Ends
    sure: float
    mapped: list[Mapped] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def apply(self, spec: dict[str, Any], name: str, value: Any) -> None:
        """Puts the answer to a choice into the spec: `outcome`, `task` or another part of `run`."""
        run = {key: part for key, part in spec["run"].items() if key != name}
        spec["run"] = {**run, name: value} if value is not None else run
