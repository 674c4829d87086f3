"""A bundle written once by schema v1 and never made again: every later release must read it as the first did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.runtime import load

GOLDEN = Path(__file__).parent.parent / "golden"


def test_the_first_bundle_still_gives_its_readings() -> None:
    said = json.loads((GOLDEN / "bundle_v1_readings.json").read_text())
    session = load(GOLDEN / "bundle_v1").start()
    readings = [r for event in said["events"] for r in session.observe(event)] + session.end()
    assert len(readings) == len(said["readings"]) > 3
    for mine, theirs in zip(readings, said["readings"], strict=True):
        assert (mine.step, str(mine.level), mine.symbol, list(mine.reasons)) == (
            theirs["step"], theirs["level"], theirs["symbol"], theirs["reasons"],
        )  # fmt: skip
        assert mine.outcome_risk == pytest.approx(theirs["outcome_risk"], abs=1e-5)
        assert mine.imminent_risk == pytest.approx(theirs["imminent_risk"], abs=1e-5)
