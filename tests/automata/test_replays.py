"""Replays are few and telling, and say step by step what a session of the automaton's bundle says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tiny_monitor
from invented_summary import HOSTILE
from lab_automaton import SHARES, Learned, lab_material, lay_out, learned, material_of, run_of, typed

from prefixguard.alarm import AlarmPolicy, Level, Thresholds
from prefixguard.automata.material import Material
from prefixguard.automata.state_risk import columns_of
from prefixguard.automata.summary.fidelity import Walks, rated
from prefixguard.automata.summary.replays import (
    TEXT_LETTERS,
    Replay,
    choose_replays,
    make_replays,
    replay_kinds,
    step_texts,
)
from prefixguard.automata.summary.wording import share_text
from prefixguard.bundle import Calibration, Platt, automaton_to_bytes, write_bundle
from prefixguard.errors import DataError
from prefixguard.learn import featurise
from prefixguard.runtime import load, risk_logits, score
from prefixguard.stepview import StepRecord, load_adapter, read_runs
from prefixguard.trace import Run, Side

IDENTITY = Platt(1.0, 0.0)


@pytest.fixture(scope="module")
def lab(lab_file: Path) -> Learned:
    return learned(lab_material(lab_file), "ladder", clock=(5, 11))


def calibration(alarm: float | None, watch: float = 0.3, **policy: float) -> Calibration:
    thresholds = Thresholds(alarm, watch, 40, 1, 22, None if alarm is not None else "too few runs")
    return Calibration(IDENTITY, IDENTITY, thresholds, AlarmPolicy(**policy))  # type: ignore[arg-type]


def walks_of(lab: Learned, found: Calibration) -> Walks:
    """With risks and levels as readings have them; the teacher's risks rise over all steps."""
    logits = np.array(risk_logits(lab.automaton))[lab.test_states, columns_of(lab.automaton.clock, lab.test)]
    risks, levels = rated(np.split(logits, lab.test.first[1:-1]), found)
    teacher = np.linspace(0, 1, len(risks))[:, None].repeat(2, axis=1)
    return Walks(lab.test, lab.test_states, lab.unseen, risks, levels, teacher, levels)


def chosen(material: Material, walks: Walks, found: Calibration, *, examples: bool = True) -> tuple[Replay, ...]:
    """The runs that are shown, as an export makes them: chosen on the test side, then walked."""
    places = choose_replays(material, walks, found, horizon=3).places
    these = walks.of(places)
    return make_replays(material, material.test[places], these, replay_kinds(these, found, 3), examples=examples)


def test_a_replay_is_what_a_session_says(lab: Learned, lab_file: Path, tmp_path: Path) -> None:
    """Symbols, states, both risks and levels of every replayed step, through a bundle, from the raw file."""
    levels = np.quantile(walks_of(lab, calibration(0.5)).risks[:, 1], [0.9, 0.6], method="nearest").tolist()
    found = calibration(*levels, consecutive=2, release=levels[1])
    replays = chosen(lab.material, walks_of(lab, found), found)
    adapter = load_adapter("openai_chat")
    changes = {
        "adapter": adapter.to_bytes(),
        "vocabulary": lab.material.vocabulary.to_bytes(),
        "model": None,
        "reasons": None,
        "calibration": found,
        "automaton": automaton_to_bytes(lab.automaton, lab.alphabet.map, lab.alphabet.glosses),
    }
    write_bundle(tmp_path / "bundle", tiny_monitor.parts(**changes))
    wanted = {replay.run_id: replay for replay in replays}
    runs = [run for run in read_runs(lab_file, adapter) if run.run_id in wanted]
    assert len(runs) == len(replays) == min(60, len(lab.test))
    for scored in score(load(tmp_path / "bundle"), runs):
        said = [(r.symbol, r.state, r.imminent_risk, r.outcome_risk, r.level.value) for r in scored.readings]
        steps = wanted[scored.run.run_id].steps
        assert [(s.symbol, s.state, s.imminent, s.outcome, s.level) for s in steps] == said
        assert all(step.texts for step in steps)
    assert {step.level for replay in replays for step in replay.steps} == {"OK", "WATCH", "ALARM"}
    assert any(step.unseen for replay in replays for step in replay.steps) or not lab.unseen.any()


def test_every_replay_says_what_it_shows_and_how_it_was_chosen(lab: Learned) -> None:
    """Missed failures and false alarms are named so, and the sentence counts all there are."""
    found = calibration(float(np.quantile(lab.risks[:, 1], 0.8)))
    walks = walks_of(lab, found)
    kinds = replay_kinds(walks, found, 3)
    replays = chosen(lab.material, walks, found)
    names = {"early": "failed, caught early", "late": "failed, caught late", "missed": "failed, missed"}
    names |= {"false alarm": "succeeded, false alarm", "quiet": "succeeded, no alarm"}
    for replay in replays:
        assert replay.kind == names[kind([step.level for step in replay.steps], replay.failed)] and not replay.note
    said = choose_replays(lab.material, walks, found, horizon=3).said
    for one in set(kinds):
        shown = sum(replay.kind == one.value for replay in replays)
        assert f"{one}: {shown} of {kinds.count(one)}" in said


