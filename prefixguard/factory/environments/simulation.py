"""The simulation as an environment: every chance has a name, so a run can be played again from any decision on."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Self

from prefixguard.errors import ConfigError, ReplayDrift, ReplayError, UnreplayableRun
from prefixguard.factory.environments.replayable import Action, Decision, Proposal, how_made
from prefixguard.factory.labelled import LabelledRun, bare_run, records_of
from prefixguard.simulation import Choice, PlayedRun, Turn, play
from prefixguard.simulation.support.faults import FAULTS
from prefixguard.trace import Outcome

#: Faults that change no outcome: never put into a run.
_HARMLESS = frozenset({"repeated_read", "unconfirmed"})
#: A check that is skipped: nothing is wrong yet at that step, and the policy that asks for it is in no record.
_UNSHOWN = "unverified"
#: Kinds that are put into runs.
SIMULATED_FAULTS = tuple(sorted(set(FAULTS) - _HARMLESS - {_UNSHOWN}))
#: Leave is taken before a wish is served. The customer says some wishes only when the agent comes to them: then the
#: fault takes words from the customer, and no record shows what the agent forgets.
_UNSERVED = "forgotten_wish"
#: A point behind all others.
_END = 1 << 30
#: The seed of a run of `generate`: its trial stands behind it.
_GENERATED = "generated/"
#: Who serves which wish, where messages carry names; all else is the reception's.
_DESKS = {"cancel": "orders", "address": "orders", "payment": "orders"} | dict.fromkeys(
    ("return", "exchange", "refund"), "returns"
)


class SimulationEnvironment:
    """The shop of `prefixguard.simulation`, whose agent makes a fault, or none, at each point of its plan.

    A decision is such a point, and an action {"point": ..., "fault": kind or None}. Agents are the profiles of the
    simulation. Runs of `generate` can be played again too (seed "generated/TRIAL"); in all others three agents, named
    in the messages, serve the customer: reception, orders and returns.

    world : seed of its tasks.
    """

    name = "simulation"
    licence = "MIT"
    chances = "keyed"

    def __init__(self, world: int = 0) -> None:
        self._world = world
        self._task, self._seed, self._agent = "support-00000", "0", ""
        self._turns: tuple[Turn, ...] = ()
        self._point = 0
        self._stepped = False
        self._known: PlayedRun | None = None
        self._checked: tuple[LabelledRun, PlayedRun] | None = None  # the recorded run that was played again last

    @property
    def spec(self) -> dict[str, Any]:
        return {"name": self.name, "world": self._world}

    def tasks(self, count: int) -> list[str]:
        return [f"support-{number:05d}" for number in range(count)]

    def reset(self, task: str, seed: str, agent: str = "") -> str:
        self._begin(_checked(task), seed, agent, ())
        return str(self._played(0).messages[-1].get("content", ""))

    def decisions(self, run: LabelledRun) -> tuple[Decision, ...]:
        self._open(run)
        return tuple(map(self._decision, self._whole().choices))

    def replay(self, run: LabelledRun, place: int) -> None:
        self._open(run)
        if not 0 <= place <= len(self._whole().choices):
            raise ReplayError(f"run {run.run_id!r} has no decision {place}: it has {len(self._whole().choices)}.")
        points = [choice.place for choice in self._whole().choices]
        self._point = points[place] if place < len(points) else _END

    def step(self, action: Action) -> str:
        fault = action.get("fault")
        self._turns += (Turn(self._point, True, fault),)
        self._point, self._stepped, self._known = self._point + 1, True, None
        played = self._played(self._point)
        said = [str(message.get("content") or "") for message in played.messages[played.choices[-1].before :]]
        return "\n".join(filter(None, said))

    def continuation(self, salt: str | None) -> Outcome:
        if salt is not None and self._stepped:
            self._turns = (*self._turns[:-1], replace(self._turns[-1], salt=salt))
        elif salt is not None:
            self._turns += (Turn(self._point, salt=salt),)
        self._known = None
        self._point = _END
        return self.verify()

    def verify(self) -> Outcome:
        return _outcome(self._played(self._point))

    def trace(self) -> dict[str, Any]:
        return self._told(self._played(self._point))

    def provenance(self) -> dict[str, Any]:
        turns = [asdict(turn) for turn in self._turns]
        return {
            "environment": self.spec, "task": self._task, "seed": self._seed, "agent": self._agent, "turns": turns
        }  # fmt: skip

    def complaint(self, run: LabelledRun) -> str:
        self._open(run)
        return "the agent made a fault" if self._whole().faults else ""

    def corrections(self, run: LabelledRun) -> list[Proposal]:
        self._open(run)
        found = [(place, one) for place, one in enumerate(self._whole().choices) if one.fault is not None]
        return [Proposal(place, _right(one), f"a {one.fault} was made here") for place, one in found]

    def correction(self, run: LabelledRun, step: int, said: Mapping[str, Any]) -> Proposal | None:
        self._open(run)
        for place, choice in enumerate(self._whole().choices):
            if choice.step == step and choice.fault is not None:
                return Proposal(place, _right(choice), str(said.get("reason", ""))[:500])
        return None

    def reference(self, run: LabelledRun) -> str:
        self._open(run)
        wishes = [f"{wish.tool} {json.dumps(dict(wish.arguments))}" for wish in self._whole().wishes]
        return "; ".join(["verify_identity of the customer", *wishes])

    def fork(self) -> Self:
        return copy.copy(self)

    def close(self) -> None:
        pass

    def labelled(self, run: dict[str, Any]) -> LabelledRun:
        """A run of `generate(seed=world)` in the form of the factory, without labels."""
        task, _, trial = str(run["run_id"]).rpartition("-")
        made = {"environment": self.spec, "task": task, "seed": f"{_GENERATED}{trial}", "agent": "", "turns": []}
        return LabelledRun(bare_run(run), "natural", family=task, provenance=made)

    def _open(self, run: LabelledRun) -> None:
        """Take up how a run was made, and see that it comes out as it is recorded."""
        task, seed, agent = how_made(run, self.spec)
        try:
            self._begin(_checked(task), seed, agent, tuple(Turn(**turn) for turn in run.provenance["turns"]))
        except (ConfigError, KeyError, TypeError) as exc:
            raise UnreplayableRun(f"run {run.run_id!r}: its provenance is not of the simulation ({exc}).") from exc
        if self._checked is None or self._checked[0] is not run:
            again = self._told(self._whole())["messages"]
            if again != run.run["messages"]:
                step = _first_difference(again, run)
                raise ReplayDrift(f"run {run.run_id!r}, step {step}: the simulation plays it otherwise than it was.")
            self._checked = run, self._whole()
        self._known = self._checked[1]

    def _begin(self, task: str, seed: str, agent: str, turns: tuple[Turn, ...]) -> None:
        self._task, self._seed, self._agent, self._turns = task, seed, agent, turns
        self._point, self._stepped, self._known = 0, False, None

    def _told(self, played: PlayedRun) -> dict[str, Any]:
        messages = played.messages if self._seed.startswith(_GENERATED) else _with_names(played)
        return {
            "run_id": self._name().replace("/", "-"),
            "task_id": self._task,
            "agent": played.agent,
            "outcome": str(_outcome(played)),
            "messages": messages,
        }

    def _name(self) -> str:
        number = int(self._task.removeprefix("support-"))
        if self._seed.startswith(_GENERATED):
            return f"{self._world}/support/run/{number}/{self._seed.removeprefix(_GENERATED)}"
        return f"{self._world}/{self._task}/{self._seed}"

    def _decision(self, choice: Choice) -> Decision:
        kinds = set(choice.can) - _HARMLESS - {_UNSHOWN, choice.fault}
        if _UNSERVED in (*kinds, choice.fault) and not self._agent_is_next(choice):
            kinds.discard(_UNSERVED)
            is_shown = choice.fault != _UNSERVED
        else:
            is_shown = choice.fault != _UNSHOWN
        can = {kind: {"point": choice.name, "fault": kind} for kind in choice.can if kind in kinds}
        return Decision(choice.step, {"point": choice.name, "fault": choice.fault}, None, can, is_shown)

    def _agent_is_next(self, choice: Choice) -> bool:
        """Whether nobody else speaks between a point where the agent makes no fault and what the agent does next."""
        right = self.fork()
        if choice.fault is not None:
            right._turns, right._known = (*self._turns, Turn(choice.place, True, None)), None
        messages, before = right._whole().messages, choice.before
        heard = self._play(choice.place).messages  # what the customer says next may be added to the last message
        return bool(messages[before]["role"] == "assistant") and messages[:before] == heard

    def _whole(self) -> PlayedRun:
        """The run to its end, with all turns so far."""
        if self._known is None:
            self._known = self._play(None)
        return self._known

    def _played(self, point: int) -> PlayedRun:
        """The run as far as it stands."""
        return self._whole() if point == _END else self._play(point)

    def _play(self, pause: int | None) -> PlayedRun:
        number, keyed = int(self._task.removeprefix("support-")), not self._seed.startswith(_GENERATED)
        return play(
            self._world, number, self._name(), agent=self._agent, keyed=keyed, turns=self._turns, pause=pause
        )  # fmt: skip


def _checked(task: str) -> str:
    if not (task.startswith("support-") and task.removeprefix("support-").isdecimal() and task.isascii()):
        raise ConfigError(f"task {task!r} is none of the simulation: support-00000, support-00001, ...")
    return task


def _outcome(played: PlayedRun) -> Outcome:
    if not played.ended:
        return Outcome.UNKNOWN
    return Outcome.SUCCESS if played.reached else Outcome.FAILURE


def _right(choice: Choice) -> Action:
    return {"point": choice.name, "fault": None}


def _with_names(played: PlayedRun) -> list[dict[str, Any]]:
    """The messages, with the name of the agent in each of an agent."""
    begins = [choice.step for choice in played.choices if choice.name == "begin"]
    named, steps = [], 0
    for message in played.messages:
        if message["role"] == "assistant":
            wish = sum(step <= steps + 1 for step in begins)
            desk = _DESKS.get(played.wishes[wish - 1].kind, "reception") if wish else "reception"
            message = {"role": "assistant", "name": desk, **message}
            steps += len(message.get("tool_calls", "1"))
        named.append(message)
    return named


def _first_difference(messages: list[dict[str, Any]], run: LabelledRun) -> int:
    """The first record that differs, from 1."""
    ours, theirs = records_of({"messages": messages}), run.records()
    same = sum(1 for _ in _while_equal(ours, theirs))
    return min(same + 1, max(len(ours), len(theirs)))


def _while_equal(ours: Any, theirs: Any) -> Any:
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            return
        yield one
