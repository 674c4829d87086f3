"""A map of behaviours: the first of its list that holds, as data that nobody can forge into something else."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from behaving import call, fail, found_in, say
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.behaviours import BY_NAME, CONSEQUENCES, NONE_HELD, PLACES, held
from prefixguard.bundle import BehaviourMap, BehaviourSymbol
from prefixguard.bundle.behaviour_map import MOST_BEHAVIOUR_SYMBOLS
from prefixguard.bundle.symbol_map import symbol_map_from_json
from prefixguard.context import N_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError

EMPTY = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))
NUMBERS = np.zeros(N_FEATURES, np.float32)
MAP = BehaviourMap(
    (
        BehaviourSymbol("same_call_same_result", 3),
        BehaviourSymbol("same_call_same_result"),
        BehaviourSymbol("call_failed", 1, "reads"),
        BehaviourSymbol("reads"),
    )
)
SYMBOLS = st.builds(
    BehaviourSymbol, st.sampled_from(sorted(BY_NAME)), st.integers(1, 255), st.sampled_from(("", *CONSEQUENCES))
)
MAPS = st.lists(SYMBOLS, unique=True, max_size=12).map(lambda rows: BehaviourMap(tuple(rows)))
COUNTS = st.lists(st.integers(0, 255), min_size=len(NONE_HELD), max_size=len(NONE_HELD)).map(bytes)


def symbols_of(found: BehaviourMap, run: list[Any]) -> list[int]:
    return [found.symbol("", EMPTY, NUMBERS, held(findings)) for findings in found_in(run)]


def test_the_first_that_holds_is_the_symbol() -> None:
    run = [call("get_order", "1", "open")] * 4 + [fail("get_order", "2"), call("list_orders"), say("Hello there.")]
    assert symbols_of(MAP, run) == [3, 1, 0, 0, 2, 3, 4]
    assert MAP.glosses == (
        "same call, same result: 3 times or more", "same call, same result", "reads, call failed", "reads",
        "anything else",
    )  # fmt: skip


def test_a_symbol_is_said_in_the_catalogue_s_words() -> None:
    assert MAP.symbols[0].sentence == (
        "The same call gave the same result again, and nothing had changed in between: 3 times or more "
        "(same_call_same_result)."
    )
    assert MAP.symbols[2].sentence == "The agent reads something (reads). The step failed (call_failed)."
    assert [symbol.advice for symbol in MAP.symbols] == [BY_NAME["same_call_same_result"].advice] * 2 + [""] * 2


@given(MAPS, COUNTS)
def test_a_symbol_holds_and_none_before_it_does(found: BehaviourMap, counts: bytes) -> None:
    def holds(symbol: BehaviourSymbol) -> bool:
        there = counts[PLACES[symbol.behaviour]] >= symbol.at_least
        return there and (not symbol.consequence or counts[PLACES[symbol.consequence]] > 0)

    number = found.symbol("", EMPTY, NUMBERS, counts)
    assert [*map(holds, found.symbols), True].index(True) == number


@given(MAPS)
def test_it_is_read_as_it_was_written(found: BehaviourMap) -> None:
    assert symbol_map_from_json(json.loads(json.dumps(found.to_json()))) == found
    assert len(found.glosses) == found.n_symbols


def test_nothing_else_is_looked_at() -> None:
    """Neither tool nor words nor numbers."""
    row = SparseRow(np.array([1], np.int64), np.array([1.0], np.float32))
    counts = held(found_in([call("get_order")])[0])
    assert MAP.symbol("x", row, NUMBERS + 1, counts) == MAP.symbol("", EMPTY, NUMBERS, counts)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ("reads", "not a list"),
        ([["reads", 1]], "not a list of 3"),
        ([["reads", 1, "", ""]], "not a list of 3"),
        ([["reads", "1", ""]], "not a whole number"),
        ([["reads", True, ""]], "not a whole number"),
        ([["reads", 0, ""]], "not a whole number"),
        ([["reads", 256, ""]], "not a whole number"),
        ([[1, 1, ""]], "not a name, a count and a consequence"),
        ([["reads", 1, None]], "not a name, a count and a consequence"),
        ([["dreams", 1, ""]], "'dreams' is no behaviour that this release knows"),
        ([["reads", 1, "call_failed"]], "'call_failed' is no consequence"),
        ([["reads", 1, ""], ["reads", 1, ""]], "must differ"),
        ([["reads", n + 1, ""] for n in range(MOST_BEHAVIOUR_SYMBOLS)], "fewer than 1,024"),
    ],
)
def test_a_forged_map_is_refused(rows: Any, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        symbol_map_from_json({"kind": "behaviours", "symbols": rows})
    with pytest.raises(ValueError):
        symbol_map_from_json({"kind": "behaviours", "symbols": [], "more": 1})


def test_an_unknown_behaviour_names_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"Upgrade prefixguard, or export the monitor again\.$"):
        BehaviourSymbol("dreams")
    with pytest.raises(ConfigError, match=r"reads counts from 1 to 255, not 0\."):
        BehaviourSymbol("reads", 0)
