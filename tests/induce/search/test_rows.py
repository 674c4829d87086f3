"""Events that are whole steps: what the agent thought, did and saw, in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hand_written import TOWNS, propose

PLACES = ("shelf", "desk", "lamp", "door", "box", "sink")


def rows(names: dict[str, str] | None = None, **more: str) -> list[dict[str, Any]]:
    """Runs of steps under any names. more: further fields of a step, as formats of i and j."""
    names = names or {}
    runs = []
    for i in range(8):
        steps = []
        for j in range(5):
            place = PLACES[(i + j) % 6]
            step = {
                "thought": f"I should look at the {place} because it may hide the key number {i}",
                "action": f"{('open', 'inspect', 'take')[j % 3]}[{place} {i}]",
                "observation": f"The {place} {i} is {('shut', 'bare', 'full of dust')[(i * j) % 3]}.",
            }
            step |= {key: value.format(i=i, j=j) for key, value in more.items()}
            steps.append({names.get(key, key): value for key, value in step.items()})
        runs.append({"id": f"run-{i}", "steps": steps, "success": i % 2 == 0})
    return runs


def check(runs: list[Any]) -> None:
    assert len(runs) == 8
    for i, run in enumerate(runs):
        for j, one in enumerate(run.records):
            place = PLACES[(i + j) % 6]
            assert (one.tool, one.arguments) == (("open", "inspect", "take")[j % 3], f"{place} {i}")
            assert one.result.startswith(f"The {place} {i} is")
            assert one.action.startswith(f"I should look at the {place}")


def test_a_step_is_a_record(tmp_path: Path) -> None:
    _, runs = propose(tmp_path, {"a.json": rows()})
    check(runs)


@pytest.mark.parametrize(
    "names",
    [
        {"thought": "reasoning", "action": "command", "observation": "output"},
        {"thought": "f1", "action": "f2", "observation": "f3"},
        {"thought": "Gedanke", "action": "Tat", "observation": "Folge"},
    ],
)
def test_names_do_not_decide(names: dict[str, str], tmp_path: Path) -> None:
    _, runs = propose(tmp_path, {"a.json": rows(names)})
    check(runs)


def test_parallel_lists_are_steps(tmp_path: Path) -> None:
    columns = [
        {
            "id": run["id"],
            "success": run["success"],
            **{f"{name}s": [step[name] for step in run["steps"]] for name in ("thought", "action", "observation")},
        }
        for run in rows()
    ]
    _, found = propose(tmp_path, {f"{one['id']}.json": one for one in columns})
    check(found)


def test_calls_as_objects_are_steps(tmp_path: Path) -> None:
    runs = []
    for i in range(8):
        steps = [
            {
                "tool": ("open", "look")[j % 2],
                "args": {"door": f"{i}-{j}"} if j % 2 == 0 else {"at": TOWNS[j], "long": True},
                "result": f"door {j} of {i} says hello",
                "why": f"I want to see the door {j} since it is the next of {i}",
            }
            for j in range(5)
        ]
        runs.append({"id": f"run-{i}", "steps": steps})
    _, found = propose(tmp_path, {"a.json": runs})
    first = found[1].records[0]
    assert (first.tool, first.arguments, first.result) == ("open", '{"door":"1-0"}', "door 0 of 1 says hello")
