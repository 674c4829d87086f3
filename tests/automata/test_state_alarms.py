"""Which states raise first alarms, and whether an agent or the step cap dominates them, counted by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from lab_automaton import Learned, entries_of, lab_material, lay_out, learned, run_of
from words import strings_of

from prefixguard.alarm import AlarmPolicy, Level, Thresholds
from prefixguard.automata.alphabets.behaviour_symbols import ASKED
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.summary.advice import changes, changes_of_failing, changes_of_missed, what_helps
from prefixguard.automata.summary.alarms import measure_alarms
from prefixguard.automata.summary.calls_in_runs import FailingCall, LookInRuns, helpful_looks
from prefixguard.automata.summary.doing import deed_names, deeds
from prefixguard.automata.summary.doubts import risks_in_doubt
from prefixguard.automata.summary.fidelity import Walks
from prefixguard.automata.summary.in_effect import in_effect
from prefixguard.automata.summary.missed import MissedFailures, find_missed
from prefixguard.automata.summary.mixtures import mixed_states
from prefixguard.automata.summary.shared_names import families, short_names
from prefixguard.automata.summary.state_alarms import StateAlarms, rank_states
from prefixguard.automata.summary.wording import share_text
from prefixguard.behaviours import BY_NAME, PLACES
from prefixguard.bundle import Calibration, Platt, state_names
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


def thresholds_of(alarm: float) -> Thresholds:
    return Thresholds(alarm, 1.0, 30, 0, 22, None)


def ranked(it: Learned, threshold: float, *, examples: bool = True) -> tuple[StateAlarms, ...]:
    entries = entries_of(it.alphabet, it.material, it.automaton, it.states)
    walks = walks_of(it, threshold)
    return rank_states(
        it.material, it.automaton, entries, it.states, walks, thresholds_of(threshold), it.pool, examples=examples
    )


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
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
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
    assert "All 10 of its first alarms came on runs of agent solo, as are 12 % of all test runs." in solo.flags
    assert any("step 18 or later, near the greatest lengths of runs" in flag for flag in late.flags)
    assert all(one.flags == () for one in others)
    assert any("This may be no behaviour to change." in said for said in changes(found)), "a line of its own"


def alarms_by_hand(it: Learned, threshold: float) -> list[tuple[int, int, int, bool]]:
    """Of each test run that sounds: the run, its step from 0, the state, whether the run failed."""
    found = []
    for i, (a, b) in enumerate(pairwise(it.test.first.tolist())):
        over = np.flatnonzero(it.risks[a:b, 1] > threshold)
        if len(over):
            run, at = int(it.material.test[i]), int(over[0])
            found.append((run, at, int(it.test_states[a + at]), bool(it.test.failed[i])))
    return found


@pytest.mark.parametrize(("before", "said"), [(0.2, ".20"), (0.4968, ".4968"), (0.6, "")])
def test_alarms_that_the_step_number_raises_are_flagged_with_the_risk_before(
    lab: Learned, before: float, said: str
) -> None:
    """All states alarm from step 5 on, by a threshold of .5; the risk before is below it, near it or above it."""
    risk = np.full_like(lab.automaton.risk, 0.9)
    risk[:, 0] = before
    column = columns_of(lab.automaton.clock, lab.test)
    it = replace(lab, automaton=replace(lab.automaton, risk=risk), risks=risk[lab.test_states, column])
    flags = [flag for one in ranked(it, 0.5) for flag in one.flags if "because of the number of the step" in flag]
    assert bool(flags) == bool(said)
    risk_before = f"in the range of steps before, the risk of this state is {said} at most, not above the threshold."
    assert all(risk_before in flag for flag in flags)
    stayed: Counter[int] = Counter()
    for a, b in pairwise(it.test.first.tolist()):
        t = next((t for t in range(a, b) if it.risks[t, 1] > 0.5), None)
        if t is not None and t > a and column[t]:
            stayed[int(it.test_states[t])] += bool(it.test_states[t] == it.test_states[t - 1])
    for one in ranked(it, 0.5):
        for flag in one.flags:
            if "because of the number of the step" in flag:
                n = stayed[one.state]
                runs = f"{n:,} run{'s' * (n != 1)} had been in this state at the step before."
                assert (runs in flag) == (stayed[one.state] > 0)


def test_the_behaviours_of_a_state_are_those_at_its_first_alarms_on_failed_runs(lab: Learned) -> None:
    corpus, threshold = lab.material.corpus, float(np.quantile(lab.risks[:, 1], 0.4))
    by_hand = alarms_by_hand(lab, threshold)
    assert corpus.held is not None
    seen: set[str] = set()
    for one in ranked(lab, threshold):
        steps = [int(corpus.first[run]) + at for run, at, state, failed in by_hand if failed and state == one.state]
        advised = {name for name, of in BY_NAME.items() if of.advice}
        held = [{name for name in advised if corpus.held[step, PLACES[name]]} for step in steps]
        counts = Counter(name for names in held for name in names)
        assert dict(one.faults) == dict(counts)
        order = [(BY_NAME[name].kind == "neutral", -n) for name, n in one.faults]
        assert order == sorted(order), "faults first, the most frequent before the others"
        seen |= set(counts)
        assert one.advised == () or one.advised == tuple((n, k) for n, k in one.faults if 3 * k >= one.failed)[:2]
        assert len(one.examples) >= len(one.advised)
        for (name, _), shown in zip(one.advised, one.examples, strict=False):
            run = corpus.run_ids.index(shown.split()[1].rstrip(","))
            at = int(corpus.first[run]) + int(shown.split()[3].rstrip(":")) - 1
            assert at in steps and corpus.held[at, PLACES[name]]
    assert seen


MODELS = ("results__tool-calling-Qwen2.5-7B-Instruct_1", "results__tool-calling-Qwen2.5-Coder-32B-Instruct_2")


def test_agents_whose_names_share_a_model_are_one_owner() -> None:
    """One model's runs under two file names; each alone has too few of the alarms."""
    learned = dominated()
    solo = [r for r, of in enumerate(learned.material.corpus.groups) if of["agent"] == "solo"]
    groups = [dict(of) for of in learned.material.corpus.groups]
    for place, run in enumerate(solo):
        groups[run]["agent"] = MODELS[place // 2 % 2]
    corpus = replace(learned.material.corpus, groups=groups)
    found = ranked(replace(learned, material=replace(learned.material, corpus=corpus)), 0.5)
    state = next(one for one in found if "describe" in one.sentence)
    who = 'agents whose names share "results tool calling Qwen2.5 Instruct"'
    assert f"100 % of its steps are of {who}, 7.9 % of all steps." in state.flags
    assert f"All 10 of its first alarms came on runs of {who}, as are 12 % of all test runs." in state.flags


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (("a", "b"), ("a", "b")),
        (("the_same_long_words_v1_of_2024", "the_same_long_words_v2_of_2024"), ("v1", "v2")),
        (("one-two-three-four-five-six", "six-five-four-three-two-one"), ()),  # nothing left to tell them apart
        (("x" * 500 + "-1", "x" * 500 + "-2"), ()),
        (("", "-" * 40, "+" * 40), ()),
        ((*MODELS, "gpt-4o-airline"), (MODELS[0][:-2], MODELS[1][:-2], "gpt-4o-airline")),  # two of three are not many
        ((*MODELS, MODELS[0] + "_new"), ("7B", "Coder-32B", "7B, new")),
    ],
)
def test_short_names_leave_out_what_many_share_and_never_fall_together(
    names: tuple[str, ...], short: tuple[str, ...]
) -> None:
    found = short_names(names)
    assert list(found) == list(names) and len(set(found.values())) == len(names)
    assert tuple(found.values()) == (short or names)


