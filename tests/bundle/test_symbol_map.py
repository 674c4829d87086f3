"""Each map gives the symbol that its definition says, and what is no map is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tiny_automaton
import tiny_monitor

from prefixguard import context
from prefixguard.bundle import ModelMap, SymbolMap, TreeMap, TypedMap, WordScore
from prefixguard.bundle.symbol_map import MOST_COLUMNS, MOST_SCORES, MOST_SYMBOLS, symbol_map_from_json
from prefixguard.context import FEATURES, N_FEATURES
from prefixguard.encoder import SparseRow, tokenize
from prefixguard.errors import ConfigError, UsageError
from prefixguard.stepview import StepRecord, serialize

EMPTY = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))
PLACES = {feature.name: place for place, feature in enumerate(FEATURES)}


def row_of(columns: list[int]) -> SparseRow:
    values = np.linspace(0.2, 0.9, len(columns)).astype(np.float32)
    return SparseRow(np.array(sorted(columns), np.int64), values)


def test_typed_symbols_are_tool_error_repeat() -> None:
    """Through the real context: an order that fails, fails again, another tool, a message, the same message."""
    typed = TypedMap(("find", "respond", ""))
    steps = [
        ("find", "{1}", "", "ok", 0 + 0 + 0),
        ("find", "{2}", "", "error", 0 + 2 + 0),
        ("find", "{2}", "", "error", 0 + 2 + 1),
        ("pay", "{2}", "", "ok", 12 + 0 + 0),
        ("respond", "", "sorry", "ok", 4 + 0 + 0),
        ("respond", "", "sorry", "ok", 4 + 0 + 1),
        ("", "", "hm", "ok", 8 + 0 + 0),
    ]
    state = context.start()
    for i, (tool, arguments, action, status, symbol) in enumerate(steps, 1):
        record = StepRecord(i, "agent", "", tool, arguments, "", action, "x", status)
        numbers = context.update(state, record, tokenize(serialize(record)))
        assert typed.symbol(tool, EMPTY, numbers) == symbol, i
        assert typed.number(tool, error=status == "error", repeat=symbol % 2 == 1) == symbol
    assert typed.n_symbols == 16


def test_a_typed_map_without_tools_knows_error_and_repeat() -> None:
    numbers = np.zeros(N_FEATURES, np.float32)
    numbers[PLACES["is_error"]] = 1.0
    assert TypedMap(()).symbol("anything", EMPTY, numbers) == 2


def random_tree(rng: np.random.Generator, n: int) -> TreeMap:
    """n nodes; leaves numbered in the order in which they are met."""
    children: list[list[int | None]] = [[None, None]]
    while len(children) < n:
        free = [(p, side) for p, pair in enumerate(children) for side in (0, 1) if pair[side] is None]
        parent, side = free[int(rng.integers(len(free)))]
        children[parent][side] = len(children)
        children.append([None, None])
    leaf = 0
    for pair in children:
        for side in (0, 1):
            if pair[side] is None:
                leaf += 1
                pair[side] = -leaf
    feature = [
        (int(rng.integers(N_FEATURES)), -1 - int(rng.integers(8)), N_FEATURES + int(rng.integers(2)))[rng.integers(3)]
        for _ in range(n)
    ]
    scores = tuple(WordScore(np.array(c), rng.normal(size=len(c))) for c in ([0, 2, 5], [1, 6]))
    return TreeMap.of(feature, rng.normal(size=n), [p[0] for p in children], [p[1] for p in children], scores)


def descend(tree: TreeMap, at: int, row: SparseRow, numbers: Any) -> int:
    """The definition, word for word."""
    if at < 0:
        return -1 - at
    feature = int(tree.feature[at])
    if feature >= N_FEATURES:
        score = tree.scores[feature - N_FEATURES]
        weights = dict(zip(score.columns.tolist(), score.weights.tolist(), strict=True))
        terms = zip(row.indices.tolist(), row.values.tolist(), strict=True)
        right = np.float32(sum(weights.get(c, 0.0) * v for c, v in terms)) > float(tree.threshold[at])
    elif feature >= 0:
        right = float(numbers[feature]) > float(tree.threshold[at])
    else:
        right = (-1 - feature) in row.indices.tolist()
    return descend(tree, int((tree.right if right else tree.left)[at]), row, numbers)


@pytest.mark.parametrize("seed", range(30))
def test_a_tree_goes_where_its_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, int(rng.integers(6, 40)))
    met = set()
    for _ in range(200):
        numbers = rng.normal(size=N_FEATURES).astype(np.float32)
        row = row_of(rng.choice(8, int(rng.integers(0, 8)), replace=False).tolist())
        symbol = tree.symbol("tool", row, numbers)
        assert symbol == descend(tree, 0, row, numbers)
        assert 0 <= symbol < tree.n_symbols
        met.add(symbol)
    assert len(met) > 1
    again = symbol_map_from_json(json.loads(json.dumps(tree.to_json())))
    assert again.symbol("", row, numbers) == symbol
    assert again.to_json() == tree.to_json()


def test_a_number_on_the_threshold_goes_left() -> None:
    tree = TreeMap.of([0], [0.1], [-1], [-2])  # float32 of 0.1 lies above the double 0.1
    numbers = np.zeros(N_FEATURES, np.float32)
    for value, symbol in ((np.float32(0.1), 1), (np.nextafter(np.float32(0.1), np.float32(0)), 0)):
        numbers[0] = value
        assert tree.symbol("", EMPTY, numbers) == symbol
    numbers[0] = 0.5
    assert TreeMap.of([0], [0.5], [-1], [-2]).symbol("", EMPTY, numbers) == 0


def test_a_tree_without_a_node_has_one_symbol() -> None:
    tree = TreeMap.of([], [], [], [])
    assert (tree.n_symbols, tree.depth, tree.columns) == (1, 0, ())
    assert tree.symbol("", EMPTY, np.zeros(N_FEATURES, np.float32)) == 0
    assert symbol_map_from_json(tree.to_json()).n_symbols == 1


def test_what_a_tree_looks_at_is_known() -> None:
    tree = tiny_automaton.TREE
    assert [tiny_monitor.vocabulary().terms[c] for c in tree.columns] == ["result:error"]
    assert (tree.n_symbols, tree.depth) == (3, 2)


BAD_TREES = [
    (([0, 0], [0.0], [1, -1], [-2, -3]), "one length"),
    (([0], [0.0], [0], [-1]), "child 0 of node 0 is no later node"),
    (([0], [0.0], [1], [-1]), "child 1 of node 0 is no later node of 1"),
    (([0, 0], [0.0, 0.0], [1, 0], [-1, -2]), "child 0 of node 1"),
    (([0, 0], [0.0, 0.0], [-1, -2], [-3, -4]), "no way leads to node 1"),
    (([0, 0], [0.0, 0.0], [1, -1], [1, -2]), "two ways lead to node 1"),
    (([N_FEATURES], [0.0], [-1], [-2]), "asks for feature"),
    (([-(1 << 30)], [0.0], [-1], [-2]), "asks for feature"),
    (([0], [float("nan")], [-1], [-2]), "not a finite number"),
    (([0], [0.0], [-1], [-2], (WordScore(np.array([1]), np.ones(1)),) * (MOST_SCORES + 1)), "17 scores of words"),
    (([0], [0.0], [-1], [-1 << 40]), "symbols; 1 to"),
]


@pytest.mark.parametrize(("arrays", "said"), BAD_TREES)
def test_what_is_no_tree_is_refused(arrays: tuple[list[Any], ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TreeMap.of(*arrays)


@pytest.mark.parametrize(
    ("columns", "weights"),
    [([], []), ([1, 1], [0, 0]), ([2, 1], [0, 0]), ([-1], [0]), ([MOST_COLUMNS], [0]), ([1], [np.nan]), ([1], [1, 2])],
)
def test_a_wrong_score_of_words_is_refused(columns: list[int], weights: list[float]) -> None:
    with pytest.raises(ConfigError, match="score of words: "):
        WordScore(np.array(columns, np.int64), np.array(weights, np.float64))


def test_scores_of_words_are_bounded_before_they_are_made() -> None:
    """Thousands of scores over the last column would take gigabytes."""
    score = {"columns": [MOST_COLUMNS - 1], "weights": [1.0]}
    tree = TreeMap.of([N_FEATURES], [0.0], [-1], [-2], (WordScore(np.array([3]), np.ones(1)),)).to_json()
    assert symbol_map_from_json(tree).n_symbols == 2
    with pytest.raises(ValueError, match="10000 scores of words, 16 are possible"):
        symbol_map_from_json(tree | {"scores": [score] * 10_000})


def test_other_wrong_maps_are_refused() -> None:
    for tools in (("a", "a"), (1, 2), ("a", None)):
        with pytest.raises(ConfigError, match="tools must be different texts"):
            TypedMap(tools)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="symbols; 1 to"):
        TypedMap(tuple(map(str, range(MOST_SYMBOLS // 4))))
    for n in (0, -1, True, 2.0, MOST_SYMBOLS + 1):
        with pytest.raises(ConfigError, match="symbols; 1 to"):
            ModelMap(n)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="whole numbers"):
        TreeMap(np.zeros(1), np.zeros(1), np.array([-1]), np.array([-1]))  # type: ignore[arg-type]


def test_a_model_s_symbols_are_asked_of_the_model() -> None:
    with pytest.raises(UsageError, match="ask the opened monitor"):
        ModelMap(3).symbol("", EMPTY, np.zeros(N_FEATURES, np.float32))


@pytest.mark.parametrize("symbol_map", [TypedMap(("a", "\ud800", "")), ModelMap(16)])
def test_maps_round_trip_as_json(symbol_map: SymbolMap) -> None:
    assert symbol_map_from_json(json.loads(json.dumps(symbol_map.to_json()))) == symbol_map


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"kind": "typed"},
        {"kind": ["typed"], "tools": []},
        {"kind": "regex", "tools": []},
        {"kind": "typed", "tools": "abc"},
        {"kind": "typed", "tools": [["a"]]},
        {"kind": "typed", "tools": [], "more": 1},
        {"kind": "model", "n_symbols": "3"},
        {"kind": "model", "n_symbols": True},
        {"kind": "tree", "feature": [True], "threshold": [0], "left": [-1], "right": [-2], "scores": []},
        {"kind": "tree", "feature": [0], "threshold": ["0"], "left": [-1], "right": [-2], "scores": []},
        {"kind": "tree", "feature": [0.0], "threshold": [0], "left": [-1], "right": [-2], "scores": []},
        {"kind": "tree", "feature": [0], "threshold": [0], "left": [-1], "right": [-(10**30)], "scores": []},
        {"kind": "tree", "feature": [0], "threshold": [0], "left": [-1], "right": None, "scores": []},
        {"kind": "tree", "feature": [0], "threshold": [0], "left": [-1], "right": [-2]},
        {"kind": "tree", "feature": [0], "threshold": [0], "left": [-1], "right": [-2], "scores": [1]},
        {"kind": "tree", "feature": [46], "threshold": [0], "left": [-1], "right": [-2], "scores": []},
        *(
            {"kind": "tree", "feature": [0], "threshold": [0], "left": [-1], "right": [-2], "scores": [score]}
            for score in (
                {"columns": [1]},
                {"columns": [1], "weights": [True]},
                {"columns": [1], "weights": ["1"]},
                {"columns": [10**30], "weights": [1]},
                {"columns": [1.0], "weights": [1]},
                {"columns": {}, "weights": [1]},
                {"columns": [1], "weights": [1], "more": 1},
            )
        ),
    ],
)
def test_a_wrong_document_is_refused(document: Any) -> None:
    with pytest.raises(ValueError):
        symbol_map_from_json(document)
