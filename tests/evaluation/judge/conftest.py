"""An evaluation of the simulation's runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from prefixguard.evaluation import EvaluationTable, evaluate
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import StepRecord, read_runs
from prefixguard.trace import Run


@pytest.fixture(scope="module")
def monitor(lab_bundle: Path) -> Monitor:
    return load(lab_bundle)


@pytest.fixture(scope="module")
def runs(monitor: Monitor, fresh_lab_file: Path) -> list[Run[StepRecord]]:
    """24 runs of six tasks that the monitor has not seen."""
    return list(read_runs(str(fresh_lab_file), monitor.bundle.adapter))


@pytest.fixture(scope="module")
def table(monitor: Monitor, runs: list[Run[StepRecord]]) -> EvaluationTable:
    return evaluate(monitor, runs, resamples=40)
