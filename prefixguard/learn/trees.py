"""Gradient boosting as a head: trees on context and projected text, one step of them inside a compiled graph.

A step adds the text's projection to a running average and a running sum, which are all that is kept of a run, and asks
both risks' trees at once. The converter to ONNX is our own: the usual one rounds LightGBM's double thresholds to the
nearest float32, which sends a feature that lies on a threshold to the other side, and gives other bytes each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray

from prefixguard.context import SCORE_FEATURES
from prefixguard.learn.context_layer import StepContext
from prefixguard.learn.corpus import Corpus, Rows
from prefixguard.learn.graph import ML_DOMAIN, Graph, Matrix
from prefixguard.learn.head import N_RISKS, FitMaterial
from prefixguard.learn.teacher import DECAY, ROUNDS, TextProjection, fit_boosters, run_weights, steps_of

Boosters = tuple[str, ...] | float
#: Trees a fit in a blend: half of `ROUNDS`, each going twice as far, are as accurate beside a network.
ROUNDS_IN_BLEND = 75
_SURE = 1e-4  # probability of the class that was never seen


@dataclass(frozen=True, slots=True)
class TreesHead:
    """Fitted trees of both risks.

    projection: of the text. boosters: imminent, outcome: LightGBM's models as text, whose sum is the log-odds; where
    training had one class only, the constant log-odds.
    """

    projection: TextProjection
    boosters: tuple[Boosters, ...]

    def logits(self, corpus: Corpus, rows: Rows, runs: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Natural log-odds before calibration, one array (T, 2) a run."""
        features = self.projection.features(corpus, rows, runs)
        columns = [_predict(booster, features) for booster in self.boosters]
        return np.split(np.stack(columns, axis=1), np.cumsum(corpus.lengths[runs])[:-1])

    def facts(self) -> dict[str, Any]:
        """What the manifest says of it."""
        return {
            "components": len(self.projection.components),
            "constant": [isinstance(b, float) for b in self.boosters],
        }

    def part(self, prefix: str = "trees_") -> TreesPart:
        """How a compiled graph computes one step. prefix: of the names of its constants."""
        return TreesPart(self, prefix)

    def symbols(self, m: FitMaterial) -> LevelSymbols:
        """Levels of the outcome risk, each as often as the others in the runs it was fitted on."""
        outcome = np.concatenate(self.logits(m.corpus, m.rows, m.everything))[:, 1]
        shares = np.arange(1, m.config.symbols) / m.config.symbols
        return LevelSymbols(np.unique(np.quantile(outcome, shares).astype(np.float32)))


def fit(m: FitMaterial) -> TreesHead:
    """Fit the head on all runs there are; a forest has no epoch to choose."""
    m.listener.on_stage("trees", "boosted trees")
    rises = score_directions(m.config.higher_is_safer) if m.corpus.reads_scores else None
    rounds = ROUNDS_IN_BLEND if m.config.backend == "blend" else ROUNDS
    return fit_trees(m.corpus, m.rows, m.everything, m.labels, m.config.seed, rounds=rounds, rises=rises)


def score_directions(higher_is_safer: bool) -> list[int]:
    """What the risk does where a feature of scores is greater, as `fit_boosters` takes it: a worse score never lowers
    it, and of the step number nothing is said."""
    return [0 if feature.name == "step" else -1 if higher_is_safer else 1 for feature in SCORE_FEATURES]


