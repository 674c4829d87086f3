"""Whether the attributes of a TreeEnsembleRegressor are trees: what runs them follows their numbers without a look.

A child that is not there, a ring, a feature beyond the row or a chain of ten thousand nodes would be read outside its
memory, walked for ever or end the process. Source: ai.onnx.ml opset 3.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Most nodes on a way to a leaf.
MOST_DEPTH = 256
#: The attributes that hold the nodes and the leaves of all trees, a list each.
NODE_COLUMNS = tuple(
    f"nodes_{name}" for name in ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids")
)
LEAF_COLUMNS = tuple(f"target_{name}" for name in ("treeids", "nodeids", "ids", "weights"))


def ensemble_work(attributes: Mapping[str, Any], n_features: int) -> tuple[int, int]:
    """Targets, and operations for one row. Raises ValueError unless every tree is one.

    Nodes stand tree by tree, numbered from 0 in each, children after their parent.
    """
    tree, number, branches, feature, value, if_true, if_false = (_list(attributes, name) for name in NODE_COLUMNS)
    leaf_tree, leaf_number, target, weight = (_list(attributes, name) for name in LEAF_COLUMNS)
    n, targets = len(tree), attributes.get("n_targets")
    if type(targets) is not int or not 1 <= targets <= 16 or not n:
        raise ValueError("n_targets is not from 1 to 16, or there is no tree")
    whole = (tree, number, feature, if_true, if_false, leaf_tree, leaf_number, target)
    if any(a.dtype != np.int64 for a in whole) or branches.dtype != np.bool_:
        raise ValueError("a list of the trees is of another type than it should be")
    if any(a.dtype != np.float32 or not np.isfinite(a).all() for a in (value, weight)):
        raise ValueError("thresholds and weights of the trees are finite numbers")
    if any(len(a) != n for a in (number, branches, feature, value, if_true, if_false)):
        raise ValueError("the lists of the trees' nodes differ in length")
    if any(len(a) != len(target) for a in (leaf_tree, leaf_number, weight)):
        raise ValueError("the lists of the trees' leaves differ in length")
    first = np.flatnonzero(np.concatenate(([True], tree[1:] != tree[:-1])))  # where each tree begins
    size = np.diff(np.append(first, n))
    if (np.diff(tree[first]) <= 0).any() or (number != np.arange(n) - np.repeat(first, size)).any():
        raise ValueError("nodes do not stand tree by tree in the order of their numbers")
    at = np.flatnonzero(branches)
    if (feature[at] < 0).any() or (feature[at] >= n_features).any():
        raise ValueError(f"a node asks for a feature that is none of {n_features}")
    last = np.repeat(size, size)[at]
    children = np.concatenate((if_true[at], if_false[at]))
    if (children <= np.tile(number[at], 2)).any() or (children >= np.tile(last, 2)).any():
        raise ValueError("a child of a node is no later node of its tree")
    places = children + np.tile(np.repeat(first, size)[at], 2)
    if len(places) != n - len(first) or np.bincount(places, minlength=1).max() > 1:
        raise ValueError("a node has no way or two ways leading to it")
    which = np.minimum(np.searchsorted(tree[first], leaf_tree), len(first) - 1)
    inside = (tree[first][which] == leaf_tree) & (leaf_number >= 0) & (leaf_number < size[which])
    has_weight = np.zeros(n, np.bool_)
    has_weight[(first[which] + leaf_number)[inside]] = True
    if not inside.all() or not np.array_equal(has_weight, ~branches):
        raise ValueError("a weight belongs to no leaf, or a leaf has none")
    if (target < 0).any() or (target >= targets).any():
        raise ValueError(f"a weight is for a target that is none of {targets}")
    depth = _depth(first, at, places)
    return targets, len(first) * depth


def _list(attributes: Mapping[str, Any], name: str) -> NDArray[Any]:
    value = attributes.get(name)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"{name} is missing")
    return value


def _depth(first: NDArray[np.int64], parents: NDArray[np.int64], places: NDArray[np.int64]) -> int:
    """Nodes on the longest way, level by level through all trees at once. Raises ValueError beyond `MOST_DEPTH`."""
    n = len(first) + len(places)
    below = np.full((n, 2), -1, dtype=np.int64)
    below[parents] = places.reshape(2, -1).T
    level, depth = first, 0
    while len(level):
        depth += 1
        if depth > MOST_DEPTH:
            raise ValueError(f"a tree is deeper than {MOST_DEPTH} nodes")
        level = below[level].ravel()
        level = level[level >= 0]
    return depth
