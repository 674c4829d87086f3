"""What needs no auditor: constants, who is most active, chance. Beside these any figure of attribution is to be read.

On public attribution sets a fixed step or agent is as good as published systems, so a table without these rows says
little. Whatever is learned from labels is learned from those of other tasks; the one row that is not says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from prefixguard.auditor.audited_system import AuditedSystem, StepIndex, audit_runs, audited, step_number
from prefixguard.errors import ConfigError
from prefixguard.metrics import AuditedRun
from prefixguard.stepview import StepRecord
from prefixguard.trace import Outcome, Run

Int = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Placed:
    """A labelled run: its task, the number of its last step, and that of the decisive one (at most the last)."""

    task: str
    n_steps: int
    gold: int


def best_constant(runs: Sequence[Placed]) -> int:
    """The constant with most hits on these very runs; of several the one with most near hits, then the smallest.

    A constant beyond the end of a run blames its last step. 1 where there is no run.

    >>> best_constant([Placed("a", 9, 4), Placed("b", 3, 3), Placed("c", 9, 2)])
    4
    """
    size = max((run.n_steps for run in runs), default=1)
    return _best(_scores(runs, size))


def best_constants(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the best constant of all other tasks."""
    size = max((run.n_steps for run in runs), default=1)
    whole = _scores(runs, size)
    own = _by_task(runs)
    return {task: _best(whole - _scores(own.get(task, ()), size)) for task in tasks}