def test_a_setting_with_its_value_names_no_family() -> None:
    found = families({"alpha_range_0--1": 3, "beta_range_0--1": 3, "gamma": 3}, 0.9)
    assert all(len(one.values) == 1 for one in found)
    assert any(one.what == "rangers" for one in families({"alpha_rangers": 3, "beta_rangers": 3, "gamma": 3}, 0.9))


def test_no_family_is_guessed_where_names_share_nothing() -> None:
    assert all(len(one.values) == 1 for one in families({"alpha-1": 3, "beta-2": 3, "gamma3": 3}, 0.9))
    every = families({"m-alpha": 3, "m-beta": 3, "m-gamma": 1}, 0.9)
    assert all(len(one.values) == 1 for one in every), "what all have tells nobody apart"


def test_what_to_change_says_behaviours_and_advice_and_nothing_where_none_holds() -> None:
    counted = (("missing_tool", 1), ("same_message", 5), ("errors_in_a_row", 3), ("call_as_text", 3))
    found = tuple(
        replace(one, failed=one.failed and 6, faults=counted, examples=(f"run r{one.state}", f"run q{one.state}"))
        for one in ranked(dominated(), 0.5)
    )
    said = list(changes(found))
    raising = [one for one in found if one.failed]
    total = sum(one.failed for one in found)
    assert len(said) == min(5, len(raising)) > 0
    for item, one in zip(said, raising, strict=False):
        sentence = " ".join(item)
        assert f"State {one.state} raises {one.failed} of the {total} first alarms on failed runs" in sentence
        assert f"{one.successful} on successful ones" in sentence and one.read_at_alarms in sentence
        assert BY_NAME["call_as_text"].sentence not in sentence and BY_NAME["missing_tool"].sentence not in sentence
        for (name, count), shown in zip(counted[1:3], one.examples, strict=True):
            of = BY_NAME[name]
            at = item.index(f"At {count} of these 6 alarms: {of.sentence}")
            assert item[at + 1 : at + 3] == (f"To change: {of.advice}", f"As in “{shown}”")
    quoted = tuple(replace(one, examples=("run a: b, step 3: f(x): y",)) for one in found)
    assert "As in run a: b, step 3: “f(x): y”" in next(changes(quoted))
    twice = " ".join(next(changes(tuple(replace(one, examples=("run r", "run r")) for one in found))))
    assert twice.count("run r") == 1, "one step is quoted once"
    (alone,) = changes((replace(raising[0], failed=1),))
    assert alone[0].startswith(f"State {raising[0].state} raises the only first alarm on failed runs and ")
    silent = tuple(replace(one, faults=()) for one in found)
    for item, one in zip(changes(silent), raising, strict=False):
        sentence = " ".join(item)
        assert "the automaton has nothing to advise" in sentence
        assert one.examples[0] not in sentence and "To change" not in sentence
    rare = tuple(replace(one, faults=(("same_message", 1),)) for one in found)
    assert all("the automaton has nothing to advise" in " ".join(item) for item in changes(rare))
    assert list(changes(tuple(replace(one, failed=0) for one in found))) == []


