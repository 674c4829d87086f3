"""Alphabets: from a step and its context to one symbol, fitted once, one kind a file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from prefixguard.automata.alphabets.alphabet import Alphabet, Given, fit_typed
from prefixguard.automata.alphabets.tree import TreeSteps, fit_step_tree, fit_tree
from prefixguard.automata.material import Material
from prefixguard.bundle import ModelMap
from prefixguard.errors import ConfigError
from prefixguard.learn import steps_of

#: Name to what it is. Those that come last need the monitor's model at run time.
ALPHABETS: Mapping[str, str] = {
    "tree": "leaves of a tree over the run so far and the words of the step",
    "tree-context": "leaves of a tree over the run so far, without words",
    "steps": "leaves of a tree over the step alone, but for whether it repeats",
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
    given: Mapping[str, Given] = MappingProxyType({}),
) -> Alphabet:
    """Fit the alphabet of this name on these runs; symbols are given for all steps of the corpus.

    max_states: trees over the run so far have as many leaves as states can tell apart. given: what the monitor's model
    gave, for alphabets of `OF_MODEL`; they have as many symbols as it can give, met or not.
    Raises ConfigError for an unknown name, and for an alphabet of `OF_MODEL` that was not given.
    """
    train = steps_of(material.corpus, runs)
    if name in OF_MODEL:
        if name not in given:
            raise ConfigError(
                f"alphabet {name!r}: its symbols come from a monitor's model, and none was asked for them."
            )
        found = given[name]
        none = ("",) * found.n_symbols
        return Alphabet(
            name, ModelMap(found.n_symbols), found.symbols, found.glosses or none, none, (True,) * found.n_symbols
        )
    if name == "typed":
        return fit_typed(material.tools, material.corpus.context, train)
    lengths = material.corpus.lengths[runs]
    steps = TreeSteps(
        context=material.corpus.context,
        rows=material.matrix,
        terms=material.vocabulary.terms,
        train=train,
        weights=np.repeat(lengths.mean() / lengths, lengths),
        tasks=np.repeat(material.tasks[runs], lengths),
        teacher=material.teacher[train].astype(np.float64),
    )
    if name == "steps":
        return fit_step_tree(steps, _STEP_LEAVES)
    if name not in ("tree", "tree-context"):
        raise ConfigError(f"alphabet {name!r}: choose one of {', '.join(ALPHABETS)}.")
    return fit_tree(steps, max(max_states - 1, 2), words=name == "tree")


__all__ = ["ALPHABETS", "OF_MODEL", "Alphabet", "Given", "fit_alphabet"]
