"""`observe` costs little beside the model's own step: as a ratio in one process, so that no machine is too slow."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from processor_time import least_seconds

from prefixguard.alarm import Thresholds
from prefixguard.bundle import open_bundle, parts_of, write_bundle
from prefixguard.encoder import tokenize
from prefixguard.runtime import Level, load
from prefixguard.simulation import generate
from prefixguard.stepview import StepRecord, load_adapter, serialize

WORDS = 500
#: Eight were measured, and eleven with reasons at every step; a busy machine adds two.
MOST, MOST_WITH_REASONS = 16.0, 20.0


def long_results(count: int) -> list[list[dict[str, Any]]]:
    """Messages of runs whose tools return so many words."""
    rng, runs = Random(1), [run["messages"] for run in islice(generate(count, 11), count)]
    known = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(800)]
    return [
        [one | {"content": " ".join(rng.choices(known, k=WORDS))} if one["role"] == "tool" else one for one in run]
        for run in runs
    ]


@pytest.mark.usefixtures("collected")
@pytest.mark.parametrize(("watch", "level", "most"), [(1.0, Level.OK, MOST), (0.0, Level.WATCH, MOST_WITH_REASONS)])
def test_a_step_of_500_words_costs_little_beside_its_model(
    lab_bundle: Path, tmp_path: Path, watch: float, level: Level, most: float
) -> None:
    parts = parts_of(open_bundle(lab_bundle))
    pinned = Thresholds(None, watch, 0, 0, 22, "every step has this level")
    write_bundle(tmp_path / "pinned", replace(parts, calibration=replace(parts.calibration, thresholds=pinned)))
    monitor, runs = load(tmp_path / "pinned"), long_results(8)
    records: list[StepRecord] = []
    for run in runs:
        parser = load_adapter("openai_chat").parser()
        records += [record for message in run for record in parser.observe(message)] + parser.end()
    rows = [monitor.bundle.vocabulary.encode(tokenize(serialize(record))) for record in records]
    context = np.zeros(len(monitor.bundle.typical), np.float32)
    levels = list[Level]()

    def observe() -> None:
        levels.clear()
        for run in runs:
            session = monitor.start()
            levels.extend(reading.level for message in run for reading in session.observe(message))
            levels.extend(reading.level for reading in session.end())

    def model() -> None:
        state = monitor.model.initial
        for record, row in zip(records, rows, strict=True):
            state = monitor.model.step(record.tool, row, context, state).state

    whole, alone = least_seconds(observe, model, times=8)
    assert len(levels) == len(records) and set(levels) == {level}
    each = f"{1e6 * whole / len(records):.0f} and {1e6 * alone / len(records):.0f} microseconds a step"
    assert whole < most * alone, each
