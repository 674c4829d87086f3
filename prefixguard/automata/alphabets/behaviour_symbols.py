"""Symbols that are behaviours, one or several that hold at the step at once: the leaves of a decision tree over them.

The tree asks whether each behaviour holds, and is fitted to the teacher's out-of-fold risk. It is kept as a list in
which the side where a behaviour holds stands before the side where it does not, and leaves at which something failed or
was repeated before all others: the symbol of a step is the first that holds, and each is said by what is there, never
by what is not. What is met in too few training runs is no symbol: such a step has the next one that holds at it. Steps
of no leaf at which something holds have as symbols what failed or was repeated alone, and then what they are alone:
they read, write, speak ... The number of the
step, and with it how near its limit is, gives no symbol; nor does how often a behaviour was seen, for what is seen n
times is seen at step n or later.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.automata.alphabets.tree import BOTH_RISKS, TreeSteps, grow
from prefixguard.automata.material import Material
from prefixguard.behaviours import BY_NAME, CONSEQUENCES, PLACES
from prefixguard.bundle import BehaviourMap, BehaviourSymbol
from prefixguard.errors import DataError

#: Training runs in which a symbol must be met.
FEWEST_RUNS = 10
#: Tells how near the limit of steps is: that is the clock's affair.
_OF_CLOCK = "near_step_cap"
#: Names in the order in which a symbol says them: what the step is, then the catalogue's.
ASKED = tuple(name for name in dict.fromkeys((*CONSEQUENCES, *BY_NAME)) if name != _OF_CLOCK)
#: What failed, or was there before.
_GONE_WRONG = (
    *(name for name in ASKED if BY_NAME[name].kind == "fault"), "call_failed", "failed_tool_again", "result_seen"
)
#: What behaviours tell of the step alone.
_OF_STEP = (*CONSEQUENCES, "call_failed", "tests_pass", "long_result")


def fit_behaviours(material: Material, runs: NDArray[np.int64], leaves: int) -> Alphabet:
    """The symbols of these runs, of a tree of at most so many leaves. Raises DataError for a corpus of which no
    behaviours are known."""
    held = material.corpus.held
    if held is None:
        raise DataError("The alphabet of behaviours needs runs that were read with their behaviours: use `featurise`.")
    steps = TreeSteps.of(material, runs)
    tree = grow(held[:, [PLACES[name] for name in ASKED]] > 0, steps, leaves, BOTH_RISKS)
    run = np.repeat(np.arange(len(material.corpus)), material.corpus.lengths)
    inside = np.zeros(len(held), dtype=np.bool_)
    inside[steps.train] = True
    symbols = np.full(len(held), -1, dtype=np.int32)
    kept: list[BehaviourSymbol] = []
    alone = (BehaviourSymbol(((name, 1),)) for name in (*_GONE_WRONG, *CONSEQUENCES))
    # Of two leaves of which one asks all that the other does, and more, the one that asks more still comes first.
    leaves_first = sorted(_leaves(tree), key=lambda symbol: not any(name in _GONE_WRONG for name, _ in symbol.asked))
    for symbol in dict.fromkeys((*leaves_first, *alone)):
        holds = (symbols < 0) & (held[:, [PLACES[name] for name, _ in symbol.asked]] > 0).all(axis=1)
        if len(np.unique(run[holds & inside])) >= min(FEWEST_RUNS, len(runs)):
            symbols[holds] = len(kept)
            kept.append(symbol)
    symbols[symbols < 0] = len(kept)
    found = BehaviourMap(tuple(kept))
    history = (*(any(name not in _OF_STEP for name, _ in symbol.asked) for symbol in kept), False)
    conditions = (*(symbol.sentence for symbol in kept), "Nothing that other symbols say holds at the step.")
    advice = (*(symbol.advice for symbol in kept), "")
    return Alphabet("behaviours", found, symbols, found.glosses, conditions, history, advice=advice)


def _leaves(tree: DecisionTreeRegressor) -> Iterator[BehaviourSymbol]:
    """The leaves at which something holds, those where a behaviour holds before those where it does not."""
    t = tree.tree_
    waiting: list[tuple[int, frozenset[str]]] = [(0, frozenset())]
    while waiting:
        node, asked = waiting.pop()
        if t.children_left[node] >= 0:
            waiting.append((int(t.children_left[node]), asked))
            waiting.append((int(t.children_right[node]), asked | {ASKED[t.feature[node]]}))
        elif asked:
            yield BehaviourSymbol(tuple((name, 1) for name in sorted(asked, key=ASKED.index)))
