"""Games of TextWorld, as `serving.py` serves them.

A task is the seed of a game with a quest of five commands in four rooms. The agent follows the walkthrough from behind
the last command of it that it made, or believes to have made; a careless one leaves some out, decided by the seed.
"""

from __future__ import annotations

import hashlib
import importlib
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


class GameRun:
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
        self.observation = f"{self.state['objective']}\n{self.state['description'].strip()}"

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

    def act(self, salt: str | None) -> dict[str, Any] | None:
        place = self.place
        while place < len(self.plan) and self.careless and salt is None and self.chance(place) < 0.15:
            place += 1
        if place >= len(self.plan) or self.over:
            return None
        return {"tool": TOOL, "arguments": {TOOL: self.plan[place]}}

    def chance(self, place: int) -> float:
        return int(hashlib.sha256(f"{self.seed}/{place}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF

    def reached(self) -> bool:
        return bool(self.state["won"])

    def reference(self) -> str:
        return "; ".join(self.plan)

    def close(self) -> None:
        self.world.close()


class TextWorldGames:
    def __init__(self) -> None:
        self.textworld: Any = importlib.import_module("textworld")
        self.temporary = tempfile.TemporaryDirectory(prefix="textworld-")
        self.games: dict[str, str] = {}

    def tasks(self, count: int) -> list[str]:
        return [str(seed) for seed in range(1, count + 1)]

    def begin(self, task: str, seed: str, agent: str) -> GameRun | str:
        if not task.isdigit():
            return f"task {task!r}: the seed of a game, a whole number"
        if task not in self.games:
            self.games[task] = make_game(self.textworld, task, self.temporary.name)
        return GameRun(self.textworld, self.games[task], f"{task}/{seed}", agent)


open_world = TextWorldGames
