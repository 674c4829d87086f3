"""What the expressions of an automaton mean, and which words stand behind those that rest on words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lab_automaton import Learned, lab_material, learned

from prefixguard.automata.alphabets import fit_alphabet
from prefixguard.automata.alphabets.tree_words import SCORES, SHORT_SCORES, explain
from prefixguard.automata.material import Material
from prefixguard.automata.summary.entries import make_entries
from prefixguard.automata.summary.expressions import WORDS, expressions
from prefixguard.bundle import TreeMap
from prefixguard.runtime import say_term


@pytest.fixture(scope="module")
def material(lab_file: Path) -> Material:
    return lab_material(lab_file)


def of_alphabet(material: Material, name: str) -> tuple[Learned, tuple[str, ...]]:
    it = learned(material, "memoryless", alphabet=fit_alphabet(name, material, material.pool, 24))
    return it, expressions(it.alphabet, material, make_entries(it.alphabet, material, it.automaton, it.states))


def test_words_behind_a_score_are_listed_by_which_way_they_move_it(material: Material) -> None:
    it, said = of_alphabet(material, "tree")
    assert isinstance(it.alphabet.map, TreeMap) and len(it.alphabet.map.scores) == 2
    met = [condition for condition, n in zip(it.alphabet.conditions, np.bincount(it.pool.symbols), strict=False) if n]
    used = [place for place, name in enumerate(SCORES) if any(name in condition for condition in met)]
    assert used and said[: -len(used)] == explain(met)
    for place, sentence in zip(used, said[-len(used) :], strict=True):
        score, short = it.alphabet.map.scores[place], SHORT_SCORES[place]
        assert f'{len(score.columns):,} words behind "{short}"' in sentence
        up, down = sentence.split("Those that lower it most: ")
        words = {say_term(material.vocabulary.terms[c]): w for c, w in zip(score.columns, score.weights, strict=True)}
        for part, sign in ((up, 1), (down, -1)):
            listed = [word for word in words if word in part]
            assert len(listed) >= min(WORDS, sum(sign * w > 0 for w in words.values())) > 0
            assert sum(sign * words[word] > 0 for word in listed) >= WORDS


def test_an_alphabet_without_scores_has_no_list_of_words(material: Material) -> None:
    for name in ("tree-context", "behaviours"):
        _, said = of_alphabet(material, name)
        assert not any(short in one for one in said for short in SHORT_SCORES)
    assert of_alphabet(material, "behaviours")[1] == ()
