"""Material for every room: runs of the lab in a file, and a small monitor trained on them once a test session."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

LAB_SEED = 5
LAB_RUNS = 160


#: A busy machine is no fault of an example; what must be quick is measured in benchmarks.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")


@pytest.fixture(scope="session")
def lab_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 runs of the lab (40 tasks), one a line, as adapter openai_chat reads them."""
    from prefixguard.lab import write_runs

    path = tmp_path_factory.mktemp("lab") / "lab.jsonl"
    write_runs(path, LAB_RUNS, LAB_SEED)
    return path


@pytest.fixture(scope="session")
def fresh_lab_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 further runs, of six tasks that are not in `lab_file`."""
    from itertools import islice

    import orjson

    from prefixguard.lab import generate

    path = tmp_path_factory.mktemp("lab") / "fresh.jsonl"
    path.write_bytes(b"".join(orjson.dumps(run) + b"\n" for run in islice(generate(184, LAB_SEED), LAB_RUNS, None)))
    return path


@pytest.fixture(scope="session")
def lab_bundle(lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle trained on `lab_file`: real in every part, too small to be good. It has an alarm (budget 25 %)."""
    from prefixguard.learn import TrainConfig, train

    config = TrainConfig(epochs=2, symbol_epochs=1, members=1, max_features=256, teacher=0.0, budget=0.25)
    out = tmp_path_factory.mktemp("monitors") / "lab"
    return train(lab_file, out=out, adapter="openai_chat", config=config).path