def test_texts_of_a_step_are_whole_up_to_their_bound() -> None:
    """The user's message among them; what came back is not cut at a line's length."""
    long = "word " * 3000
    record = {"tool": "find", "arguments": "{}", "observation": f"I want\n{long}", "result": long, "action": "ok"}
    ((run,), material) = made(
        [run_of("r", [record, {"tool": "respond", "action": "Bye", "status": "ok"}], failed=True)]
    )
    (name, arrived), (_, says), (_, calls), (result, back) = run.steps[0].texts
    assert (name, says, calls, result) == ("arrived since the last step", "ok", "find({})", "result, ok")
    assert arrived == f"I want\n{long}" and back == long
    assert [said for _, said in run.steps[1].texts] == ["Bye"]
    assert len(step_texts(b"\x01a\x02b\x03\x04" + "é".encode() * 99_999 + b"\x05\x06\x07ok")[0][1]) == TEXT_LETTERS
    assert material.test.tolist() == [20]


def made(runs: list[Run[StepRecord]]) -> tuple[tuple[Replay, ...], Material]:
    """Replays of runs that are a test side of their own."""
    seen = [run_of(f"seen {n}", [{"tool": "find"}] * 4, failed=n % 2 == 0, task=f"t{n}") for n in range(20)]
    sides = {Side.TRAIN: np.arange(14), Side.CALIBRATION: np.arange(14, 20), Side.TEST: np.arange(20, 20 + len(runs))}
    material = lay_out(featurise([*seen, *runs]), sides, teach=False)
    it = learned(material, "memoryless")
    found = calibration(0.5)
    return chosen(material, walks_of(it, found), found), material


def test_a_run_that_was_asked_for_says_so_and_whether_it_was_learned_from(lab: Learned) -> None:
    found, runs = calibration(0.5), np.array([int(lab.material.pool[3]), int(lab.material.test[5])])
    strings = lab.alphabet.strings(lab.material, runs)
    n = len(strings.symbols)
    states, unseen = np.zeros(n, np.int32), np.zeros(n, np.bool_)
    risks, levels = rated(np.split(np.zeros((n, 2)), strings.first[1:-1]), found)
    walks = Walks(strings, states, unseen, risks, levels, risks, levels)
    one, other = make_replays(lab.material, runs, walks, replay_kinds(walks, found, 3), asked=True)
    assert one.note == "asked for: no test run, so it may have been learned from" and other.note == "asked for"
    assert one.run_id == lab.material.corpus.run_ids[runs[0]]


def kind(levels: list[str], failed: bool | None, sound: str = "ALARM", horizon: int = 3) -> str:
    if sound not in levels:
        return "missed" if failed else "quiet"
    if not failed:
        return "false alarm"
    return "early" if len(levels) - 1 - levels.index(sound) > horizon else "late"


def test_every_kind_of_run_is_there_failed_ones_first(lab: Learned) -> None:
    found = calibration(float(np.quantile(lab.risks[:, 1], 0.9)))
    walks = walks_of(lab, found)
    levels, replays = walks.levels, chosen(lab.material, walks, found)
    kinds = [kind([step.level for step in replay.steps], replay.failed) for replay in replays]
    there = Counter(
        kind([level.value for level in levels[a:b]], bool(failed))
        for a, b, failed in zip(lab.test.first[:-1], lab.test.first[1:], lab.test.failed, strict=True)
    )
    assert set(kinds) == set(there) and len(there) >= 4
    assert sorted(kinds, key=["early", "late", "missed", "false alarm", "quiet"].index) == kinds
    assert all(Counter(kinds)[name] >= min(2, count) for name, count in there.items())
    assert [replay.failed for replay in replays] == sorted((r.failed for r in replays), reverse=True)
    corpus, known = lab.material.corpus, dict(zip(lab.material.corpus.run_ids, lab.material.corpus.failed, strict=True))
    test = {corpus.run_ids[r] for r in lab.material.test.tolist()}
    assert {replay.run_id for replay in replays} <= test
    assert all(replay.failed == known[replay.run_id] for replay in replays)


