"""The runs that several monitors can be compared on: all of them read them, none was made from them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from prefixguard.errors import ConfigError
from prefixguard.evaluation.evaluation import USES
from prefixguard.runtime import Monitor
from prefixguard.stepview import ReadReport, StepRecord, read_runs, serialize
from prefixguard.trace import Outcome, Run, is_read_once, run_digest, task_hash, task_key

Float = npt.NDArray[np.float64]
#: A run, whoever reads it: its id, and how many of that id came before it.
Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ScoredRun:
    """One run as one monitor heard it.

    use: what it was used for when the monitor was made; None: for nothing. imminent, outcome, sizes: risks and bytes of
    text of each step, (T,).
    """

    failed: bool
    task: str
    groups: Mapping[str, str]
    use: str | None
    imminent: Float
    outcome: Float
    sizes: Float


@dataclass(frozen=True, slots=True)
class Heard:
    """All runs as one monitor heard them. uses: hash of a task or a run -> what it was used for. unjudged: runs without
    an outcome or without a step."""

    monitor: Monitor
    uses: Mapping[str, str]
    scored: dict[Key, ScoredRun] = field(default_factory=dict)
    unjudged: set[Key] = field(default_factory=set)

    @classmethod
    def of(cls, monitor: Monitor) -> Heard:
        manifest = monitor.bundle.manifest
        named = [
            (use.value, (manifest.get(kind) or {}).get(use.value, ())) for kind in ("tasks", "runs") for use in USES
        ]
        return cls(monitor, {mark: use for use, marks in reversed(named) for mark in marks})

    def take(self, key: Key, run: Run[StepRecord]) -> None:
        """Score one run."""
        if run.outcome is Outcome.UNKNOWN or not run.records:
            self.unjudged.add(key)
            return
        task = task_key(run)
        readings = self.monitor.score_run(run.records)
        self.scored[key] = ScoredRun(
            failed=run.outcome is Outcome.FAILURE,
            task=task,
            groups=run.groups,
            use=self.uses.get(task_hash(task)) or self.uses.get(run_digest(run.records)),
            imminent=_array(reading.imminent_risk for reading in readings),
            outcome=_array(reading.outcome_risk for reading in readings),
            sizes=_array(len(serialize(record)) for record in run.records),
        )

    def used(self, key: Key) -> bool:
        """Whether the monitor was made from this run's task, or from a repeat of it."""
        return key in self.scored and self.scored[key].use is not None


def _array(risks: Iterable[float | None]) -> Float:
    return np.array([np.nan if risk is None else risk for risk in risks], dtype=np.float64)


def listen(
    heard: Sequence[Heard],
    runs: str | os.PathLike[str] | Sequence[Run[StepRecord]],
    labels: str | os.PathLike[str] | None,
    strict: bool,
    progress: Callable[[int], None] | None,
) -> list[str]:
    """Let every monitor score every run, reading them once an adapter; notes on what could not be read."""
    by_adapter: dict[bytes, list[Heard]] = {}
    for one in heard:
        by_adapter.setdefault(one.monitor.bundle.adapter.to_bytes(), []).append(one)
    at_once = not isinstance(runs, (str, os.PathLike)) or is_read_once(runs)
    if len(by_adapter) > 1 and at_once:
        raise ConfigError(
            f"the monitors read through {len(by_adapter)} adapters, and these runs can be read once only. Give a file "
            "or a folder of raw runs."
        )
    notes: list[str] = []
    done = 0
    for listeners in by_adapter.values():
        report, names = ReadReport(), Counter[str]()
        adapter = listeners[0].monitor.bundle.adapter
        parsed: Iterable[Run[StepRecord]]
        if isinstance(runs, (str, os.PathLike)):
            source = runs if isinstance(runs, str) else Path(runs)
            companion = None if labels is None else Path(labels)
            parsed = read_runs(source, adapter, labels=companion, strict=strict, report=report)
        else:
            parsed = runs
        for run in parsed:
            done += 1
            if progress is not None:
                progress(done)
            key = (run.run_id, names[run.run_id])
            names[run.run_id] += 1
            for one in listeners:
                one.take(key, run)
        notes.extend(report.left_out())
    if len(by_adapter) > 1:
        names_of = ", ".join(dict.fromkeys(one.monitor.bundle.adapter.name for one in heard))
        notes.append(f"Each monitor reads the runs through its own adapter ({names_of}); they are matched by run id.")
    return notes


def shared_runs(heard: Sequence[Heard], *, include_used: bool) -> tuple[list[Key], dict[str, int], list[str]]:
    """The runs that count, in the order in which they were read; those that do not, by reason; notes."""
    out = dict.fromkeys(("not_read_by_all", "without_outcome", "outcomes_differ", "used_by_a_monitor"), 0)
    kept, other_task = [], 0
    for key in dict.fromkeys(key for one in heard for key in (*one.scored, *one.unjudged)):
        if any(key in one.unjudged for one in heard):
            out["without_outcome"] += 1
            continue
        if any(key not in one.scored for one in heard):
            out["not_read_by_all"] += 1
            continue
        if len({one.scored[key].failed for one in heard}) > 1:
            out["outcomes_differ"] += 1
            continue
        if not include_used and any(one.used(key) for one in heard):
            out["used_by_a_monitor"] += 1
            continue
        kept.append(key)
        other_task += len({one.scored[key].task for one in heard}) > 1
    notes = []
    if any(not one.monitor.bundle.manifest.get("tasks") for one in heard):
        notes.append(
            "A bundle does not say which tasks it was made from, so that its own could not be left out: make sure that "
            "these runs are new to it."
        )
    if other_task:
        notes.append(f"The adapters name other tasks for {other_task} runs; the first monitor's are drawn.")
    return kept, out, notes


def nothing_left(left_out: Mapping[str, int]) -> str:
    parts = ", ".join(f"{count} {reason.replace('_', ' ')}" for reason, count in left_out.items() if count)
    if not parts:
        return "there is no run to compare on. See what the adapters read with: prefixguard parse RUNS"
    return (
        f"no run is left that all monitors can be compared on: {parts}. Give runs of other tasks, with outcomes, or "
        "--all to count those that a monitor was made from too, marked as in-sample."
    )
