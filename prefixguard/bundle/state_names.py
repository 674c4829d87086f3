"""What a state of an automaton is called: the symbols that lead there, as training runs took them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from prefixguard.bundle.automaton import Automaton
from prefixguard.stepview import plain

#: Symbols that a name has at most, and letters of each.
_LEADING, _LETTERS = 2, 120


def state_names(automaton: Automaton, glosses: Sequence[str]) -> tuple[str, ...]:
    """One sentence a state: its most frequent symbols, with the share of the steps into the state that each has.

    glosses: one a symbol, in words.
    `automaton.json`, the glossary and the page say this one.
    """
    return tuple(_name(automaton, glosses, state) for state in range(automaton.n_states))


def leading_symbols(automaton: Automaton, state: int) -> list[int]:
    """The symbols that most often lead to a state, most frequent first, at most two; [] where no step ends there."""
    into = _into(automaton, state)
    return [k for k in np.argsort(-into, kind="stable")[:_LEADING].tolist() if into[k] > 0]


def _into(automaton: Automaton, state: int) -> NDArray[np.int64]:
    """int64 (K,), how often each symbol led to the state."""
    into: NDArray[np.int64] = np.where(automaton.transitions == state, automaton.edges, 0).sum(axis=0)
    return into


def _name(automaton: Automaton, glosses: Sequence[str], state: int) -> str:
    top, into = leading_symbols(automaton, state), _into(automaton, state)
    total = int(into.sum())
    if not total:
        return "Runs begin here." if state == automaton.start else "No training step ends here."
    said = [f'"{plain(glosses[k], _LETTERS) or f"symbol {k}"}"' for k in top]
    if into[top[0]] == total:
        return f"After {said[0]}."
    shares = (f"{name} ({_per_cent(into[k] / total)})" for k, name in zip(top, said, strict=True))
    return f"After {' or '.join(shares)}."


def _per_cent(share: float) -> str:
    if share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
