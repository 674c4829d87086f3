"""What every sample should be read as, made from the stories and from nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .stories import Story, Turn


@dataclass(frozen=True)
class Told:
    """What a format tells of a story.

    late: a late result can be told from one in time, and its call is over by then. split: nothing ties what is said to
    the calls that follow it, so it is a record of its own. final: the tool that a last answer is given through; ""
    where it is plain speech. texts, users, calls: are there any.
    """

    late: bool = False
    texts: bool = True
    users: bool = True
    calls: bool = True
    final: str = ""
    split: bool = False


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def serial(story: Story) -> Story:
    """The story with one call a reply, and only its first user turn."""
    turns = []
    for i, turn in enumerate(story.turns):
        user = turn.user if i == 0 else ""
        calls = turn.calls or (None,)
        for n, one in enumerate(calls):
            turns.append(Turn(turn.say if n == 0 else "", () if one is None else (one,), user if n == 0 else ""))
    kept = [turn for i, turn in enumerate(turns) if turn.calls or i == len(turns) - 1]
    if kept and not kept[0].user:
        kept[0] = Turn(kept[0].say, kept[0].calls, turns[0].user)
    return Story(story.name, story.task, story.success, tuple(kept))


def records(story: Story, told: Told) -> list[dict[str, Any]]:
    """Records of a story, in the line format of `parse --json`, without what is known of the run."""
    out: list[dict[str, Any]] = []
    pending = ""
    late: list[str] = []

    def add(tool: str, arguments: str, action: str, result: str, status: str) -> None:
        nonlocal pending
        out.append(
            {
                "step": len(out) + 1,
                "actor": "agent",
                "tool": tool,
                "arguments": arguments,
                "observation": pending,
                "action": action,
                "result": result,
                "status": status,
            }
        )
        pending = ""

    for i, turn in enumerate(story.turns):
        if told.users and turn.user:
            pending = f"{pending}\n{turn.user}" if pending else turn.user
        say = turn.say if told.texts else ""
        arrived, late = late, []
        if turn.calls and told.calls:
            if told.split and say:
                add("respond", "", say, "", "ok")
                say = ""
            for n, one in enumerate(turn.calls):
                if told.late and n in turn.late:
                    add(one.tool, canonical(one.args), say if n == 0 else "", "", "unknown")
                    late.append(one.result)
                else:
                    add(
                        one.tool, canonical(one.args), say if n == 0 else "", one.result, "error" if one.error else "ok"
                    )
        elif say and told.final and i == len(story.turns) - 1:
            add(told.final, canonical({"answer": say}), "", say, "ok")
        elif say:
            add("respond", "", say, "", "ok")
        if arrived:
            pending = "\n".join([*filter(None, [pending]), *arrived])
    return out
