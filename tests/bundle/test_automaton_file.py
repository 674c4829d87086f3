"""automaton.json comes back as it went in, with the same bytes, and nothing hostile gets in."""

from __future__ import annotations

import copy
import json
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
import tiny_automaton
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_summary import PERFORMANCE

from prefixguard.bundle import Automaton, ModelMap, automaton_from_bytes, automaton_to_bytes
from prefixguard.bundle.automaton import _OF_AUTOMATON, _OF_STATE, SCHEMA, alarm_performance_of
from prefixguard.errors import BundleError, DataError

MAP = tiny_automaton.TYPED
GLOSSES = tiny_automaton.glosses(MAP)
GOOD = automaton_to_bytes(tiny_automaton.by_hand(), MAP, GLOSSES)
TOLD = automaton_to_bytes(tiny_automaton.by_hand(), MAP, GLOSSES, PERFORMANCE)

HUGE = 10**400
DEEP = json.loads("[" * 500 + "]" * 500)


def same(a: Automaton, b: Automaton) -> bool:
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(Automaton)]
    return all(x == y if isinstance(x, int | tuple) else x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs)


@pytest.mark.parametrize("seed", range(8))
def test_what_was_written_comes_back(seed: int) -> None:
    """Every number to the last bit, types included; and reading and writing again gives the same bytes."""
    automaton = tiny_automaton.by_seed(seed, 1 + 3 * seed, 4, ((), (1,), (5, 9, 200))[seed % 3])
    texts = ("plain", "żółć \ud800", "", '"quoted"\n')
    data = automaton_to_bytes(automaton, ModelMap(4), texts)
    back, symbol_map, glosses = automaton_from_bytes(data)
    assert same(automaton, back)
    assert (symbol_map, glosses) == (ModelMap(4), texts)
    assert automaton_to_bytes(back, symbol_map, glosses) == data
    assert json.loads(data)["schema"] == SCHEMA


def test_the_file_holds_all_of_an_automaton() -> None:
    assert {*_OF_STATE, "start", "clock", "fallback"} == {f.name for f in fields(Automaton)}
    assert sorted(json.loads(GOOD)) == sorted(_OF_AUTOMATON)


def test_what_its_alarms_are_worth_comes_back() -> None:
    assert alarm_performance_of(TOLD) == PERFORMANCE
    assert alarm_performance_of(GOOD) is None
    assert same(automaton_from_bytes(TOLD)[0], automaton_from_bytes(GOOD)[0])


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["budget"], 2, "not a probability"),
        (["failed"], -1, "failed is -1, below 0"),
        (["failed"], True, "not a count"),
        (["rows"], [{}] * 65, "more than 64 rows"),
        (["rows", 0], {}, "AlarmCount: fields missing"),
        (["rows", 0, "by"], 1, "by is not text"),
        (["rows", 0, "caught_interval"], [0.1], "not a list of 2"),
        (["rows", 0, "lead"], "4", "not a number"),
        (["kappa"], DEEP, "kappa"),
        (["said"], [], "said is not a share of each level"),
        (["notes"], "none", "notes: not a list"),
    ],
)
def test_wrong_figures_of_alarms_are_refused(path: list[Any], value: Any, said: str) -> None:
    with pytest.raises(BundleError, match="not an automaton") as told:
        automaton_from_bytes(changed(["performance", *path], value, TOLD))
    assert said in str(told.value)


def test_a_state_is_a_line() -> None:
    """So that two automata can be compared line by line."""
    other = tiny_automaton.by_hand()
    visits = other.visits.copy()
    visits[1] += 1
    changed = automaton_to_bytes(replace(other, visits=visits), MAP, GLOSSES).splitlines()
    assert sum(a != b for a, b in zip(GOOD.splitlines(), changed, strict=True)) == 1


