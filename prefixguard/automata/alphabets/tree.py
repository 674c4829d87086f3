"""Tree: symbols are the leaves of a decision tree, each of them a sentence about the step and the run so far.

The tree is fitted to the teacher's out-of-fold risk, not to labels, which are noisier; and to the probability, not to
its log-odds, so that leaves are spent where risks are high: there they decide what ranks first. `history`: it reads the
context, so its symbols carry memory, and what the words of the step say as one number a risk: the sum of the weights of
up to a thousand terms, regressed on the teacher's risk; for the training steps each from a fit without the step's task.
`steps`: it reads the step alone, but for whether a call or message repeats; then memory is the automaton's affair.

A regression tree with K leaves, as scikit-learn grows it; equal bytes for equal steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.automata.alphabets.tree_words import OF_STEP, ONCE, name_leaves, reads_history, repeats, say, ways
from prefixguard.automata.material import Material
from prefixguard.automata.strings import log_odds
from prefixguard.bundle import N_RISKS, TreeMap, WordScore
from prefixguard.context import FEATURES, N_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.learn import steps_of

_FEWEST = 20  # training steps in a leaf
_WEIGHTS = (1.0, 0.5)  # of imminent and outcome risk: alarms go by the second, which the first alone says little of
_SURE = 1e-4
_RIDGE = 3.0
_WORDS = 1000  # terms of a score
_FOLDS = 3
_TERMS = 150  # terms that a tree over steps may ask for
_RARE, _COMMON = 0.01, 0.9  # share of steps that such a term must be in
_AT = {feature.name: place for place, feature in enumerate(FEATURES)}


@dataclass(frozen=True, slots=True, eq=False)
class TreeSteps:
    """All steps of a corpus, and what a tree is fitted to.

    context: float32 (steps, d). rows: (steps, V). terms: V texts. train: int64, positions of the n training steps.
    weights: float64 (n,). tasks: int64 (n,). teacher: float64 (n, 2), probabilities; target: (n, 2), their log-odds.
    """

    context: NDArray[np.float32]
    rows: csr_matrix
    terms: Sequence[str]
    train: NDArray[np.int64]
    weights: NDArray[np.float64]
    tasks: NDArray[np.int64]
    teacher: NDArray[np.float64]
    target: NDArray[np.float64]

    @classmethod
    def of(cls, material: Material, runs: NDArray[np.int64]) -> TreeSteps:
        """With the steps of these runs as training steps; every run counts alike."""
        corpus, lengths = material.corpus, material.corpus.lengths[runs]
        train = steps_of(corpus, runs)
        weights, tasks = np.repeat(lengths.mean() / lengths, lengths), np.repeat(material.tasks[runs], lengths)
        teacher = material.teacher[train].astype(np.float64)
        terms = material.vocabulary.terms
        return cls(
            corpus.context[:, :N_FEATURES], material.matrix, terms, train, weights, tasks, teacher, log_odds(teacher)
        )


def fit_tree(steps: TreeSteps, leaves: int, *, words: bool = True) -> Alphabet:
    """A tree over the context, fitted to both risks, the imminent one above all. words: it also reads the scores of the
    step's words.
    """
    features: NDArray[np.float64] = steps.context.astype(np.float64)
    scores: tuple[WordScore, ...] = ()
    if words:
        found = [_word_score(steps, risk) for risk in range(N_RISKS)]
        scores = tuple(score for score, _ in found)
        features = np.column_stack((features, *(values for _, values in found)))
    tree = _fit(features, steps, leaves, _even(steps.teacher) * _WEIGHTS)
    names = list(range(N_FEATURES + len(scores)))
    return _alphabet("tree" if words else "tree-context", tree, features, names, scores, steps, history=True)


def fit_step_tree(steps: TreeSteps, leaves: int) -> Alphabet:
    """A tree over the step alone, fitted to both risks alike: either may be what the automaton has to remember."""
    places = [_AT[name] for name in (*OF_STEP, *ONCE)]
    own = steps.context[:, places].astype(np.float64)
    own[:, len(OF_STEP) :] = np.minimum(own[:, len(OF_STEP) :], 1)
    columns = _telling_terms(steps)
    present = (steps.rows[:, columns] > 0).toarray() if len(columns) else np.empty((len(own), 0))
    features = np.column_stack((own, present))
    tree = _fit(features, steps, leaves, _even(steps.teacher))
    return _alphabet("steps", tree, features, [*places, *(-1 - c for c in columns)], (), steps, history=False)


def _even(risks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Both risks with the same spread, so that neither outweighs the other."""
    return np.asarray(risks / np.maximum(risks.std(axis=0), _SURE))


