"""From a step and its context to a symbol of an automaton's alphabet: deterministic maps, as data.

A map sees what a live session has after the step is in: the tool's name, the sparse row of the step's text, the context
vector and the behaviours that hold. Nothing of it is fitted here; whoever learned the alphabet hands over the finished
map.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from prefixguard.behaviours import NONE_HELD
from prefixguard.bundle.behaviour_map import behaviour_map_from_json
from prefixguard.bundle.strict_json import exactly, listed, numbers, wholes
from prefixguard.context import FEATURES, N_FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError, UsageError

#: Most symbols of an alphabet, nodes and scores of a tree, and vocabulary columns that a tree can name.
MOST_SYMBOLS = 1 << 16
MOST_NODES = 1 << 16
MOST_SCORES = 16
MOST_COLUMNS = 1 << 20

_FARTHEST = 1 << 32  # what no feature, child or column reaches

_PLACES = {feature.name: place for place, feature in enumerate(FEATURES)}
_IS_ERROR, _CALL_SEEN, _MESSAGE_SEEN = (_PLACES[name] for name in ("is_error", "call_seen", "message_seen"))


class SymbolMap(Protocol):
    """What every map offers."""

    @property
    def n_symbols(self) -> int:
        """K, symbols of the alphabet."""

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """The symbol of a step, in [0, K).

        tool: the record's. row: of the step's text. context: float32 (d,), after the step. held: the behaviours that
        hold at the step, as `behaviours.held` counts them.
        """

    def to_json(self) -> dict[str, Any]:
        """Plain JSON, with the map's name under `kind`."""


