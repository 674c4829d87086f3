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
    """One sentence a state: the symbols that most often bring a run in from another state, with their shares of the
    steps that do; where at least half of its steps come from the state itself, also the symbol of most of those.

    glosses: one a symbol, in words.
    `automaton.json`, the glossary and the page say this one.
    """
    return tuple(_name(automaton, glosses, state) for state in range(automaton.n_states))


def leading_symbols(automaton: Automaton, state: int) -> list[int]:
    """The symbols that most often lead to a state from another, most frequent first, at most two; where only the state
    leads to itself, those that do; [] where no step ends there."""
    into, stays = _into(automaton, state)
    return _most(into if into.any() else stays)


def _most(counts: NDArray[np.int64]) -> list[int]:
    return [k for k in np.argsort(-counts, kind="stable")[:_LEADING].tolist() if counts[k] > 0]


def _into(automaton: Automaton, state: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64 (K,) each: how often a symbol led to the state from another state, and from itself."""
    all_in = np.where(automaton.transitions == state, automaton.edges, 0)
    return all_in.sum(axis=0) - all_in[state], all_in[state]


def _name(automaton: Automaton, glosses: Sequence[str], state: int) -> str:
    top, (into, stays) = leading_symbols(automaton, state), _into(automaton, state)
    if not top:
        return "Runs begin here." if state == automaton.start else "No training step ends here."
    said = f"After {_said(glosses, top, into if into.any() else stays)}"
    if into.any() and stays.sum() >= into.sum():
        share = int(stays.sum()) / int(stays.sum() + into.sum())
        said += f"; {_per_cent(share)} of its steps stay in it, most often by "
        said += _said(glosses, _most(stays)[:1], stays)
    return f"{said}."


def _said(glosses: Sequence[str], top: Sequence[int], counts: NDArray[np.int64]) -> str:
    """These symbols with their shares of the steps counted."""
    total = int(counts.sum())
    names = [f'"{plain(glosses[k], _LETTERS) or f"symbol {k}"}"' for k in top]
    if counts[top[0]] == total:
        return names[0]
    return " or ".join(f"{name} ({_per_cent(counts[k] / total)})" for k, name in zip(top, names, strict=True))


def _per_cent(share: float) -> str:
    if share < 0.001:
        return "<0.1 %"
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"
