"""Which runs of a stream tell something new: one a task, of tasks that the monitor was not made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prefixguard.stepview import StepRecord
from prefixguard.trace import Run, Side, run_digest, task_hash, task_key

#: What a task may have been used for that makes its runs no ground for a threshold: the monitor, or its maps from
#: logits to risks, fit them better than new ones.
MADE_FROM = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION)
#: The same, and what set the thresholds.
USES = (*MADE_FROM, Side.ALARM)


def uses_of(manifest: Mapping[str, Any], key: str) -> dict[str, Side]:
    """Hash -> what it was used for; the first of `USES` where a hash stands under several. key: `tasks` or `runs`."""
    named = manifest.get(key) or {}
    return {digest: side for side in reversed(USES) for digest in named.get(side.value, ())}


def task_of(run: Run[StepRecord], digest: str) -> str:
    """The run's task; where it names none, all runs with its very words are one: a log may stand there twice.

    digest: `run_digest` of its records.
    """
    return task_key(run) if run.task_id is not None else f"words {digest}"


class NewTasks:
    """The runs that a drift signal is to be given: they are exchangeable with its reference if nothing has changed.

    Runs of one task are alike, and a monitor is surer of what it was made from; so the first run of each task counts,
    and none of tasks, or word-for-word repeats of runs, that the monitor was made or its thresholds were set with.
    """

    __slots__ = ("_digests", "_seen", "_tasks")

    def __init__(self, manifest: Mapping[str, Any]) -> None:
        self._tasks, self._digests = uses_of(manifest, "tasks"), uses_of(manifest, "runs")
        self._seen: set[str] = set()

    def take(self, run: Run[StepRecord]) -> bool:
        """Whether this run counts; if so, no later one of its task does."""
        task = task_of(run, run_digest(run.records))
        if task in self._seen or self.was_used(run):
            return False
        self._seen.add(task)
        return True

    def was_used(self, run: Run[StepRecord]) -> bool:
        """Whether the monitor was made, or its thresholds set, with the run's task or its very words."""
        return task_hash(task_key(run)) in self._tasks or run_digest(run.records) in self._digests
