"""A symbol is the behaviour that matters most at the step, in one fixed order; nothing is learned but which occur.

First the faults, those seen most often before those that have just begun (at the counts from which rules without a
model say ALARM, WATCH and nothing), and in the order of the catalogue; then artefacts; then what is neither, split by
what the step is (it reads, writes, speaks, hands over to a human, ...); then what the step is alone. What is met in too
few training runs is no symbol: such a step has the next symbol that holds at it. The number of the step, and with it
how near its limit is, gives no symbol.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.automata.material import Material
from prefixguard.behaviours import CATALOGUE, CONSEQUENCES, PLACES
from prefixguard.bundle import BehaviourMap, BehaviourSymbol
from prefixguard.errors import DataError
from prefixguard.learn import steps_of

#: Training runs in which a symbol must be met.
FEWEST_RUNS = 10
#: Tells how near the limit of steps is: that is the clock's affair.
_OF_CLOCK = "near_step_cap"
#: Neutral behaviours, what matters most first: how the step went, what it repeats, what the tool is to the run.
_NEUTRAL = (
    "call_failed", "recovered", "tests_pass", "same_call_other_result", "result_seen", "no_call", "same_tool_many",
    "failed_tool_again", "new_tool", "long_result",
)  # fmt: skip
#: What neutral behaviours tell of the step alone.
_OF_STEP = (*CONSEQUENCES, "call_failed", "tests_pass", "long_result")


def in_order() -> Iterator[BehaviourSymbol]:
    """Every symbol that there can be, the one that matters most first."""
    faults = [one for one in CATALOGUE if one.kind == "fault"]
    yield from (BehaviourSymbol(one.name, one.alarm) for one in faults if one.alarm > 1)
    yield from (BehaviourSymbol(one.name, one.watch) for one in faults if 1 < one.watch != one.alarm)
    yield from (BehaviourSymbol(one.name) for one in faults)
    yield from (BehaviourSymbol(one.name) for one in CATALOGUE if one.kind == "artefact" and one.name != _OF_CLOCK)
    yield from (BehaviourSymbol(name, 1, consequence) for name in _NEUTRAL for consequence in CONSEQUENCES)
    yield from map(BehaviourSymbol, CONSEQUENCES)


def fit_behaviours(material: Material, runs: NDArray[np.int64]) -> Alphabet:
    """The symbols that these runs have. Raises DataError for a corpus of which no behaviours are known."""
    corpus = material.corpus
    if corpus.held is None:
        raise DataError("The alphabet of behaviours needs runs that were read with their behaviours: use `featurise`.")
    held = corpus.held
    inside = np.zeros(len(held), dtype=np.bool_)
    inside[steps_of(corpus, runs)] = True
    run = np.repeat(np.arange(len(corpus)), corpus.lengths)
    symbols = np.full(len(held), -1, dtype=np.int32)
    kept: list[BehaviourSymbol] = []
    for symbol in in_order():
        holds = (symbols < 0) & (held[:, PLACES[symbol.behaviour]] >= symbol.at_least)
        if symbol.consequence:
            holds &= held[:, PLACES[symbol.consequence]] > 0
        if len(np.unique(run[holds & inside])) >= min(FEWEST_RUNS, len(runs)):
            symbols[holds] = len(kept)
            kept.append(symbol)
    found = BehaviourMap(tuple(kept))
    symbols[symbols < 0] = len(kept)
    history = (*(symbol.behaviour not in _OF_STEP for symbol in kept), False)
    conditions = (*(symbol.sentence for symbol in kept), "Nothing that other symbols say holds at the step.")
    advice = (*(symbol.advice for symbol in kept), "")
    return Alphabet("behaviours", found, symbols, found.glosses, conditions, history, advice=advice)
