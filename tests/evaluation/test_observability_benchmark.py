"""The benchmark's worlds are what its text says they are."""

import numpy as np
import pytest
from observability import LAB_CAPS, lab_imminent, lab_outcome, measure, simulate, to_markdown, world

from prefixguard.simulation import generate, write_runs
from prefixguard.stepview import load_adapter, read_runs


def test_memoryless_lengths_tell_nothing():
    prefixes = world(20_000, 0, None)
    labels = prefixes.imminent_labels(3)
    for step in (1, 5, 12):
        rows = prefixes.step == step
        assert labels[rows].mean() == pytest.approx(0.4 * (1 - 0.93**4), abs=0.01)  # some 10,000 runs


def test_phi_is_measured_there_and_a_cap_breaks_it():
    for row in simulate(4_000, 1, None):
        if row["place"].endswith("all steps"):
            assert row["measured"] == pytest.approx(row["phi"], abs=0.02)
            assert row["clock"] == pytest.approx(row["prevalence"], abs=0.02)
    capped = {(row["place"], row["observable"]): row for row in simulate(4_000, 1, 15)}
    everywhere = capped["imminent, all steps", 0.25]
    assert everywhere["clock"] > everywhere["phi"] + 0.1
    assert everywhere["measured"] == pytest.approx(everywhere["phi"], abs=0.02), "who knows no clock stays on it"
    assert everywhere["measured_with_clock"] > everywhere["clock"]
    assert capped["imminent, step 8", 0.0]["clock"] == pytest.approx(capped["imminent, step 8", 0.0]["prevalence"])


def test_the_lab_under_a_cap_plays_the_same_steps(tmp_path):
    cap = LAB_CAPS[0]
    write_runs(tmp_path / "capped.jsonl", 60, 13, max_steps=cap)
    read = [len(run.records) for run in read_runs(tmp_path / "capped.jsonl", load_adapter("openai_chat"))]
    assert read == [min(len(run["metadata"]["true_risk"]), cap) for run in generate(60, 13)]


def test_the_lab_decides_in_plain_sight_only_what_fails():
    found = lab_outcome(300, 13)
    assert found["decided_successes"] == 0
    assert found["sees_what_is_decided"] == pytest.approx(found["phi"], abs=0.05)  # 5,000 prefixes
    assert found["true_risk"] > found["phi"]


def test_a_cap_in_the_lab_lifts_the_clock():
    rows = lab_imminent(120, 13)
    assert [row["cap"] for row in rows] == [None, *LAB_CAPS]
    assert rows[1]["clock"] > 2 * rows[0]["clock"]
    for row in rows:
        assert row["clock_at_step"] == pytest.approx(row["prevalence_at_step"])


def test_the_same_numbers_every_time():
    one, other = measure(200, 1, 40), measure(200, 1, 40)
    assert one == other
    text = to_markdown(one)
    assert "nan" not in text
    assert np.isfinite([row["phi"] for row in one["capped"]]).all()
