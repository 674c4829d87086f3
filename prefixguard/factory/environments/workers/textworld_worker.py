"""Serves games of TextWorld to a factory, a JSON line a question. Runs in the Python that has textworld.

    python textworld_worker.py < questions > answers

A task is the seed of a game with a quest of five commands in four rooms. The agent follows the walkthrough from behind
the last command of it that it made, or believes to have made; a careless one leaves some out, decided by the seed.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import tempfile
from typing import Any

TOOL = "command"


def make_game(textworld: Any, seed: str, folder: str) -> str:
    """The file of a game."""
    options = textworld.GameOptions()
    options.seeds = int(seed)
    options.nb_rooms, options.nb_objects, options.quest_length = 4, 6, 5
    options.path = f"{folder}/game-{int(seed)}.z8"  # games in JSON say nothing
    return str(textworld.generator.compile_game(textworld.generator.make_game(options), options))


class Session:
    """One run of one game."""

    def __init__(self, textworld: Any, path: str, seed: str, agent: str) -> None:
        infos = textworld.EnvInfos(
            won=True, objective=True, description=True, policy_commands=True, extras=["walkthrough"]
        )
        self.world = textworld.start(path, infos)
        self.state = self.world.reset()
        walkthrough = self.state.get("extra.walkthrough")
        self.plan = list(walkthrough or self.state["policy_commands"])
        self.seed, self.careless, self.place = seed, agent == "careless", 0
        self.over = False

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        believed = action.get("instead_of") or action
        command = believed.get("arguments", {}).get(TOOL) if "tool" in believed else None
        if command in self.plan[self.place :]:
            self.place = self.plan.index(command, self.place) + 1
        if action.get("tool") != TOOL or self.over:
            return {"answer": "" if "say" in action or "stop" in action else "Error: there is no such tool"}
        given = action["arguments"].get(TOOL) if isinstance(action["arguments"], dict) else None
        if not isinstance(given, str):
            return {"answer": "Error: the command is a text"}
        self.state, _, self.over = self.world.step(given)
        return {"answer": self.state.feedback.partition("\n>")[0].strip()}  # no prompt, no status line

    def act(self, salt: str | None) -> dict[str, Any]:
        place = self.place
        while place < len(self.plan) and self.careless and salt is None and self.chance(place) < 0.15:
            place += 1
        if place >= len(self.plan) or self.over:
            return {"action": None}
        return {"action": {"tool": TOOL, "arguments": {TOOL: self.plan[place]}}}

    def chance(self, place: int) -> float:
        return int(hashlib.sha256(f"{self.seed}/{place}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


class Server:
    def __init__(self) -> None:
        self.textworld: Any = importlib.import_module("textworld")
        self.temporary = tempfile.TemporaryDirectory(prefix="textworld-")
        self.games: dict[str, str] = {}
        self.sessions: dict[int, Session] = {}

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        verb, number = asked["do"], int(asked.get("session", 0))
        if verb == "tasks":
            return {"tasks": [str(seed) for seed in range(1, asked["count"] + 1)]}
        if verb == "reset":
            if not asked["task"].isdigit():
                return {"error": f"task {asked['task']!r}: the seed of a game, a whole number"}
            if asked["task"] not in self.games:
                self.games[asked["task"]] = make_game(self.textworld, asked["task"], self.temporary.name)
            seed = f"{asked['task']}/{asked['seed']}"
            session = Session(self.textworld, self.games[asked["task"]], seed, asked["agent"])
            self.sessions[number] = session
            while len(self.sessions) > 64:
                self.sessions.pop(next(iter(self.sessions))).world.close()
            return {"observation": f"{session.state['objective']}\n{session.state['description'].strip()}"}
        found = self.sessions.get(number)
        if found is None:
            return {"error": "there is no such session"}
        if verb == "step":
            return found.step(asked["action"])
        if verb == "act":
            return found.act(asked["salt"])
        if verb == "verify":
            return {"outcome": "success" if found.state["won"] else "failure"}
        if verb == "reference":
            return {"text": "; ".join(found.plan)}
        if verb == "end":
            self.sessions.pop(number).world.close()
            return {}
        return {"error": f"there is no verb {verb!r}"}


def main() -> None:
    """Answer every line. What others print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    server = Server()
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # an answer to every question
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
