"""An environment in another process. It keeps sessions; a session is made again by doing its actions again."""

from __future__ import annotations

import copy
import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from prefixguard.errors import ConfigError, ReplayDrift, ReplayError, UnreplayableRun
from prefixguard.factory.environments.channel import Channel, ProcessChannel
from prefixguard.factory.environments.replayable import Action, Decision, Proposal, how_made
from prefixguard.factory.environments.tool_faults import faults_of
from prefixguard.factory.labelled import LabelledRun
from prefixguard.trace import Outcome

#: Actions of one run, until it is cut off.
_MOST = 200
#: Done in place of an action that there is no other for.
_NOTHING: Action = {"say": "There is nothing more that I can do here."}
_SESSIONS = itertools.count(1)
#: Begins the worlds that are shipped.
_SERVING = Path(__file__).parent / "workers" / "serving.py"


class RemoteEnvironment:
    """A world behind a channel. An action is {"tool": ..., "arguments": {...}}, or {"say": ...}, or {"stop": true}.

    It is asked {"do": VERB, "session": N, ...}: `tasks` (count) gives {"tasks": [...]}; `reset` (task, seed, agent)
    gives {"observation": text}; `step` (action) gives {"answer": text}, and may say {"changes": false} of an action
    that only reads; `act` (salt) gives {"action": ...} of its own agent, null at the end; `verify` gives {"outcome":
    "success" | "failure" | "unknown"}; `end` ends the session. It may also answer `reference` with {"text": ...}. An
    action may say what it stands for ("instead_of"), where an agent believes to have done that.

    name, spec: see `ReplayableEnvironment`. licence: of what its runs say.
    """

    def __init__(
        self, channel: Channel, name: str, spec: Mapping[str, Any], *, licence: str = "", chances: str = "none"
    ) -> None:
        self.name, self.licence, self.chances = name, licence, chances
        self._channel, self._spec = channel, dict(spec)
        self._task, self._seed, self._agent = "", "", ""
        self._session: int | None = None
        self._actions: list[Action] = []
        self._messages: list[dict[str, Any]] = []
        self._ended = False

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self._spec)

    def tasks(self, count: int) -> list[str]:
        return [str(task) for task in self._ask("tasks", count=count).get("tasks", ())][:count]

    def reset(self, task: str, seed: str, agent: str = "") -> str:
        self._end()
        self._task, self._seed, self._agent, self._actions, self._ended = task, seed, agent, [], False
        seen = self._text(self._ask("reset", task=task, seed=seed, agent=agent), "observation")
        self._messages = [{"role": "user", "content": seen}]
        return seen

    def decisions(self, run: LabelledRun) -> tuple[Decision, ...]:
        try:
            made = actions_of(run.run["messages"])
        except (KeyError, TypeError, AttributeError) as exc:
            raise UnreplayableRun(f"run {run.run_id!r}: its messages are not those of an agent with tools.") from exc
        return tuple(
            Decision(step, action, answer, faults_of(place, [one for one, _ in made]))
            for place, (step, (action, answer)) in enumerate(zip(itertools.count(1), made, strict=False))
        )

    def replay(self, run: LabelledRun, place: int) -> None:
        made, decisions = how_made(run, self._spec), self.decisions(run)
        self.reset(*made)
        self._messages = []
        for decision in decisions[:place]:
            answer = self._do(decision.action)
            if answer.get("changes", True) and decision.answer is not None:
                said = self._text(answer, "answer")
                if not _same(said, decision.answer):
                    raise ReplayDrift(
                        f"run {run.run_id!r}, step {decision.step}: {self.name} answers {said[:120]!r}, it was "
                        f"{decision.answer[:120]!r}."
                    )
        self._messages = _before(run.run["messages"], place)

    def step(self, action: Action) -> str:
        answer = self._text(self._do(action), "answer")
        self._messages += _as_messages(action, answer, len(self._actions))
        return answer

    def continuation(self, salt: str | None) -> Outcome:
        for _ in range(_MOST):
            action = None if self._ended else self._ask("act", salt=salt).get("action")
            if action is None:
                self._ended = True
                return self.verify()
            self.step(action)
        raise ReplayError(f"{self.name}, task {self._task}: its agent did not end within {_MOST} actions.")

    def verify(self) -> Outcome:
        said = self._ask("verify").get("outcome")
        if said not in [outcome.value for outcome in Outcome]:
            raise ReplayError(f"{self.name}: verify answered {said!r}: success, failure or unknown.")
        return Outcome(said)

    def trace(self) -> dict[str, Any]:
        seed = f"-{self._seed}".replace("/", "-") if self._seed else ""
        return {
            "run_id": f"{self.name}-{self._task}{seed}",
            "task_id": self._task,
            "agent": self._agent or "scripted",
            "outcome": str(self.verify()),
            "messages": list(self._messages),
        }

    def provenance(self) -> dict[str, Any]:
        return {"environment": self.spec, "task": self._task, "seed": self._seed, "agent": self._agent}

    def complaint(self, run: LabelledRun) -> str:
        return ""

    def corrections(self, run: LabelledRun) -> list[Proposal]:
        """What the world's own agent would have done at each action that changed the world."""
        world, found = self.fork(), list[Proposal]()
        world.replay(run, 0)
        for place, decision in enumerate(world.decisions(run)):
            other = world._ask("act", salt="").get("action") or _NOTHING
            if world._do(decision.action).get("changes", True) and not _equal(other, decision.action):
                found.append(Proposal(place, other, "the environment's agent does otherwise here"))
        world._end()
        return found

    def correction(self, run: LabelledRun, step: int, said: Mapping[str, Any]) -> Proposal | None:
        decisions, words = self.decisions(run), said.get("say")
        tool, arguments = said.get("tool"), said.get("arguments")
        if isinstance(tool, str) and tool and isinstance(arguments, dict):
            action: dict[str, Any] = {"tool": tool, "arguments": arguments}
        elif isinstance(words, str) and words and not tool:
            action = {"say": words}
        else:
            return None
        if not 1 <= step <= len(decisions) or _equal(action, decisions[step - 1].action):
            return None
        return Proposal(step - 1, action, str(said.get("reason", ""))[:500])

    def reference(self, run: LabelledRun) -> str:
        self.reset(*how_made(run, self._spec))
        return str(self._ask("reference").get("text", ""))

    def fork(self) -> Self:
        other = copy.copy(self)
        other._session, other._actions, other._messages = None, list(self._actions), list(self._messages)
        return other

    def close(self) -> None:
        self._channel.close()
        self._session = None

    def _ask(self, verb: str, **asked: Any) -> dict[str, Any]:
        if self._session is None and verb != "tasks":
            self._session = next(_SESSIONS)
            if verb != "reset":  # a copy: what was done is done again
                self._ask("reset", task=self._task, seed=self._seed, agent=self._agent)
                for action in self._actions:
                    self._ask("step", action=action)
        try:
            return self._channel.ask({"do": verb, "session": self._session or 0, **asked})
        except ReplayError:
            self._session = None
            raise

    def _do(self, action: Action) -> dict[str, Any]:
        if action.get("stop"):
            self._ended = True
        answer = self._ask("step", action=dict(action))
        self._actions.append(dict(action))
        return answer

    def _end(self) -> None:
        if self._session is not None:
            self._ask("end")
            self._session = None

    def _text(self, answer: Mapping[str, Any], name: str) -> str:
        text = answer.get(name)
        if not isinstance(text, str):
            raise ReplayError(f"{self.name} answered without {name!r}, a text: {str(answer)[:200]}")
        return text


