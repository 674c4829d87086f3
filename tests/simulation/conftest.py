from __future__ import annotations

from typing import Any

import pytest

from prefixguard.simulation import generate


@pytest.fixture(scope="session")
def lab_runs() -> list[dict[str, Any]]:
    return list(generate(1600, seed=13))
