"""Maps rise, round-trip exactly, and refuse what is not a map."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.alarm import AlarmPolicy, GroupThresholds, Thresholds
from prefixguard.bundle import (
    Beta,
    BundleParts,
    Calibration,
    Platt,
    RiskMap,
    apply_map,
    open_bundle,
    parts_of,
    write_bundle,
)
from prefixguard.errors import BundleError, ConfigError

REAL = st.floats(-50, 50)
PLATTS = st.builds(Platt, st.floats(1e-3, 20), REAL)
BETAS = st.builds(Beta, st.floats(0, 20), st.floats(0, 20), REAL)
MAPS = PLATTS | BETAS


@given(MAPS, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_maps_rise_and_stay_in_the_unit_interval(risk_map: RiskMap, x: float, y: float) -> None:
    """To an ulp of 1.0, which is as fine as a probability near 1 is told apart."""
    low, high = risk_map(min(x, y)), risk_map(max(x, y))
    assert 0.0 <= low <= 1.0
    assert low <= high + 2.3e-16


@given(st.floats(1e-3, 20), REAL, st.floats(-30, 30))
def test_platt_is_its_formula(a: float, b: float, x: float) -> None:
    assert Platt(a, b)(x) == pytest.approx(1 / (1 + math.exp(-(a * x + b))), rel=1e-12)


@given(st.floats(0, 5), st.floats(0, 5), st.floats(-5, 5), st.floats(-15, 15))
def test_beta_is_its_formula(a: float, b: float, c: float, x: float) -> None:
    """float64; 1 - s loses digits to cancellation as s nears 1, hence 1e-6."""
    s = 1 / (1 + math.exp(-x))
    z = a * math.log(s) - b * math.log(1 - s) + c
    assert Beta(a, b, c)(x) == pytest.approx(1 / (1 + math.exp(-z)), rel=1e-6)


@given(MAPS, st.lists(st.floats(-100, 100), max_size=20))
def test_many_at_once_equals_one_by_one(risk_map: RiskMap, logits: list[float]) -> None:
    """Bit by bit: a threshold set on one path must be met on the other."""
    assert apply_map(risk_map, np.array(logits)).tolist() == [risk_map(x) for x in logits]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Platt(0.0, 1.0),
        lambda: Platt(-1.0, 0.0),
        lambda: Platt(math.nan, 0.0),
        lambda: Beta(-0.1, 1.0, 0.0),
        lambda: Beta(1.0, 1.0, math.inf),
        lambda: Platt(True, 0.0),
    ],
)
def test_falling_or_broken_maps_are_refused(make: object) -> None:
    with pytest.raises(ConfigError, match="map"):
        make()  # type: ignore[operator]


RISKS = st.floats(0, 1)
CALIBRATIONS = st.builds(
    Calibration,
    MAPS,
    MAPS,
    st.builds(
        Thresholds, st.none() | RISKS, RISKS, st.integers(0, 999), st.integers(0, 9), st.integers(0, 999), st.none()
    )
    | st.builds(Thresholds, st.none(), RISKS, st.just(3), st.just(0), st.just(22), st.text(max_size=20)),
    st.builds(AlarmPolicy, st.floats(0.01, 0.5), st.floats(0.5, 0.99), st.integers(1, 4), st.none() | RISKS),
)


@given(CALIBRATIONS)
def test_calibration_round_trips_exactly(calibration: Calibration) -> None:
    data = calibration.to_bytes()
    assert Calibration.from_bytes(data) == calibration
    assert Calibration.from_bytes(data).to_bytes() == data


GOOD = json.loads(
    Calibration(Platt(1.0, 0.0), Beta(1.0, 1.0, 0.0), Thresholds(0.5, 0.2, 40, 1, 22, None), AlarmPolicy()).to_bytes()
)


def changed(path: str, value: object) -> bytes:
    document = json.loads(json.dumps(GOOD))
    *above, last = path.split(".")
    place = document
    for name in above:
        place = place[name]
    place[last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "prefixguard/calibration/v9"),
        ("imminent.map.kind", "isotonic"),
        ("imminent.map.a", "1"),
        ("imminent.map.a", -1),
        ("imminent.map.extra", 1),
        ("imminent", []),
        ("outcome.map", None),
        ("outcome.thresholds.alarm", "high"),
        ("outcome.thresholds.alarm", 1.5),
        ("outcome.thresholds.watch", None),
        ("outcome.thresholds.n_runs", 1.5),
        ("outcome.policy.budget", 2),
        ("outcome.policy.consecutive", "2"),
        ("outcome.policy", {}),
    ],
)
def test_a_wrong_calibration_is_refused(path: str, value: object) -> None:
    with pytest.raises(BundleError, match=r"calibration\.json: not a calibration .* Calibrate or train"):
        Calibration.from_bytes(changed(path, value))


@pytest.mark.parametrize("data", [b"", b"[]", b"null", b'"x"', b"{", b"\xff", b"[" * 100_000, b'{"schema": NaN}'])
def test_what_is_not_an_object_is_refused(data: bytes) -> None:
    with pytest.raises(BundleError, match="not a calibration"):
        Calibration.from_bytes(data)


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
