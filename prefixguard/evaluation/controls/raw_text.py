"""The control of the step view: boosted trees on the same steps as plain text, without fields, tools or status.

What a monitor gains over this row it owes to the fields of its records. Source: PrefixGuard 5 (raw-text control).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from prefixguard.alarm import AlarmPolicy
from prefixguard.errors import DataError
from prefixguard.evaluation.controls.material import Float, Material, Scorer
from prefixguard.evaluation.controls.scored import scored_row
from prefixguard.evaluation.controls.sides import ControlSides
from prefixguard.evaluation.controls.trees import boosting
from prefixguard.evaluation.rows import ScoreRow
from prefixguard.learn import Corpus, featurise
from prefixguard.stepview import FIELDS, Status, StepRecord
from prefixguard.stepview.record import raw_record
from prefixguard.trace import Outcome, Run

NAME = "raw text"
NOTE = (
    "boosted trees on the text of each step without fields, tools and status (the raw view), and on what can be "
    "counted there"
)
_TAGS = re.compile(bytes((ord("["), *range(1, len(FIELDS) + 1), ord("]"))))


def as_raw(corpus: Corpus) -> Corpus:
    """The same runs through the raw view, from the records that a corpus holds; no file is read again.

    It is what `featurise` makes of runs read through `raw_view(adapter)`, since that view is made from the same
    records.
    """
    return featurise(_raw_runs(corpus))


def _raw_runs(corpus: Corpus) -> Iterator[Run[StepRecord]]:
    for r in range(len(corpus)):
        documents = corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1]))
        yield Run(
            run_id=corpus.run_ids[r],
            task_id=corpus.task_ids[r],
            outcome=Outcome.FAILURE if corpus.failed[r] else Outcome.SUCCESS,
            records=tuple(raw_record(_record(index, document)) for index, document in enumerate(documents, 1)),
            source=corpus.run_ids[r],
            groups=corpus.groups[r],
        )


def raw_control(
    raw_corpus: Corpus,
    corpus: Corpus,
    sides: ControlSides,
    *,
    horizon: int,
    seed: int,
    policy: AlarmPolicy,
    budgets: Sequence[float],
    on_stage: Callable[[str], None] | None = None,
) -> ScoreRow:
    """The row `raw text`, its scores one a step of `corpus`.

    raw_corpus: the same runs read through the raw view of the same adapter, or `as_raw(corpus)`; further runs in it are
    not looked at. corpus, sides: those of the other controls. Runs are matched by run id. The raw view makes one text
    of each record, so step t of a raw run is step t of its run: where both have equally many steps they are taken one
    for one, and a score at step t has read raw steps 1..t only.
    Raises DataError where a run is missing, its id is not unique, or it has another number of steps: text that was cut
    into other steps cannot be put beside these without guessing what was seen when.
    """
    if on_stage:
        on_stage(NAME)
    sides.check(corpus)
    place = _matched(raw_corpus, corpus, sides)
    raw_sides = ControlSides(*(place[side] for side in (sides.train, sides.alarm, sides.test)))
    # Outcome and task are the corpus's: a control that went by other labels would be no control.
    labelled = replace(raw_corpus, failed=raw_corpus.failed.copy(), task_ids=list(raw_corpus.task_ids))
    for r in np.concatenate((sides.train, sides.alarm)).tolist():
        labelled.failed[place[r]] = corpus.failed[r]
        labelled.task_ids[int(place[r])] = corpus.task_ids[r]
    material = Material(labelled, raw_sides.train, horizon, seed)
    scorer = boosting(material)

    def score(runs: NDArray[np.int64]) -> list[Float]:
        return scorer(place[runs])

    return scored_row(NAME, NOTE, score, corpus, sides, seed=seed, policy=policy, budgets=budgets)


def raw_text(material: Material) -> Scorer:
    """The same from the material of the other controls."""
    return boosting(replace(material, corpus=as_raw(material.corpus)))


def _record(index: int, document: bytes) -> StepRecord:
    """A record from its serialisation; agent and event are not in it, and no view of the text needs them."""
    _, actor, tool, arguments, observation, action, result, status = (
        part.decode("utf-8") for part in _TAGS.split(document)
    )
    told: Status = "ok" if status == "ok" else "error" if status == "error" else "unknown"
    return StepRecord(index, actor, "", tool, arguments, observation, action, result, told)


def _matched(raw_corpus: Corpus, corpus: Corpus, sides: ControlSides) -> NDArray[np.int64]:
    """Number in the raw corpus of each run that has a side, int64 (n,); -1 for others."""
    every = np.concatenate((sides.train, sides.alarm, sides.test)).tolist()
    here, there = Counter(corpus.run_ids), Counter(raw_corpus.run_ids)
    number = {run_id: r for r, run_id in enumerate(raw_corpus.run_ids)}
    place = np.full(len(corpus), -1, dtype=np.int64)
    for r in every:
        run_id = corpus.run_ids[r]
        if here[run_id] != 1 or there[run_id] != 1:
            raise DataError(
                f"run {run_id!r}: {there[run_id]} runs of that name were read through the raw view, {here[run_id]} "
                "through the adapter. Read the same files through both, and give every run an id of its own."
            )
        place[r] = number[run_id]
        steps, raw_steps = int(corpus.lengths[r]), int(raw_corpus.lengths[place[r]])
        if steps != raw_steps:
            raise DataError(
                f"run {run_id!r}: {raw_steps} steps through the raw view, {steps} through the adapter. "
                "Take the raw view of the same adapter, which cuts runs into the same steps."
            )
    return place
