"""What an automaton is learned from: the runs that a monitor was trained on, the sides they stand on, a teacher."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from prefixguard.bundle import Bundle
from prefixguard.encoder import Vocabulary
from prefixguard.errors import DataError
from prefixguard.learn import Corpus, Rows, labels, out_of_fold, sparse_matrix
from prefixguard.trace import Side, task_hash

_FEWEST = 0.5  # share of the training runs that must be there


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """All steps of a corpus, and which runs serve for what. No run serves for two things.

    rows: (steps, V), under the monitor's vocabulary. tools: of every step. labels: float32 (steps, 2).
    teacher: float32 (steps, 2): of the pool's steps, what a teacher says that was not fitted on the step's task; zero
    elsewhere. pool: runs that learners see. held_out: those that calibrate states. alarm: those that set thresholds.
    test: those that figures are measured on. All int64, numbers of runs. notes: what is odd about these runs.
    """

    corpus: Corpus
    rows: Rows
    matrix: csr_matrix
    vocabulary: Vocabulary
    tools: Sequence[str]
    labels: NDArray[np.float32]
    teacher: NDArray[np.float32]
    tasks: NDArray[np.int64]
    pool: NDArray[np.int64]
    held_out: NDArray[np.int64]
    alarm: NDArray[np.int64]
    test: NDArray[np.int64]
    seed: int
    notes: tuple[str, ...] = ()


def gather(corpus: Corpus, bundle: Bundle) -> Material:
    """Lay out the runs of `corpus` as the training of this bundle did.

    The bundle's manifest says which task stood on which side, by hash, and which runs it was trained on. Runs of other
    tasks are left out.
    Raises DataError where these are not the runs that the bundle was made from, or it does not say which they were.
    """
    manifest = bundle.manifest
    if not all(side.value in manifest.get(what, ()) for what in ("tasks", "runs") for side in Side):
        raise DataError(
            f"{bundle.path}: does not say which tasks and runs it was trained on, as `train` writes it. "
            "Train the monitor again, and export that."
        )
    side_of = {task: side for side in Side for task in manifest["tasks"][side.value]}
    sides = [side_of.get(task_hash(task)) for task in corpus.task_ids]
    runs = {side: np.flatnonzero([s is side for s in sides]).astype(np.int64) for side in Side}
    trained = manifest["runs"][Side.TRAIN.value]
    digests = {corpus.digests[r] for r in runs[Side.TRAIN].tolist()}
    known = sum(digest in digests for digest in trained)
    if known < _FEWEST * len(trained) or not trained:
        without = f" {corpus.unknown:,} have no outcome: add one with --labels." if corpus.unknown else ""
        raise DataError(
            f"{bundle.path}: of the {len(trained):,} runs that it was trained on, {known:,} are among these "
            f"{len(corpus):,}. An automaton is learned from the runs that its monitor learned from: name those."
            f"{without}"
        )
    pool = np.sort(np.concatenate((runs[Side.TRAIN], runs[Side.VALIDATION])))
    if len(set(corpus.failed[pool].tolist())) < 2 or len(set(corpus.failed[runs[Side.CALIBRATION]].tolist())) < 2:
        raise DataError(
            f"{bundle.path}: these runs hold one outcome only on the training or the calibration side. "
            "Name all the runs that it was trained on."
        )
    notes = []
    if known < len(trained):
        notes.append(
            f"{len(trained) - known:,} of the {len(trained):,} runs that the monitor was trained on are not here."
        )
    if strange := sides.count(None):
        notes.append(f"{strange:,} runs are of tasks that the monitor was not made with; they are left out.")
    seed = manifest.get("seed")
    seed = seed if isinstance(seed, int) else 0
    targets = labels(corpus, bundle.horizon if bundle.horizon is not None else 3)
    rows = corpus.encode(bundle.vocabulary)
    codes = {task: number for number, task in enumerate(sorted(set(corpus.task_ids)))}
    return Material(
        corpus=corpus,
        rows=rows,
        matrix=sparse_matrix(corpus, rows, np.arange(len(corpus))),
        vocabulary=bundle.vocabulary,
        tools=[corpus.tool(step) for step in range(int(corpus.first[-1]))],
        labels=targets,
        teacher=out_of_fold(corpus, rows, pool, targets, seed),
        tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
        pool=pool,
        held_out=runs[Side.CALIBRATION],
        alarm=runs[Side.ALARM],
        test=runs[Side.TEST],
        seed=seed,
        notes=tuple(notes),
    )
