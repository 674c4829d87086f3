"""What the alarms of an automaton are worth: counted as sessions sound them, beside what knows less, at one budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lab_automaton import Learned, entries_of, lab_material, lay_out, learned, run_of
from scipy.stats import beta
from sklearn.metrics import cohen_kappa_score
from tiny_automaton import by_hand

from prefixguard.alarm import AlarmPolicy, Level, Thresholds, alarm_threshold, run_maximum
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.strings import Strings
from prefixguard.automata.summary.advice import changes_of_parts
from prefixguard.automata.summary.alarms import (
    PLAIN_RULE,
    RULES,
    _lengths,
    _notes,
    _without_calls,
    alarm_kappa,
    group_names,
    interval_coverage,
    measure_alarms,
)
from prefixguard.automata.summary.fidelity import Walks, rated
from prefixguard.automata.summary.parts import alarms_by_part
from prefixguard.behaviours import CATALOGUE, PLACES
from prefixguard.bundle import AlarmCount, AlarmPerformance, Calibration, Platt
from prefixguard.learn import featurise
from prefixguard.runtime import risk_logits
from prefixguard.trace import Side

IDENTITY = Platt(1.0, 0.0)
LEVELS = st.sampled_from([Level.OK, Level.WATCH, Level.ALARM, Level.UNKNOWN])


@pytest.fixture(scope="module")
def lab(lab_file: Path) -> Learned:
    return learned(lab_material(lab_file), "ladder", clock=(5, 11))


def calibration(alarm: float | None, **policy: float) -> Calibration:
    thresholds = Thresholds(alarm, 0.3, 40, 1, 22, None if alarm is not None else "too few runs")
    return Calibration(IDENTITY, IDENTITY, thresholds, AlarmPolicy(**policy))  # type: ignore[arg-type]


def walks_of(lab: Learned, found: Calibration, teacher: Calibration) -> Walks:
    """The teacher knows the outcome, more or less."""
    logits = np.array(risk_logits(lab.automaton))[lab.test_states, columns_of(lab.automaton.clock, lab.test)]
    blurred = 3 * lab.test.labels - 1.5 + np.random.default_rng(0).normal(0, 1, lab.test.labels.shape)
    ends = lab.test.first[1:-1]
    ours, theirs = rated(np.split(logits, ends), found), rated(np.split(blurred, ends), teacher)
    return Walks(lab.test, lab.test_states, lab.unseen, *ours, *theirs)


def good_runs(lab: Learned) -> np.ndarray:
    """Successful runs on which nothing was measured."""
    held_out = lab.material.held_out
    return held_out[~lab.material.corpus.failed[held_out]]


def measured(lab: Learned, alarm: float | None, **policy: float) -> tuple[AlarmPerformance, Walks]:
    ours, theirs = calibration(alarm, **policy), calibration(0.8)
    walks = walks_of(lab, ours, theirs)
    return measure_alarms(lab.material, lab.automaton, walks, good_runs(lab), ours, theirs, horizon=3), walks


def first_alarms(strings: Strings, levels: Sequence[Level]) -> list[int | None]:
    """Steps left at the first alarm of each run, as its levels say it."""
    runs = [levels[a:b] for a, b in zip(strings.first[:-1], strings.first[1:], strict=True)]
    return [len(run) - 1 - run.index(Level.ALARM) if Level.ALARM in run else None for run in runs]


@pytest.mark.parametrize("consecutive", [1, 2])
def test_rows_count_the_alarms_that_levels_say(lab: Learned, consecutive: int) -> None:
    alarm = float(np.quantile(lab.risks[:, 1], 0.7))
    found, walks = measured(lab, alarm, consecutive=consecutive)
    failed = lab.test.failed
    assert (found.failed, found.successful) == (int(failed.sum()), int((~failed).sum()))
    for row, levels in zip(found.rows, (walks.levels, walks.teacher_levels), strict=False):
        leads = first_alarms(lab.test, levels)
        caught = sorted(lead for lead, f in zip(leads, failed, strict=True) if f and lead is not None)
        false = sum(lead is not None for lead, f in zip(leads, failed, strict=True) if not f)
        assert (row.caught, row.false_alarms) == (len(caught), false) and caught
        assert row.early == sum(lead > 3 for lead in caught)
        assert row.lead == np.median(caught)
        assert row.in_time == sum(lead > 0 for lead in caught)
        assert row.caught_interval is not None
        assert row.caught_interval[0] <= row.caught / found.failed <= row.caught_interval[1]
    assert [row.by for row in found.rows[:3]] == ["automaton", "teacher", "step number alone"]
    said = [level.value for level in walks.levels]
    assert found.said == {
        level: said.count(level) / len(said) for level in dict.fromkeys(("OK", "WATCH", "ALARM")) if level in said
    }


def test_the_rule_that_needs_no_model_stands_beside_it(lab: Learned) -> None:
    """It alarms at the first step at which a behaviour of the rule holds, whatever the budget."""
    found, _ = measured(lab, 0.5)
    corpus, test = lab.material.corpus, lab.material.test
    assert corpus.held is not None
    holds = corpus.held[:, [PLACES["errors_in_a_row"], PLACES["same_call_same_result"]]].any(axis=1)
    leads: dict[bool, list[int]] = {True: [], False: []}
    for r in test.tolist():
        at = np.flatnonzero(holds[corpus.first[r] : corpus.first[r + 1]])
        if len(at):
            leads[bool(corpus.failed[r])].append(int(corpus.lengths[r]) - 1 - int(at[0]))
    row = found.rows[3]
    assert row.by == PLAIN_RULE and leads[True]
    assert (row.caught, row.false_alarms) == (len(leads[True]), len(leads[False]))
    assert (row.early, row.lead) == (sum(n > 3 for n in leads[True]), np.median(leads[True]))
    rule = AlarmCount(PLAIN_RULE, 0.5, 9, 3, 4.0, 0, None, None, None)
    ours = AlarmCount("automaton", 0.9, 8, 2, 4.0, 0, None, None, None)
    (note,) = _notes(40, 40, [ours, ours, rule], 0.1, 3)
    assert note.endswith("the automaton 8, 2 so early, at 0: that needs no model.")


def test_the_levels_of_rules_stand_beside_it() -> None:
    """As the monitor `rules` sounds on the same runs: at the first step at which a fault has the count of an ALARM."""
    runs = [run_of(f"r{n}", [{"tool": "find"}] * (3 if n % 2 else 12), failed=n % 2 == 0) for n in range(90)]
    sides = {Side.TRAIN: np.arange(30), Side.CALIBRATION: np.arange(30, 50), Side.TEST: np.arange(50, 90)}
    material = lay_out(featurise(runs), sides, teach=False)
    it, ours = learned(material, "memoryless"), calibration(0.9)
    walks = walks_of(it, ours, ours)
    found = measure_alarms(material, it.automaton, walks, np.arange(31, 50, 2), ours, ours, horizon=3)
    corpus, leads = material.corpus, list[int]()
    assert corpus.held is not None
    for r in material.test.tolist():
        held = corpus.held[corpus.first[r] : corpus.first[r + 1]]
        sounds = [any(one.alarm and of[PLACES[one.name]] >= one.alarm for one in CATALOGUE) for of in held]
        if any(sounds):
            leads.append(len(sounds) - 1 - sounds.index(True))
    row = found.rows[4]
    assert (row.by, row.threshold, row.caught, row.false_alarms) == (RULES, 0.5, 20, 0) and len(leads) == 20
    assert (row.early, row.lead) == (sum(n > 3 for n in leads), np.median(leads))


def test_agents_that_never_make_a_call_are_told_of() -> None:
    """One of three agents writes and calls nothing, in as many runs as a cell needs."""
    runs = [
        replace(
            run_of(f"r{n}", [{"tool": "find" if n % 3 else "respond"}] * 4, failed=n % 2 == 0),
            groups={"agent": f"a{n % 3}"},
        )
        for n in range(90)
    ]
    sides = {Side.TRAIN: np.arange(60), Side.CALIBRATION: np.arange(60, 75), Side.TEST: np.arange(75, 90)}
    material = lay_out(featurise(runs), sides, teach=False)
    (said,) = _without_calls(material)
    assert said.startswith("1 of 3 values of agent (20 of 60 training runs) make no call at any step.")
    assert not list(_without_calls(replace(material, tools=["find"] * len(material.tools))))
    assert not list(_without_calls(replace(material, tools=["respond"] * len(material.tools)))), "then all are silent"


def test_every_row_keeps_the_budget_on_the_runs_that_set_it(lab: Learned) -> None:
    found, _ = measured(lab, 0.5, budget=0.2)
    drawn = lab.material.corpus.lengths[good_runs(lab)].tolist()
    policy = AlarmPolicy(budget=0.2)
    limit = alarm_threshold([run_maximum(np.arange(1, n + 1), policy) for n in drawn], policy).alarm
    row = found.rows[2]
    assert row.threshold == limit is not None
    lengths = lab.test.lengths
    assert row.caught == (lengths[lab.test.failed] > limit).sum()
    assert row.false_alarms == (lengths[~lab.test.failed] > limit).sum()


def test_who_the_agent_is_stands_beside_it_and_that_it_does_as_well_is_said(lab: Learned) -> None:
    """One agent fails always, the other never: its name alone catches all, from the first step on."""
    runs = [
        replace(
            run_of(f"r{n}", [{"tool": "find"}] * 6, failed=n % 2 == 0, task=f"t{n}"),
            groups={"agent": "bad" if n % 2 == 0 else "good", "number": str(n), "same": "x"},
        )
        for n in range(160)
    ]
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 80), Side.TEST: np.arange(80, 160)}
    material = lay_out(featurise(runs), sides, teach=False)
    assert group_names(material) == ["agent"]
    it = learned(material, "memoryless")
    ours = calibration(0.9)
    walks = walks_of(it, ours, ours)
    found = measure_alarms(material, it.automaton, walks, np.arange(41, 160, 2), ours, ours, horizon=3)
    row = found.rows[5]
    assert (row.by, row.caught, row.early, row.lead, row.false_alarms) == ("agent alone", 40, 40, 5.0, 0)
    assert not [note for note in found.notes if "raises no alarm" in note]
    # Set by runs of the agent that fails, there is nothing above its threshold.
    mute = measure_alarms(material, it.automaton, walks, np.arange(40, 160, 2), ours, ours, horizon=3)
    assert (mute.rows[5].by, mute.rows[5].caught, mute.rows[5].false_alarms) == ("agent alone", 0, 0)
    (said,) = [note for note in mute.notes if note.startswith("Agent alone raises no alarm")]
    assert "more successful ones than its budget allows have the agent that fails most often." in said
    (said,) = [note for note in found.notes if note.startswith("Agent alone")]
    assert "catches 40 failures, 40 with more than 3 steps left, at 0 false alarms; the automaton " in said


@pytest.mark.parametrize(("false_alarms", "said"), [(1, True), (3, True), (4, False)])
def test_a_false_alarm_that_the_budget_allows_is_no_reason_to_keep_silent(false_alarms: int, said: bool) -> None:
    """Of 60 successful runs a budget of 5 % allows three; the automaton itself had none."""
    rows = [
        AlarmCount("automaton", 0.9, 19, 12, 4.0, 0, None, None, None),
        AlarmCount("teacher", 0.9, 30, 20, 4.0, 0, None, None, None),
        AlarmCount("step number alone", 0.9, 26, 24, 5.0, false_alarms, None, None, None),
    ]
    notes = list(_notes(65, 60, rows, 0.05, 3))
    alarms = "1 false alarm" if false_alarms == 1 else f"{false_alarms} false alarms"
    expected = (
        f"Step number alone catches 26 failures, 24 with more than 3 steps left, at {alarms}; the automaton 19, 12 so "
        "early, at 0: its alarms are no evidence that behaviour is seen."
    )
    assert notes == [expected] * said


def test_where_runs_are_cut_is_said() -> None:
    """Every other run is cut at eight steps, and has failed."""
    runs = [run_of(f"r{n}", [{"tool": "find"}] * (8 if n % 2 else 3 + n % 3), failed=n % 2 == 1) for n in range(80)]
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 60), Side.TEST: np.arange(60, 80)}
    said = "No training run has more than 8 steps, and 50 % have as many, of which 100 % failed (100 % repeat a call"
    assert _lengths(lay_out(featurise(runs), sides, teach=False)).startswith(said)
    assert "A test run has" not in _lengths(lay_out(featurise(runs), sides, teach=False))
    runs[70] = run_of("r70", [{"tool": "find"}] * 11, failed=False)
    assert _lengths(lay_out(featurise(runs), sides, teach=False)).endswith(
        " A test run has 11: past step 8 nothing was learned."
    )
    spread = [run_of(f"r{n}", [{"tool": "find"}] * (3 + n % 40), failed=n % 2 == 1) for n in range(80)]
    assert _lengths(lay_out(featurise(spread), sides, teach=False)) == ""


def test_runs_longer_than_any_test_run_and_a_rule_that_holds_on_none_are_said_to_be_unmeasured() -> None:
    """Every fourth training run, all failed, repeats a call to step 8; no test run does, and none has more than 3."""
    short = [{"tool": "find", "arguments": str(k), "result": str(k)} for k in range(3)]
    loop = [{"tool": "find", "arguments": "x", "result": "none"}] * 8
    runs = [run_of(f"r{n}", loop if n < 60 and n % 4 == 0 else short, failed=n % 2 == 0) for n in range(100)]
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 60), Side.TEST: np.arange(60, 100)}
    it = learned(lay_out(featurise(runs), sides, teach=False), "memoryless")
    ours = calibration(0.99)
    found = measure_alarms(it.material, it.automaton, walks_of(it, ours, ours), good_runs(it), ours, ours, horizon=3)
    assert found.rows[3] == AlarmCount(PLAIN_RULE, None, 0, 0, None, 0, None, None, None)
    rule, lengths = found.notes[-2:]
    assert rule.startswith("The plain rule holds on no test run, and on 10 of 20 failed and 0 of 20 successful")
    assert lengths.startswith("No test run has more than 3 steps; 25 % of training runs have, up to 8, and 100 %")
    assert "(100 % repeat a call, a message or failures, of the other runs 0 %)" in lengths


def test_alarms_are_counted_by_kind_of_task_and_by_group() -> None:
    """Two kinds of task and two agents; all of one agent's failures alarm, none of the other's, whose calls repeat."""
    same, good = {"tool": "find", "arguments": "x", "result": "some"}, {"tool": "read", "arguments": "y"}
    runs = []
    for n in range(160):
        steps = [good] if n % 2 else [{"tool": "boom"}] if n % 4 else [same, same, same]
        run = run_of(f"r{n}", steps, failed=n % 2 == 0, task=f"{'db' if n % 8 < 4 else 'os'}:{n}")
        runs.append(replace(run, groups={"agent": "loud" if n % 4 > 1 else "still"}))
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 60), Side.TEST: np.arange(60, 160)}
    it = learned(lay_out(featurise(runs), sides, teach=False), "memoryless")
    corpus, test = it.material.corpus, it.material.test
    loud = np.repeat([corpus.groups[r]["agent"] == "loud" and bool(corpus.failed[r]) for r in test], it.test.lengths)
    levels = [Level.ALARM if one else Level.OK for one in loud.tolist()]
    walks = Walks(it.test, it.test_states, it.unseen, it.risks, levels, it.risks, levels)
    glosses = [entry.gloss for entry in entries_of(it.alphabet, it.material, it.automaton, it.states)]
    found = alarms_by_part(it.material, walks, calibration(0.5).thresholds, glosses, horizon=3)
    rows = [(one.by, one.value, one.failed, one.caught, one.successful, one.false_alarms) for one in found]
    assert sorted(rows[:2]) == [("kind of task", "db", 24, 12, 24, 0), ("kind of task", "os", 26, 13, 26, 0)]
    assert sorted(rows[2:]) == [("agent", "loud", 25, 25, 25, 0), ("agent", "still", 25, 0, 25, 0)]
    still = next(one for one in found if one.value == "still")
    assert still.missed == 25 and still.ends.endswith(" (25 of 25); 25 end by step 3")
    assert still.ends.partition(" (25")[0] in glosses, "as the symbol is called"
    assert [one.name for one in still.behaviours] == ["same_call_same_result"]
    assert still.intervals[0] is not None and still.intervals[0][0] == 0 < still.intervals[0][1] < 0.2
    (first, *_) = changes_of_parts(found)
    said = " ".join(first)
    assert said.startswith("Agent still: 25 of 25 failures raise no alarm. Of these 25, and of its successes 0 of 25")
    silent = [replace(still, behaviours=())]
    assert "No behaviour of the catalogue is more frequent" in " ".join(next(changes_of_parts(silent)))


def test_a_row_that_alarms_only_as_runs_end_does_not_do_as_well() -> None:
    """Failed runs are longer, which the number of the step knows late; their tool says it from the first step on."""
    runs = [
        run_of(
            f"r{n}", [{"tool": "write"}] * 8 if n % 2 == 0 else [{"tool": "find"}] * 4, failed=n % 2 == 0, task=f"t{n}"
        )
        for n in range(160)
    ]
    sides = {Side.TRAIN: np.arange(40), Side.CALIBRATION: np.arange(40, 80), Side.TEST: np.arange(80, 160)}
    material = lay_out(featurise(runs), sides, teach=False)
    it, ours = learned(material, "memoryless"), calibration(0.5)
    walks = walks_of(it, ours, ours)
    found = measure_alarms(material, it.automaton, walks, np.arange(41, 160, 2), ours, ours, horizon=3)
    automaton, _, step = found.rows[:3]
    assert (automaton.caught, automaton.early, automaton.false_alarms) == (40, 40, 0)
    assert (step.caught, step.early, step.false_alarms) == (40, 0, 0)
    assert not [note for note in found.notes if note.startswith("Step number alone")]


def test_without_a_threshold_nothing_alarms_and_that_is_said(lab: Learned) -> None:
    found, _ = measured(lab, None)
    row = found.rows[0]
    assert (row.threshold, row.caught, row.lead, row.false_alarms) == (None, 0, None, 0)
    assert any(note.startswith("It has no alarm threshold") for note in found.notes)
    assert found.kappa is None


def test_a_small_or_empty_test_side_is_said(lab: Learned) -> None:
    for n, said in ((0, "There was no test run"), (9, "The test side is too small to say much of failures caught")):
        few = replace(lab.material, test=lab.material.test[:n])
        it = replace(learned(few, "ladder", alphabet=lab.alphabet))
        ours = calibration(0.5)
        walks = walks_of(it, ours, ours)
        found = measure_alarms(few, it.automaton, walks, good_runs(lab), ours, ours, horizon=3)
        assert found.notes[0].startswith(said)
        assert found.failed + found.successful == n
        assert found.coverage is None or n


@given(st.lists(st.tuples(LEVELS, LEVELS), max_size=30))
def test_kappa_is_cohens_over_steps_that_both_judge(pairs: list[tuple[Level, Level]]) -> None:
    found = alarm_kappa([a for a, _ in pairs], [b for _, b in pairs])
    known = [(a is Level.ALARM, b is Level.ALARM) for a, b in pairs if Level.UNKNOWN not in (a, b)]
    sides = [[pair[i] for pair in known] for i in (0, 1)]
    if any(len(set(side)) < 2 for side in sides):
        assert found is None
    else:
        assert found == pytest.approx(cohen_kappa_score(*sides))


def in_one_state(risk: float, low: float, high: float, failed: np.ndarray) -> tuple[float | None, float | None, int]:
    """Coverage of runs of two steps that stay in state 0 of an automaton with this risk and interval."""
    automaton = by_hand(())
    automaton = replace(automaton, risk=np.full_like(automaton.risk, risk), interval=np.tile([low, high], (3, 1, 2, 1)))
    n = len(failed)
    zero = np.zeros(2 * n, np.int32)
    labels = np.zeros((2 * n, 2), np.float32)
    strings = Strings(zero, 16, np.arange(n + 1) * 2, failed, np.arange(n), labels, labels)
    return interval_coverage(automaton, strings, zero)


def test_coverage_counts_runs_once_and_asks_for_enough_of_them() -> None:
    failed = np.arange(20) < 8
    assert in_one_state(0.4, 0.3, 0.5, failed)[::2] == (1.0, 1)
    assert in_one_state(0.1, 0.05, 0.39, failed)[::2] == (0.0, 1)
    assert in_one_state(0.4, 0.3, 0.5, failed[:9]) == (None, None, 0)


@pytest.mark.parametrize(("held_out", "tested", "rate"), [(25, 25, 0.3), (200, 12, 0.5), (30, 80, 0.7), (20, 30, 0.05)])
def test_the_coverage_to_expect_is_that_of_intervals_that_are_right(held_out: int, tested: int, rate: float) -> None:
    """Intervals of runs drawn at rates around this one, held against other runs drawn at the same."""
    rng, drawn = np.random.default_rng(3), []
    for p in rng.beta(8 * rate, 8 * (1 - rate), 800):
        f = rng.binomial(held_out, p)
        low = beta.ppf(0.05, f + 0.5, held_out - f + 0.5) if f else 0.0
        high = beta.ppf(0.95, f + 0.5, held_out - f + 0.5) if f < held_out else 1.0
        drawn.append(in_one_state(f / held_out, low, high, rng.random(tested) < p)[:2])
    covered, expected = np.mean(np.array(drawn, dtype=np.float64), axis=0)
    assert covered == pytest.approx(expected, abs=0.05)
    assert expected < 0.9 or held_out > tested