@dataclass(frozen=True, slots=True)
class TypedMap:
    """Tool x error x repeat: symbol = tool's position * 4 + error * 2 + repeat.

    tools: names of tools, each with its own four symbols; any other tool has the last four. `respond` (the agent
    speaks) and "" (no tool) are tools like any. error: this step failed. repeat: this very call or message was made
    before.

    >>> TypedMap(("find", "respond")).number("find", error=True, repeat=False), TypedMap(("find",)).n_symbols
    (2, 8)
    """

    tools: tuple[str, ...]
    _at: Mapping[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ConfigError unless the tools are different texts."""
        if not all(isinstance(tool, str) for tool in self.tools) or len(set(self.tools)) != len(self.tools):
            raise ConfigError("typed symbol map: tools must be different texts. Name each tool once.")
        object.__setattr__(self, "_at", {tool: 4 * place for place, tool in enumerate(self.tools)})
        _check_count("typed symbol map", self.n_symbols)

    @property
    def n_symbols(self) -> int:
        """Four a tool, and four for all others."""
        return 4 * (len(self.tools) + 1)

    def number(self, tool: str, *, error: bool, repeat: bool) -> int:
        """The symbol of a tool's step that failed or not, and repeats an earlier one or not."""
        return self._at.get(tool, 4 * len(self.tools)) + 2 * error + repeat

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """See `SymbolMap`."""
        symbol = self._at.get(tool, 4 * len(self.tools))
        if context.item(_IS_ERROR) > 0.0:
            symbol += 2
        if context.item(_CALL_SEEN) > 0.0 or context.item(_MESSAGE_SEEN) > 0.0:
            symbol += 1
        return symbol

    def to_json(self) -> dict[str, Any]:
        """See `SymbolMap`."""
        return {"kind": "typed", "tools": list(self.tools)}


@dataclass(frozen=True, slots=True, eq=False)
class WordScore:
    """What the words of a step say, as one number: the sum of the weights of its terms, times their TF-IDF.

    columns: int64 (m,), rising, vocabulary columns. weights: float64 (m,), finite.
    """

    columns: NDArray[np.int64]
    weights: NDArray[np.float64]
    _dense: NDArray[np.float64] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises ConfigError unless these are columns and their weights."""
        c, w = self.columns, self.weights
        if c.ndim != 1 or c.shape != w.shape or c.dtype.kind not in "iu" or len(c) == 0 or not np.isfinite(w).all():
            raise ConfigError("score of words: needs columns, and for each of them a weight that is a finite number.")
        if c[0] < 0 or c[-1] >= MOST_COLUMNS or (np.diff(c) <= 0).any():
            raise ConfigError(f"score of words: columns must rise from 0 and stay below {MOST_COLUMNS:,}.")
        dense = np.zeros(int(c[-1]) + 2)  # what lies beyond the last column is clipped to it, and weighs nothing
        dense[c] = w
        object.__setattr__(self, "_dense", dense)

    def __call__(self, row: SparseRow) -> float:
        """The score of a step's text, rounded to float32 as trees are grown; 0.0 for a step without known words."""
        return float(np.float32(self._dense.take(row.indices, mode="clip").dot(row.values)))


@dataclass(frozen=True, slots=True, eq=False)
class TreeMap:
    """A binary decision tree over context features and words; node 0 is the root. All arrays have one entry a node.

    feature: int (N,); >= 0: a context feature's position, or, from the number of features on, a score of words;
        -1 - c: vocabulary column c.
    threshold: float64 (N,); of context: at most this goes left, more goes right. Of words it is not looked at: absent
        from the step goes left, present goes right.
    left, right: int (N,); a child above its parent's number is a node, one below 0 is a leaf with symbol -1 - child.
    Without a node there is one symbol, 0. Several leaves may share a symbol.

    >>> tree = TreeMap.of([5, -3], [0.5, 0.0], [1, -1], [-3, -2])  # failed: 2; else, by column 2: absent 0, present 1
    >>> tree.n_symbols, tree.depth
    (3, 2)
    """

    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    scores: tuple[WordScore, ...] = ()
    n_symbols: int = field(init=False)
    depth: int = field(init=False)
    _nodes: tuple[tuple[int, float, int, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises ConfigError unless the arrays are one tree."""
        arrays = (self.feature, self.threshold, self.left, self.right)
        if any(a.ndim != 1 or len(a) != len(self.feature) for a in arrays) or len(self.feature) > MOST_NODES:
            raise ConfigError(f"symbol tree: needs four arrays of one length, at most {MOST_NODES:,} nodes.")
        if len(self.scores) > MOST_SCORES:
            raise ConfigError(f"symbol tree: {len(self.scores)} scores of words, {MOST_SCORES} are possible.")
        if any(a.dtype.kind not in "iu" for a in (self.feature, self.left, self.right)):
            raise ConfigError("symbol tree: features and children are whole numbers.")
        nodes = tuple(zip(*(a.tolist() for a in arrays), strict=True))
        object.__setattr__(self, "_nodes", nodes)
        object.__setattr__(self, "depth", _depth(nodes, N_FEATURES + len(self.scores)))
        leaves = [-1 - child for node in nodes for child in node[2:] if child < 0]
        object.__setattr__(self, "n_symbols", 1 + max(leaves, default=0))
        _check_count("symbol tree", self.n_symbols)

    @classmethod
    def of(cls, feature: Any, threshold: Any, left: Any, right: Any, scores: tuple[WordScore, ...] = ()) -> TreeMap:
        """The tree from any sequences of numbers."""
        whole = [np.array(a, dtype=np.int64) for a in (feature, left, right)]
        return cls(whole[0], np.array(threshold, dtype=np.float64), whole[1], whole[2], scores)

    @property
    def columns(self) -> tuple[int, ...]:
        """Vocabulary columns that the tree looks at, ascending."""
        scored = (column for score in self.scores for column in score.columns.tolist())
        return tuple(sorted({*(-1 - node[0] for node in self._nodes if node[0] < 0), *scored}))

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """See `SymbolMap`."""
        nodes, columns = self._nodes, None
        scored: dict[int, float] = {}  # a score costs more than all else, and one way may ask for it several times
        at = 0 if nodes else -1
        while at >= 0:
            feature, threshold, left, right = nodes[at]
            if feature >= 0:
                if feature < N_FEATURES:
                    value = context.item(feature)
                elif feature in scored:
                    value = scored[feature]
                else:
                    value = scored[feature] = self.scores[feature - N_FEATURES](row)
                at = left if value <= threshold else right
                continue
            if columns is None:  # one list for all questions is quicker than numpy's search for each
                columns = row.indices.tolist()
            place = bisect_left(columns, -1 - feature)
            at = right if place < len(columns) and columns[place] == -1 - feature else left
        return -1 - at

    def to_json(self) -> dict[str, Any]:
        """See `SymbolMap`."""
        return {
            "kind": "tree",
            "feature": self.feature.tolist(),
            "threshold": self.threshold.tolist(),
            "left": self.left.tolist(),
            "right": self.right.tolist(),
            "scores": [{"columns": s.columns.tolist(), "weights": s.weights.tolist()} for s in self.scores],
        }


@dataclass(frozen=True, slots=True)
class ModelMap:
    """The symbol is what the bundle's model.onnx says; its logits are not used."""

    n_symbols: int

    def __post_init__(self) -> None:
        """Raises ConfigError where there is no alphabet of that size."""
        _check_count("symbol map", self.n_symbols)

    def symbol(self, tool: str, row: SparseRow, context: NDArray[np.float32], held: bytes = NONE_HELD) -> int:
        """Raises UsageError: such a symbol depends on a state that the map does not have."""
        raise UsageError("The symbols of this map come from the bundle's model: ask the opened monitor for them.")

    def to_json(self) -> dict[str, Any]:
        """See `SymbolMap`."""
        return {"kind": "model", "n_symbols": self.n_symbols}


def symbol_map_from_json(document: Any) -> SymbolMap:
    """What `to_json` wrote. Raises ValueError (ConfigError is one) that says what is wrong."""
    if not isinstance(document, dict):
        raise ValueError("the symbol map is not an object")
    kind = document.get("kind")
    fields = {
        "typed": ["tools"], "tree": ["feature", "threshold", "left", "right", "scores"], "model": ["n_symbols"],
        "behaviours": ["symbols"],
    }  # fmt: skip
    if not isinstance(kind, str) or kind not in fields:
        raise ValueError(f"the symbol map's kind is {str(kind)[:40]!r}, known: {', '.join(fields)}")
    recorded = ["catalogue"] if kind == "behaviours" and "catalogue" in document else []
    exactly(document, ("kind", *recorded, *fields[kind]), "the symbol map")
    if kind == "model":
        return ModelMap(document["n_symbols"])
    if kind == "behaviours":
        return behaviour_map_from_json(document)
    if kind == "typed":
        return TypedMap(tuple(listed(document["tools"], "tools of the symbol map")))
    scores = listed(document["scores"], "scores of the symbol tree")
    if len(scores) > MOST_SCORES:  # each takes memory by its highest column, so they are counted before they are made
        raise ValueError(f"the symbol tree has {len(scores)} scores of words, {MOST_SCORES} are possible")
    feature, left, right = (
        wholes(document[name], f"{name} of the symbol tree", -_FARTHEST, _FARTHEST)
        for name in ("feature", "left", "right")
    )
    threshold = numbers(document["threshold"], "threshold of the symbol tree")
    return TreeMap.of(feature, threshold, left, right, tuple(_score_from_json(score) for score in scores))


def _score_from_json(document: Any) -> WordScore:
    exactly(document, ("columns", "weights"), "a score of words")
    columns = wholes(document["columns"], "columns of a score of words", -_FARTHEST, _FARTHEST)
    weights = numbers(document["weights"], "weights of a score of words")
    return WordScore(np.array(columns, dtype=np.int64), np.array(weights, dtype=np.float64))


def _depth(nodes: tuple[tuple[int, float, int, int], ...], n_features: int) -> int:
    """Tests on the longest way to a leaf; ConfigError unless the nodes are one tree."""
    n, level = len(nodes), [0] * len(nodes)
    if n:
        level[0] = 1
    for at, (feature, threshold, left, right) in enumerate(nodes):
        if not -MOST_COLUMNS <= feature < n_features:
            raise ConfigError(f"symbol tree: node {at} asks for feature {feature}, there are {n_features}.")
        if not math.isfinite(threshold):
            raise ConfigError(f"symbol tree: the threshold of node {at} is not a finite number.")
        if level[at] == 0:
            raise ConfigError(f"symbol tree: no way leads to node {at}.")
        for child in (left, right):
            if child >= n or 0 <= child <= at:
                raise ConfigError(f"symbol tree: child {child} of node {at} is no later node of {n}.")
            if child > 0:
                if level[child]:
                    raise ConfigError(f"symbol tree: two ways lead to node {child}.")
                level[child] = level[at] + 1
    return max(level, default=0)


def _check_count(what: str, n: int) -> None:
    if type(n) is not int or not 1 <= n <= MOST_SYMBOLS:
        raise ConfigError(f"{what}: has {str(n)[:20]} symbols; 1 to {MOST_SYMBOLS:,} are possible.")
