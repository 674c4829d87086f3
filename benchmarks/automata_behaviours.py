"""What automata over behaviours are worth, beside the default of release 0.3.0 and beside their teacher.

    python benchmarks/automata_behaviours.py .traces --keep scratch

Folds that never split a task. Of the other runs, by task, 70 % teach, 15 % calibrate and 15 % set the alarm threshold,
as in an export. The teacher is boosting on context and text. Every row is chosen by folds of the runs that teach, and
measured on the fold's test runs. What a fold's teacher says is kept in a folder, so that rows can be made again soon.
Prints a table and writes automata_behaviours.json and automata_behaviours.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import accuracy

from prefixguard.automata.alphabets import fit_alphabet
from prefixguard.automata.build import build
from prefixguard.automata.material import Material
from prefixguard.automata.model_selection import learn_from
from prefixguard.automata.state_risk import columns_of, fit_clock
from prefixguard.encoder import fit_vocabulary
from prefixguard.learn import Corpus, labels, out_of_fold, run_weights, sparse_matrix, steps_of
from prefixguard.learn.teacher import TextProjection, boost

HORIZON, SEED = 3, 13
_SIDES = (0.70, 0.85)  # of the tasks that are not tested: teach, calibrate, set the threshold


def sides(corpus: Corpus, folds: int, k: int) -> list[NDArray[np.int64]]:
    """Runs that teach, calibrate, set the threshold, are tested."""
    fold = accuracy.folds_of(corpus, folds, 0)
    rest = sorted({t for t, f in zip(corpus.task_ids, fold.tolist(), strict=True) if f != k})
    rest.sort(key=lambda t: hashlib.sha256(f"sides:{t}".encode()).hexdigest())
    cuts = [0, *(round(share * len(rest)) for share in _SIDES), len(rest)]
    side_of = {task: side for side in range(3) for task in rest[cuts[side] : cuts[side + 1]]}
    return [np.array([r for r, t in enumerate(corpus.task_ids) if side_of.get(t, 3) == s]) for s in range(4)]


def material_of(corpus: Corpus, name: str, k: int, folds: int, keep: Path) -> tuple[Material, NDArray[np.float64]]:
    """The material of a fold, and what the teacher says of all steps, (steps, 2)."""
    pool, held_out, alarm, test = sides(corpus, folds, k)
    vocabulary = fit_vocabulary(corpus.texts(pool.tolist()), max_features=4096, min_tasks=5)
    rows, targets = corpus.encode(vocabulary[0]), labels(corpus, HORIZON)
    path = keep / f"{name}-{k}.npz"
    if not path.exists():
        taught = out_of_fold(corpus, rows, pool, targets, SEED)
        projection = TextProjection.fit(corpus, rows, pool, SEED)
        steps, weight = steps_of(corpus, pool), run_weights(corpus, pool)
        x, others = projection.features(corpus, rows, pool), np.concatenate((held_out, alarm, test))
        z, at = projection.features(corpus, rows, others), steps_of(corpus, others)
        said = taught.astype(np.float64)
        for risk in range(2):
            said[at, risk] = boost(x, targets[steps, risk], weight, SEED)(z)
        np.savez_compressed(path, taught=taught, said=said)
    with np.load(path) as data:
        taught, said = data["taught"], data["said"]
    codes = {task: number for number, task in enumerate(sorted(set(corpus.task_ids)))}
    material = Material(
        corpus=corpus, rows=rows, matrix=sparse_matrix(corpus, rows, np.arange(len(corpus))),
        vocabulary=vocabulary[0], tools=[corpus.tool(step) for step in range(int(corpus.first[-1]))],
        labels=targets, teacher=taught, tasks=np.array([codes[task] for task in corpus.task_ids], dtype=np.int64),
        pool=pool, held_out=held_out, alarm=alarm, test=test, seed=SEED,
    )  # fmt: skip
    return material, said
