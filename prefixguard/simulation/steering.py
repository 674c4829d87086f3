"""Runs of the simulation that are played again, differently from a chosen point on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from prefixguard.errors import ConfigError
from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.dice import Dice, ForcedDice, KeyedDice, PausedDice, SteeredDice
from prefixguard.simulation.support.faults import PROFILES
from prefixguard.simulation.support.observer import Point, plan
from prefixguard.simulation.support.script import Script
from prefixguard.simulation.support.tasks import Task, Wish, make_task, reach_goal
from prefixguard.simulation.support.tools import Database

#: Names of the agents that play.
AGENTS = tuple(profile.name for profile in PROFILES)


@dataclass(frozen=True, slots=True)
class Turn:
    """Where a run that is played again leaves the one before.

    place: the point, from 0. forced: whether the agent is told what to do there; then `fault` is what: a kind of fault,
    or None for none. salt: names the chances from there on; None: the run's own.
    """

    place: int
    forced: bool = False
    fault: str | None = None
    salt: str | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """What the agent did at a point. name: lookup, verify, begin, locate, confirm or write. fault: None for none.
    step: the next record, from 1. before: messages before it. can: the faults that its agent makes there with a chance
    above 0."""

    place: int
    name: str
    fault: str | None
    step: int
    before: int
    can: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PlayedRun:
    """A run of the simulation. faults: as in the metadata of `generate`. wishes: what the customer wants, in order.
    ended: it was not paused. reached: whether the customer got what was wanted."""

    messages: list[dict[str, Any]]
    agent: str
    faults: tuple[Mapping[str, Any], ...]
    choices: tuple[Choice, ...]
    wishes: tuple[Wish, ...]
    ended: bool
    reached: bool


def play(
    world: int,
    number: int,
    name: str,
    *,
    agent: str = "",
    keyed: bool = True,
    turns: Sequence[Turn] = (),
    pause: int | None = None,
) -> PlayedRun:
    """Play a run, the same whenever it is asked for.

    world, number: seed and task. name: decides everything else. agent: of `AGENTS`; "": drawn, as `generate` does.
    keyed: its chances are named by their decisions; False: one stream, as in `generate`. turns: where it differs.
    pause: stop before this point.
    Raises ConfigError for an agent that is not there, and for a fault that the agent cannot make at its place.
    """
    task, points, goal = _world(world, number)
    if agent and agent not in AGENTS:
        raise ConfigError(f"there is no agent {agent!r} in the simulation; there are: {', '.join(AGENTS)}")
    shares = [profile.share for profile in PROFILES]
    player = AGENTS.index(agent) if agent else Rng(f"{name}/player").weighted(range(len(PROFILES)), shares)
    dice = KeyedDice(name) if keyed else Dice(name)
    for turn in turns:
        then = None if turn.salt is None else KeyedDice(turn.salt)
        if not turn.forced:
            dice = SteeredDice(dice, turn.place, then)
            continue
        if turn.fault is not None and not points[turn.place].faults.get(turn.fault, (0.0,) * len(AGENTS))[player]:
            raise ConfigError(f"{AGENTS[player]} never makes the fault {turn.fault!r} at {points[turn.place].name}")
        dice = ForcedDice(dice, turn.place, then, turn.fault)
    if pause is not None:
        dice = PausedDice(dice, pause, None)
    database = Database(task.shop)
    script = Script(task, points, PROFILES, player, database, name, dice=dice)
    script.play()
    choices = tuple(
        Choice(*made, tuple(kind for kind, chances in points[made[0]].faults.items() if chances[player]))
        for made in script.choices
    )
    return PlayedRun(
        script.transcript.messages,
        AGENTS[player],
        tuple(script.faults),
        choices,
        task.wishes,
        not script.paused,
        database.state() == goal,
    )


@lru_cache(maxsize=64)
def _world(world: int, number: int) -> tuple[Task, tuple[Point, ...], Any]:
    task = make_task(world, number)
    return task, plan(task, PROFILES), reach_goal(Database(task.shop), task)
