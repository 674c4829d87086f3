"""Serves tau2-bench's retail and airline to a factory, a JSON line a question. Runs in the Python that has tau2.

    python tau2_worker.py retail < questions > answers

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
import sys
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


class Session:
    """One run of one task."""

    def __init__(self, world: Any, name: str, reference: list[Any], seed: str, agent: str) -> None:
        self.world, self.name, self.reference = world, name, reference
        self.seed, self.careless = seed, agent == "careless"
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

    def act(self, salt: str | None) -> dict[str, Any]:
        """The next reference action. With a salt (or an agent that is not careless) none is left out."""
        made = [(one.get("tool"), one.get("arguments")) for one in self.done]
        writes_only = salt is not None
        for place, (tool, arguments) in enumerate(self.reference):
            if (tool, arguments) in made:
                made.remove((tool, arguments))
                continue
            changes = self.world._is_mutating_tool(tool)
            if writes_only and not changes:
                continue
            chance = int(hashlib.sha256(f"{self.seed}/{place}".encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
            if self.careless and salt is None and changes and chance < 0.3:
                continue
            return {"action": {"tool": tool, "arguments": arguments}}
        return {"action": None}


class Server:
    def __init__(self, domain: str) -> None:
        if domain not in ("retail", "airline"):
            raise ValueError(f"no domain {domain!r}")
        importlib.import_module("loguru").logger.remove()
        module = importlib.import_module(f"tau2.domains.{domain}.environment")
        self.make, self.tasks = module.get_environment, {task.id: task for task in module.get_tasks(None)}
        self.database: Any = self.make().tools.db
        self.goals: dict[str, Any] = {}
        self.sessions: dict[int, Session] = {}

    def goal(self, session: Session) -> Any:
        """What the reference of a session's task changes."""
        if session.name not in self.goals:
            world = self.world()
            for tool, arguments in session.reference:
                with contextlib.suppress(Exception):  # as its own evaluator: one that is refused changes nothing
                    world.make_tool_call(tool, "assistant", **arguments)
            self.goals[session.name] = self.changed(world)
        return self.goals[session.name]

    def world(self) -> Any:
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

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        verb, number = asked["do"], int(asked.get("session", 0))
        if verb == "tasks":
            usable = [name for name, task in self.tasks.items() if task.evaluation_criteria.actions]
            return {"tasks": usable[: asked["count"]]}
        if verb == "reset":
            named = json.loads(asked["task"]) if asked["task"].startswith("{") else {"id": asked["task"]}
            if named["id"] not in self.tasks:
                return {"error": f"there is no task {named['id']!r}"}
            task = self.tasks[named["id"]]
            if task.initial_state is not None:
                return {"error": f"task {task.id} begins in a state of its own, which is not supported"}
            now = [[one.name, one.arguments] for one in task.evaluation_criteria.actions or ()]
            reference, seed = named.get("reference", now), f"{task.id}/{asked['seed']}"
            self.sessions[number] = Session(self.world(), asked["task"], reference, seed, asked["agent"])
            while len(self.sessions) > 64:
                self.sessions.pop(next(iter(self.sessions)))
            return {"observation": str(task.user_scenario.instructions)}
        session = self.sessions.get(number)
        if session is None:
            return {"error": "there is no such session"}
        if verb == "step":
            return session.step(asked["action"])
        if verb == "act":
            return session.act(asked["salt"])
        if verb == "verify":
            reached = self.changed(session.world) == self.goal(session)
            return {"outcome": "success" if reached else "failure"}
        if verb == "reference":
            return {"text": "; ".join(f"{tool} {json.dumps(arguments)}" for tool, arguments in session.reference)}
        if verb == "end":
            self.sessions.pop(number, None)
            return {}
        return {"error": f"there is no verb {verb!r}"}


def main() -> None:
    """Answer every line. What others print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # nothing is fetched
    server = Server(sys.argv[1])
    for line in sys.stdin:
        try:
            answer = server.answer(json.loads(line))
        except Exception as error:  # an answer to every question
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