def _fit(
    features: NDArray[np.float64], steps: TreeSteps, leaves: int, target: NDArray[np.float64]
) -> DecisionTreeRegressor:
    tree = DecisionTreeRegressor(max_leaf_nodes=max(leaves, 2), min_samples_leaf=_FEWEST, random_state=0)
    return tree.fit(features[steps.train].astype(np.float32), target, sample_weight=steps.weights)


def _word_score(steps: TreeSteps, risk: int) -> tuple[WordScore, NDArray[np.float64]]:
    """The score, and its value at every step: of training steps, by a fit without the step's task."""
    rows, target, weights = steps.rows[steps.train], steps.target[:, risk], steps.weights
    full = Ridge(alpha=_RIDGE, fit_intercept=True).fit(rows, target, sample_weight=weights)
    strength = np.abs(full.coef_) * np.sqrt(np.asarray(rows.power(2).mean(axis=0)).ravel())
    columns = np.sort(np.argsort(-strength, kind="stable")[:_WORDS])
    chosen = rows[:, columns]

    def weigh(of: NDArray[np.bool_] | slice) -> WordScore:
        model = Ridge(alpha=_RIDGE).fit(chosen[of], target[of], sample_weight=weights[of])
        return WordScore(columns.astype(np.int64), np.asarray(model.coef_, dtype=np.float64))

    score = weigh(slice(None))
    values = _values(score, steps.rows)
    fold = steps.tasks % _FOLDS
    for f in range(_FOLDS):
        if 0 < np.count_nonzero(fold == f) < len(fold):
            at = steps.train[fold == f]
            values[at] = _values(weigh(fold != f), steps.rows[at])
    return score, values


def _values(score: WordScore, rows: csr_matrix) -> NDArray[np.float64]:
    """Row by row, as a session computes it: the last bit may decide at a threshold."""
    ends = pairwise(rows.indptr.tolist())
    return np.array([score(SparseRow(rows.indices[a:b], rows.data[a:b])) for a, b in ends])


def _telling_terms(steps: TreeSteps) -> list[int]:
    """Columns of the terms whose presence correlates most with either risk, ascending."""
    present = (steps.rows[steps.train] > 0).astype(np.float64)
    share = np.asarray(present.mean(axis=0)).ravel()
    target = steps.target - steps.target.mean(axis=0)
    covariance = np.abs(present.T @ target) / len(target)  # (V, 2)
    spread = np.sqrt(np.maximum(share * (1 - share), 1e-12))[:, None] * np.maximum(target.std(axis=0), _SURE)
    worth = (covariance / spread).sum(axis=1) * ((share > _RARE) & (share < _COMMON))
    order = np.argsort(-worth, kind="stable")[:_TERMS]
    return sorted(int(c) for c in order if worth[c] > 0)


def _alphabet(
    name: str,
    tree: DecisionTreeRegressor,
    features: NDArray[np.float64],
    meaning: list[int],
    scores: tuple[WordScore, ...],
    steps: TreeSteps,
    *,
    history: bool,
) -> Alphabet:
    """The fitted tree as a map. meaning: of each column of `features`, as `TreeMap.feature` spells it."""
    t = tree.tree_
    inner = [i for i in range(t.node_count) if t.children_left[i] >= 0]
    leaves = [i for i in range(t.node_count) if t.children_left[i] < 0]
    number = {node: i for i, node in enumerate(inner)} | {node: -1 - i for i, node in enumerate(leaves)}
    # scikit-learn compares float32 features to double thresholds, and so does the map.
    found = TreeMap.of(
        [meaning[t.feature[i]] for i in inner],
        [float(t.threshold[i]) for i in inner],
        [number[int(t.children_left[i])] for i in inner],
        [number[int(t.children_right[i])] for i in inner],
        scores,
    )
    leaf = tree.apply(features.astype(np.float32))
    symbols = np.array([-1 - number[int(i)] for i in leaf], dtype=np.int32)
    found_ways = ways(found)
    values = [np.sort(features[steps.train, N_FEATURES + i]) for i in range(len(scores))]
    conditions = tuple("; ".join(say(test, steps.terms, values) for test in way) for way in found_ways)
    reads = tuple(any(reads_history(test) if history else repeats(test) for test in way) for way in found_ways)
    return Alphabet(name, found, symbols, name_leaves(found_ways, steps.terms, values), conditions, reads)