def fit_trees(
    corpus: Corpus,
    rows: Rows,
    runs: NDArray[np.int64],
    labels: NDArray[np.float32],
    seed: int,
    *,
    rounds: int = ROUNDS,
    rises: Sequence[int] | None = None,
) -> TreesHead:
    """Fit on these runs, each run weighted alike.

    labels: float32 (all steps, 2), in [0, 1]: imminent, outcome. rounds: trees a fit. rises: see `fit_boosters`.
    """
    projection = TextProjection.fit(corpus, rows, runs, seed)
    features, weight = projection.features(corpus, rows, runs), run_weights(corpus, runs)
    targets = labels[steps_of(corpus, runs)]
    boosters: list[Boosters] = []
    for risk in range(N_RISKS):
        fitted = fit_boosters(features, targets[:, risk], weight, seed, rounds=rounds, rises=rises)
        boosters.append(_log_odds(fitted) if isinstance(fitted, float) else _shares(fitted))
    return TreesHead(projection, tuple(boosters))


def _log_odds(probability: float) -> float:
    p = min(max(probability, _SURE), 1 - _SURE)
    return float(np.float32(np.log(p / (1 - p))))


def _shares(fitted: list[lightgbm.Booster]) -> tuple[str, ...]:
    """Boosters as text, each leaf divided by their number, so that their sum is the mean of what was fitted.

    Leaves are moved to multiples of a power of two so small that any sum of one leaf a tree is a float32: LightGBM and
    the compiled step then agree to the last bit, in whatever order they add.
    """
    sizes = [[int(info["num_leaves"]) for info in b.dump_model()["tree_info"]] for b in fitted]
    trees = [
        (booster, t, np.array([booster.get_leaf_output(t, leaf) for leaf in range(n)]) / len(fitted))
        for booster, of_booster in zip(fitted, sizes, strict=True)
        for t, n in enumerate(of_booster)
    ]
    _, exponent = np.frexp(sum(np.abs(leaves).max() for _, _, leaves in trees))
    unit = np.ldexp(1.0, int(exponent) - np.finfo(np.float32).nmant)
    for booster, t, leaves in trees:
        for leaf, value in enumerate((np.round(leaves / unit) * unit).tolist()):
            booster.set_leaf_output(t, leaf, value)
    return tuple(booster.model_to_string() for booster in fitted)