def test_states_that_are_left_out_of_what_to_change_are_counted() -> None:
    one = replace(ranked(dominated(), 0.5)[0], failed=2, flags=())
    many = tuple(replace(one, state=state) for state in range(8))
    said = list(changes(many))
    assert len(said) == 6 and said[-1][0].startswith("6 first alarms on failed runs came in 3 more states:")


def test_alarms_that_the_clock_raised_are_flagged(lab: Learned) -> None:
    """Those of a state that would not sound in the span before, whether or not the run was in it already."""
    risk = lab.automaton.risk * np.array([0.8, 0.9, 1.0])[:, None]  # late is risky
    columns = np.searchsorted(lab.automaton.clock, lab.test.index, side="right")
    lab = replace(lab, automaton=replace(lab.automaton, risk=risk), risks=risk[lab.test_states, columns])
    threshold = float(np.quantile(lab.risks[:, 1], 0.8))
    clock, of_clock, of_all = lab.automaton.clock, Counter[int](), Counter[int]()
    steps: dict[int, list[int]] = {}
    for _, at, state, _ in alarms_by_hand(lab, threshold):
        column = sum(first <= at + 1 for first in clock)
        of_all[state] += 1
        of_clock[state] += column > 0 and lab.automaton.risk[state, column - 1, 1] <= threshold
        steps.setdefault(state, []).append(at + 1)
    for one in ranked(lab, threshold):
        told = [flag for flag in one.flags if "number of the step" in flag]
        assert bool(told) == (2 * of_clock[one.state] > of_all[one.state])
        only = of_all[one.state] == 1
        some = f"{of_clock[one.state]} of its {of_all[one.state]}"
        every = of_clock[one.state] == of_all[one.state]
        whole = "Both" if of_all[one.state] == 2 else f"All {of_all[one.state]}"
        start = "Its only" if only else f"{whole} of its first" if every else some
        assert all(flag.startswith(start) for flag in told)
        assert list(one.at) == sorted(steps.get(one.state, []))
    assert 0 < of_clock.total() < of_all.total()


