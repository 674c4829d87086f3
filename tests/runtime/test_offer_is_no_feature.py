"""What a run is given moves the behaviours of a session, and nothing that was trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiny_automaton
from tiny_automaton import BEHAVIOURS, by_seed
from tiny_monitor import failing_run

from prefixguard.behaviours import BY_NAME, PLACES
from prefixguard.bundle import BehaviourMap, BehaviourSymbol, write_bundle
from prefixguard.learn import featurise
from prefixguard.runtime import Monitor, Reading, load
from prefixguard.stepview import StepRecord
from prefixguard.trace import NO_OFFER, Outcome, Run, RunOffer

OFFER = RunOffer(("nothing_else",), 2)
GOLDEN = Path(__file__).parents[1] / "golden"
#: Every behaviour is a symbol, those that rest on what a run is given first.
EVERY = BehaviourMap(
    tuple(
        BehaviourSymbol(((name, 1),))
        for name in sorted(BY_NAME, key=lambda name: name not in ("missing_tool", "near_step_cap"))
    )
)


def steps() -> list[StepRecord]:
    calls = [StepRecord(n, "agent", "", "find", f'{{"id":{n}}}', "", "", f"row {n}", "ok") for n in range(6)]
    return [*calls, StepRecord(7, "agent", "", "", "", "", "nothing_else(id=3)", "", "ok")]


def opened(name: str, folder: Path) -> Monitor:
    if name.startswith("bundle"):
        return load(GOLDEN / name)
    symbols = {"listed": BEHAVIOURS, "every": EVERY}[name]
    path = folder / name
    write_bundle(path, tiny_automaton.parts(by_seed(3, 7, symbols.n_symbols, (3,), unseen=0.1), symbols))
    return load(path)


def trained(reading: Reading) -> tuple[object, ...]:
    return reading.imminent_risk, reading.outcome_risk, reading.level, reading.symbol, reading.state


@pytest.mark.parametrize("name", ["bundle_v1", "bundle_v2", "bundle_v3", "listed", "every"])
def test_risks_are_the_same_with_and_without(name: str, tmp_path: Path) -> None:
    monitor = opened(name, tmp_path)
    alone, given = monitor.score_run(steps()), monitor.score_run(steps(), offer=OFFER)
    assert [trained(r) for r in given] == [trained(r) for r in alone]
    is_told = any(f.behaviour.name == "near_step_cap" for r in given for f in r.behaviours)
    assert is_told == name.startswith("bundle"), "an automaton over behaviours takes in none"


def test_live_too(tmp_path: Path) -> None:
    monitor = opened("every", tmp_path)
    told = [
        [trained(reading) for event in failing_run() for reading in session.observe(event)]
        for session in (monitor.start(), monitor.start(tools=OFFER.tools, step_limit=OFFER.step_limit))
    ]
    assert told[0] == told[1]


def test_training_does_not_read_it() -> None:
    corpora = [
        featurise([Run("r", "t", Outcome.FAILURE, tuple(steps()), "here", offer=offer)]) for offer in (NO_OFFER, OFFER)
    ]
    assert corpora[0].held is not None and not corpora[0].held[:, PLACES["near_step_cap"]].any()
    for name in ("context", "held", "digests"):
        first, second = (getattr(corpus, name) for corpus in corpora)
        assert list(map(str, first)) == list(map(str, second)), name
