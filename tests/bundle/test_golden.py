"""Bundles written once by each schema and never made again: every later release must read them as the first did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prefixguard.bundle import open_bundle, state_names
from prefixguard.runtime import load

GOLDEN = Path(__file__).parent.parent / "golden"


@pytest.mark.parametrize("name", ["bundle_v1", "bundle_v2", "bundle_v3", "bundle_v4", "bundle_v4_variants"])
def test_the_first_bundle_still_gives_its_readings(name: str) -> None:
    """v1: kind onnx. v2: an automaton over typed symbols, with a clock, an unseen transition. v3: alarms by group.

    v4: an automaton over behaviours, whose states have names, and which says how its alarms did; and one of kind onnx
    whose reasons are read from variants of a step.
    """
    said = json.loads((GOLDEN / f"{name}_readings.json").read_text())
    session = load(GOLDEN / name, reasons="features").start()
    readings = [r for event in said["events"] for r in session.observe(event)] + session.end()
    assert len(readings) == len(said["readings"]) > 3
    for mine, theirs in zip(readings, said["readings"], strict=True):
        assert (mine.step, str(mine.level), mine.symbol, mine.state, list(mine.reasons)) == (
            theirs["step"], theirs["level"], theirs["symbol"], theirs.get("state"), theirs["reasons"],
        )  # fmt: skip
        assert mine.outcome_risk == pytest.approx(theirs["outcome_risk"], abs=1e-5)
        assert mine.imminent_risk == pytest.approx(theirs["imminent_risk"], abs=1e-5)


def test_the_first_automaton_over_behaviours_is_called_as_it_was() -> None:
    bundle = open_bundle(GOLDEN / "bundle_v4")
    document = json.loads((GOLDEN / "bundle_v4" / "automaton.json").read_bytes())
    assert bundle.automaton is not None and document["performance"]["kappa"] == 0.34
    assert document["symbol_map"]["symbols"][:2] == [["same_call_same_result", 3, ""], ["same_call_same_result", 1, ""]]
    names = state_names(bundle.automaton, bundle.glosses)
    assert names[1:] == tuple(document["names"][1:])
    stays = '; 50 % of its steps stay in it, most often by "reads, success after failure" (17 %).'
    assert names[0] == document["names"][0].removesuffix(".") + stays, "the file was written when no name said that"


def test_the_first_bundle_with_groups_still_tells_them_apart() -> None:
    said = json.loads((GOLDEN / "bundle_v3_readings.json").read_text())
    monitor = load(GOLDEN / "bundle_v3")
    for group, levels in said["levels"].items():
        session = monitor.start(group=group)
        assert [r.level.value for event in said["events"] for r in session.observe(event)] == levels
    assert said["levels"]["gold"] != said["levels"]["new"] == said["levels"]["other"]
