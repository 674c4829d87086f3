"""The card says what is in the manifest, on one page, and cannot be broken by what stands there."""

from dataclasses import replace

import tiny_monitor

from prefixguard.alarm import Thresholds
from prefixguard.bundle import write_card

ADAPTER = {"name": "tiny_chat", "version": "1.0.0", "sha256": "0"}


def test_the_card_names_what_matters() -> None:
    parts = tiny_monitor.parts()
    card = write_card(ADAPTER, parts.calibration, parts.info)
    for said in ("`tiny_chat`", "Horizon in steps: 3", "outcome_auroc | 0.5", "ALARM above an outcome risk of 0.7000"):
        assert said in card
    assert "at most 10% raise an alarm, with confidence 90%" in " ".join(card.split())


def test_no_time_stands_in_it() -> None:
    parts = tiny_monitor.parts()
    later = dict(parts.info) | {"training_seconds": 77.0}
    assert write_card(ADAPTER, parts.calibration, later) == write_card(ADAPTER, parts.calibration, parts.info)


def test_a_refused_alarm_says_why() -> None:
    calibration = tiny_monitor.parts().calibration
    refused = replace(calibration, thresholds=Thresholds(None, 0.3, 10, 0, 22, "10 runs cannot support it: 22 needed."))
    assert "never says ALARM: 10 runs cannot support it: 22 needed" in write_card(ADAPTER, refused, {})


def test_the_watch_mark_is_the_one_in_force() -> None:
    """A watch mark above the alarm's is passed with the alarm."""
    calibration = tiny_monitor.parts().calibration
    high = replace(calibration, thresholds=replace(calibration.thresholds, watch=0.9))
    assert "WATCH above 0.7000" in write_card(ADAPTER, high, {})


def test_long_and_odd_content_stays_one_page() -> None:
    info = {"data": {f"row|{i}": "x\n" * 500 for i in range(100)} | {"hashes": list(range(99))}}
    card = write_card(ADAPTER, tiny_monitor.parts().calibration, info)
    assert "61 more in manifest.json" in card
    assert len(card.splitlines()) < 100
    assert "row/0" in card


def test_how_far_an_automaton_agrees_with_its_teacher_stands_in_it() -> None:
    fidelity = {"agreement": 0.57, "unseen_share": 0.01, "care": ["It ranks steps | otherwise."]}
    card = write_card(ADAPTER, tiny_monitor.parts().calibration, {"fidelity": fidelity})
    assert "## How far it agrees with its teacher" in card
    assert "| agreement | 0.57 |" in card
    assert "- Audit with care: It ranks steps / otherwise." in card
