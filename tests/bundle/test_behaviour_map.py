"""A map of behaviours: the first of its list that holds, as data that nobody can forge into something else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from behaving import call, fail, found_in, say
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.behaviours import BY_NAME, CATALOGUE_SHA256, NONE_HELD, PLACES, held
from prefixguard.bundle import Automaton, BehaviourMap, BehaviourSymbol, automaton_to_bytes
from prefixguard.bundle.automaton import automaton_from_bytes
from prefixguard.bundle.behaviour_map import MOST_BEHAVIOUR_SYMBOLS
from prefixguard.bundle.symbol_map import symbol_map_from_json
from prefixguard.context import N_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import BundleError, ConfigError

EMPTY = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))
NUMBERS = np.zeros(N_FEATURES, np.float32)
MAP = BehaviourMap(
    (
        BehaviourSymbol((("same_call_same_result", 3),)),
        BehaviourSymbol((("same_call_same_result", 1),)),
        BehaviourSymbol((("reads", 1), ("call_failed", 1))),
        BehaviourSymbol((("reads", 1),)),
    )
)
SYMBOLS = st.dictionaries(st.sampled_from(sorted(BY_NAME)), st.integers(1, 255), min_size=1, max_size=3).map(
    lambda asked: BehaviourSymbol(tuple(asked.items()))
)
MAPS = st.lists(SYMBOLS, unique=True, max_size=12).map(lambda rows: BehaviourMap(tuple(rows)))
COUNTS = st.lists(st.integers(0, 255), min_size=len(NONE_HELD), max_size=len(NONE_HELD)).map(bytes)


def symbols_of(found: BehaviourMap, run: list[Any]) -> list[int]:
    return [found.symbol("", EMPTY, NUMBERS, held(findings)) for findings in found_in(run)]


def test_the_first_that_holds_is_the_symbol() -> None:
    run = [call("get_order", "1", "open")] * 4 + [fail("get_order", "2"), call("list_orders"), say("Hello there.")]
    assert symbols_of(MAP, run) == [3, 1, 0, 0, 2, 3, 4]
    assert MAP.glosses == (
        "same call, same result: 3 or more", "same call, same result", "reads, call failed", "reads",
        "no other symbol",
    )  # fmt: skip


def test_a_symbol_is_said_in_the_catalogue_s_words() -> None:
    assert MAP.symbols[0].sentence == (
        "The same call gave the same result again, and nothing had changed in between (same_call_same_result). "
        "So far 3 or more."
    )
    assert MAP.symbols[2].sentence == "The agent reads something (reads). The step failed (call_failed)."
    assert [symbol.advice for symbol in MAP.symbols] == [BY_NAME["same_call_same_result"].advice] * 2 + [""] * 2


@given(MAPS, COUNTS)
def test_a_symbol_holds_and_none_before_it_does(found: BehaviourMap, counts: bytes) -> None:
    def holds(symbol: BehaviourSymbol) -> bool:
        return all(counts[PLACES[name]] >= least for name, least in symbol.asked)

    number = found.symbol("", EMPTY, NUMBERS, counts)
    assert [*map(holds, found.symbols), True].index(True) == number


def test_a_map_of_one_behaviour_and_a_consequence_a_symbol_is_read_as_before() -> None:
    old = {
        "kind": "behaviours",
        "catalogue": CATALOGUE_SHA256,
        "symbols": [["call_failed", 2, "reads"], ["reads", 1, ""]],
    }
    both, alone = symbol_map_from_json(old).symbols  # type: ignore[attr-defined]
    assert (both.asked, alone.asked) == ((("call_failed", 2), ("reads", 1)), (("reads", 1),))


@given(MAPS)
def test_it_is_read_as_it_was_written(found: BehaviourMap) -> None:
    assert symbol_map_from_json(json.loads(json.dumps(found.to_json()))) == found
    assert len(found.glosses) == found.n_symbols


def automaton_bytes(**changed: Any) -> bytes:
    """An automaton of one state over `MAP`; changed: of its symbol map."""
    none = np.zeros((1, 5), np.int64)
    one = np.zeros((1, 1), np.int64)
    automaton = Automaton(
        start=0,
        transitions=none.astype(np.int32),
        fallback=none[0].astype(np.int32),
        clock=(),
        risk=np.full((1, 1, 2), 0.5),
        interval=np.full((1, 1, 2, 2), 0.5),
        edges=none,
        visits=one[0],
        evidence=one,
        evidence_runs=one,
        stand_in=one[0].astype(np.int32),
    )
    written = json.loads(automaton_to_bytes(automaton, MAP, MAP.glosses))
    written["symbol_map"] = {name: value for name, value in {**written["symbol_map"], **changed}.items() if value}
    return json.dumps(written).encode()


def test_the_version_of_the_behaviours_is_recorded_and_another_one_is_refused() -> None:
    """Their names stay, and hold at other steps: all risks would be of something else."""
    assert json.loads(automaton_bytes())["symbol_map"]["catalogue"] == CATALOGUE_SHA256
    assert automaton_from_bytes(automaton_bytes())[1] == MAP
    for other in ("0" * 64, 1, ["x"]):
        said = "a.json: its symbols are behaviours of another release, .* Export the monitor again: prefixguard export"
        with pytest.raises(BundleError, match=said):
            automaton_from_bytes(automaton_bytes(catalogue=other), "a.json")


def test_a_bundle_from_before_versions_were_recorded_is_opened() -> None:
    """And says as little when it is written again, as when it is calibrated."""
    silent = automaton_bytes(catalogue=None)
    automaton, found, glosses = automaton_from_bytes(silent)
    assert found == BehaviourMap(MAP.symbols, "")
    assert json.loads(automaton_to_bytes(automaton, found, glosses)) == json.loads(silent)


def test_nothing_else_is_looked_at() -> None:
    """Neither tool nor words nor numbers."""
    row = SparseRow(np.array([1], np.int64), np.array([1.0], np.float32))
    counts = held(found_in([call("get_order")])[0])
    assert MAP.symbol("x", row, NUMBERS + 1, counts) == MAP.symbol("", EMPTY, NUMBERS, counts)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("reads", "not a list"),
        (["reads"], "not a list"),
        ([[["reads"]]], "not a list of 2"),
        ([[["reads", 1, ""]]], "not a list of 2"),
        ([[["reads", "1"]]], "not a whole number"),
        ([[["reads", True]]], "not a whole number"),
        ([[["reads", 0]]], "not a whole number"),
        ([[["reads", 256]]], "not a whole number"),
        ([[[1, 1]]], "not a name and a count"),
        ([[["dreams", 1]]], "'dreams' is no behaviour that this release knows"),
        ([[]], "1 to 32 behaviours, each once"),
        ([[["reads", 1], ["reads", 2]]], "1 to 32 behaviours, each once"),
        ([[["reads", 1]], [["reads", 1]]], "must differ"),
        ([[["reads", n + 1]] for n in range(MOST_BEHAVIOUR_SYMBOLS)], "fewer than 1,024"),
    ],
)
def test_a_forged_map_is_refused(rows: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        symbol_map_from_json({"kind": "behaviours", "symbols": rows})
    with pytest.raises(ValueError):
        symbol_map_from_json({"kind": "behaviours", "symbols": [], "more": 1})


def test_an_unknown_behaviour_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"Upgrade prefixguard, or export the monitor again\.$"):
        BehaviourSymbol((("dreams", 1),))
    with pytest.raises(ConfigError, match=r"reads counts from 1 to 255, not 0\."):
        BehaviourSymbol((("reads", 0),))
