"""What trivial auditors reach on a public attribution set, counted by an independent reading of its files."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from prefixguard.auditor import trivial_baselines
from prefixguard.metrics import Attribution, attribution
from prefixguard.stepview import load_adapter, read_runs

ROOT = Path(os.environ.get("PREFIXGUARD_TRACES", Path(__file__).parents[3] / ".traces")) / "whoandwhen"
pytestmark = [pytest.mark.real, pytest.mark.skipif(not ROOT.is_dir(), reason="no real runs here")]


def figures(half: str, adapter: str, **options: object) -> dict[str, Attribution]:
    runs = list(read_runs(ROOT / half, load_adapter(adapter)))
    systems = trivial_baselines(runs, constants=(1, 2, 5), **options)  # type: ignore[arg-type]
    return {system.name: attribution(system.rows, n_resamples=0) for system in systems}


def entries(half: str) -> list[tuple[int, str, list[str]]]:
    """Label and actors of every file, read without any of our code; names cut at the first bracket."""
    found = []
    for file in sorted((ROOT / half).glob("*.json")):
        run = json.loads(file.read_text(encoding="utf-8"))
        actors = [(entry.get("name") or entry["role"]).split(" (")[0] for entry in run["history"]]
        found.append((int(run["mistake_step"]), run["mistake_agent"], actors))
    return found


@pytest.mark.parametrize(
    ("half", "constant", "step", "agent"),
    [
        ("Algorithm-Generated", 1, 15.87, 49.21),
        ("Algorithm-Generated", 2, 26.98, 42.86),
        ("Algorithm-Generated", 5, 8.73, 27.78),
        ("Hand-Crafted", 2, 1.72, 31.03),
        ("Hand-Crafted", 5, 15.52, None),  # one run is shorter, and ends with no agent
    ],
)
def test_a_constant_entry(half: str, constant: int, step: float, agent: float | None) -> None:
    raw = entries(half)
    by_hand = sum(gold + 1 == constant for gold, _, _ in raw) / len(raw)
    found = figures(half, "whoandwhen_turns")[f"step {constant}"]
    assert found.step_accuracy == pytest.approx(by_hand)
    assert round(100 * found.step_accuracy, 2) == step
    if agent is not None:
        assert round(100 * found.agent_accuracy, 2) == agent


def test_a_constant_entry_of_records_that_join_calls_and_results() -> None:
    """Counting source entries through the other adapter: the two labels that fall on the terminal are no steps."""
    found = figures("Algorithm-Generated", "whoandwhen", index="event")["entry 2"]
    assert found.counts.unplaced == 2
    assert (found.counts.exact, round(100 * found.agent_accuracy, 2)) == (33, 42.86)


def test_chance_over_everyone() -> None:
    raw = entries("Algorithm-Generated")
    found = figures("Algorithm-Generated", "whoandwhen_turns", blame="all")
    assert found["random step"].step_accuracy == pytest.approx(sum(1 / len(actors) for *_, actors in raw) / len(raw))
    agent = sum((who in actors) / len(set(actors)) for _, who, actors in raw) / len(raw)
    assert found["random agent"].agent_accuracy == pytest.approx(agent)
    assert (round(100 * found["random step"].step_accuracy, 1), round(100 * agent, 1)) == (12.0, 29.1)


def test_the_most_active_agent() -> None:
    raw = entries("Algorithm-Generated")
    top = [Counter(actors).most_common(1)[0][0] for *_, actors in raw]  # of several the first to act, as there
    by_hand = sum(name == who for name, (_, who, _) in zip(top, raw, strict=True)) / len(raw)
    everyone = figures("Algorithm-Generated", "whoandwhen_turns", blame="all")["most active agent"]
    assert everyone.agent_accuracy == pytest.approx(by_hand)
    agents = figures("Algorithm-Generated", "whoandwhen_turns")["most active agent"]
    assert (round(100 * everyone.agent_accuracy, 1), round(100 * agents.agent_accuracy, 1)) == (42.9, 54.0)
