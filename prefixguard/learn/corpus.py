"""Runs, featurised once: context vectors in memory, texts and sparse rows in spools that move to disk when large."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from prefixguard import behaviours, context
from prefixguard.context import FEATURES, N_FEATURES, SCORE_FEATURES, SIGNAL_FEATURES, Feature
from prefixguard.encoder import Vocabulary, tokenize
from prefixguard.errors import DataError
from prefixguard.metrics import Prefixes
from prefixguard.stepview import FIELDS, FillCounts, Spool, StepRecord, serialize
from prefixguard.trace import Outcome, Run, digest_of, imminent_labels, task_key

_TOOL_TAG, _AFTER_TOOL = (bytes([FIELDS.index(name) + 1]) for name in ("tool", "arguments"))


@dataclass(slots=True)
class Corpus:
    """Runs with an outcome, featurised.

    run_ids, task_ids, digests: one for each run; digests are equal for word-for-word repeats.
    failed: bool (n,). first: int64 (n + 1,); the steps of run i are first[i]:first[i + 1].
    groups: one mapping a run, for evaluation only. context: float32 (steps, d).
    documents: serialised records, one entry a step.
    without_task: runs that had no task id and count as a task of their own.
    unknown: runs whose outcome nobody knows, left out. unlabelled: such runs that were kept as successful.
    fills: how often the fields of the records are filled.
    held: uint8 (steps, behaviours of the catalogue), as `behaviours.held` counts them.
    reads_scores: whether the runs are known by their scores alone; `context` is then of `SCORE_FEATURES`.
    has_signals: whether `context` has `SIGNAL_FEATURES` behind the others. with_signals: runs that have some.
    """

    run_ids: list[str]
    task_ids: list[str]
    digests: list[str]
    groups: list[dict[str, str]]
    failed: NDArray[np.bool_]
    first: NDArray[np.int64]
    context: NDArray[np.float32]
    documents: Spool
    without_task: int = 0
    unknown: int = 0
    unlabelled: int = 0
    fills: FillCounts | None = None
    held: NDArray[np.uint8] | None = None
    reads_scores: bool = False
    has_signals: bool = False
    with_signals: int = 0

    def without_signals(self) -> Corpus:
        """The same runs, of which nobody says what their steps took."""
        return (
            replace(self, context=self.context[:, :N_FEATURES].copy(), has_signals=False) if self.has_signals else self
        )

    @property
    def features(self) -> tuple[Feature, ...]:
        """What the columns of `context` are of."""
        if self.reads_scores:
            return SCORE_FEATURES
        return (*FEATURES, *SIGNAL_FEATURES) if self.has_signals else FEATURES

    def __len__(self) -> int:
        return len(self.run_ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Steps of each run, int64 (n,)."""
        return np.diff(self.first)

    def sizes(self, runs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Bytes of text of each step of these runs, one (T,) a run."""
        size = self.documents.sizes
        return [size[self.first[r] : self.first[r + 1]] for r in runs.tolist()]

    def prefixes(self, runs: NDArray[np.int64]) -> Prefixes:
        """All prefixes of these runs, in their order, as the metrics take them."""
        tasks = [self.task_ids[r] for r in runs.tolist()]
        return Prefixes.of(self.lengths[runs].tolist(), self.failed[runs].tolist(), tasks)

    def tool(self, step: int) -> str:
        """The tool of a step, as its record has it."""
        return tool_of(self.documents.read(step, step + 1))

    def held_at(self, step: int) -> bytes:
        """Which behaviours hold at a step; none where nobody looked."""
        return behaviours.NONE_HELD if self.held is None else self.held[step].tobytes()

    def texts(self, runs: Sequence[int]) -> Callable[[], Iterable[tuple[int, bytes]]]:
        """Documents of these runs as `encoder.fit_vocabulary` reads them: (task number, document), tasks together."""
        tasks = {task: i for i, task in enumerate(sorted({self.task_ids[r] for r in runs}))}
        order = sorted(runs, key=lambda r: (tasks[self.task_ids[r]], r))

        def documents() -> Iterator[tuple[int, bytes]]:
            for r in order:
                task = tasks[self.task_ids[r]]
                for document in self.documents.each(int(self.first[r]), int(self.first[r + 1])):
                    yield task, document

        return documents

    def encode(self, vocabulary: Vocabulary) -> Rows:
        """Sparse rows of every step under a vocabulary."""
        rows, counts = Spool(), np.zeros(int(self.first[-1]), dtype=np.int32)
        step = 0
        for r in range(len(self)):
            indices, values = [], []
            for document in self.documents.each(int(self.first[r]), int(self.first[r + 1])):
                row = vocabulary.encode(tokenize(document))
                indices.append(row.indices.astype(np.uint16 if len(vocabulary) <= 65_536 else np.int32))
                values.append(row.values)
                counts[step] = len(row.indices)
                step += 1
            rows.append(np.concatenate(indices).tobytes() + np.concatenate(values).tobytes())
        return Rows(rows, counts, self.first, 2 if len(vocabulary) <= 65_536 else 4, len(vocabulary))


def tool_of(document: bytes) -> str:
    r"""The tool in a serialised record.

    >>> tool_of(b"\x01agent\x02ls\x03{}\x04\x05look\x06a b\x07ok")
    'ls'
    """
    start = document.index(_TOOL_TAG) + 1
    return document[start : document.index(_AFTER_TOOL, start)].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Rows:
    """Sparse rows of a corpus, read back a run at a time.

    counts: int32 (steps,), entries of each step's row. n_columns: V.
    """

    spool: Spool
    counts: NDArray[np.int32]
    first: NDArray[np.int64]
    index_bytes: int
    n_columns: int

    def run(self, r: int) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
        """Indices int64 (nnz,), values float32 (nnz,) of all steps of run r, one after the other; counts (T,)."""
        counts = self.counts[self.first[r] : self.first[r + 1]]
        nnz = int(counts.sum())
        data = self.spool.read(r, r + 1)
        indices = np.frombuffer(data, np.uint16 if self.index_bytes == 2 else np.int32, nnz)
        values = np.frombuffer(data, np.float32, nnz, nnz * self.index_bytes) if nnz else np.empty(0, np.float32)
        return indices.astype(np.int64), values, counts


#: Share of the runs that must say what their steps took, for a monitor to learn from it.
_MOST_HAVE: Final = 0.5
_KNOWN: Final = [N_FEATURES + i for i, one in enumerate(SIGNAL_FEATURES) if one.kind == "yes"]


def featurise(
    runs: Iterable[Run[StepRecord]],
    *,
    on_run: Callable[[int], None] | None = None,
    unlabelled: bool = False,
    signals: bool | None = None,
) -> Corpus:
    """Read runs once. Runs with an unknown outcome are counted and left out. One run is in memory at a time.

    on_run: called with the number of runs read so far. unlabelled: runs with an unknown outcome are kept instead, as if
    they had succeeded. signals: whether the context has what steps took; None: where at least half of the runs say it.
    Raises DataError where some of the steps are scores and others are not.
    """
    none = np.empty(0, np.float32)
    fills = FillCounts()
    found = Corpus([], [], [], [], none.astype(np.bool_), none.astype(np.int64), none, Spool(), fills=fills)
    failed, lengths, held = array("b"), array("q"), bytearray()
    vectors: list[NDArray[np.float32]] = []
    for n, run in enumerate(runs, 1):
        if on_run:
            on_run(n)
        if run.outcome is Outcome.UNKNOWN:
            if not unlabelled:
                found.unknown += 1
                continue
            found.unlabelled += 1
        _check_kind(run, found)
        vectors.append(_vectors(run, found, held))
        fills.add(run.records)
        found.run_ids.append(run.run_id)
        found.without_task += run.task_id is None
        found.task_ids.append(task_key(run))
        found.digests.append(digest_of(run))
        found.groups.append(dict(run.groups))
        failed.append(run.outcome is Outcome.FAILURE)
        lengths.append(len(run.records))
    found.failed = np.array(failed, dtype=np.bool_)
    found.first = np.concatenate(([0], np.cumsum(np.array(lengths, dtype=np.int64)))).astype(np.int64)
    _keep_signals(found, vectors, signals)
    found.fills = None if found.reads_scores else fills
    found.held = np.frombuffer(bytes(held), np.uint8).reshape(-1, len(behaviours.NONE_HELD))
    return found


def _keep_signals(found: Corpus, vectors: list[NDArray[np.float32]], wanted: bool | None) -> None:
    """The context of all runs, with what steps took or without."""
    known = 0 if found.reads_scores else sum(bool(rows[:, _KNOWN].any()) for rows in vectors)
    found.with_signals = known
    found.has_signals = (known > 0 and known >= _MOST_HAVE * len(vectors)) if wanted is None else wanted
    width = len(found.features)
    found.context = np.concatenate([np.empty((0, width), np.float32), *(rows[:, :width] for rows in vectors)])


def _check_kind(run: Run[StepRecord], found: Corpus) -> None:
    """The first run says whether runs are known by their scores; all others have to be like it."""
    scored = {record.score is not None for record in run.records}
    found.reads_scores = found.reads_scores if len(found) else scored == {True}
    if not scored <= {found.reads_scores}:
        raise DataError(
            f"{run.source}: some of these steps are scores and others are what an agent does. Give either, or let the "
            "adapter read one of them."
        )


def _vectors(run: Run[StepRecord], found: Corpus, held: bytearray) -> NDArray[np.float32]:
    """What is known after each step, float32 (T, d); behaviours and documents go where they belong."""
    width = len(SCORE_FEATURES) if found.reads_scores else N_FEATURES + len(SIGNAL_FEATURES)
    rows = np.empty((len(run.records), width), dtype=np.float32)
    scores, state, tracker = context.scores.start(), context.signals.start(), behaviours.start()
    for t, record in enumerate(run.records):
        document = serialize(record)
        tokens = tokenize(document)
        if found.reads_scores:
            rows[t] = context.scores.update(scores, record)
            held += behaviours.NONE_HELD
        else:
            rows[t] = context.signals.update(state, record, tokens)
            held += behaviours.held(behaviours.update(tracker, record, tokens, state, rows[t]))
        found.documents.append(document)
    return rows


def labels(corpus: Corpus, horizon: int) -> NDArray[np.float32]:
    """Targets of every step, float32 (steps, 2): imminent, outcome. Source: PrefixGuard 3; the second is ours."""
    out = np.zeros((int(corpus.first[-1]), 2), dtype=np.float32)
    for r, length in enumerate(corpus.lengths.tolist()):
        a, b = corpus.first[r], corpus.first[r + 1]
        out[a:b, 0] = imminent_labels(length, bool(corpus.failed[r]), horizon)
        out[a:b, 1] = corpus.failed[r]
    return out
