"""Tree: symbols are the leaves of a decision tree, each of them a sentence about the step and the run so far.

The tree is fitted to the teacher's out-of-fold risk, not to labels, which are noisier; and to the probability, not to
its log-odds, so that leaves are spent where risks are high: there they decide what ranks first. `tree-context` reads
the context, so its symbols carry memory, but for what only tells how long the run is: that is the affair of the clock
beside the automaton. A count is looked at up to three, for what is counted n times is met at step n or later. `steps`
reads the step alone, but for whether a call or message repeats; then memory is the
automaton's affair. The words that it asks for are named.

A regression tree with K leaves, as scikit-learn grows it; equal bytes for equal steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.tree import DecisionTreeRegressor

from prefixguard.automata.alphabets.alphabet import Alphabet
from prefixguard.automata.alphabets.tree_words import OF_STEP, ONCE, name_leaves, reads_history, repeats, say, ways
from prefixguard.automata.material import Material
from prefixguard.automata.strings import log_odds
from prefixguard.bundle import TreeMap
from prefixguard.context import FEATURES, N_FEATURES
from prefixguard.learn import steps_of

_FEWEST = 20  # training steps in a leaf
#: Weights of imminent and outcome risk: alarms go by the second, which the first alone says little of; or both alike.
BOTH_RISKS = (1.0, 0.5)
_ALIKE = (1.0, 1.0)
_SURE = 1e-4
_TERMS = 150  # terms that a tree over steps may ask for
_RARE, _COMMON = 0.01, 0.9  # share of steps that such a term must be in
#: Features that grow with every step, whatever happens in it; and messages without a call in between, of which the
#: steps since a call tell as much.
_OF_LENGTH = ("step", "log_step", "calls", "messages", "log_vocabulary", "messages_in_a_row")
#: Features that count, and up to what trees look at them.
_COUNTS = [f.name for f in FEATURES if f.kind == "number" and not f.text.startswith(("share ", "spread "))]
MOST_COUNTED = 3
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


def fit_tree(steps: TreeSteps, leaves: int) -> Alphabet:
    """A tree over the context, fitted to both risks, the imminent one above all."""
    places = [at for name, at in _AT.items() if name not in _OF_LENGTH]
    features = steps.context[:, places].astype(np.float64)
    counts = [column for column, at in enumerate(places) if FEATURES[at].name in _COUNTS]
    features[:, counts] = np.minimum(features[:, counts], MOST_COUNTED)
    tree = grow(features, steps, leaves, BOTH_RISKS)
    return _alphabet("tree-context", tree, features, places, steps, history=True)


def fit_step_tree(steps: TreeSteps, leaves: int) -> Alphabet:
    """A tree over the step alone, fitted to both risks alike: either may be what the automaton has to remember."""
    places = [_AT[name] for name in (*OF_STEP, *ONCE)]
    own = steps.context[:, places].astype(np.float64)
    own[:, len(OF_STEP) :] = np.minimum(own[:, len(OF_STEP) :], 1)
    columns = _telling_terms(steps)
    present = (steps.rows[:, columns] > 0).toarray() if len(columns) else np.empty((len(own), 0))
    features = np.column_stack((own, present))
    tree = grow(features, steps, leaves, _ALIKE)
    return _alphabet("steps", tree, features, [*places, *(-1 - c for c in columns)], steps, history=False)


def grow(features: NDArray[Any], steps: TreeSteps, leaves: int, weights: tuple[float, float]) -> DecisionTreeRegressor:
    """A regression tree of at most this many leaves over the training steps. features: (steps, F), of every step.
    weights: of the imminent and the outcome risk, both at the same spread, so that neither outweighs the other.
    """
    target = steps.teacher / np.maximum(steps.teacher.std(axis=0), _SURE) * weights
    tree = DecisionTreeRegressor(max_leaf_nodes=max(leaves, 2), min_samples_leaf=_FEWEST, random_state=0)
    return tree.fit(features[steps.train].astype(np.float32), target, sample_weight=steps.weights)


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
    )
    leaf = tree.apply(features.astype(np.float32))
    symbols = np.array([-1 - number[int(i)] for i in leaf], dtype=np.int32)
    found_ways = ways(found)
    conditions = tuple("; ".join(say(test, steps.terms) for test in way) for way in found_ways)
    reads = tuple(any(reads_history(test) if history else repeats(test) for test in way) for way in found_ways)
    return Alphabet(name, found, symbols, name_leaves(found_ways, steps.terms), conditions, reads)
