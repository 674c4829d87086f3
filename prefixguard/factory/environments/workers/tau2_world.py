"""tau2-bench's retail and airline, as `serving.py` serves them.

A task is its id, or {"id": ..., "reference": [[tool, arguments], ...]} for one whose reference was another one once.

Its own agent makes the writes of the task's reference that were not made yet; a careless one (agent "careless") leaves
some of them out, decided by the seed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import importlib
import json
import os
from typing import Any


class Overlay(dict[Any, Any]):
    """A table of the database whose rows are copied when they are first touched: a whole copy takes a second."""

    def __init__(self, rows: dict[Any, Any]) -> None:
        super().__init__(rows)
        self.rows, self.own = rows, set[Any]()

    def _take(self, key: Any) -> None:
        if key in self and key not in self.own:
            self[key] = copy.deepcopy(super().__getitem__(key))

    def __setitem__(self, key: Any, row: Any) -> None:
        self.own.add(key)
        super().__setitem__(key, row)

    def __getitem__(self, key: Any) -> Any:
        self._take(key)
        return super().__getitem__(key)

    def get(self, key: Any, default: Any = None) -> Any:
        self._take(key)
        return super().get(key, default)

    def values(self) -> Any:
        return [self[key] for key in self]

    def items(self) -> Any:
        return [(key, self[key]) for key in self]

    def changed(self) -> dict[Any, Any]:
        """What differs from the beginning, by key; None for what is gone."""
        gone = {key: None for key in self.rows if key not in self}
        return gone | {key: self[key] for key in sorted(self.own) if key in self and self[key] != self.rows.get(key)}


class Tau2Run:
    """One run of one task. task: as it was asked for."""

    def __init__(
        self, tau2: Tau2World, task: str, observation: str, reference: list[Any], seed: str, agent: str
    ) -> None:
        self.tau2, self.task, self.observation, self.actions = tau2, task, observation, reference
        self.world, self.seed, self.careless = tau2.fresh(), seed, agent == "careless"
        self.done: list[dict[str, Any]] = []

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        self.done.append(action.get("instead_of") or action)
        if "tool" not in action:
            return {"answer": "", "changes": False}
        changes = self.world._has_tool(action["tool"]) and self.world._is_mutating_tool(action["tool"])
        try:
            answer = self.world.to_json_str(
                self.world.make_tool_call(action["tool"], "assistant", **action["arguments"])
            )
            self.world.sync_tools()
        except Exception as error:  # a tool refuses by any exception
            answer = f"Error: {error}"
        return {"answer": answer, "changes": bool(changes)}

    def act(self, salt: str | None) -> dict[str, Any] | None:
        """The next reference action. With a salt (or an agent that is not careless) none is left out."""
        made = [(one.get("tool"), one.get("arguments")) for one in self.done]
        writes_only = salt is not None
        for place, (tool, arguments) in enumerate(self.actions):
            if (tool, arguments) in made:
                made.remove((tool, arguments))
                continue
            changes = self.world._is_mutating_tool(tool)
            if writes_only and not changes:
                continue
            chance = int(hashlib.sha256(f"{self.seed}/{place}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
            if self.careless and salt is None and changes and chance < 0.3:
                continue
            return {"tool": tool, "arguments": arguments}
        return None

    def reached(self) -> bool:
        return bool(self.tau2.changed(self.world) == self.tau2.goal(self.task, self.actions))

    def reference(self) -> str:
        return "; ".join(f"{tool} {json.dumps(arguments)}" for tool, arguments in self.actions)

    def close(self) -> None:
        """Nothing is held."""


class Tau2World:
    def __init__(self, domain: str) -> None:
        if domain not in ("retail", "airline"):
            raise ValueError(f"no domain {domain!r}")
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
        importlib.import_module("loguru").logger.remove()
        module = importlib.import_module(f"tau2.domains.{domain}.environment")
        self.make, self.known = module.get_environment, {task.id: task for task in module.get_tasks(None)}
        self.database: Any = self.make().tools.db
        self.goals: dict[str, Any] = {}

    def tasks(self, count: int) -> list[str]:
        return [name for name, task in self.known.items() if task.evaluation_criteria.actions][:count]

    def begin(self, asked: str, seed: str, agent: str) -> Tau2Run | str:
        named = json.loads(asked) if asked.startswith("{") else {"id": asked}
        if named["id"] not in self.known:
            return f"there is no task {named['id']!r}"
        task = self.known[named["id"]]
        if task.initial_state is not None:
            return f"task {task.id} begins in a state of its own, which is not supported"
        now = [[one.name, one.arguments] for one in task.evaluation_criteria.actions or ()]
        wish = str(task.user_scenario.instructions)
        return Tau2Run(self, asked, wish, named.get("reference", now), f"{task.id}/{seed}", agent)

    def goal(self, task: str, reference: list[Any]) -> Any:
        """What the reference of a task changes."""
        if task not in self.goals:
            world = self.fresh()
            for tool, arguments in reference:
                with contextlib.suppress(Exception):  # as its own evaluator: one that is refused changes nothing
                    world.make_tool_call(tool, "assistant", **arguments)
            self.goals[task] = self.changed(world)
        return self.goals[task]

    def fresh(self) -> Any:
        """The environment as every run of the domain begins in it."""
        database = copy.copy(self.database)
        for name in self.database.model_fields_set:
            if isinstance(rows := getattr(database, name), dict):
                setattr(database, name, Overlay(rows))
            else:
                setattr(database, name, copy.deepcopy(rows))
        return self.make(db=database)

    def changed(self, world: Any) -> dict[str, Any]:
        """What a run changed, table by table. Tables that are no dictionaries are compared whole."""
        found = {}
        for name in sorted(self.database.model_fields_set):
            rows = getattr(world.tools.db, name)
            found[name] = rows.changed() if isinstance(rows, Overlay) else rows
        return found


open_world = Tau2World