def test_arrays_are_read_only() -> None:
    automaton, _, _ = automaton_from_bytes(GOOD)
    for f in fields(Automaton):
        value = getattr(automaton, f.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0


CHANGES: list[tuple[list[Any], Any, str]] = [
    (["schema"], "prefixguard/automaton/v9", "schema"),
    (["schema"], None, "schema"),
    (["performance"], {}, "AlarmPerformance: fields missing"),
    (["performance"], None, "AlarmPerformance is not an object"),
    (["extra"], 1, "missing or unknown: extra"),
    (["start"], 3, "the start: 3 is not a whole number from 0 to 2"),
    (["start"], -1, "the start"),
    (["start"], True, "the start: True"),
    (["start"], 0.0, "the start"),
    (["start"], HUGE, "the start"),
    (["start"], DEEP, "the start"),
    (["clock"], [4, 4], "the clock does not rise"),
    (["clock"], [0], "the clock"),
    (["clock"], "4", "the clock: not a list"),
    (["clock"], list(range(1, 2000)), "the clock"),
    (["clock"], [], "not a list of 1"),
    (["glosses"], ["a"], "1 glosses for 16 symbols"),
    (["glosses"], [1] * 16, "glosses are not texts"),
    (["glosses", 0], "x" * 3000, "glosses are not texts"),
    (["fallback"], [0], "the fallback: not a list of 16"),
    (["fallback", 2], 3, "the fallback"),
    (["fallback", 2], -2, "the fallback: -2 is not a whole number from -1 to 2"),
    (["states"], [], "states are not a list"),
    (["states"], {}, "states are not a list"),
    (["states", 1], [], "state 1 is not an object"),
    (["states", 1, "more"], 0, "state 1: fields missing or unknown: more"),
    (["states", 1, "visits"], -1, "state 1: visits"),
    (["states", 1, "visits"], 1.5, "state 1: visits"),
    (["states", 1, "visits"], 1 << 60, "state 1: visits"),
    (["states", 1, "stand_in"], 9, "state 1: stand_in"),
    (["states", 1, "transitions", 0], 3, "state 1: transitions"),
    (["states", 1, "transitions", 0], -2, "state 1: transitions"),
    (["states", 1, "transitions", 0], None, "state 1: transitions"),
    (["states", 1, "transitions"], [0] * 15, "state 1: transitions: not a list of 16"),
    (["states", 1, "edges"], [0] * 17, "state 1: edges"),
    (["states", 1, "evidence"], [1], "state 1: evidence: not a list of 2"),
    (["states", 1, "evidence_runs", 0], False, "state 1: evidence_runs: False"),
    (["states", 1, "risk", 0, 0], 1.5, "state 1: risk: 1.5 is not a probability"),
    (["states", 1, "risk", 0, 0], -0.1, "state 1: risk"),
    (["states", 1, "risk", 0, 0], "0.5", "state 1: risk"),
    (["states", 1, "risk", 0, 0], True, "state 1: risk"),
    (["states", 1, "risk", 0, 0], HUGE, "not an automaton"),
    (["states", 1, "risk", 0, 0], float("nan"), "NaN is not a number"),
    (["states", 1, "risk", 0], [0.1], "state 1: risk"),
    (["states", 1, "risk"], DEEP, "state 1: risk"),
    (["states", 1, "interval", 0, 0], [0.9, 0.1], "0.9 is above 0.1"),
    (["states", 1, "interval", 0, 0], [0.1, float("inf")], "Infinity is not a number"),
    (["states", 1, "interval", 0], [0.1, 0.2], "state 1: interval"),
    (["symbol_map"], {"kind": "typed", "tools": []}, "16 glosses for 4 symbols"),
    (["symbol_map"], {"kind": "pickle"}, "the symbol map's kind"),
    (
        ["symbol_map"],
        {"kind": "tree", "feature": [0], "threshold": [HUGE], "left": [-1], "right": [-2], "scores": []},
        "large",
    ),
]


def changed(path: list[Any], value: Any, data: bytes = GOOD) -> bytes:
    document = copy.deepcopy(json.loads(data))
    place = document
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(("path", "value", "said"), CHANGES)
def test_a_wrong_automaton_is_refused(path: list[Any], value: Any, said: str) -> None:
    with pytest.raises(BundleError, match=r"^automaton\.json: not an automaton \(.*Export it again\.") as told:
        automaton_from_bytes(changed(path, value))
    assert said in str(told.value)
    assert len(str(told.value)) < 500


def test_rewriting_without_changes_is_accepted() -> None:
    """So that the test above fails for what it changes, not for how."""
    assert same(automaton_from_bytes(changed(["start"], 0))[0], tiny_automaton.by_hand())


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"null", b"{", b"\xff", b"[" * 100_000, b'{"schema": NaN}', b"1" * 10_000, b"1e999", b'"\\ud800"'],
)
def test_what_is_not_an_object_is_refused(data: bytes) -> None:
    with pytest.raises(BundleError, match="not an automaton"):
        automaton_from_bytes(data)


def test_a_number_that_json_reads_as_infinity_is_refused() -> None:
    risky = GOOD.replace(b'"risk": [[0.025', b'"risk": [[1e999', 1)
    assert risky != GOOD
    with pytest.raises(BundleError, match="inf is not a probability"):
        automaton_from_bytes(risky)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_change_gives_an_automaton_or_our_error(data: st.DataObject) -> None:
    """One value anywhere becomes anything; what is still read can be walked and written again."""
    document = json.loads(TOLD)
    place, key = document, data.draw(st.sampled_from(sorted(document)))
    while isinstance(place[key], dict | list) and place[key] and data.draw(st.integers(0, 4)):
        place = place[key]
        key = data.draw(st.sampled_from(sorted(place)) if isinstance(place, dict) else st.integers(0, len(place) - 1))
    place[key] = data.draw(VALUES)
    try:
        automaton, symbol_map, glosses = automaton_from_bytes(json.dumps(document).encode())
    except BundleError:
        return
    state = automaton.start
    for symbol in range(automaton.n_symbols):
        state, _ = automaton.follow(state, symbol)
        assert 0 <= state < automaton.n_states
    automaton_to_bytes(automaton, symbol_map, glosses)


@pytest.mark.parametrize(
    "wrong",
    [
        {"start": 5},
        {"risk": np.full((3, 2, 2), np.nan)},
        {"risk": np.full((3, 1, 2), 0.5)},
        {"edges": np.zeros((4, 16), np.int64)},
        {"visits": np.zeros(2, np.int64)},
        {"transitions": np.zeros((3, 16))},
        {"clock": (3, 2)},
    ],
)
def test_what_could_not_be_read_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(DataError, match="The automaton cannot be written"):
        automaton_to_bytes(replace(tiny_automaton.by_hand(), **wrong), MAP, GLOSSES)
    with pytest.raises(DataError, match="glosses for 16 symbols"):
        automaton_to_bytes(tiny_automaton.by_hand(), MAP, GLOSSES[:3])
