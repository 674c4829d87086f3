"""A monitor fitted on few lab runs with tiny settings, once for all tests of this room."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from prefixguard.learn import Corpus, FittedMonitor, Rows, TrainConfig, featurise, fit_monitor
from prefixguard.simulation import write_runs
from prefixguard.stepview import load_adapter, read_runs

TINY = TrainConfig(
    epochs=3, symbol_epochs=2, members=2, max_features=300, width=12, bypass=6, abstraction_width=10, symbols=6, bins=4
)


@dataclass(frozen=True)
class TinyMonitor:
    corpus: Corpus
    rows: Rows
    fitted: FittedMonitor


@pytest.fixture(scope="session")
def lab_corpus(tmp_path_factory) -> Corpus:
    path = tmp_path_factory.mktemp("lab") / "runs.jsonl"
    write_runs(path, 120, 3)
    return featurise(read_runs(path, load_adapter("openai_chat")))


@pytest.fixture(scope="session")
def tiny_monitor(lab_corpus) -> TinyMonitor:
    pool, validation = np.arange(80), np.arange(80, 110)
    fitted = fit_monitor(lab_corpus, pool, TINY, validation=validation)
    return TinyMonitor(lab_corpus, lab_corpus.encode(fitted.vocabulary), fitted)