def test_runs_of_many_tasks_and_the_same_ones_in_any_order(lab: Learned) -> None:
    found = calibration(float(np.quantile(lab.risks[:, 1], 0.9)))
    replays = chosen(lab.material, walks_of(lab, found), found)
    tasks = {replay.run_id.rpartition("-")[0] for replay in replays}
    assert len(tasks) > 6
    turned = replace(lab.material, test=lab.material.test[::-1].copy())
    other = learned(turned, "ladder", clock=(5, 11), alphabet=lab.alphabet)
    again = chosen(turned, walks_of(other, found), found)
    assert [r.run_id for r in again] == [r.run_id for r in replays]
    assert [[s.state for s in r.steps] for r in again] == [[s.state for s in r.steps] for r in replays]


def test_without_an_alarm_what_is_watched_counts_as_caught(lab: Learned) -> None:
    found = calibration(None, float(np.quantile(lab.risks[:, 1], 0.8)))
    replays = chosen(lab.material, walks_of(lab, found), found)
    kinds = [kind([step.level for step in replay.steps], replay.failed, "WATCH") for replay in replays]
    assert {"early", "false alarm"} <= set(kinds)
    assert not any(step.level == "ALARM" for replay in replays for step in replay.steps)


def test_without_examples_no_text_and_no_name_of_a_run_is_left(lab: Learned) -> None:
    found = calibration(0.6)
    full = chosen(lab.material, walks_of(lab, found), found)
    bare = chosen(lab.material, walks_of(lab, found), found, examples=False)
    assert [replay.run_id for replay in bare] == [str(n) for n in range(1, len(bare) + 1)]
    assert {step.texts for replay in bare for step in replay.steps} == {()}
    assert {replay.groups for replay in bare} == {()}
    assert [[replace(s, texts=()) for s in r.steps] for r in full] == [list(r.steps) for r in bare]


def test_a_teacher_may_be_silent(lab: Learned) -> None:
    found = calibration(0.6)
    walks = walks_of(lab, found)
    odd = np.arange(len(walks.risks))[:, None] % 2
    gaps = replace(walks, teacher_risks=np.where(odd, np.nan, walks.teacher_risks))
    said = [s.teacher for r in chosen(lab.material, gaps, found) for s in r.steps]
    assert None in said and all(0 <= risk <= 1 for risk in said if risk is not None) and len(set(said)) > 2


def test_an_alarm_is_early_beyond_the_horizon_and_telling_runs_come_first() -> None:
    """Eight steps each: an alarm at step 4 leaves four, at step 5 three; then the larger swing, the lower peak."""
    risks = {
        "late": (True, [0.1] * 4 + [0.9] * 4),
        "early": (True, [0.1] * 3 + [0.9] * 5),
        "early, larger": (True, [0.01] * 3 + [0.95] * 5),
        "missed": (True, [0.1] * 8),
        "quiet": (False, [0.4] * 8),
        "quieter": (False, [0.2] * 8),
        "false": (False, [0.1] * 7 + [0.9]),
        "false, larger": (False, [0.1] * 7 + [0.99]),
    }
    runs = [run_of(name, [{"tool": "find"}] * 8, failed=failed) for name, (failed, _) in risks.items()]
    corpus = featurise(runs)
    material = lay_out(
        corpus, {Side.TRAIN: np.arange(8), Side.CALIBRATION: np.arange(0), Side.TEST: np.arange(8)}, teach=False
    )
    strings = typed(material).strings(material, material.test)
    outcome = [np.array(risk) for _, risk in risks.values()]
    logits = [np.log(np.stack([r / 2, r], axis=1) / (1 - np.stack([r / 2, r], axis=1))) for r in outcome]
    said, zero = rated(logits, calibration(0.7)), np.zeros(64, np.int32)
    replays = chosen(material, Walks(strings, zero, zero > 0, *said, *said), calibration(0.7))
    expected = ["early, larger", "early", "late", "missed", "false, larger", "false", "quieter", "quiet"]
    assert [replay.run_id for replay in replays] == expected
    assert [step.imminent for step in replays[0].steps] == pytest.approx([0.005] * 3 + [0.475] * 5)


def test_levels_start_anew_with_every_run() -> None:
    logits = np.array([9.0, -9.0, -9.0, np.nan, 0.4])[:, None].repeat(2, axis=1)
    _, levels = rated((logits[:2], logits[2:]), calibration(0.7))
    assert levels == [Level.ALARM, Level.ALARM, Level.OK, Level.UNKNOWN, Level.WATCH]


def test_an_empty_test_side_has_no_replay(lab: Learned) -> None:
    material = replace(lab.material, test=np.empty(0, np.int64))
    nothing = rated((), calibration(0.5))
    none = lab.alphabet.strings(material, material.test)
    walks = Walks(none, none.symbols, none.symbols > 0, *nothing, *nothing)
    assert chosen(material, walks, calibration(0.5)) == ()
    assert choose_replays(material, walks, calibration(0.5), horizon=3).said == "There was no test run."
    with pytest.raises(DataError, match=r"walks of 0 runs for .* test runs: give those of the test side"):
        choose_replays(lab.material, walks, calibration(0.5), horizon=3)


