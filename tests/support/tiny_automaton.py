"""Automata made by hand or by seed, and bundles of them behind the tiny monitor's adapter and vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
import tiny_monitor

from prefixguard.bundle import (
    UNSEEN,
    Automaton,
    BehaviourMap,
    BehaviourSymbol,
    BundleParts,
    ModelMap,
    SymbolMap,
    TreeMap,
    TypedMap,
    automaton_to_bytes,
)
from prefixguard.context import FEATURES

TYPED = TypedMap(("find", "look", "respond"))
#: Failed before: 2; else by the word "error" in the result: absent 0, present 1.
TREE = TreeMap.of(
    [[f.name for f in FEATURES].index("errors_in_a_row"), -1 - tiny_monitor.vocabulary().terms.index("result:error")],
    [1.0, 0.0],
    [1, -1],
    [-3, -2],
)
MODEL = ModelMap(tiny_monitor.SYMBOLS)
BEHAVIOURS = BehaviourMap(
    (
        BehaviourSymbol((("same_call_same_result", 1),)),
        BehaviourSymbol((("searches", 1), ("call_failed", 1))),
        BehaviourSymbol((("speaks", 1),)),
    )
)
OUTCOME = ((0.05, 0.10), (0.40, 0.50), (0.90, 0.95))  # by state and column of the clock


def by_hand(clock: tuple[int, ...] = (4,)) -> Automaton:
    """Over TYPED: calm (0), failed once (1), failed the same way again (2). From 2 no training run ever came back."""
    k = TYPED.n_symbols
    error = (np.arange(k) & 2) > 0
    repeat = (np.arange(k) & 1) > 0
    transitions = np.zeros((3, k), np.int32)
    transitions[:, error] = 1
    transitions[1:, error & repeat] = 2
    transitions[2, ~error] = UNSEEN
    edges = np.where(transitions == UNSEEN, 0, 5).astype(np.int64)
    columns = len(clock) + 1
    risk = np.array([[(o / 2, o) for o in row[:columns]] for row in OUTCOME])
    interval = np.stack((np.clip(risk - 0.05, 0, 1), np.clip(risk + 0.05, 0, 1)), axis=-1)
    return Automaton(
        start=0,
        transitions=transitions,
        fallback=np.where(error, 1, 0).astype(np.int32),
        clock=clock,
        risk=risk,
        interval=interval,
        edges=edges,
        visits=np.array([70, 20, 10], np.int64),
        evidence=np.array([[300] * columns, [120] * columns, [4] * columns], np.int64),
        evidence_runs=np.array([[90] * columns, [40] * columns, [2] * columns], np.int64),
        stand_in=np.array([0, 1, 1], np.int32),
    )


def by_seed(seed: int, n_states: int, n_symbols: int, clock: tuple[int, ...] = (), unseen: float = 0.3) -> Automaton:
    """Every number drawn; a share of the transitions is unseen, and some symbols lead nowhere even then."""
    rng = np.random.default_rng(seed)
    columns = len(clock) + 1
    transitions = rng.integers(0, n_states, (n_states, n_symbols)).astype(np.int32)
    transitions[rng.random(transitions.shape) < unseen] = UNSEEN
    fallback = rng.integers(0, n_states, n_symbols).astype(np.int32)
    fallback[rng.random(n_symbols) < unseen] = UNSEEN
    risk = rng.random((n_states, columns, 2))
    risk[rng.random(risk.shape) < 0.1] = 0.0
    risk[rng.random(risk.shape) < 0.1] = 1.0
    return Automaton(
        start=int(rng.integers(0, n_states)),
        transitions=transitions,
        fallback=fallback,
        clock=clock,
        risk=risk,
        interval=np.sort(rng.random((n_states, columns, 2, 2)), axis=-1),
        edges=rng.integers(0, 1000, transitions.shape),
        visits=rng.integers(0, 1000, n_states),
        evidence=rng.integers(0, 1000, (n_states, columns)),
        evidence_runs=rng.integers(0, 1000, (n_states, columns)),
        stand_in=rng.integers(0, n_states, n_states).astype(np.int32),
    )


def glosses(symbol_map: SymbolMap) -> tuple[str, ...]:
    return tuple(f"kind {k} of step" for k in range(symbol_map.n_symbols))


def parts(automaton: Automaton | None = None, symbol_map: SymbolMap = TYPED, **changes: Any) -> BundleParts:
    """Parts of a bundle of kind automaton; keywords replace fields."""
    fields: dict[str, Any] = {
        "model": tiny_monitor.model() if isinstance(symbol_map, ModelMap) else None,
        "reasons": None,
        "automaton": automaton_to_bytes(automaton or by_hand(), symbol_map, glosses(symbol_map)),
    }
    return tiny_monitor.parts(**(fields | changes))


def variants() -> dict[str, BundleParts]:
    """A bundle for every way to a symbol."""
    return {
        "typed automaton": parts(),
        "tree automaton": parts(by_seed(1, 5, TREE.n_symbols, (3, 9)), TREE),
        "behaviours automaton": parts(by_seed(3, 7, BEHAVIOURS.n_symbols, (5,)), BEHAVIOURS),
        "model automaton": parts(by_seed(2, 6, MODEL.n_symbols), MODEL),
    }
