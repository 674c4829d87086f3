"""Which runs a control is fitted on, which set its thresholds, and which it is shown on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.errors import DataError
from prefixguard.learn import Corpus
from prefixguard.trace import Side, task_hash

#: Share of the monitor's training runs that must be there: a control fitted on fewer is a weaker rival than it looks.
FEWEST = 0.5
#: What a task may have served the monitor for that makes its runs no test. Earlier ones win.
_USES = (Side.TRAIN, Side.VALIDATION, Side.CALIBRATION, Side.ALARM)


@dataclass(frozen=True, slots=True, eq=False)
class ControlSides:
    """Numbers of runs in a corpus, int64, each array in the order in which rows are to have them.

    train: a control learns from these and no others. alarm: of these one successful run a task sets thresholds; may be
    empty, and no budget is then granted. test: those that get scores.
    Raises DataError where a run stands on two sides.
    """

    train: NDArray[np.int64]
    alarm: NDArray[np.int64]
    test: NDArray[np.int64]

    def __post_init__(self) -> None:
        every = np.concatenate((self.train, self.alarm, self.test))
        if len(np.unique(every)) < len(every):
            raise DataError(
                f"of {len(every):,} runs, {len(every) - len(np.unique(every)):,} stand on two sides, or twice on one. "
                "Give every run one side: train, alarm or test."
            )

    def check(self, corpus: Corpus) -> None:
        """Raises DataError where nothing can be learned, no run is to be scored, or a task is on two sides."""
        if len(self.test) == 0:
            raise DataError("no run is to be scored by the controls. Give runs of tasks that they do not learn from.")
        if len(set(corpus.failed[self.train].tolist())) < 2:
            raise DataError(
                f"the {len(self.train):,} runs that controls would learn from all ended alike. "
                "Give training runs with both outcomes."
            )
        taught = {corpus.task_ids[r] for r in self.train.tolist()}
        for name, runs in (("alarm", self.alarm), ("test", self.test)):
            shared = sorted({corpus.task_ids[r] for r in runs.tolist()} & taught)
            if shared:
                raise DataError(
                    f"{len(shared):,} tasks have runs on the training and the {name} side of the controls (first: "
                    f"{shared[0]!r}): they would be shown on what they learned. Split the runs by task."
                )


def sides_of(corpus: Corpus, bundle_manifest: Mapping[str, Any]) -> ControlSides:
    """The sides that a bundle's training gave these runs, as its manifest says by hashes.

    train: its training and validation tasks, since the monitor learned from both. alarm: its alarm tasks. test: all
    other runs but those of calibration tasks and those that repeat word for word a run of any of these, which is what
    `evaluate` tests on: the test tasks, and tasks that the monitor never saw. Runs without a step are nowhere.
    corpus: the runs the monitor was made from, and further ones or none, through its adapter.
    Raises DataError where the manifest names no tasks and runs, where less than half of the training runs are here,
    and where no run is left to test on.
    """
    tasks, runs = bundle_manifest.get("tasks"), bundle_manifest.get("runs")
    if not tasks or not runs or not runs.get(Side.TRAIN.value):
        raise DataError(
            "the monitor does not say which tasks and runs it was trained on, so nothing can be trained on the same. "
            "Train it again, or leave out the rows that have to be trained."
        )
    side_of = {task: side for side in reversed(_USES) for task in tasks.get(side.value, ())}
    repeats = {digest for side in _USES for digest in runs.get(side.value, ())}
    sides: dict[Side, list[int]] = {side: [] for side in Side}
    digests = set()
    for r, (task, digest) in enumerate(zip(corpus.task_ids, corpus.digests, strict=True)):
        if corpus.first[r] == corpus.first[r + 1]:
            continue
        side = side_of.get(task_hash(task))
        if side is not None:
            sides[side].append(r)
            digests.add(digest)
        elif digest not in repeats:
            sides[Side.TEST].append(r)
    trained = runs[Side.TRAIN.value]
    known = sum(digest in digests for digest in trained)
    if known < FEWEST * len(trained):
        raise DataError(
            f"of the {len(trained):,} runs that the monitor was trained on, {known:,} are among these "
            f"{len(corpus):,}, and controls have to learn from the same. Name the runs that it was trained on beside "
            "the new ones, or leave out the rows that have to be trained."
        )
    if not sides[Side.TEST]:
        raise DataError(
            "all of these runs are of tasks that the monitor was made from, or repeat such a run. Name runs of further "
            "tasks too."
        )
    train = sorted(sides[Side.TRAIN] + sides[Side.VALIDATION])
    return ControlSides(*(np.array(side, dtype=np.int64) for side in (train, sides[Side.ALARM], sides[Side.TEST])))