def test_hostile_runs_of_one_outcome_with_symbols_that_training_never_met() -> None:
    """Tools that only test runs use, runs of one step and of a thousand, ids and texts from outside."""
    records = [{"tool": f"{text}{n}", "result": text, "arguments": text} for n, text in enumerate(HOSTILE)]
    seen = [run_of(f"seen {n}", [{"tool": "find"}] * 4, failed=n % 2 == 0, task=f"t{n}") for n in range(20)]
    unseen = [run_of(f"{text}{n}", records, failed=True, task=f"u{n}") for n, text in enumerate(HOSTILE)]
    odd = [run_of("one step", records[:1], failed=True), run_of("thousand", records * 125, failed=True)]
    corpus = featurise([*seen, *unseen, *odd])
    sides = {Side.TRAIN: np.arange(14), Side.CALIBRATION: np.arange(14, 20), Side.TEST: np.arange(20, 30)}
    material = lay_out(corpus, sides, teach=False)
    it = learned(material, "memoryless")
    assert it.unseen.all()
    found = calibration(0.9999, 0.0)
    replays = chosen(material, walks_of(it, found), found)
    assert len(replays) == 10 and all(replay.failed for replay in replays)
    assert {replay.run_id for replay in replays[-2:]} == {"one step", "thousand"}
    texts = [text for replay in replays for step in replay.steps for pair in step.texts for text in pair]
    assert all(0 < len(text) <= TEXT_LETTERS for text in texts)
    assert all(replay.run_id.isprintable() and 0 < len(replay.run_id) < 500 for replay in replays)
    assert all(step.unseen for replay in replays for step in replay.steps)


def test_sides_of_the_support_are_what_they_are_named() -> None:
    """The other tests rest on it: no task on two sides."""
    runs = [run_of(f"r{n}", [{"tool": "find"}], failed=n % 2 == 0, task=f"t{n // 2}") for n in range(40)]
    material = material_of(runs, teach=False)
    tasks = [set(material.tasks[runs].tolist()) for runs in (material.pool, material.held_out, material.test)]
    assert sum(map(len, tasks)) == len(set().union(*tasks)) == 20
    assert len(tasks[0]) == round(20 * SHARES[Side.TRAIN])
    assert typed(material).map.n_symbols == 8


def test_quoted_runs_and_a_missed_one_of_every_agent_are_there_and_the_mix_is_told() -> None:
    """Eighty missed failures of six agents and a seldom one, and twenty that are caught."""
    runs = [
        replace(run_of(f"missed {n:02d}", [{"tool": "find"}] * 8, failed=True), groups={"agent": one})
        for n in range(80)
        for one in ["seldom" if n == 79 else f"agent-{n % 6}"]
    ]
    runs += [
        replace(run_of(f"caught {n:02d}", [{"tool": "find"}] * 8, failed=True), groups={"agent": "agent-0"})
        for n in range(20)
    ]
    corpus = featurise([*runs, *(run_of(f"good {n:02d}", [{"tool": "find"}] * 8, failed=False) for n in range(60))])
    every = np.arange(160)
    material = lay_out(corpus, {Side.TRAIN: every, Side.CALIBRATION: every[:0], Side.TEST: every}, teach=False)
    strings = typed(material).strings(material, material.test)
    # Missed runs move less, the more of them there are before; the last one and the seldom agent's the least.
    outcome = [np.linspace(0.1, 0.6 - 0.005 * n, 8) if n < 80 else np.linspace(0.1, 0.9, 8) for n in range(100)]
    outcome += [np.full(8, 0.2)] * 60
    logits = [np.log(np.stack([r / 2, r], axis=1) / (1 - np.stack([r / 2, r], axis=1))) for r in outcome]
    said, zero = rated(logits, calibration(0.7)), np.zeros(8 * 160, np.int32)
    walks = Walks(strings, zero, zero > 0, *said, *said)
    bare = choose_replays(material, walks, calibration(0.7), horizon=3)
    quoted = choose_replays(material, walks, calibration(0.7), horizon=3, quoted=[70, 71])
    assert len(bare.places) == len(quoted.places) == 60
    assert {70, 71} <= set(quoted.places.tolist()) and not {70, 71} & set(bare.places.tolist())
    shown = {corpus.groups[place]["agent"] for place in bare.places.tolist() if place < 80}
    assert shown == {"seldom", *(f"agent-{n}" for n in range(6))}
    caught = sum(80 <= place < 100 for place in bare.places.tolist())
    among = sum(place < 100 for place in bare.places.tolist())
    assert (
        f"Runs with an alarm are shown more often than they come: {caught} of the {among} failures shown raise one "
        f"({share_text(caught / among)}), 20 of all 100 (20 %)." in bare.said
    )
