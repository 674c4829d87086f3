"""Serves a world to a factory, a JSON line a question. Runs in the Python that has what the world needs.

    python serving.py textworld_games < questions > answers

The world is a file beside this one. Its `open_world` is given the other words of the command. What it returns has
`tasks(count)`, ids, and `begin(task, seed, agent)`, a run of a task, or a text that says why there is none. A run has
`observation`, `step(action)`, `act(salt)`, `reached()`, `reference()` and `close()`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

#: Runs that are kept at a time.
_MOST = 64


class WorldServer:
    """Answers the questions of `RemoteEnvironment`."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.runs: dict[int, Any] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        verb, number = asked["do"], int(asked.get("session", 0))
        if verb == "tasks":
            return {"tasks": self.world.tasks(asked["count"])}
        if verb == "reset":
            run = self.world.begin(asked["task"], asked["seed"], asked["agent"])
            if isinstance(run, str):
                return {"error": run}
            self.runs[number] = run
            while len(self.runs) > _MOST:
                self.runs.pop(next(iter(self.runs))).close()
            return {"observation": run.observation}
        if number not in self.runs:
            return {"error": "there is no such session"}
        run = self.runs[number]
        if verb == "step":
            return dict(run.step(asked["action"]))
        if verb == "act":
            return {"action": run.act(asked["salt"])}
        if verb == "verify":
            return {"outcome": "success" if run.reached() else "failure"}
        if verb == "reference":
            return {"text": run.reference()}
        if verb == "end":
            self.runs.pop(number).close()
            return {}
        return {"error": f"there is no verb {verb!r}"}


def main(world: str, *given: str) -> None:
    """Answer every line. What others print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.path.insert(0, str(Path(__file__).parent))
    server = WorldServer(importlib.import_module(world).open_world(*given))
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # an answer to every question
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