def test_what_was_read_at_first_alarms_is_told_with_its_share_of_them(lab: Learned) -> None:
    threshold = float(np.quantile(lab.risks[:, 1], 0.8))
    entries, starts = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states), lab.test.first.tolist()
    place = {int(run): i for i, run in enumerate(lab.material.test.tolist())}
    counts: dict[int, Counter[str]] = {}
    for run, at, state, _ in alarms_by_hand(lab, threshold):
        symbol = int(lab.test.symbols[starts[place[run]] + at])
        counts.setdefault(state, Counter())[entries[symbol].gloss] += 1
    assert any(len(of) > 1 for of in counts.values())
    for one in ranked(lab, threshold):
        of = counts.get(one.state, Counter())
        assert dict(one.symbols) == dict(of) and [n for _, n in one.symbols] == sorted(of.values(), reverse=True)
        if len(of) > 1:
            gloss, n = one.symbols[0]
            assert one.read_at_alarms.startswith(f'First alarms come at "{gloss}" ({n} of {of.total()}) or "')


def test_a_fault_that_goes_on_is_not_called_the_clocks(lab: Learned) -> None:
    """All alarms would come no earlier; those at a fault are told apart from those of the clock."""
    risk = np.full_like(lab.automaton.risk, 0.9)
    risk[:, 0] = 0.2
    column = columns_of(lab.automaton.clock, lab.test)
    it = replace(lab, automaton=replace(lab.automaton, risk=risk), risks=risk[lab.test_states, column])
    held = lab.material.corpus.held
    assert held is not None
    for every in (False, True):
        of = np.zeros_like(held)
        of[:, PLACES["errors_in_a_row"]] = every
        of[:, PLACES["reads"]] = 1
        corpus = replace(it.material.corpus, held=of)
        found = ranked(replace(it, material=replace(it.material, corpus=corpus)), 0.5)
        late = sum(at >= it.automaton.clock[0] for one in found for at in one.at)
        assert sum(one.by_both for one in found) == every * late and late > 5
        flags = [flag for one in found for flag in one.flags]
        assert any("because of the number of the step" in flag for flag in flags) != every
        assert any("As a fault was read at each, it is the fault that goes on" in flag for flag in flags) == every


@pytest.mark.parametrize(("tasks", "told"), [(240, True), (4, False)])
def test_a_state_that_mixes_opposites_says_which(tasks: int, told: bool) -> None:
    """In one state runs that read one symbol all fail, by the other all succeed; of few tasks that shows nothing."""
    strings = strings_of([(n % 2, 2) for n in range(240)], 3, [n % 2 == 0 for n in range(240)])
    strings = replace(strings, tasks=np.arange(240) % tasks)
    states = np.tile(np.array([0, 1], np.int32), 240)
    expected = 'This state mixes training runs that read "a" here (120 of 120 failed, 100 %) with those that read "b" '
    found = mixed_states(strings, states, 2, ["a", "b", "c"])
    assert found == ({0: f"{expected}(0 of 120 failed, 0 %)."} if told else {})
    alike = replace(strings, failed=np.arange(240) % 3 == 0)
    assert mixed_states(alike, states, 2, ["a", "b", "c"]) == {}


def test_no_symbol_of_the_behaviours_asks_for_the_number_of_the_step() -> None:
    assert set(BY_NAME) - set(ASKED) == {"near_step_cap"}
    assert not any("step number" in BY_NAME[name].sentence for name in ASKED)


def test_risks_that_test_runs_do_not_bear_out_are_in_doubt(lab: Learned) -> None:
    it, run = lab, np.repeat(np.arange(len(lab.test)), lab.test.lengths)
    said: dict[float, set[int]] = {}
    for risk in (0.01, 0.99):
        entries = entries_of(it.alphabet, it.material, it.automaton, it.states)
        walks = replace(walks_of(it, 0.5), risks=np.full_like(it.risks, risk))
        found = rank_states(it.material, it.automaton, entries, it.states, walks, thresholds_of(0.5), it.pool)
        said[risk] = {one.state for one in found if one.doubt}
        for one in found:
            runs = np.unique(run[it.test_states == one.state])
            failed = int(it.test.failed[runs].sum())
            start = f"{share_text(failed / max(len(runs), 1))} of the {len(runs)} test runs that came here failed"
            assert not one.doubt or (len(runs) >= 10 and one.doubt.startswith(start))
        rates = {s: it.test.failed[np.unique(run[it.test_states == s])] for s in range(it.automaton.n_states)}
        assert said[risk] >= {s for s, of in rates.items() if len(of) >= 30 and abs(of.mean() - risk) > 0.5}
    assert said[0.01] and said[0.99]
    exact = [one.doubt for one in ranked(it, 0.5)]
    assert sum(map(bool, exact)) < len(exact) / 3


