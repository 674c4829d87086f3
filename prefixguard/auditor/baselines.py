"""What needs no auditor: constants, who is most active, chance. Beside these any figure of attribution is to be read.

On public attribution sets a fixed step or agent is as good as published systems, so a table without these rows says
little. Whatever is learned from labels is learned from those of other tasks; the one row that is not says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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


@dataclass(frozen=True, slots=True)
class ConstantSteps:
    """Constants for the runs of one task, from those of all others.

    best: see `best_constant`. mode: the commonest decisive step, of several the smallest. median: the median one (the
    lower of two), the constant of least shift. 1 where there is no run.
    """

    best: int
    mode: int
    median: int


def constants_elsewhere(runs: Sequence[Placed], tasks: Iterable[str]) -> dict[str, ConstantSteps]:
    """For each task the constants of all other tasks."""
    size = max((run.n_steps for run in runs), default=1)
    scores, golds = _scores(runs, size), Counter(run.gold for run in runs)
    own: dict[str, list[Placed]] = {}
    for run in runs:
        own.setdefault(run.task, []).append(run)
    found = {}
    for task in tasks:
        here = own.get(task, [])
        rest = golds - Counter(run.gold for run in here)
        ordered = sorted(rest.elements()) or [1]
        found[task] = ConstantSteps(
            best=_best(scores - _scores(here, size)),
            mode=min(rest, key=lambda step: (-rest[step], step), default=1),
            median=ordered[(len(ordered) - 1) // 2],
        )
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
    own = {run.run_id: tuple(r for r in run.records if blame == "all" or r.actor == "agent") for run in kept}
    labelled = [(_task(run), audited(run, "safe", index=index)) for run in kept]
    placed = [Placed(task, row.n_steps, row.gold_step) for task, row in labelled if row.gold_step is not None]
    elsewhere = constants_elsewhere(placed, sorted({task for task, _ in labelled}))
    hindsight, majority = best_constant(placed), _majority(kept)
    word = "step" if index == "record" else "entry"
    rng = np.random.default_rng(seed)

    def fixed(name: str, step_of: Callable[[AnyRun], int], note: str) -> AuditedSystem:
        rows = tuple(_constant(run, step_of(run), index) for run in kept)
        return AuditedSystem(name, rows, note, trivial=True, hindsight="hindsight" in name)

    def guessed(name: str, rule: Rule, note: str) -> AuditedSystem:
        rows = tuple(_row(run, rule(run, own[run.run_id]), index) for run in kept)
        return AuditedSystem(name, rows, note, trivial=True)

    def of_agent(name_of: Callable[[AnyRun, Sequence[StepRecord]], str]) -> Rule:
        return lambda run, steps: next((record for record in steps if record.agent == name_of(run, steps)), None)

    hindsight_note = f"{word} {hindsight}, the best constant on these very runs"
    constant_rows: list[tuple[str, Callable[[AnyRun], int], str]] = [
        *((f"{word} {k}", lambda run, k=k: k, f"always {word} {k}") for k in dict.fromkeys(constants)),
        (f"best {word}, in hindsight", lambda run: hindsight, hindsight_note),
        (f"best {word} elsewhere", lambda run: elsewhere[_task(run)].best, "the best constant on all other tasks"),
        (f"mode {word} elsewhere", lambda run: elsewhere[_task(run)].mode, "the commonest decisive step elsewhere"),
        (f"median {word} elsewhere", lambda run: elsewhere[_task(run)].median, "the median decisive step elsewhere"),
    ]
    majority_note = "of the run's agents the one at fault most often elsewhere, at its first step"
    return (
        *(fixed(*row) for row in constant_rows),
        guessed("first agent", lambda run, steps: steps[0] if steps else None, "who acts first, there"),
        guessed("last agent", lambda run, steps: steps[-1] if steps else None, "who acts last, there"),
        guessed("most active agent", of_agent(_most_active), "at its first step"),
        guessed("majority agent elsewhere", of_agent(majority), majority_note),
        _chance("random agent", kept, own, index, of_agents=True),
        _chance("random step", kept, own, index, of_agents=False),
        guessed(
            "random step, drawn",
            lambda run, steps: steps[int(rng.integers(len(steps)))] if steps else None,
            f"seed {seed}",
        ),
        *_walkers(kept, own, index),
    )


#: Steps that may be blamed, by run id.
Choices = Mapping[str, Sequence[StepRecord]]


def _walkers(runs: Sequence[AnyRun], choices: Choices, index: StepIndex) -> Iterator[AuditedSystem]:
    """Trivial auditors that watch a run as it goes: they know when they alarm."""
    found: dict[tuple[str, str], list[AuditedRun]] = {
        ("first error", "the step whose result is the first error"): [],
        ("before the first error", "the step before that"): [],
        ("alarm at once", "alarms at the first step, and blames it"): [],
        ("never alarm", "says safe of every run"): [],
    }
    for run in runs:
        own = choices[run.run_id]
        seen = next((record for record in run.records if record.status == "error"), None)
        # Where the result is a step of its own, the environment's, the agent's step before it is meant.
        passed = [] if seen is None else [record for record in own if record.index <= seen.index]
        nobody: Sequence[StepRecord] = ()
        blamed = ((passed[-1:], seen), (passed[-2:], seen), (own[:1], own[0] if own else None), (nobody, None))
        for rows, (steps, at) in zip(found.values(), blamed, strict=True):
            rows.append(_row(run, steps[0] if steps else None, index, silent="safe", at=at))
    return (AuditedSystem(name, tuple(rows), note, trivial=True) for (name, note), rows in found.items())


def _chance(
    name: str,
    runs: Sequence[AnyRun],
    choices: Choices,
    index: StepIndex,
    *,
    of_agents: bool,
) -> AuditedSystem:
    """Every guess that may be made, each with its probability."""
    rows: list[AuditedRun] = []
    for run in runs:
        own = choices[run.run_id]
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


def _most_active(run: AnyRun, own: Sequence[StepRecord]) -> str:
    """The agent with most steps; of several the first to act."""
    counts = Counter(record.agent for record in own)
    return max(counts, key=lambda name: counts[name], default="")


def _task(run: AnyRun) -> str:
    return run.run_id if run.task_id is None else run.task_id
