"""Runs of the simulation: as objects, and as a file of JSON lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from prefixguard.errors import ConfigError, OutputError
from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.faults import PROFILES
from prefixguard.simulation.support.observer import plan
from prefixguard.simulation.support.script import Script
from prefixguard.simulation.support.tasks import Task, make_task, reach_goal
from prefixguard.simulation.support.tools import Database

WORLDS: tuple[str, ...] = ("support",)


def generate(
    n_runs: int, seed: int, *, world: str = "support", trials: int = 4, max_steps: int | None = None
) -> Iterator[dict[str, Any]]:
    """Simulated runs of an agent, each a chat-completions history and how it ended.

    n_runs: how many; >= 0. The first k runs of a seed are the same whatever n_runs is.
    seed: same seed, same runs, byte for byte, in any process.
    world: one of `WORLDS`.
    trials: runs of every task, each by an agent drawn anew; >= 1.
    max_steps: a run is cut off after so many steps; None: lengths are open (roughly memoryless), no run is cut.

    Yields objects as the adapter `openai_chat` reads them: `run_id`, `task_id`, `agent` (the profile), `outcome`,
    `messages`; and under `metadata` what no monitor may see: `world`, `wishes`, `faults` (kind, step from 1, visible,
    harmless, repaired), `mistake_step` (the first fault that was not made good; None in a success), `observable` (a
    failed run: whether some fault that lost it shows in the trace; None in a success), `true_risk` (after every step;
    None with `max_steps`, for which it is not known). Steps are the records of that adapter.

    Raises ConfigError for an unknown world or a number out of range.

    >>> run = next(generate(1, seed=7))
    >>> run["task_id"], run["messages"][1]["role"], len(run["metadata"]["true_risk"]) > 3
    ('support-00000', 'user', True)
    """
    if world not in WORLDS:
        raise ConfigError(f"there is no simulation world named {world!r}; the worlds are: {', '.join(WORLDS)}")
    if n_runs < 0:
        raise ConfigError(f"n_runs is {n_runs}; it must be 0 or more")
    if trials < 1:
        raise ConfigError(f"trials is {trials}; it must be 1 or more")
    if max_steps is not None and max_steps < 1:
        raise ConfigError(f"max_steps is {max_steps}; it must be 1 or more, or None for no cap")
    return _support(n_runs, seed, trials, max_steps)


def _support(n_runs: int, seed: int, trials: int, max_steps: int | None) -> Iterator[dict[str, Any]]:
    shares = [profile.share for profile in PROFILES]
    for number in range(-(-n_runs // trials)):
        task = make_task(seed, number)
        points = plan(task, PROFILES)
        goal = reach_goal(Database(task.shop), task)
        for trial in range(min(trials, n_runs - number * trials)):
            name = f"{seed}/support/run/{number}/{trial}"
            player = Rng(f"{name}/player").weighted(range(len(PROFILES)), shares)
            database = Database(task.shop)
            script = Script(task, points, PROFILES, player, database, name, max_steps)
            script.play()
            yield _describe(task, trial, PROFILES[player].name, script, database.state() == goal, max_steps is None)


def _describe(task: Task, trial: int, agent: str, script: Script, reached: bool, open_end: bool) -> dict[str, Any]:
    losses = [fault for fault in script.faults if not fault["harmless"] and not fault["repaired"]]
    return {
        "run_id": f"{task.task_id}-{trial}",
        "task_id": task.task_id,
        "agent": agent,
        "outcome": "success" if reached else "failure",
        "messages": script.transcript.messages,
        "metadata": {
            "world": "support",
            "wishes": [wish.kind for wish in task.wishes],
            "faults": script.faults,
            "mistake_step": None if reached else min((fault["step"] for fault in losses), default=None),
            "observable": None if reached else any(fault["visible"] for fault in losses),
            "true_risk": script.risks if open_end else None,
        },
    }


def write_runs(
    path: str | Path,
    n_runs: int,
    seed: int,
    *,
    world: str = "support",
    trials: int = 4,
    max_steps: int | None = None,
) -> int:
    """Write the runs of `generate` to a file, one JSON object a line; returns the bytes written.

    An existing file is replaced, at once and only when all is written. Raises OutputError if the file cannot be
    written.
    """
    path = Path(path)
    runs = generate(n_runs, seed, world=world, trials=trials, max_steps=max_steps)
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    written = 0
    try:
        with part.open("wb") as out:
            for run in runs:
                written += out.write(orjson.dumps(run, option=orjson.OPT_APPEND_NEWLINE))
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OutputError(
            f"cannot write the simulation's runs to {path}: {error.strerror}; name a place with room"
        ) from error
    return written