def _predict(boosters: Boosters, features: NDArray[np.float32]) -> NDArray[np.float64]:
    if isinstance(boosters, float):
        return np.full(len(features), boosters)
    models = [lightgbm.Booster(model_str=text) for text in boosters]
    each = [model.predict(features, raw_score=True, num_threads=1) for model in models]
    return np.asarray(np.sum(each, axis=0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class TreesPart:
    """One step of a `TreesHead`; a `StepPart`.

    The state is the number of steps so far, the exponential average of the projected text and its sum.
    imminent: whether the imminent risk is asked for; where it is not, it is 0.
    """

    head: TreesHead
    prefix: str
    imminent: bool = True
    adds_in_order = True

    @property
    def table(self) -> Matrix:
        """float32 (V, components): what each vocabulary column adds to the projected text."""
        return self.head.projection.table

    @property
    def state(self) -> int:
        """Floats kept between steps."""
        return 1 + 2 * self._components

    @property
    def _components(self) -> int:
        return len(self.head.projection.components)

    def step(self, g: Graph, text: str, context: StepContext, state: str) -> tuple[str, str]:
        """text (N, components), context (N, d), state (1, S) -> logits (N, 2), state after (1, S) where N is 1."""
        n = self._components
        if not n:  # nothing to read but the context
            return self._logits(g, context.rows), g.node("Add", state, g.constant("one", np.float32(1)))
        # The operations of `TextProjection.features` in its order: a bit can decide at a threshold.
        steps, average, total = g.split(state, [1, n, n])
        steps = g.node("Add", steps, g.constant("one", np.float32(1)))
        towards = g.node("Mul", g.node("Sub", text, average), g.constant(f"{self.prefix}decay", np.float32(DECAY)))
        average, total = g.node("Add", average, towards), g.node("Add", total, text)
        features = g.concat([context.rows, text, average, g.node("Div", total, steps)])
        return self._logits(g, features), g.concat([steps, average, total])

    def _logits(self, g: Graph, features: str) -> str:
        """One ensemble a risk: with a single target onnxruntime finds a leaf's value in the leaf."""
        imminent, outcome = self.head.boosters
        each = [ensemble_attributes(one) for one in (imminent if self.imminent else 0.0, outcome)]
        features = g.concat([features, g.node("Mul", features, g.constant("minus_one", np.float32(-1)))])
        return g.concat([g.node("TreeEnsembleRegressor", features, domain=ML_DOMAIN, **one) for one in each])


@dataclass(frozen=True)
class LevelSymbols:
    """The symbol is the interval that a logit falls in. cuts: float32, rising; one symbol more than cuts. risk: which
    logit, 0 the imminent one, 1 that of the outcome."""

    cuts: Matrix
    risk: int = 1

    @property
    def table(self) -> Matrix:
        return np.empty((0, 0), dtype=np.float32)

    def symbol(self, g: Graph, text: str, context: StepContext, logits: str) -> str:
        own = g.node("Gather", logits, g.integers(self.risk), axis=-1)  # (N, 1)
        above = g.node("Cast", g.node("Greater", own, g.constant("symbol_cuts", self.cuts)), to=7)  # int64
        return g.node("ReduceSum", above, g.integers(-1), keepdims=0)


def ensemble_attributes(boosters: Boosters) -> dict[str, Any]:
    """The boosters of one risk as the attributes of an ONNX TreeEnsembleRegressor on their features and, behind them,
    the same negated.

    Takes boosters on plain numeric features without missing values, as `fit_boosters` makes them. onnxruntime keeps a
    node's second child beside it, so that is the one where most of training went: where it is the first, the negated
    feature is asked. Source: ai.onnx.ml opset 3.
    """
    nodes: list[tuple[int, int, str, int, float, int, int]] = []
    leaves: list[tuple[int, int, int, float]] = []
    n_features = 0
    if isinstance(boosters, float):
        roots: list[dict[str, Any]] = [{"leaf_value": boosters}]
    else:
        models = [lightgbm.Booster(model_str=text).dump_model() for text in boosters]
        roots = [info["tree_structure"] for model in models for info in model["tree_info"]]
        n_features = models[0]["max_feature_idx"] + 1
    for tree, root in enumerate(roots):
        waiting, made = [root], 1  # node numbers are places in the order of waiting
        for number, node in enumerate(waiting):
            if "leaf_value" in node:
                nodes.append((tree, number, "LEAF", 0, 0.0, 0, 0))
                leaves.append((tree, number, 0, node["leaf_value"]))
                continue
            feature, threshold = int(node["split_feature"]), at_most(node["threshold"])
            first, second = node["left_child"], node["right_child"]
            above = float(np.nextafter(np.float32(threshold), np.float32(np.inf)))
            if _count(first) > _count(second) and np.isfinite(above):
                feature, threshold, first, second = feature + n_features, -above, second, first
            nodes.append((tree, number, "BRANCH_LEQ", feature, threshold, made, made + 1))
            waiting += [first, second]
            made += 2
    names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
    leaf_names = ("treeids", "nodeids", "ids", "weights")
    return {
        "n_targets": 1,
        **{f"nodes_{name}": list(column) for name, column in zip(names, zip(*nodes, strict=True), strict=True)},
        **{f"target_{name}": list(column) for name, column in zip(leaf_names, zip(*leaves, strict=True), strict=True)},
    }


def _count(node: dict[str, Any]) -> int:
    """Training steps that came to a node."""
    return int(node["leaf_count"] if "leaf_value" in node else node["internal_count"])


def at_most(threshold: float) -> float:
    """The largest float32 that is not above a double: `x <= threshold` is the same of every float32 x.

    >>> at_most(0.1) <= 0.1 < float(np.float32(0.1))
    True
    """
    with np.errstate(over="ignore"):
        nearest = np.float32(threshold)
    return float(np.nextafter(nearest, np.float32(-np.inf)) if float(nearest) > threshold else nearest)
