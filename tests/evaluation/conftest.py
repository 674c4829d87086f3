"""Runs, and trainings that take a moment, for the evaluations that train."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from prefixguard.evaluation.retraining import fitting
from prefixguard.learn import Corpus, TrainConfig, fit_monitor, trees
from prefixguard.simulation import write_runs


@pytest.fixture
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "ROUNDS", 15)


@pytest.fixture(scope="session")
def short_runs_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 runs of the simulation (40 tasks), cut off after twelve steps."""
    path = tmp_path_factory.mktemp("short") / "lab.jsonl"
    write_runs(path, 160, 5, max_steps=12)
    return path


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[int], list[int], TrainConfig]]:
    """Every fit, as it is made: the runs that it learns from, those that validate it, and its options."""
    seen: list[tuple[list[int], list[int], TrainConfig]] = []

    def counted(corpus: Corpus, pool: Any, config: TrainConfig, **more: Any) -> Any:
        validation = more.get("validation")
        seen.append((pool.tolist(), [] if validation is None else validation.tolist(), config))
        return fit_monitor(corpus, pool, config, **more)

    monkeypatch.setattr(fitting, "fit_monitor", counted)
    return seen
