"""A monitor that reads events, made by hand: its risks are known, so tests can say when the alarm sounds."""

from pathlib import Path

import pytest
import tiny_monitor

from prefixguard.bundle import write_bundle
from prefixguard.runtime import Monitor, load
from prefixguard.stepview import load_adapter


@pytest.fixture(scope="session")
def events_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("events") / "bundle"
    write_bundle(path, tiny_monitor.parts(adapter=load_adapter("events").to_bytes()))
    return path


@pytest.fixture(scope="session")
def events_monitor(events_bundle: Path) -> Monitor:
    return load(events_bundle)
