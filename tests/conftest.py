"""Material for every room: runs of the simulation in a file, and a small monitor trained on them once a test session.

Where several processes share the tests (pytest-xdist), they share the monitor too: the first that needs it trains it.
"""

from __future__ import annotations

import fcntl
import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

LAB_SEED = 5
SIMULATED_RUNS = 160


#: A busy machine is no fault of an example; what must be quick is measured in benchmarks. `make test` tries fewer
#: examples of each law than CI does.
settings.register_profile("quick", deadline=None, max_examples=40)
settings.register_profile("thorough", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files of slow tests first, those with most of them before all: at the end no process waits long for another."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


@pytest.fixture(scope="session")
def lab_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160 runs of the simulation (40 tasks), one a line, as adapter openai_chat reads them."""
    from prefixguard.simulation import write_runs

    path = tmp_path_factory.mktemp("lab") / "lab.jsonl"
    write_runs(path, SIMULATED_RUNS, LAB_SEED)
    return path


@pytest.fixture(scope="session")
def fresh_lab_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """24 further runs, of six tasks that are not in `lab_file`."""
    from itertools import islice

    import orjson

    from prefixguard.simulation import generate

    path = tmp_path_factory.mktemp("lab") / "fresh.jsonl"
    path.write_bytes(
        b"".join(orjson.dumps(run) + b"\n" for run in islice(generate(184, LAB_SEED), SIMULATED_RUNS, None))
    )
    return path


@pytest.fixture(scope="session")
def lab_bundle(lab_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle trained on `lab_file`: real in every part, too small to be good. It has an alarm (budget 25 %).

    Shared by all processes of a test session: nothing may be written into it or beside it.
    """
    from prefixguard.learn import TrainConfig, train

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    path = shared / "shared" / "lab"
    with (shared / "shared_lab.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.is_dir():
            config = TrainConfig(epochs=2, symbol_epochs=1, members=1, max_features=256, teacher=0.0, budget=0.25)
            train(lab_file, out=path, adapter="openai_chat", config=config)
    return path


@pytest.fixture
def collected() -> Iterator[None]:
    """What other tests left is passed over by collections of garbage, which would fall into a time that is measured."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks of an adapter start no second process: it has tests of its own, and takes longer than small samples."""
    from prefixguard.induce.checks import determinism

    monkeypatch.setattr(determinism, "_elsewhere", lambda evidence: (True, ""))
