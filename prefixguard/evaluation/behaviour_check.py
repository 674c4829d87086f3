"""A file of behaviours, checked, and tried on runs: how often each behaviour holds, in failed runs and in others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from prefixguard import behaviours as room
from prefixguard import context
from prefixguard.behaviours import BY_NAME, DeclaredBehaviours, load_behaviours
from prefixguard.encoder import tokenize
from prefixguard.results import Block, Bullets, Result, TableBlock, Text, percent
from prefixguard.runtime import parse, plain
from prefixguard.stepview import Adapter, ReadReport, StepRecord, serialize
from prefixguard.trace import Outcome, Run


@dataclass(frozen=True, slots=True)
class BehaviourCount:
    """How often a behaviour holds.

    declared : whether it is one of the file. steps : number of steps. failed, succeeded : number of runs of either
    outcome in which it holds at least once. first : the run, and the finding in words; "" where it never holds.
    """

    name: str
    kind: str
    declared: bool
    steps: int
    failed: int
    succeeded: int
    first: str


@dataclass(frozen=True, slots=True)
class BehaviourCheck(Result):
    """What a file of behaviours declares, and what it finds.

    name, sha256 : of the file. declared, tools : number of behaviours and of tools in it.
    runs, failed, succeeded, steps : what it was tried on; 0 where it was not tried. counts : of its own behaviours, in
    its order, then of those of the catalogue.
    """

    name: str
    sha256: str
    declared: int
    tools: int
    runs: int
    failed: int
    succeeded: int
    steps: int
    counts: tuple[BehaviourCount, ...]

    @property
    def silent(self) -> tuple[str, ...]:
        """Declared behaviours that hold nowhere, where runs were given."""
        return tuple(one.name for one in self.counts if one.declared and not one.steps) if self.runs else ()

    def blocks(self) -> tuple[Block, ...]:
        """The check for people."""
        head = Text(f"{self.name} {self.sha256[:12]}: {self.declared} behaviours, {self.tools} tools. No errors.")
        if not self.runs:
            return (head, Text("Not tried on runs. Name some to see how often each behaviour holds.", "faint"))
        rows = [
            [one.name, one.kind, "file" if one.declared else "catalogue", f"{one.steps:,}",
             _share(one.failed, self.failed), _share(one.succeeded, self.succeeded)]
            for one in self.counts
            if one.steps or one.declared
        ]  # fmt: skip
        head_row = ["", "kind", "of", "steps", "failed runs", "successful runs"]
        found = TableBlock.of(f"How often in {self.runs:,} runs, {self.steps:,} steps", head_row, rows)
        first = Bullets(tuple(one.first for one in self.counts if one.declared and one.first), "First found")
        never = [f"{name} holds nowhere in these runs: is its condition right?" for name in self.silent]
        return (head, found, *([first] if first.items else []), *[Text(one, "care") for one in never])


def _share(n: int, of: int) -> str:
    return percent(n / of) if of else "-"


def check_behaviours(
    behaviours: str | Path,
    runs: str | os.PathLike[str] | None = None,
    *,
    adapter: str | Path | Adapter | None = None,
    labels: str | os.PathLike[str] | None = None,
    report: ReadReport | None = None,
) -> BehaviourCheck:
    """Check a file of behaviours, and count on runs how often each behaviour holds.

    behaviours : file of declared behaviours (.json, `prefixguard/behaviours/v1`).
    runs : file, folder, glob or tar of runs to try it on, or - for standard input; none: the file alone is checked.
    adapter : how runs are read: a shipped adapter's name, or the path of a .json.
    labels : outcomes beside the runs: run_id,outcome[,task_id] as .jsonl or .csv.
    report : filled with what reading met.

    Raises ConfigError for a file that is wrong, AdapterError, TraceError.
    """
    declared = load_behaviours(behaviours)
    given = [] if runs is None else parse(runs, adapter, labels=labels, report=report)
    return _counted(declared, given)


def _counted(declared: DeclaredBehaviours, runs: Iterable[Run[StepRecord]]) -> BehaviourCheck:
    kinds = {one.behaviour.name: one.behaviour.kind for one in declared.behaviours}
    own = set(kinds)
    kinds |= {name: behaviour.kind for name, behaviour in BY_NAME.items()}
    steps, first = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, "")
    with_it = {outcome: dict.fromkeys(kinds, 0) for outcome in Outcome}
    n_runs, n_steps = dict.fromkeys(Outcome, 0), 0
    for run in runs:
        tracker, state = room.start(declared=declared), context.start()
        held: set[str] = set()
        for record in run.records:
            tokens = tokenize(serialize(record))
            numbers = context.update(state, record, tokens)
            for finding in room.update(tracker, record, tokens, state, numbers):
                name = finding.behaviour.name
                steps[name] += 1
                held.add(name)
                first[name] = first[name] or f"{name}, run {plain(run.run_id, 80)}: {finding}"
            n_steps += 1
        n_runs[run.outcome] += 1
        for name in held:
            with_it[run.outcome][name] += 1
    counts = tuple(
        BehaviourCount(
            name,
            kind,
            name in own,
            steps[name],
            with_it[Outcome.FAILURE][name],
            with_it[Outcome.SUCCESS][name],
            first[name],
        )
        for name, kind in kinds.items()
    )
    failed, succeeded = n_runs[Outcome.FAILURE], n_runs[Outcome.SUCCESS]
    total = sum(n_runs.values())
    return BehaviourCheck(
        declared.name, declared.sha256, len(own), len(declared.tools), total, failed, succeeded, n_steps, counts
    )
