"""A monitor of kind automaton: its readings are what the automaton says, looked up."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor
from tiny_automaton import MODEL, OUTCOME, TREE, TYPED, by_hand, by_seed
from tiny_monitor import call, calm_run, failing_run, result, say, user

from prefixguard import context
from prefixguard.alarm import Thresholds
from prefixguard.bundle import Beta, BundleParts, TreeMap, TypedMap, open_bundle, write_bundle
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.errors import BundleError
from prefixguard.runtime import AutomatonModel, Level, Monitor, OnnxModel, Reading, Step, load, open_model
from prefixguard.stepview import serialize

Load = Callable[..., Monitor]


@pytest.fixture
def loaded(tmp_path: Path) -> Load:
    """Write the parts and load them."""

    def load_parts(parts: BundleParts | None = None, **options: Any) -> Monitor:
        path = tmp_path / f"b{len(list(tmp_path.iterdir()))}"
        write_bundle(path, parts or tiny_automaton.parts())
        return load(path, **options)

    return load_parts


def watch(monitor: Monitor, events: list[Any]) -> list[Reading]:
    session = monitor.start()
    return [reading for event in events for reading in session.observe(event)]


def test_a_run_walks_the_automaton(loaded: Load) -> None:
    """failing_run: a call that works, then one call that fails four times. The clock ticks at step 4."""
    readings = watch(loaded(), failing_run())
    assert [r.state for r in readings] == [0, 1, 2, 2, 2]
    look, find = TYPED.number("look", error=False, repeat=False), TYPED.number("find", error=True, repeat=False)
    assert [r.symbol for r in readings] == [look, find, find + 1, find + 1, find + 1]
    risks = [OUTCOME[0][0], OUTCOME[1][0], OUTCOME[2][0], OUTCOME[2][1], OUTCOME[2][1]]
    assert [r.outcome_risk for r in readings] == pytest.approx(risks, abs=1e-12)
    assert [r.imminent_risk for r in readings] == pytest.approx([risk / 2 for risk in risks], abs=1e-12)
    assert [r.level for r in readings] == [Level.OK, Level.WATCH, Level.ALARM, Level.ALARM, Level.ALARM]


def test_reasons_name_what_the_agent_does_then_the_state_and_its_evidence(loaded: Load) -> None:
    readings = watch(loaded(), failing_run())
    assert readings[0].reasons == ()
    assert readings[1].reasons == (
        "No known behaviour stands out",
        "state 1: outcome risk 40% (35% to 45%) at steps 1 to 3, from 120 steps of 40 held-out runs",
    )
    assert readings[4].reasons[0].startswith("The same call gave the same result again")
    assert readings[4].reasons[-1] == (
        "state 2: outcome risk 95% (90% to 100%) at steps from 4 on, from 120 steps of 40 held-out runs, "
        "of state 1, its nearest with enough"
    )


def test_an_unseen_transition_follows_the_fallback_and_is_counted(loaded: Load) -> None:
    """No training run left state 2; the fallback of a call that works is state 0."""
    session = loaded().start()
    events = [*failing_run(), call(9, "look", '{"id": 9}'), result(9, "ok")]
    readings = [r for e in events for r in session.observe(e)]
    assert [r.state for r in readings] == [0, 1, 2, 2, 2, 0]
    assert (session.counters["transitions"], session.counters["unseen_transitions"]) == (6, 1)
    assert session.drift.unseen_share == 1 / 6


@pytest.mark.parametrize(
    ("leads", "said"),
    [(1, "steps like it most often lead to state 1"), (-1, "the state stays")],
)
def test_reasons_say_that_a_transition_is_unseen(loaded: Load, leads: int, said: str) -> None:
    automaton = by_hand(())
    risk = np.full_like(automaton.risk, 0.6)
    fallback = np.full_like(automaton.fallback, leads)
    blind = np.full_like(automaton.transitions, -1)
    changed = replace(automaton, risk=risk, fallback=fallback, transitions=blind)
    (reading,) = watch(loaded(tiny_automaton.parts(changed)), [say("hello")])
    assert reading.state == max(leads, 0)
    assert reading.reasons[2] == f"no run in training had such a step in state 0; {said}"
    assert " at steps" not in reading.reasons[1]


def test_monitors_without_an_automaton_have_no_transitions(tmp_path: Path) -> None:
    write_bundle(tmp_path / "b", tiny_monitor.parts())
    session = load(tmp_path / "b").start()
    readings = [r for e in failing_run() for r in session.observe(e)]
    assert {r.state for r in readings} == {None}
    assert (session.counters["transitions"], session.drift.unseen_share) == (0, 0.0)


def test_glosses_are_shown_safely(loaded: Load) -> None:
    hostile = by_hand()
    parts = tiny_automaton.parts(hostile)
    assert parts.automaton is not None
    shown = replace(parts, automaton=parts.automaton.replace(b'"kind 2 of step"', b'"\\u001b[31m' + b"x" * 900 + b'"'))
    reasons = watch(loaded(shown, reasons="features"), failing_run())[1].reasons
    assert reasons[0].startswith("this step: \\x1b[31mxxx")
    assert len(reasons[0]) < 200


def test_tools_that_the_map_does_not_name_share_symbols(loaded: Load) -> None:
    other = TYPED.number("anything else", error=False, repeat=False)
    readings = watch(loaded(), [call(1, "pay"), result(1), call(2, "sell"), result(2)])
    assert [r.symbol for r in readings] == [other, other]


def test_a_tree_s_symbols_come_from_words_and_history(loaded: Load) -> None:
    monitor = loaded(tiny_automaton.parts(by_seed(1, 5, TREE.n_symbols), TREE))
    readings = watch(monitor, failing_run())
    assert [r.symbol for r in readings] == [0, 1, 2, 2, 2]  # worked; said "error"; failed twice or more in a row


def test_a_model_s_symbols_move_the_automaton(loaded: Load) -> None:
    """The same model in a bundle of kind onnx says which symbols they are."""
    automaton = by_seed(2, 6, MODEL.n_symbols, unseen=0.2)
    monitor, plain = loaded(tiny_automaton.parts(automaton, MODEL)), loaded(tiny_monitor.parts())
    for run in (failing_run(), calm_run(9)):
        walked, told = watch(monitor, run), watch(plain, run)
        assert [r.symbol for r in walked] == [r.symbol for r in told]
        state = automaton.start
        for reading in walked:
            assert reading.symbol is not None
            state, _ = automaton.follow(state, reading.symbol)
            assert reading.state == state
    assert len({r.symbol for r in watch(plain, failing_run())}) > 1


@pytest.mark.parametrize("seed", range(12))
def test_the_tables_are_the_automaton(tmp_path: Path, seed: int) -> None:
    """Over long random strings: `AutomatonModel.follow` against `Automaton.follow`, column and risks included."""
    rng = np.random.default_rng(seed)
    clock = ((), (1,), (2, 7, 30))[seed % 3]
    tools = TypedMap(tuple(f"t{i}" for i in range(seed % 4)))
    automaton = by_seed(seed, int(rng.integers(1, 40)), tools.n_symbols, clock, unseen=rng.random())
    write_bundle(tmp_path / "b", tiny_automaton.parts(automaton, tools))
    model = AutomatonModel(open_bundle(tmp_path / "b"))
    place = model.initial[0]
    assert place == automaton.start
    for count, symbol in enumerate(rng.integers(0, tools.n_symbols, 500).tolist(), 1):
        expected, unseen = automaton.follow(place, symbol)
        place, was_unseen, logits = model.follow(place, symbol, count)
        assert (place, was_unseen) == (expected, unseen)
        risks = np.clip(automaton.risk[place, automaton.column(count)], 1e-6, 1 - 1e-6)
        assert logits == pytest.approx(np.log(risks / (1 - risks)), rel=1e-12)


def test_the_step_is_the_map_and_the_table(tmp_path: Path) -> None:
    """Straight to the model, records and context as a session makes them."""
    write_bundle(tmp_path / "b", tiny_automaton.parts())
    bundle = open_bundle(tmp_path / "b")
    model = open_model(bundle)
    parser, memory, state = bundle.adapter.parser(None), context.start(), model.initial
    records = [r for e in failing_run() for r in parser.observe(e)]
    for i, record in enumerate(records, 1):
        tokens = tokenize(serialize(record))
        row, numbers = bundle.vocabulary.encode(tokens), context.update(memory, record, tokens)
        step = model.step(record.tool, row, numbers, state)
        assert isinstance(step, Step)
        assert step.symbol == TYPED.symbol(record.tool, row, numbers)
        assert step.state == (step.place, i, None)
        state = step.state
    assert model.initial == (0, 0, None)


def test_risks_of_zero_and_one_stay_judgements(loaded: Load) -> None:
    automaton = by_hand(())
    risk = np.zeros_like(automaton.risk)
    risk[..., 1] = 1.0
    (reading,) = watch(loaded(tiny_automaton.parts(replace(automaton, risk=risk))), [say("hello")])
    assert reading.imminent_risk == pytest.approx(1e-6)
    assert reading.outcome_risk == pytest.approx(1 - 1e-6)


def test_the_bundle_s_maps_act_on_risks_and_on_what_is_said_of_them(loaded: Load) -> None:
    calibration = tiny_monitor.parts().calibration
    steep = Beta(2.0, 0.5, 0.3)
    thresholds = Thresholds(None, -1.0, 0, 0, 0, "to be told reasons")
    with pytest.raises(BundleError, match="not a risk from 0 to 1"):
        loaded(tiny_automaton.parts(calibration=replace(calibration, thresholds=thresholds)))
    thresholds = replace(thresholds, watch=0.0)
    monitor = loaded(tiny_automaton.parts(calibration=replace(calibration, outcome=steep, thresholds=thresholds)))
    (reading,) = watch(monitor, [say("hello")])
    low, risk, high = (steep(math.log(p / (1 - p))) for p in (1e-6, 0.05, 0.10))
    assert reading.outcome_risk == pytest.approx(risk, rel=1e-9)
    assert f"outcome risk {risk:.0%} ({low:.0%} to {high:.0%})" in reading.reasons[1]


def test_each_kind_gets_its_model(tmp_path: Path) -> None:
    write_bundle(tmp_path / "onnx", tiny_monitor.parts())
    write_bundle(tmp_path / "automaton", tiny_automaton.parts())
    assert isinstance(open_model(open_bundle(tmp_path / "onnx")), OnnxModel)
    assert isinstance(open_model(open_bundle(tmp_path / "automaton")), AutomatonModel)
    with pytest.raises(BundleError, match=r"has no automaton\.json"):
        AutomatonModel(open_bundle(tmp_path / "onnx"))
    with pytest.raises(BundleError, match=r"has no model\.onnx"):
        OnnxModel(open_bundle(tmp_path / "automaton"))


def test_a_model_that_leaves_the_alphabet_is_refused(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """At opening where the try-out meets it, in the run where it comes later."""
    automaton = by_seed(2, 6, MODEL.n_symbols)
    monitor = loaded(tiny_automaton.parts(automaton, MODEL))
    step = OnnxModel.step

    def astray(self: OnnxModel, tool: str, row: SparseRow, numbers: Any, state: Any) -> Step:
        return step(self, tool, row, numbers, state)._replace(symbol=-1)

    monkeypatch.setattr(OnnxModel, "step", astray)
    first, second = watch(monitor, [say("hello"), user("yes"), say("so")])
    assert (first.level, second.level) == (Level.UNKNOWN, Level.UNKNOWN)
    assert "the model gave symbol -1, the automaton has 4" in str(first.unknown_reason)
    with pytest.raises(BundleError, match=r"the automaton does not run on a row with 0 terms .*symbol -1"):
        loaded(tiny_automaton.parts(automaton, MODEL))


def test_a_map_that_fails_is_refused_at_opening(loaded: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise RuntimeError("broken\x1b")

    monkeypatch.setattr(TreeMap, "symbol", fail)
    with pytest.raises(BundleError, match=r"does not run .*RuntimeError: broken\\x1b"):
        loaded(tiny_automaton.parts(by_seed(1, 5, TREE.n_symbols), TREE))