@pytest.mark.parametrize("alike", [False, True])
def test_exact_risks_are_seldom_in_doubt(alike: bool) -> None:
    """Also where all runs of a task fail alike: of 60 automata of 10 exact states few have a doubt at all."""
    rng, doubtful = np.random.default_rng(4), 0
    for _ in range(60):
        task = np.repeat(np.arange(40), 5)
        true = rng.uniform(0.1, 0.9, 10)
        at = np.repeat(rng.integers(0, 10, 40), 5) if alike else rng.integers(0, 10, 200)
        luck = np.repeat(rng.random(40), 5) if alike else rng.random(200)
        failed = luck < true[at]
        strings = replace(strings_of([(int(s),) for s in at], 10, failed.tolist()), tasks=task)
        risks = np.stack((true[at], true[at]), axis=1)
        levels = [Level.OK] * 200
        walks = Walks(strings, at.astype(np.int32), np.zeros(200, bool), risks, levels, risks, levels)
        doubtful += bool(risks_in_doubt(walks, 10))
    assert doubtful <= 12


def test_without_examples_no_text_and_no_value_of_a_group_is_left() -> None:
    found = ranked(dominated(), 0.5, examples=False)
    assert {one.examples for one in found} == {()}
    assert "solo" not in repr(found) and any("of one agent" in flag for one in found for flag in one.flags)


def test_alarms_by_a_symbol_that_none_has_before_a_late_step_are_flagged() -> None:
    """All long runs of some agents end with a tool of their own, which none uses before step 19 of 20."""
    found = ranked(dominated(), 0.5)
    late = next(one for one in found if "give_up" in one.sentence)
    at = f"All {late.failed} of its first alarms came by a symbol that no training run had before step 19:"
    assert any(flag.startswith(at) for flag in late.flags) and late.clocked == late.failed > 1
    assert all("by a symbol" not in flag for one in found if one is not late for flag in one.flags)


def test_one_alarm_by_the_clock_gives_no_advice() -> None:
    first = ranked(dominated(), 0.5)[0]
    one = replace(first, failed=1, successful=0, faults=(("same_message", 1),), examples=("run r",), clocked=0)
    assert one.advised
    (said,) = changes((one,))
    assert "To change" in " ".join(said)
    by_clock = replace(one, clocked=1)
    (said,) = changes((by_clock,))
    assert "Nothing can be advised from one alarm, and this one came because of the number of the step." in said
    assert "To change" not in " ".join(said) and "run r" not in " ".join(said)
    (said,) = changes((replace(by_clock, failed=2, clocked=2, faults=(("same_message", 2),)),))
    assert "To change" in " ".join(said)


def test_a_state_on_the_threshold_says_what_an_alarm_there_would_have_caught(lab: Learned) -> None:
    state = int(np.bincount(lab.test_states).argmax())
    risk = np.full_like(lab.automaton.risk, 0.2)
    risk[state, 1:] = 0.5
    it = replace(lab, automaton=replace(lab.automaton, risk=risk))
    there = (lab.test_states == state) & (columns_of(lab.automaton.clock, lab.test) > 0)
    left: dict[bool, list[int]] = {True: [], False: []}
    for a, b, failed in zip(lab.test.first[:-1], lab.test.first[1:], lab.test.failed, strict=True):
        if there[a:b].any():
            left[bool(failed)].append(int(b - a - 1 - np.argmax(there[a:b])))
    said = {one.state: one.on_threshold for one in ranked(replace(it, risks=np.full_like(it.risks, 0.2)), 0.5)}
    assert {of for of, sentence in said.items() if sentence} == {state}
    n, early = len(left[True]), sum(k > 3 for k in left[True])
    assert f"would have caught {n} failed test runs, {early} with more than 3 steps left" in said[state]
    assert f"{n} that raise no alarm now, at {len(left[False])} false alarm" in said[state] and n > 1


