"""The tiny monitor, written once a test session."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.runtime import Monitor, load


@pytest.fixture(scope="session")
def bundle_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("monitors") / "tiny"
    write_bundle(path, tiny_monitor.parts())
    yield path


@pytest.fixture(scope="session")
def monitor(bundle_path: Path) -> Monitor:
    return load(bundle_path)
