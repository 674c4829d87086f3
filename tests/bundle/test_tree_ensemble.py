"""Trees of a model are trees: onnxruntime follows their numbers without looking where they lead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from prefixguard.bundle.tree_ensemble import MOST_DEPTH, ensemble_work

FEATURES = 4


def ensemble(**changes: Any) -> dict[str, Any]:
    """Two trees: a root with a leaf and a node of two leaves; and a single leaf."""
    found: dict[str, Any] = {
        "n_targets": 2,
        "nodes_treeids": np.array([0, 0, 0, 0, 0, 7]),
        "nodes_nodeids": np.array([0, 1, 2, 3, 4, 0]),
        "nodes_modes": np.array([True, False, True, False, False, False]),
        "nodes_featureids": np.array([3, 0, 1, 0, 0, 0]),
        "nodes_values": np.zeros(6, np.float32),
        "nodes_truenodeids": np.array([1, 0, 3, 0, 0, 0]),
        "nodes_falsenodeids": np.array([2, 0, 4, 0, 0, 0]),
        "target_treeids": np.array([0, 0, 0, 7]),
        "target_nodeids": np.array([1, 3, 4, 0]),
        "target_ids": np.array([0, 1, 1, 0]),
        "target_weights": np.ones(4, np.float32),
    }
    return found | changes


def chain(depth: int) -> dict[str, Any]:
    """One tree of so many nodes on its longest way."""
    n = 2 * depth - 1
    branches = np.array([i % 2 == 0 and i < n - 1 for i in range(n)])
    numbers = np.arange(n)
    leaves = np.flatnonzero(~branches)
    return ensemble(
        nodes_treeids=np.zeros(n, np.int64),
        nodes_nodeids=numbers,
        nodes_modes=branches,
        nodes_featureids=np.zeros(n, np.int64),
        nodes_values=np.zeros(n, np.float32),
        nodes_truenodeids=np.where(branches, numbers + 1, 0),
        nodes_falsenodeids=np.where(branches, numbers + 2, 0),
        target_treeids=np.zeros(len(leaves), np.int64),
        target_nodeids=leaves,
        target_ids=np.zeros(len(leaves), np.int64),
        target_weights=np.zeros(len(leaves), np.float32),
    )


def test_trees_are_counted_with_their_depth() -> None:
    assert ensemble_work(ensemble(), FEATURES) == (2, 2 * 3)
    assert ensemble_work(chain(MOST_DEPTH), FEATURES) == (2, MOST_DEPTH)


def at(name: str, place: int, value: float) -> dict[str, Any]:
    array = ensemble()[name].copy()
    array[place] = value
    return {name: array}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (at("nodes_featureids", 0, FEATURES), "a feature that is none of 4"),
        (at("nodes_featureids", 0, -1), "a feature that is none of 4"),
        (at("nodes_truenodeids", 2, 0), "no later node of its tree"),
        (at("nodes_truenodeids", 2, 5), "no later node of its tree"),
        (at("nodes_falsenodeids", 0, 2**62), "no later node of its tree"),
        (at("nodes_falsenodeids", 0, 4), "no way or two ways"),
        (at("nodes_modes", 0, False), "no way or two ways"),
        (at("nodes_nodeids", 3, 9), "in the order of their numbers"),
        (at("nodes_treeids", 5, 0), "in the order of their numbers"),
        (at("nodes_treeids", 5, -7), "in the order of their numbers"),
        (at("target_ids", 0, 2), "a target that is none of 2"),
        (at("target_ids", 0, -1), "a target that is none of 2"),
        (at("target_nodeids", 0, 0), "a weight belongs to no leaf"),
        (at("target_nodeids", 0, 3), "a leaf has none"),
        (at("target_treeids", 3, 8), "a weight belongs to no leaf"),
        (at("nodes_values", 0, np.nan), "finite"),
        (at("target_weights", 0, np.inf), "finite"),
        ({"n_targets": 10**9}, "n_targets"),
        ({"nodes_values": np.zeros(5, np.float32)}, "differ in length"),
        ({"target_ids": np.zeros(5, np.int64)}, "differ in length"),
        ({"nodes_modes": np.zeros(6, np.int64)}, "of another type"),
        ({"nodes_treeids": 3}, "nodes_treeids is missing"),
        ({"nodes_treeids": np.empty(0, np.int64)}, "there is no tree"),
        (chain(MOST_DEPTH + 1), "deeper than 256 nodes"),
        (chain(50_000), "deeper than 256 nodes"),
    ],
)
def test_what_is_no_tree_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ensemble_work(ensemble(**changes), FEATURES)