def missed_of(it: Learned, threshold: float, *, examples: bool = True) -> MissedFailures:
    glosses = [entry.gloss for entry in entries_of(it.alphabet, it.material, it.automaton, it.states)]
    return find_missed(
        it.material, it.states, walks_of(it, threshold), thresholds_of(threshold), glosses, examples=examples
    )


def test_missed_failures_on_a_path_of_a_success_are_counted_and_shown(lab: Learned) -> None:
    threshold = float(np.quantile(lab.risks[:, 1], 0.9))
    found, corpus, test = missed_of(lab, threshold), lab.material.corpus, lab.material.test
    paths = [tuple(lab.test_states[a:b].tolist()) for a, b in pairwise(lab.test.first.tolist())]
    quiet = [lab.risks[a:b, 1].max() <= threshold for a, b in pairwise(lab.test.first.tolist())]
    missed = [i for i, still in enumerate(quiet) if still and lab.test.failed[i]]
    good = {paths[i] for i, failed in enumerate(lab.test.failed) if not failed} | {
        tuple(lab.states[a:b].tolist())
        for (a, b), failed in zip(pairwise(lab.pool.first.tolist()), lab.pool.failed, strict=True)
        if not failed
    }
    assert (found.failed, found.missed) == (int(lab.test.failed.sum()), len(missed))
    assert found.alike == sum(paths[i] in good for i in missed) and found.missed > 0
    last = lab.test.symbols[lab.test.first[1:] - 1]
    entries = entries_of(lab.alphabet, lab.material, lab.automaton, lab.states)
    ends = Counter(entries[int(last[i])].gloss for i in missed)
    also = Counter(entries[int(last[i])].gloss for i in np.flatnonzero(~lab.test.failed).tolist())
    assert all((n, good) == (ends[what], also[what]) for what, n, good in found.ends), "named as symbols are"
    assert sum(n for _, n, _ in found.ends) <= len(missed) and found.ends[0][1] >= found.ends[-1][1]
    if found.twins is not None:
        ids = [corpus.run_ids[r] for r in test.tolist()]
        one, other = ids.index(found.twins.failed), ids.index(found.twins.succeeded)
        assert one in missed and not lab.test.failed[other]
        assert paths[one] == paths[other] == tuple(state for state, _, _ in found.twins.steps)
    bare = missed_of(lab, threshold, examples=False)
    assert bare.twins is None and (bare.missed, bare.alike) == (found.missed, found.alike)
    assert missed_of(lab, -1.0).missed == 0


def test_behaviours_that_missed_failures_have_more_often_are_advised_on() -> None:
    """Failures repeat a call for nothing, successes do not; all else is alike, and nothing alarms. Of runs of three
    tasks alone it may be chance, however many runs these are."""
    same = {"tool": "find", "arguments": "x", "result": "none"}
    for tasks, expected in ((40, ["same_call_same_result"]), (3, [])):
        runs = []
        for n in range(120):
            records = [same, same, same] if n % 2 == 0 else [{**same, "arguments": str(k)} for k in range(3)]
            runs.append(run_of(f"r{n}", records, failed=n % 2 == 0, task=f"t{n // 2 % tasks}"))
        sides = {Side.TRAIN: np.arange(20), Side.CALIBRATION: np.arange(20, 40), Side.TEST: np.arange(40, 120)}
        it = learned(lay_out(featurise(runs), sides, teach=False), "memoryless")
        found = missed_of(it, 1.0)
        assert found.missed == 40 and [one.name for one in found.behaviours] == expected
        advised = list(changes_of_missed(replace(found, ends=())))
        for one, (sentence, advice) in zip(found.behaviours, advised, strict=True):
            assert (one.missed, one.successful) == (40, 0)
            assert sentence.startswith("Of the failures that raise no alarm 40 of 40, and of successes 0 of 40: ")
            assert advice == f"To change: {BY_NAME[one.name].advice}"


