"""Alphabets: from a step and its context to one symbol, fitted once, one kind a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet, fit_typed
from prefixguard.automata.alphabets.behaviour_symbols import fit_behaviours
from prefixguard.automata.alphabets.tree import TreeSteps, fit_step_tree, fit_tree
from prefixguard.automata.material import Material
from prefixguard.errors import ConfigError

#: Name to what it is. Those that come last need the monitor's model at run time.
ALPHABETS: Mapping[str, str] = {
    "behaviours": "the behaviours that hold at the step, as a decision tree asks for them",
    "tree-context": "kinds of step that a decision tree tells apart by lengths of texts, counts, repeats, failures and "
    "new words, at the step and in the run so far",
    "steps": "kinds of step that a decision tree tells apart by the step alone, and by whether it repeats",
    "typed": "tool x error x repeated call; nothing learned",
    "gumbel": "the symbols that a network learned for itself",
    "quantized": "intervals of the monitor's own risks: of high fidelity, and without a meaning",
}
#: Alphabets whose symbols the monitor's model gives.
OF_MODEL = ("gumbel", "quantized")
_STEP_LEAVES = 48


def fit_alphabet(
    name: str,
    material: Material,
    runs: NDArray[np.int64],
    max_states: int,
    given: Mapping[str, Alphabet] = MappingProxyType({}),
) -> Alphabet:
    """Fit the alphabet of this name on these runs; symbols are given for all steps of the corpus.

    max_states: trees over the run so far have as many leaves as states can tell apart. given: those of `OF_MODEL`.
    Raises ConfigError for an unknown name, and for an alphabet of `OF_MODEL` that is not given.
    """
    if name in given:
        return given[name]
    match name:
        case "behaviours":
            return fit_behaviours(material, runs, max(max_states - 1, 2))
        case "typed":
            return fit_typed(material, runs)
        case "steps":
            return fit_step_tree(TreeSteps.of(material, runs), _STEP_LEAVES)
        case "tree-context":
            return fit_tree(TreeSteps.of(material, runs), max(max_states - 1, 2))
    if name in OF_MODEL:
        raise ConfigError(f"alphabet {name!r}: its symbols come from a monitor's model, and none was asked for them.")
    raise ConfigError(f"alphabet {name!r}: choose one of {', '.join(ALPHABETS)}.")


__all__ = ["ALPHABETS", "OF_MODEL", "Alphabet", "fit_alphabet"]