def shipped_world(name: str, *world: str, python: str, variable: str, install: str) -> RemoteEnvironment:
    """A world that is shipped, in a process of its own.

    world: its file in `workers`, and what it is given. python: the interpreter that has what it needs; "": the one that
    the environment variable names. install: how that is installed. ConfigError without an interpreter, ReplayError
    where the world does not begin in it.
    """
    python = python or os.environ.get(variable, "")
    if not python:
        raise ConfigError(f"the environment {name} has no interpreter. {install}")
    channel = ProcessChannel([python, str(_SERVING), *world], name)
    try:
        channel.ask({"do": "tasks", "count": 1})
    except ReplayError as exc:
        channel.close()
        raise ReplayError(f"{exc} {install}") from exc
    return RemoteEnvironment(channel, name, {"name": name}, licence="MIT")


def actions_of(messages: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str | None]]:
    """What the agent did, in order, and what was answered; a record of the adapter `openai_chat` each."""
    answers = {one["tool_call_id"]: str(one.get("content") or "") for one in messages if one["role"] == "tool"}
    made: list[tuple[dict[str, Any], str | None]] = []
    for message in messages:
        if message["role"] != "assistant":
            continue
        for call in message.get("tool_calls") or ():
            try:
                arguments = json.loads(call["function"]["arguments"])
            except ValueError:
                arguments = call["function"]["arguments"]
            made.append(({"tool": call["function"]["name"], "arguments": arguments}, answers.get(call["id"])))
        if not message.get("tool_calls"):
            made.append(({"say": str(message.get("content") or "")}, None))
    return made


def _before(messages: list[dict[str, Any]], place: int) -> list[dict[str, Any]]:
    """The messages before a decision. Of calls that were made at once, those before it are kept."""
    kept: list[dict[str, Any]] = []
    left, done = place, set[str]()
    for message in messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or ()
            if left < max(1, len(calls)):
                if left:
                    kept.append({**message, "tool_calls": list(calls[:left])})
                    done |= {call["id"] for call in calls[:left]}
                    kept += [one for one in messages if one.get("tool_call_id") in done and one not in kept]
                return kept
            left -= max(1, len(calls))
        kept.append(message)
    return kept


def _as_messages(action: Action, answer: str, number: int) -> list[dict[str, Any]]:
    if "tool" not in action:
        said = str(action.get("say") or "I stop here.")
        return [{"role": "assistant", "content": said}, *([{"role": "user", "content": answer}] if answer else [])]
    function = {"name": action["tool"], "arguments": json.dumps(action["arguments"])}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "name": action["tool"], "content": answer},
    ]


def _equal(one: Action, other: Action) -> bool:
    return all(one.get(name) == other.get(name) for name in ("tool", "arguments", "say", "stop"))


def _same(one: str, other: str) -> bool:
    """Whether two answers say the same: as JSON, where both are."""
    if one == other:
        return True
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False