def mode_steps(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the commonest decisive step of all other tasks; of several the smallest. 1 where there is none."""
    whole = Counter(run.gold for run in runs)
    own = _by_task(runs)
    found = {}
    for task in tasks:
        rest = whole - Counter(run.gold for run in own.get(task, ()))
        found[task] = min(rest, key=lambda step: (-rest[step], step), default=1)
    return found


def median_steps(runs: Sequence[Placed], tasks: Sequence[str]) -> dict[str, int]:
    """For each task the median decisive step of all other tasks (the lower of two): the constant of least shift."""
    own = _by_task(runs)
    ordered = sorted(run.gold for run in runs)
    found = {}
    for task in tasks:
        mine = Counter(run.gold for run in own.get(task, ()))
        rest = []
        for step in ordered:
            if mine[step]:
                mine[step] -= 1
            else:
                rest.append(step)
        found[task] = rest[(len(rest) - 1) // 2] if rest else 1
    return found


def _by_task(runs: Sequence[Placed]) -> Mapping[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for run in runs:
        found.setdefault(run.task, []).append(run)
    return found


def _scores(runs: Sequence[Placed], size: int) -> Int:
    """Hits and near hits (an error of one step) of the constants 1..size, int64 (2, size)."""
    rises = np.zeros((2, size + 2), dtype=np.int64)  # a step up at the first constant that counts, down after the last
    for run in runs:
        for row, slack in ((0, 0), (1, 1)):
            first, last = max(1, run.gold - slack), run.gold + slack
            if first > run.n_steps:
                continue
            # The last step stands for every constant beyond it.
            last = size if last >= run.n_steps else last
            rises[row, first] += 1
            rises[row, last + 1] -= 1
    return np.cumsum(rises, axis=1)[:, 1 : size + 1]


def _best(scores: Int) -> int:
    hits, near = scores
    return int(np.lexsort((np.arange(len(hits)), -near, -hits))[0]) + 1


AnyRun = Run[StepRecord]
#: A guess: the record that is blamed, or None for nobody.
Rule = Callable[[AnyRun, Sequence[StepRecord]], StepRecord | None]


def trivial_baselines(
    runs: Sequence[AnyRun],
    *,
    index: StepIndex = "record",
    constants: Sequence[int] = (1, 2, 4, 8),
    blame: Literal["agents", "all"] = "agents",
    seed: int = 13,
) -> tuple[AuditedSystem, ...]:
    """Trivial auditors of these runs, those that judge a finished run first, then those that walk.

    runs: those that nobody judged, and empty ones, are left out. index: how steps are numbered, constants too.
    constants: fixed steps of which each gets a row; beyond the end of a run they blame its last step.
    blame: "agents": chance, first and last choose among steps of agents; "all": among all steps.
    seed: of the one row that is drawn. Raises ConfigError for a constant below 1.
    """
    if any(constant < 1 for constant in constants):
        raise ConfigError(f"trivial baselines: constant {min(constants)} is no step: steps count from 1.")
    kept = audit_runs(runs)
    choices = [_choices(run, blame) for run in kept]
    placed = _placed(kept, index)
    tasks = sorted({_task(run) for run in kept})

    def fixed(name: str, step_of: Callable[[AnyRun], int], note: str, *, hindsight: bool = False) -> AuditedSystem:
        rows = tuple(_constant(run, step_of(run), index) for run in kept)
        return AuditedSystem(name, rows, note, trivial=True, hindsight=hindsight)

    def guessed(name: str, rule: Rule, note: str) -> AuditedSystem:
        rows = tuple(_row(run, rule(run, own), index) for run, own in zip(kept, choices, strict=True))
        return AuditedSystem(name, rows, note, trivial=True)

    best, mode, median = best_constants(placed, tasks), mode_steps(placed, tasks), median_steps(placed, tasks)
    hindsight = best_constant(placed)
    word = "step" if index == "record" else "entry"
    majority = _majority(kept)
    rng = np.random.default_rng(seed)
    found = [
        fixed(f"{word} {constant}", lambda run, k=constant: k, f"always {word} {constant}")  # type: ignore[misc]
        for constant in dict.fromkeys(constants)
    ]
    found += [
        fixed(
            f"best {word}, in hindsight",
            lambda run: hindsight,
            f"{word} {hindsight}, the best constant on these very runs",
            hindsight=True,
        ),
        fixed(f"best {word} elsewhere", lambda run: best[_task(run)], "the best constant on all other tasks"),
        fixed(f"mode {word} elsewhere", lambda run: mode[_task(run)], "the commonest decisive step elsewhere"),
        fixed(f"median {word} elsewhere", lambda run: median[_task(run)], "the median decisive step elsewhere"),
        guessed("first agent", lambda run, own: own[0] if own else None, "who acts first, there"),
        guessed("last agent", lambda run, own: own[-1] if own else None, "who acts last, there"),
        guessed("most active agent", lambda run, own: _first_of(own, _most_active(own)), "at its first step"),
        guessed(
            "majority agent elsewhere",
            lambda run, own: _first_of(own, majority(run, own)),
            "of the run's agents the one at fault most often elsewhere, at its first step",
        ),
        _chance("random agent", kept, choices, index, of_agents=True),
        _chance("random step", kept, choices, index, of_agents=False),
        guessed(
            "random step, drawn", lambda run, own: own[int(rng.integers(len(own)))] if own else None, f"seed {seed}"
        ),
        *_walkers(kept, choices, index),
    ]
    return tuple(found)


def _walkers(
    runs: Sequence[AnyRun], choices: Sequence[Sequence[StepRecord]], index: StepIndex
) -> tuple[AuditedSystem, ...]:
    """Trivial auditors that watch a run as it goes: they know when they alarm."""
    at_error, before_error, at_once, never = [], [], [], []
    for run, own in zip(runs, choices, strict=True):
        seen = next((record for record in run.records if record.status == "error"), None)
        # Where the result is a step of its own, the environment's, the agent's step before it is meant.
        passed = [] if seen is None else [record for record in own if record.index <= seen.index]
        at_error.append(_row(run, passed[-1] if passed else None, index, silent="safe", at=seen))
        before_error.append(_row(run, passed[-2:][0] if passed else None, index, silent="safe", at=seen))
        first = own[0] if own else None
        at_once.append(_row(run, first, index, silent="safe", at=first))
        never.append(audited(run, "safe", index=index, cost=0.0))
    return (
        AuditedSystem("first error", tuple(at_error), "the step whose result is the first error", trivial=True),
        AuditedSystem("before the first error", tuple(before_error), "the step before that", trivial=True),
        AuditedSystem("alarm at once", tuple(at_once), "alarms at the first step, and blames it", trivial=True),
        AuditedSystem("never alarm", tuple(never), "says safe of every run", trivial=True),
    )


def _chance(
    name: str,
    runs: Sequence[AnyRun],
    choices: Sequence[Sequence[StepRecord]],
    index: StepIndex,
    *,
    of_agents: bool,
) -> AuditedSystem:
    """Every guess that may be made, each with its probability."""
    rows: list[AuditedRun] = []
    for run, own in zip(runs, choices, strict=True):
        if not own:
            rows.append(_row(run, None, index))
        elif of_agents:
            names = sorted({record.agent for record in own})
            share = 1.0 / len(names)
            rows += [audited(run, "alarm", agent=agent or None, index=index, cost=0.0, share=share) for agent in names]
        else:
            rows += [_row(run, record, index, share=1.0 / len(own)) for record in own]
    what = "agents of the run" if of_agents else "steps"
    return AuditedSystem(name, tuple(rows), f"all {what} alike; the expectation, not a draw", trivial=True)


def _row(
    run: AnyRun,
    record: StepRecord | None,
    index: StepIndex,
    *,
    silent: Literal["safe", "abstain"] = "abstain",
    at: StepRecord | None = None,
    share: float = 1.0,
) -> AuditedRun:
    if record is None:
        return audited(run, silent, index=index, cost=0.0, share=share)
    return audited(
        run,
        "alarm",
        step=record.index,
        agent=record.agent or None,
        alarm_step=None if at is None else at.index,
        index=index,
        cost=0.0,
        share=share,
    )


def _constant(run: AnyRun, number: int, index: StepIndex) -> AuditedRun:
    """Blames a number, at most that of the last step, and who acted there; nobody where the entry is no step."""
    silent = audited(run, "safe", index=index, cost=0.0)
    number = min(number, silent.n_steps)
    actor = next((record.agent for record in run.records if step_number(run, record.index, index) == number), "")
    return replace(silent, outcome="alarm", step=number, agent=actor or None)


def _majority(runs: Sequence[AnyRun]) -> Callable[[AnyRun, Sequence[StepRecord]], str]:
    """Which of a run's agents is at fault most often in runs of other tasks; the first to act where none ever was."""
    whole: Counter[str] = Counter()
    own_task: dict[str, Counter[str]] = {}
    for run in runs:
        if run.outcome is Outcome.FAILURE and run.mistake is not None and run.mistake.agent:
            whole[run.mistake.agent] += 1
            own_task.setdefault(_task(run), Counter())[run.mistake.agent] += 1

    def choose(run: AnyRun, own: Sequence[StepRecord]) -> str:
        here = own_task.get(_task(run), Counter())
        names = dict.fromkeys(record.agent for record in own)
        return max(names, key=lambda name: whole[name] - here[name], default="")

    return choose


def _most_active(own: Sequence[StepRecord]) -> str:
    """The agent with most steps; of several the first to act."""
    counts = Counter(record.agent for record in own)
    return max(counts, key=lambda name: counts[name], default="")


def _first_of(own: Sequence[StepRecord], agent: str) -> StepRecord | None:
    return next((record for record in own if record.agent == agent), None)


def _choices(run: AnyRun, blame: Literal["agents", "all"]) -> tuple[StepRecord, ...]:
    return tuple(record for record in run.records if blame == "all" or record.actor == "agent")


def _placed(runs: Sequence[AnyRun], index: StepIndex) -> list[Placed]:
    rows = ((run, audited(run, "safe", index=index)) for run in runs)
    return [Placed(_task(run), row.n_steps, row.gold_step) for run, row in rows if row.gold_step is not None]


def _task(run: AnyRun) -> str:
    return run.run_id if run.task_id is None else run.task_id
