"""Symbols that a monitor's model gives: those that a network learned for itself, and intervals of its risks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper
from scipy.special import expit

from prefixguard.automata.alphabets import OF_MODEL, Alphabet
from prefixguard.automata.material import Material
from prefixguard.automata.strings import log_odds
from prefixguard.bundle import Bundle, Platt, RiskMap, apply_map
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError
from prefixguard.learn import model_logits, steps_of
from prefixguard.runtime import StepModel, open_model

_INTERVALS = (12, 4)  # of the imminent and of the outcome risk
_FAR = 100.0  # logits
_HALVINGS = 60
_ONLY_TREES = "gbdt"


def ask_model(bundle: Bundle, material: Material, alphabets: Collection[str]) -> dict[str, Alphabet]:
    """Those of these alphabets whose symbols the monitor's model gives.

    Raises ConfigError for the symbols of a network where the monitor is of trees alone, which learned none.
    """
    wanted = [name for name in OF_MODEL if name in alphabets]
    if "gumbel" in wanted and bundle.manifest.get("backend") == _ONLY_TREES:
        raise ConfigError(
            f"alphabet 'gumbel': {bundle.path} is of boosted trees, which learn no symbols. Choose another alphabet; "
            "intervals of its risks are 'quantized'."
        )
    if not wanted or bundle.model_bytes is None:
        return {}
    model, given = open_model(bundle), {}
    if "gumbel" in wanted:
        symbols = own_symbols(model, material)
        config = bundle.manifest.get("config")
        size = config.get("symbols") if isinstance(config, dict) else None
        n = max(size if isinstance(size, int) else 0, int(symbols.max()) + 1)
        given["gumbel"] = Alphabet.of_model("gumbel", symbols, n, model=bundle.model_bytes)
    if "quantized" in wanted:
        calibration = bundle.calibration
        maps = (calibration.imminent, calibration.outcome)
        intervals = Intervals(material, maps)
        symbols = intervals.of(log_odds(material.teacher))
        for r in np.concatenate((material.held_out, material.alarm, material.test)).tolist():
            first, last = material.corpus.first[r : r + 2]
            symbols[first:last] = intervals.of_logits(model_logits(model, material.corpus, material.rows, r))
        step, words = intervals.model(bundle.model_bytes), intervals.glosses()
        given["quantized"] = Alphabet.of_model("quantized", symbols, intervals.n_symbols, words, step)
    return given


def own_symbols(model: StepModel, material: Material) -> NDArray[np.int32]:
    """The model's own symbol of every step of the corpus, int32 (steps,). Source: PrefixGuard 4.3, 4.5."""
    corpus, matrix = material.corpus, material.matrix
    symbols = np.empty(len(material.labels), dtype=np.int32)
    rows = [SparseRow(matrix.indices[a:b].astype(np.int64), matrix.data[a:b]) for a, b in pairwise(matrix.indptr)]
    for first, last in pairwise(corpus.first.tolist()):
        state = model.initial
        for step in range(first, last):
            after = model.step(material.tools[step], rows[step], corpus.context[step], state)
            symbols[step], state = after.symbol or 0, after.state
    return symbols


class Intervals:
    """Intervals of both risks as symbols: imminent interval by outcome interval, each sharing the pool's steps alike.

    Of training steps the teacher's out-of-fold risk is cut, since what a monitor says of runs it learned from is surer
    than what it will say of others. An interval ends with its upper cut: (low, high].
    maps: from the monitor's logits to its risks, imminent and outcome; risks are cut, of whatever scale logits are.
    cuts: float32, rising, of log-odds of risks; logit_cuts: the same of the monitor's logits.
    """

    def __init__(self, material: Material, maps: tuple[RiskMap, RiskMap] = (Platt(1.0, 0.0), Platt(1.0, 0.0))) -> None:
        odds = log_odds(material.teacher[steps_of(material.corpus, material.pool)])
        self.cuts = [
            np.unique(np.quantile(odds[:, i], np.arange(1, n) / n).astype(np.float32)) for i, n in enumerate(_INTERVALS)
        ]
        self.logit_cuts = [_before(map_, cuts) for map_, cuts in zip(maps, self.cuts, strict=True)]

    @property
    def n_symbols(self) -> int:
        """All pairs of intervals."""
        return (len(self.cuts[0]) + 1) * (len(self.cuts[1]) + 1)

    def of(self, odds: NDArray[np.float64]) -> NDArray[np.int32]:
        """Symbols of log-odds of risks (steps, 2)."""
        return self._of(odds, self.cuts)

    def of_logits(self, logits: NDArray[np.float64]) -> NDArray[np.int32]:
        """Symbols of the monitor's logits (steps, 2)."""
        return self._of(logits, self.logit_cuts)

    def _of(self, values: NDArray[np.float64], cuts: Sequence[NDArray[np.float32]]) -> NDArray[np.int32]:
        parts = [np.searchsorted(c, values[:, i].astype(np.float32), side="left") for i, c in enumerate(cuts)]
        return (parts[0] * (len(cuts[1]) + 1) + parts[1]).astype(np.int32)

    def glosses(self) -> tuple[str, ...]:
        """Each symbol in words."""
        return tuple(
            f"imminent risk level {i + 1} of {len(self.cuts[0]) + 1}, outcome {o + 1} of {len(self.cuts[1]) + 1}"
            for i in range(len(self.cuts[0]) + 1)
            for o in range(len(self.cuts[1]) + 1)
        )

    def model(self, step_model: bytes) -> bytes:
        """The compiled step with these intervals as its symbol; float32 logits are cut as `of_logits` does."""
        model = onnx.load_model_from_string(step_model)
        graph = model.graph
        kept = [node for node in graph.node if "symbol" not in node.output]
        del graph.node[:]
        graph.node.extend(kept)
        counts = []
        for i, cuts in enumerate(self.logit_cuts):
            graph.initializer.append(numpy_helper.from_array(cuts, f"interval_cuts_{i}"))
            graph.initializer.append(numpy_helper.from_array(np.array([i]), f"interval_risk_{i}"))
            graph.node.append(helper.make_node("Gather", ["logits", f"interval_risk_{i}"], [f"interval_{i}"]))
            graph.node.append(helper.make_node("Greater", [f"interval_{i}", f"interval_cuts_{i}"], [f"above_{i}"]))
            graph.node.append(helper.make_node("Cast", [f"above_{i}"], [f"counted_{i}"], to=onnx.TensorProto.INT64))
            graph.node.append(helper.make_node("ReduceSum", [f"counted_{i}"], [f"level_{i}"], keepdims=0))
            counts.append(f"level_{i}")
        graph.initializer.append(numpy_helper.from_array(np.array(len(self.cuts[1]) + 1), "interval_width"))
        graph.node.append(helper.make_node("Mul", [counts[0], "interval_width"], ["row_of_levels"]))
        graph.node.append(helper.make_node("Add", ["row_of_levels", counts[1]], ["symbol"]))
        onnx.checker.check_model(model, full_check=True)
        data: bytes = model.SerializeToString(deterministic=True)
        return data


def _before(risk_map: RiskMap, cuts: NDArray[np.float32]) -> NDArray[np.float32]:
    """The logits that a map takes to these log-odds; by bisection, for every map rises. Within +-`_FAR`."""
    low, high = np.full(len(cuts), -_FAR), np.full(len(cuts), _FAR)
    wanted = expit(cuts.astype(np.float64))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        below = apply_map(risk_map, middle) <= wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return low.astype(np.float32)
