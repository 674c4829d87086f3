"""Bundles with alarm thresholds by group: a layout of their own, and nothing changes for bundles without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiny_automaton
import tiny_monitor

from prefixguard.alarm import GroupThresholds, Thresholds
from prefixguard.bundle import BundleParts, Calibration, open_bundle, parts_of, write_bundle
from prefixguard.errors import BundleError

GOLD = Thresholds(0.9, 0.3, 30, 0, 22, None)
FEW = Thresholds(None, 0.3, 5, 0, 22, "5 runs cannot support it.")


def grouped(calibration: Calibration) -> Calibration:
    return replace(calibration, groups=GroupThresholds("tier", {"gold": GOLD, "new": FEW}))


def grouped_parts() -> BundleParts:
    parts = tiny_monitor.parts()
    return replace(parts, calibration=grouped(parts.calibration))


def test_a_grouped_calibration_comes_back_equal() -> None:
    calibration = grouped_parts().calibration
    again = Calibration.from_bytes(calibration.to_bytes())
    assert again == calibration and again.to_bytes() == calibration.to_bytes()
    assert again.thresholds_of("gold") == GOLD
    assert again.thresholds_of("new") == again.thresholds_of(None) == again.thresholds_of("?") == again.thresholds


def test_only_grouped_bundles_have_the_new_layout(tmp_path: Path) -> None:
    write_bundle(tmp_path / "plain", tiny_monitor.parts())
    write_bundle(tmp_path / "grouped", grouped_parts())
    automaton = tiny_automaton.parts()
    write_bundle(tmp_path / "automaton", replace(automaton, calibration=grouped(automaton.calibration)))
    said = {path.name: open_bundle(path).manifest for path in tmp_path.iterdir()}
    assert {name: one["schema"].rpartition("/")[2] for name, one in said.items()} == {
        "plain": "v1",
        "grouped": "v3",
        "automaton": "v3",
    }
    assert said["grouped"]["read_by"] == "0.3.0" and said["plain"]["read_by"] == "0.1.0"
    plain = json.loads((tmp_path / "plain" / "calibration.json").read_bytes())
    assert plain["schema"] == "prefixguard/calibration/v1" and "groups" not in plain["outcome"]


@pytest.mark.parametrize(
    "groups",
    [None, [], {"by": "tier"}, {"by": "tier", "of": {}}, {"by": 3, "of": {"gold": {}}}, {"by": "a", "of": {"b": 1}}],
)
def test_damaged_groups_are_refused(groups: Any) -> None:
    document = json.loads(grouped_parts().calibration.to_bytes())
    document["outcome"]["groups"] = groups
    with pytest.raises(BundleError, match=r"calibration\.json: not a calibration"):
        Calibration.from_bytes(json.dumps(document).encode())


def test_parts_of_an_opened_bundle_make_the_same_bundle(tmp_path: Path) -> None:
    for name, parts in (("onnx", grouped_parts()), ("automaton", tiny_automaton.parts())):
        first = write_bundle(tmp_path / name, parts)
        assert write_bundle(tmp_path / f"{name}-again", parts_of(open_bundle(tmp_path / name))) == first


def test_the_card_lists_groups_and_counts_those_without(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", grouped_parts())
    card = (tmp_path / "b" / "CARD.md").read_text()
    assert "| gold | 0.9000 | 30 |" in card and "1 had too few runs" in card and "| new |" not in card