def test_failures_that_end_as_successes_do_ask_for_a_look_at_what_comes_out() -> None:
    found = MissedFailures(9, 9, 9, 0, None, (("submits: submit", 3, 8), ("reads", 2, 1)), (), ())
    ((sentence, advice),) = changes_of_missed(found)
    assert sentence.startswith("Of the failures that raise no alarm 3 of 9 end with submits: submit, as do 8 of 9 succ")
    assert "prefixguard audit" in advice
    for ends in ((("submits", 2, 8),), (("submits", 9, 0),), ()):
        assert list(changes_of_missed(replace(found, ends=ends))) == []


def test_calls_that_look_are_told_of_where_their_runs_fail_less() -> None:
    """By hand: of 40 runs those that list first succeed; all read a page, and of that nothing is told."""
    lists, reads = {"tool": "list_tables", "result": "a"}, {"tool": "read_page", "result": "b"}
    runs = [run_of(f"r{n}", [lists, reads] if n % 2 else [reads], failed=n % 8 != 1, task=f"t{n}") for n in range(80)]
    sides = {Side.TRAIN: np.arange(80), Side.CALIBRATION: np.arange(0), Side.TEST: np.arange(0)}
    material = lay_out(featurise(runs), sides, teach=False)
    found = helpful_looks(material, deeds(material, deed_names(material)))
    assert found == (LookInRuns("list_tables", 40, 30, 40, 40, 0.25),)
    (said,) = what_helps(found)
    assert "list_tables (75 % of 40 training runs that begin so failed, 100 % of the 40 others)." in said[1:]
    assert list(what_helps(())) == []


def test_calls_that_fail_often_are_advised_on_with_their_error() -> None:
    failing = [FailingCall("click", "Invalid action!", 30, 0.08, (3, 4)), FailingCall("search", "", 9, 0.02, ())]
    (one, _), (other, _) = changes_of_failing(failing, 9)
    assert one.startswith('Calls of click fail with “Invalid action!”: 8.0 % of training steps; most steps of states')
    assert other.startswith("Calls of search fail with errors that begin in many ways: 2.0 % of training steps.")


def test_what_the_alarm_does_in_effect_is_said() -> None:
    """A risk by the number of the step alone counts; one by a tool that only failures use does not."""
    runs = [
        run_of(f"r{n}", [{"tool": "find"}] * (4 + n % 3) if n % 2 else [{"tool": "bad"}] * 9, failed=n % 2 == 0)
        for n in range(160)
    ]
    sides = {Side.TRAIN: np.arange(60), Side.CALIBRATION: np.arange(60, 80), Side.TEST: np.arange(80, 160)}
    it = learned(lay_out(featurise(runs), sides, teach=False), "memoryless", clock=(8,))
    ours = calibration_of(0.5)
    for by_step in (True, False):
        risk = np.full_like(it.automaton.risk, 0.1)
        bad = int(it.test_states[0])
        risk[:, 1] = 0.9 if by_step else 0.1
        risk[bad] = risk[bad] if by_step else 0.9
        risks = risk[it.test_states, columns_of(it.automaton.clock, it.test)]
        now = replace(it, automaton=replace(it.automaton, risk=risk), risks=risks)
        walks = walks_of(now, 0.5)
        measured = measure_alarms(now.material, now.automaton, walks, np.arange(1, 80, 2), ours, ours, horizon=3)
        said = in_effect(measured, ranked(now, 0.5), now.test)
        if by_step:
            assert said.startswith("In effect this automaton counts to step 8: its alarms are not fit as evidence of")
            assert "An alarm on every test run that reaches step 8 would catch 40 failures at 0 false alarms" in said
            assert "First alarms come at step 8, most often in state" in said
            assert "40 came at a fault, but would not have earlier in the run." in said
            blind = replace(now, material=replace(now.material, corpus=replace(now.material.corpus, held=None)))
            assert "All came because of the number of the step." in in_effect(measured, ranked(blind, 0.5), now.test)
        else:
            assert said.startswith(f"First alarms come at step 1, most often in state {bad} (100 %; at ")
            assert "counts" not in said and "because of the number of the step." not in said
    silent = replace(it, risks=np.zeros_like(it.risks))
    nothing = in_effect(measured, ranked(silent, 0.5), it.test)
    assert nothing == "In effect this automaton raises no alarm: on no test run did it sound."


def calibration_of(alarm: float) -> Calibration:
    return Calibration(Platt(1.0, 0.0), Platt(1.0, 0.0), thresholds_of(alarm), AlarmPolicy())
