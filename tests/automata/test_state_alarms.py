"""Which states raise first alarms, and whether an agent or the step cap dominates them, counted by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lab_automaton import Learned, lab_material, lay_out, learned, run_of

from prefixguard.alarm import Level
from prefixguard.automata.summary.entries import make_entries
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.state_alarms import StateAlarms, changes, rank_states
from prefixguard.bundle import leading_symbols, state_names
from prefixguard.learn import featurise
from prefixguard.trace import Side


def walks_of(it: Learned, threshold: float) -> Walks:
    levels: list[Level] = []
    for a, b in zip(it.test.first[:-1], it.test.first[1:], strict=True):
        sounding = False
        for risk in it.risks[a:b, 1]:
            sounding = sounding or bool(risk > threshold)
            levels.append(Level.ALARM if sounding else Level.OK)
    return Walks(it.test, it.test_states, it.unseen, it.risks, levels, it.risks, levels)


def ranked(it: Learned, threshold: float, *, examples: bool = True) -> tuple[StateAlarms, ...]:
    entries = make_entries(it.alphabet, it.material, it.automaton, it.states)
    walks = walks_of(it, threshold)
    return rank_states(it.material, it.automaton, entries, it.states, walks, Level.ALARM, examples=examples)


@pytest.fixture(scope="module")
def lab(lab_file: Path) -> Learned:
    return learned(lab_material(lab_file), "ladder", clock=(5, 11))


def test_first_alarms_are_counted_once_a_run_where_it_first_sounds(lab: Learned) -> None:
    threshold = float(np.quantile(lab.risks[:, 1], 0.8))
    found = ranked(lab, threshold)
    first: list[tuple[int, bool]] = []
    for a, b, failed in zip(lab.test.first[:-1], lab.test.first[1:], lab.test.failed, strict=True):
        over = np.flatnonzero(lab.risks[a:b, 1] > threshold)
        if len(over):
            first.append((int(lab.test_states[a + over[0]]), bool(failed)))
    assert len(first) > 5
    for one in found:
        assert (one.failed, one.successful) == (first.count((one.state, True)), first.count((one.state, False)))
        assert one.share == pytest.approx(one.failed / sum(failed for _, failed in first))
    assert sorted(one.state for one in found) == list(range(lab.automaton.n_states))
    keys = [(-one.failed, -one.successful, one.state) for one in found]
    assert keys == sorted(keys)


def test_what_leads_there_and_its_steps_are_those_of_training(lab: Learned) -> None:
    index = lab.pool.index
    entries = make_entries(lab.alphabet, lab.material, lab.automaton, lab.states)
    names = state_names(lab.automaton, [entry.gloss for entry in entries])
    for one in ranked(lab, 0.5):
        mine = lab.states == one.state
        assert one.sentence == names[one.state]
        if not mine.any():
            assert one.steps is None
            continue
        assert one.steps is not None and one.steps[0] <= one.steps[1] <= one.steps[2]
        assert one.steps[1] == np.percentile(index[mine], 50, method="nearest")
        top = np.bincount(lab.pool.symbols[mine]).argmax()
        assert one.sentence.startswith("After ") and entries[top].gloss in one.sentence


def dominated() -> Learned:
    """Runs of one agent use a tool of their own; all long runs of the others end with another."""
    runs = []
    for n in range(240):
        agent = "solo" if n % 8 == 0 else f"agent {n % 3}"
        records = [{"tool": "describe" if agent == "solo" else "find"}] * 6
        if agent != "solo" and n % 4 == 1:
            records = [{"tool": "find"}] * 18 + [{"tool": "give_up"}] * 2
        run = run_of(f"r{n}", records, failed=agent == "solo" or len(records) > 6, task=f"t{n}")
        runs.append(replace(run, groups={"agent": agent}))
    sides = {Side.TRAIN: np.arange(120), Side.CALIBRATION: np.arange(120, 160), Side.TEST: np.arange(160, 240)}
    return learned(lay_out(featurise(runs), sides, teach=False), "memoryless")


def test_one_agent_and_the_step_cap_are_flagged_where_they_dominate() -> None:
    found = ranked(dominated(), 0.5)
    solo = next(one for one in found if "describe" in one.sentence)
    late = next(one for one in found if "give_up" in one.sentence)
    others = [
        one
        for one in found
        if not {"describe", "give_up"} & set(one.sentence.replace('"', " ").replace(",", " ").split())
    ]
    assert solo.mix == (("agent", (("solo", 1.0),)),)
    assert any("100 % of its steps are of agent solo, " in flag for flag in solo.flags)
    assert any("step 18 or later, near the greatest lengths of runs" in flag for flag in late.flags)
    assert all(one.flags == () for one in others)
    assert any("This may be no behaviour to change." in said for said in changes(found))


def test_what_to_change_names_the_states_of_most_failures_with_an_example() -> None:
    found = ranked(dominated(), 0.5)
    said = list(changes(found))
    raising = [one for one in found if one.failed]
    assert len(said) == min(5, len(raising)) > 0
    total = sum(one.failed for one in found)
    for sentence, one in zip(said, raising, strict=False):
        assert f"State {one.state} raises {one.failed} of {total} first alarms on failed runs" in sentence
        assert f"{one.successful} on successful ones" in sentence and one.sentence in sentence
        assert one.example.startswith("run r") and one.example in sentence
    assert list(changes(tuple(replace(one, failed=0) for one in found))) == []


def test_what_to_change_says_what_the_catalogue_advises() -> None:
    """The advice is that of the symbol that leads to the state most, in the words of reasons."""
    it = dominated()
    k = it.alphabet.map.n_symbols
    advised = replace(it, alphabet=replace(it.alphabet, advice=tuple(f"Mend {symbol}." for symbol in range(k))))
    found = ranked(advised, 0.5)
    for one in found:
        leading = leading_symbols(it.automaton, one.state)
        assert one.advice == (f"Mend {leading[0]}." if leading else "")
    assert all(f"{one.sentence} {one.advice}" in said for said, one in zip(changes(found), found, strict=False))
    assert {one.advice for one in ranked(it, 0.5)} == {""}


def test_without_examples_no_text_and_no_value_of_a_group_is_left() -> None:
    found = ranked(dominated(), 0.5, examples=False)
    assert {one.example for one in found} == {""}
    assert "solo" not in repr(found) and any("of one agent" in flag for one in found for flag in one.flags)
