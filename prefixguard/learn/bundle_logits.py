"""What a bundle itself says of runs: its own step path, not that of what it was compiled from."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle import BundleParts, open_bundle, write_bundle
from prefixguard.encoder import SparseRow
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.runtime import StepModel, open_model


def bundle_logits(
    parts: BundleParts, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]
) -> dict[int, NDArray[np.float64]]:
    """Logits of every step of these runs, float64 (T, 2), by the bundle of these parts: written, opened and run."""
    folder = Path(tempfile.mkdtemp(prefix="prefixguard-"))
    try:
        write_bundle(folder / "bundle", parts)
        model = open_model(open_bundle(folder / "bundle"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {r: model_logits(model, corpus, rows, r) for r in runs.tolist()}


def model_logits(model: StepModel, corpus: Corpus, rows: Rows, run: int) -> NDArray[np.float64]:
    """Logits of every step of a run, float64 (T, 2): imminent, outcome."""
    indices, values, counts = rows.run(run)
    ends = np.cumsum(counts).tolist()
    state, start = model.initial, 0
    logits = np.empty((len(ends), 2))
    for t, end in enumerate(ends):
        step = corpus.first[run] + t
        row = SparseRow(indices[start:end], values[start:end])
        said = model.step(corpus.tool(int(step)), row, corpus.context[step], state)
        logits[t], state, start = (said.imminent, said.outcome), said.state, end
    return logits
