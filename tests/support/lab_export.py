"""Simulated runs as `export` lays them out, behind a trained bundle; the slow teacher is fitted once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from prefixguard.automata import material as materials
from prefixguard.automata.material import Material, gather
from prefixguard.bundle import open_bundle
from prefixguard.learn import Corpus, Rows, featurise, out_of_fold, steps_of
from prefixguard.stepview import read_runs

_FITTED: dict[tuple[Any, ...], NDArray[np.float32]] = {}


def _teach(
    corpus: Corpus, rows: Rows, runs: NDArray[np.int64], labels: NDArray[np.float32], seed: int
) -> NDArray[np.float32]:
    steps = steps_of(corpus, runs)
    these = tuple((corpus.task_ids[r], corpus.digests[r]) for r in runs.tolist())  # all that it may look at
    key = (these, labels[steps].tobytes(), rows.n_columns, seed)
    if key not in _FITTED:
        _FITTED[key] = out_of_fold(corpus, rows, runs, labels, seed)[steps]
    out = np.zeros_like(labels)
    out[steps] = _FITTED[key]
    return out


@contextmanager
def one_teacher() -> Iterator[None]:
    """What the teacher said of the same runs is remembered: the same numbers, sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(materials, "out_of_fold", _teach)
        yield


@cache
def corpus_of(runs: Path, bundle: Path) -> Corpus:
    return featurise(read_runs(str(runs), open_bundle(bundle).adapter))


@cache
def material_of(runs: Path, bundle: Path) -> Material:
    """Made once, never changed."""
    with one_teacher():
        return gather(corpus_of(runs, bundle), open_bundle(bundle))
