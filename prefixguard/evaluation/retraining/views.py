"""What a training is allowed to read: records with fields blanked, context with groups held still, no text at all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prefixguard.context import FEATURES, GROUPS, N_FEATURES, SIGNAL_FEATURES
from prefixguard.evaluation.retraining.partition import Runs
from prefixguard.learn import Corpus, featurise, steps_of
from prefixguard.stepview import FIELDS, StepRecord
from prefixguard.trace import Outcome, Run

_TAG = re.compile(b"[%c-%c]" % (1, len(FIELDS)))
#: The value of a field that was blanked; any other field becomes empty.
_BLANK = {"actor": "unknown", "status": "unknown"}
#: Fields of a record that can be blanked. The agent's name is not serialised, so that nothing reads it today.
RECORD_FIELDS = ("actor", "agent", *(name for name in FIELDS if name != "actor"))


_ALL = (*FEATURES, *SIGNAL_FEATURES)
#: The group of what steps took, where they say it.
SIGNALS = "signals"


@dataclass(frozen=True, slots=True)
class View:
    """What is taken away.

    name: how it is called in tables and folders. kind: `without` one thing, or `only` it. part: field, context, or
        both (all text, or all context).
    fields: blanked in every record before it is serialised, and so in the text and in the context.
    groups: of the context, whose columns are held at their typical value (the median of the fold's training steps), at
        the fit and at scoring.
    text: whether the text is read; without it every document is that of an empty record.
    """

    name: str
    kind: str
    part: str
    fields: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    text: bool = True

    @property
    def columns(self) -> NDArray[np.int64]:
        """Context columns that are held still."""
        return np.array([i for i, feature in enumerate(_ALL) if feature.group in self.groups], dtype=np.int64)


def ablation_views(*, signals: bool = False) -> list[View]:
    """Without each field and each context group, and only each. signals: the runs say what their steps took.

    `only` a context group leaves no text and no other group; `only` a field leaves what the context can tell of that
    field alone, and of how many steps there were.
    """
    groups = (*GROUPS, SIGNALS) if signals else GROUPS
    everything = frozenset(groups)
    views = [View(f"without {name}", "without", "field", fields=frozenset({name})) for name in RECORD_FIELDS]
    views += [View(f"without {name}", "without", "context", groups=frozenset({name})) for name in groups]
    views += [
        View("without text", "without", "both", text=False),
        View("without context", "without", "both", groups=everything),
    ]
    views += [View(f"only {name}", "only", "field", fields=frozenset(RECORD_FIELDS) - {name}) for name in FIELDS]
    views += [View(f"only {name}", "only", "context", groups=everything - {name}, text=False) for name in groups]
    return views


def seen_through(corpus: Corpus, view: View) -> Corpus:
    """The corpus with what the view blanks taken out of its records, featurised again. Held columns are left: what is
    typical depends on the fold (`held_still`).

    Names, tasks, outcomes and digests stay: a fold holds the same runs whatever is read of them.
    """
    if view.fields:
        blanked = _blanked(corpus, view.fields)
        context = np.concatenate((blanked.context, corpus.context[:, N_FEATURES:]), axis=1)  # signals are no field
        corpus = dataclasses.replace(corpus, context=context, documents=blanked.documents)
    if not view.text:
        empty = _blanked(corpus, frozenset(RECORD_FIELDS))
        corpus = dataclasses.replace(corpus, documents=empty.documents)
    return corpus


def held_still(corpus: Corpus, view: View, train: Runs) -> Corpus:
    """The corpus with the view's columns at their median over the steps of these runs, everywhere."""
    columns = view.columns[view.columns < corpus.context.shape[1]]
    if not len(columns):
        return corpus
    context = corpus.context.copy()
    context[:, columns] = np.median(corpus.context[steps_of(corpus, train)][:, columns], axis=0)
    return dataclasses.replace(corpus, context=context)


def reads_the_same(one: Corpus, other: Corpus) -> bool:
    """Whether two views of the same runs hold the same text and the same context."""
    if not np.array_equal(one.context, other.context):
        return False
    return all(
        one.documents.read(first, stop) == other.documents.read(first, stop)
        for first, stop in zip(one.first[:-1].tolist(), one.first[1:].tolist(), strict=True)
    )


def blank(record: StepRecord, fields: frozenset[str]) -> StepRecord:
    """The record with these fields emptied.

    >>> from prefixguard.stepview import serialize
    >>> said = StepRecord(1, "agent", "", "ls", "{}", "", "look", "a b", "ok")
    >>> serialize(blank(said, frozenset({"result", "status"})))
    b'\\x01agent\\x02ls\\x03{}\\x04\\x05look\\x06\\x07unknown'
    """
    emptied: dict[str, Any] = {name: _BLANK.get(name, "") for name in fields}
    return dataclasses.replace(record, **emptied)


def runs_of(corpus: Corpus) -> Iterator[Run[StepRecord]]:
    """The runs of a corpus again, from their serialised records; no file is read."""
    for r in range(len(corpus)):
        documents = corpus.documents.each(int(corpus.first[r]), int(corpus.first[r + 1]))
        yield Run(
            run_id=corpus.run_ids[r],
            task_id=corpus.task_ids[r],
            outcome=Outcome.FAILURE if corpus.failed[r] else Outcome.SUCCESS,
            records=tuple(record_of(document, i) for i, document in enumerate(documents, 1)),
            source=corpus.run_ids[r],
            groups=corpus.groups[r],
        )


def _blanked(corpus: Corpus, fields: frozenset[str]) -> Corpus:
    runs = (
        dataclasses.replace(run, records=tuple(blank(record, fields) for record in run.records))
        for run in runs_of(corpus)
    )
    return featurise(runs)


def record_of(document: bytes, index: int) -> StepRecord:
    r"""The record that was serialised, without its agent's name and its source event.

    >>> record_of(b"\x01agent\x02ls\x03{}\x04\x05look\x06a b\x07ok", 1).action
    'look'
    """
    values = [part.decode("utf-8", "replace") for part in _TAG.split(document)[1:]]
    known: dict[str, Any] = dict(zip(FIELDS, values, strict=True))
    return StepRecord(index=index, agent="", **known)
