"""A tiny bundle of its own for every test."""

from pathlib import Path

import pytest
import tiny_monitor

from prefixguard.bundle import write_bundle


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny"
    write_bundle(path, tiny_monitor.parts())
    return path
