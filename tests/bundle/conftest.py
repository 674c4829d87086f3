"""A tiny bundle of its own for every test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import tiny_monitor

from prefixguard.bundle import write_bundle


@pytest.fixture
def bundle_path(tmp_path: Path) -> Path:
    path = tmp_path / "tiny"
    write_bundle(path, tiny_monitor.parts())
    return path
