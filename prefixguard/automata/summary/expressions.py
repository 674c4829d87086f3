"""What the expressions in the names and definitions of symbols mean, and the words behind those that rest on words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from prefixguard.automata.alphabets import Alphabet
from prefixguard.automata.alphabets.tree_words import SCORES, SHORT_SCORES, explain
from prefixguard.automata.material import Material
from prefixguard.automata.summary.entries import Entry
from prefixguard.bundle import TreeMap
from prefixguard.learn import steps_of
from prefixguard.runtime import say_term

#: Words of a score that are listed, for and against a failure each.
WORDS = 12


def expressions(alphabet: Alphabet, material: Material, entries: Sequence[Entry]) -> tuple[str, ...]:
    """A sentence for each expression in the definitions of the symbols that were met; of each score of words, besides,
    the words that move it most over the training steps, either way. Words are text from runs, made harmless.
    """
    conditions = [entry.condition for entry in entries if entry.count]
    said = [*explain(conditions)]
    if isinstance(alphabet.map, TreeMap):
        rows, terms = material.matrix[steps_of(material.corpus, material.pool)], material.vocabulary.terms
        spread = np.sqrt(np.asarray(rows.power(2).mean(axis=0)).ravel())
        for name, short, score in zip(SCORES, SHORT_SCORES, alphabet.map.scores, strict=False):
            if not any(name in condition for condition in conditions):
                continue
            moved = score.weights * spread[score.columns]
            order = np.argsort(-np.abs(moved), kind="stable").tolist()
            up, down = ([say_term(terms[score.columns[at]]) for at in order if sign * moved[at] > 0][:WORDS]
                        for sign in (1, -1))  # fmt: skip
            said.append(
                f'Of the {len(score.columns):,} words behind "{short}" those that raise it most: '
                f"{', '.join(up) or 'none'}. Those that lower it most: {', '.join(down) or 'none'}."
            )
    return tuple(said)
