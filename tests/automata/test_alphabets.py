"""Each alphabet ends as one map, and what learners saw is what that map says of the same steps."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lab_export import material_of

from prefixguard.automata.alphabets import ALPHABETS, OF_MODEL, Alphabet, fit_alphabet
from prefixguard.automata.alphabets.behaviour_symbols import ASKED
from prefixguard.automata.alphabets.tree import BOTH_RISKS, TreeSteps, grow
from prefixguard.automata.alphabets.tree_words import SHORT, explain, name_leaves, reads_history, repeats, say, ways
from prefixguard.automata.alphabets.tree_words import SplitTest as Asked
from prefixguard.automata.material import Material
from prefixguard.behaviours import BY_NAME
from prefixguard.behaviours import PLACES as BEHAVIOURS
from prefixguard.bundle import BehaviourMap, ModelMap, SymbolMap, TreeMap, TypedMap
from prefixguard.bundle.symbol_map import symbol_map_from_json
from prefixguard.context import FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.errors import ConfigError
from prefixguard.learn import steps_of

PLACES = {feature.name: place for place, feature in enumerate(FEATURES)}
FITTED = [name for name in ALPHABETS if name not in OF_MODEL]


@pytest.fixture(scope="module")
def material(lab_file: Path, lab_bundle: Path) -> Material:
    return material_of(lab_file, lab_bundle)


@pytest.fixture(scope="module")
def fitted(material: Material) -> dict[str, Alphabet]:
    return {name: fit_alphabet(name, material, material.pool, 24) for name in FITTED}


def by_map(symbol_map: SymbolMap, material: Material, steps: np.ndarray) -> list[int]:
    """What a session would say of these steps."""
    out = []
    for step in steps.tolist():
        a, b = material.matrix.indptr[step : step + 2]
        row = SparseRow(material.matrix.indices[a:b].astype(np.int64), material.matrix.data[a:b])
        numbers, held = material.corpus.context[step], material.corpus.held_at(step)
        out.append(symbol_map.symbol(material.tools[step], row, numbers, held))
    return out


@pytest.mark.parametrize("name", FITTED)
def test_symbols_are_the_maps(name: str, fitted: dict[str, Alphabet], material: Material) -> None:
    """Through the map as a bundle keeps it, on the pool and on new runs."""
    found = fitted[name]
    written = symbol_map_from_json(found.map.to_json())
    inside = steps_of(material.corpus, material.pool)
    others = np.setdiff1d(np.arange(len(material.labels)), inside)
    assert by_map(written, material, others) == found.symbols[others].tolist()
    same = np.mean(np.array(by_map(written, material, inside)) == found.symbols[inside])
    assert same == 1
    assert len(np.unique(found.symbols[inside])) > 5


@pytest.mark.parametrize("name", FITTED)
def test_every_symbol_is_in_words(name: str, fitted: dict[str, Alphabet], material: Material) -> None:
    found = fitted[name]
    k = found.map.n_symbols
    assert found.name == name
    assert found.symbols.dtype == np.int32 and found.symbols.min() >= 0 and found.symbols.max() < k
    assert len(found.glosses) == len(found.conditions) == len(found.reads_history) == k
    assert all(found.glosses) and all(found.conditions)
    assert len(set(found.conditions)) == k


@pytest.mark.parametrize("name", FITTED)
def test_nothing_but_the_named_runs_is_fitted_to(name: str, fitted: dict[str, Alphabet], material: Material) -> None:
    """Labels of all runs, and the teacher of all others, made up."""
    rng = np.random.default_rng(1)
    teacher = rng.random(material.teacher.shape, dtype=np.float32)
    inside = steps_of(material.corpus, material.pool)
    teacher[inside] = material.teacher[inside]
    changed = replace(material, labels=rng.random(material.labels.shape, dtype=np.float32), teacher=teacher)
    again = fit_alphabet(name, changed, material.pool, 24)
    assert again.map.to_json() == fitted[name].map.to_json()
    np.testing.assert_array_equal(again.symbols, fitted[name].symbols)


def test_the_budget_bounds_trees_over_the_run_so_far(fitted: dict[str, Alphabet], material: Material) -> None:
    assert 5 < fitted["tree-context"].map.n_symbols <= 23
    assert fit_alphabet("tree-context", material, material.pool, 2).map.n_symbols == 2


def test_typed_takes_the_tools_that_are_frequent_in_training(material: Material) -> None:
    found = fit_alphabet("typed", material, material.pool, 24)
    assert isinstance(found.map, TypedMap)
    counts = dict.fromkeys(material.tools, 0)
    for step in steps_of(material.corpus, material.pool).tolist():
        counts[material.tools[step]] += 1
    assert [counts[t] for t in found.map.tools] == sorted(counts.values(), reverse=True)[: len(found.map.tools)]
    assert len(found.map.tools) <= 11
    assert found.reads_history == tuple(bool(k % 2) for k in range(found.map.n_symbols))
    few = fit_alphabet("typed", material, material.pool[:1], 24)
    assert set(few.map.tools) == {material.tools[s] for s in steps_of(material.corpus, material.pool[:1]).tolist()}  # type: ignore[attr-defined]


def test_typed_says_error_and_repeat(material: Material) -> None:
    found = fit_alphabet("typed", material, material.pool, 24)
    context = material.corpus.context
    error = context[:, PLACES["is_error"]] > 0
    again = (context[:, PLACES["call_seen"]] > 0) | (context[:, PLACES["message_seen"]] > 0)
    assert error.any() and again.any()
    for bit, wanted, words in ((2, error, "the step failed"), (1, again, "was made before")):
        np.testing.assert_array_equal(found.symbols & bit > 0, wanted)
        assert [words in c for c in found.conditions] == [k & bit > 0 for k in range(len(found.conditions))]


def test_behaviours_are_the_leaves_of_a_tree_said_by_what_holds(
    fitted: dict[str, Alphabet], material: Material
) -> None:
    """What a symbol asks for is what holds on the way to a leaf, or what a step is; the first that holds is taken."""
    held, found = material.corpus.held, fitted["behaviours"].map
    assert held is not None and isinstance(found, BehaviourMap)
    asked = held[:, [BEHAVIOURS[name] for name in ASKED]] > 0
    tree = grow(asked, TreeSteps.of(material, material.pool), 23, BOTH_RISKS)
    paths, inner = tree.decision_path(asked.astype(np.float32)), tree.tree_.feature
    on_ways = {
        frozenset(ASKED[inner[node]] for node in paths[step].indices if inner[node] >= 0 and asked[step, inner[node]])
        for step in range(len(asked))
    }
    several = {frozenset(name for name, _ in symbol.asked) for symbol in found.symbols if len(symbol.asked) > 1}
    assert len(several) > 3 and several <= on_ways
    for step, symbol in enumerate(fitted["behaviours"].symbols.tolist()):
        holds = [all(held[step, BEHAVIOURS[name]] for name, _ in one.asked) for one in found.symbols]
        assert symbol == (holds.index(True) if any(holds) else len(found.symbols))
    assert not {name for symbol in found.symbols for name, _ in symbol.asked} - set(ASKED)


def test_no_symbol_of_behaviours_asks_how_often(fitted: dict[str, Alphabet], material: Material) -> None:
    """With other counts of what holds, the same symbols; what failed or was repeated stands before how long the same
    tool was used."""
    found, held = fitted["behaviours"].map, material.corpus.held
    assert isinstance(found, BehaviourMap) and held is not None and held.max() > 3
    assert {count for symbol in found.symbols for _, count in symbol.asked} == {1}
    rng = np.random.default_rng(0)
    counts = np.where(held > 0, rng.integers(1, 256, held.shape), 0).astype(np.uint8)
    other = replace(material, corpus=replace(material.corpus, held=counts))
    assert fit_alphabet("behaviours", other, material.pool, 24).map == found
    wrong = {name for name, of in BY_NAME.items() if of.kind == "fault"} | {"call_failed", "failed_tool_again"}
    names = [{name for name, _ in symbol.asked} for symbol in found.symbols]
    last = max(at for at, of in enumerate(names) if of & wrong)
    assert all(of & {*wrong, "result_seen"} for of in names[: last + 1])
    assert all(not names[a] < names[b] for a in range(len(names)) for b in range(a + 1, len(names)))


def test_trees_over_the_run_count_to_three(material: Material) -> None:
    """Though the risk jumps where a tool was used six times in a row: no symbol tells five from seven."""
    context = material.corpus.context.copy()
    at = PLACES["same_tool_in_a_row"]
    context[:, at] = np.random.default_rng(0).integers(0, 9, len(context))
    risk = (context[:, at] / 10).astype(np.float32)
    told = replace(material, corpus=replace(material.corpus, context=context), teacher=np.stack((risk, risk), axis=1))
    found = fit_alphabet("tree-context", told, material.pool, 24)
    assert isinstance(found.map, TreeMap)
    asked = [t for f, t in zip(found.map.feature.tolist(), found.map.threshold.tolist(), strict=True) if f == at]
    assert max(asked) == 2.5
    assert by_map(found.map, told, np.arange(len(context))) == found.symbols.tolist()


def test_trees_over_the_run_never_ask_how_long_it_is(fitted: dict[str, Alphabet], material: Material) -> None:
    """Nor for words: with all that grows with every step made up, the same symbols."""
    found = fitted["tree-context"].map
    assert isinstance(found, TreeMap) and found.columns == ()
    context = material.corpus.context.copy()
    names = ("step", "log_step", "calls", "messages", "log_vocabulary", "messages_in_a_row")
    lengths = [PLACES[name] for name in names]
    context[:, lengths] = np.random.default_rng(0).random((len(context), len(lengths)), dtype=np.float32) * 9
    other = replace(material, corpus=replace(material.corpus, context=context))
    every = np.arange(len(material.labels))
    assert by_map(found, other, every) == fitted["tree-context"].symbols.tolist()
    assert fit_alphabet("tree-context", other, material.pool, 24).map.to_json() == found.to_json()


def test_steps_look_at_the_step_alone(fitted: dict[str, Alphabet], material: Material) -> None:
    """Everything of the past changed but whether the step repeats: the same symbols."""
    found = fitted["steps"].map
    assert isinstance(found, TreeMap)
    own = ("is_message", "is_error", "size_arguments", "size_action", "size_result", "size_observation")
    kept = [PLACES[name] for name in own]
    once = [PLACES[name] for name in ("call_seen", "message_seen")]
    assert {f for f in found.feature.tolist() if f >= 0} <= {*kept, *once}
    context = np.random.default_rng(0).random(material.corpus.context.shape, dtype=np.float32) * 9
    context[:, kept] = material.corpus.context[:, kept]
    context[:, once] = np.where(material.corpus.context[:, once] > 0, 7, 0)
    other = replace(material, corpus=replace(material.corpus, context=context))
    every = np.arange(len(material.labels))
    assert by_map(found, other, every) == fitted["steps"].symbols.tolist()


def test_steps_know_whether_a_call_repeats_not_how_often(material: Material) -> None:
    """Though the risk hangs on how often: at the third time it jumps."""
    context = material.corpus.context.copy()
    at = PLACES["call_seen"]
    context[:, at] = np.random.default_rng(0).integers(0, 5, len(context))
    risk = np.where(context[:, at] >= 3, 0.9, 0.1).astype(np.float32)
    told = replace(material, corpus=replace(material.corpus, context=context), teacher=np.stack((risk, risk), axis=1))
    found = fit_alphabet("steps", told, material.pool, 24)
    assert isinstance(found.map, TreeMap)
    asked = [t for f, t in zip(found.map.feature.tolist(), found.map.threshold.tolist(), strict=True) if f == at]
    assert asked and all(0 <= threshold < 1 for threshold in asked)
    assert by_map(found.map, told, np.arange(len(context))) == found.symbols.tolist()
    assert any(found.reads_history) and not all(found.reads_history)


def test_symbols_that_look_at_the_past_say_so(fitted: dict[str, Alphabet]) -> None:
    """`steps` where it finds a repeat; `tree-context` wherever it asks for more than the step."""
    for name, asks in (("steps", repeats), ("tree-context", reads_history)):
        found = fitted[name]
        expected = tuple(any(asks(test) for test in way) for way in ways(found.map))  # type: ignore[arg-type]
        assert found.reads_history == expected
    assert any(fitted["tree-context"].reads_history)


def test_alphabets_of_a_model_have_all_the_symbols_that_it_can_give(material: Material) -> None:
    symbols = np.zeros(len(material.labels), dtype=np.int32)
    symbols[3] = 2
    given = {
        "quantized": Alphabet.of_model("quantized", symbols, 5, tuple("abcde")),
        "gumbel": Alphabet.of_model("gumbel", symbols, 4),
    }
    found = fit_alphabet("quantized", material, material.pool, 24, given)
    assert found.map == ModelMap(5)
    assert found.glosses == tuple("abcde") and found.conditions == ("",) * 5 and found.reads_history == (True,) * 5
    assert fit_alphabet("gumbel", material, material.pool, 24, given).glosses == ("",) * 4


def test_unknown_and_missing_alphabets(material: Material) -> None:
    with pytest.raises(ConfigError, match=r"^alphabet 'words': choose one of behaviours, tree-context,"):
        fit_alphabet("words", material, material.pool, 24)
    with pytest.raises(ConfigError, match=r"^alphabet 'gumbel': its symbols come from a monitor's model"):
        fit_alphabet("gumbel", material, material.pool, 24)


def test_too_few_steps_leave_one_symbol(material: Material) -> None:
    shortest = material.pool[np.argsort(material.corpus.lengths[material.pool], kind="stable")[:2]]
    assert material.corpus.lengths[shortest].sum() < 60  # no two leaves of 30
    for name in ("tree-context", "steps"):
        found = fit_alphabet(name, material, shortest, 24)
        assert found.map.n_symbols == 1
        assert set(found.symbols.tolist()) == {0}


def test_ways_join_the_tests_on_one_feature_and_end_with_the_last() -> None:
    step, errors = PLACES["step"], PLACES["errors"]
    tree = TreeMap.of([step, errors, step], [4.5, 0.5, 9.5], [-1, -2, -3], [1, 2, -4])
    assert ways(tree) == [
        (Asked(step, -math.inf, 4.5),),
        (Asked(step, 4.5, math.inf), Asked(errors, -math.inf, 0.5)),
        (Asked(errors, 0.5, math.inf), Asked(step, 4.5, 9.5)),
        (Asked(errors, 0.5, math.inf), Asked(step, 9.5, math.inf)),
    ]
    assert ways(TreeMap.of([], [], [], [])) == [()]


def test_a_very_deep_tree_is_in_words_too() -> None:
    n, step = 3000, PLACES["step"]
    tree = TreeMap.of([step] * n, [t + 0.5 for t in range(n)], [-1 - i for i in range(n)], [*range(1, n), -1 - n])
    assert ways(tree)[n - 1] == (Asked(step, n - 1.5, n - 0.5),)


INF = math.inf
REPEATS = "share of steps so far that were repeats"


@pytest.mark.parametrize(
    ("feature", "low", "high", "full", "short"),
    [
        ("errors", 1.5, INF, "failed steps so far >= 2", "failed steps so far >= 2"),
        ("errors", -INF, 2.5, "failed steps so far <= 2", "failed steps so far <= 2"),
        ("errors", -INF, 0.5, "failed steps so far = 0", "failed steps so far = 0"),
        ("errors", 1.5, 2.5, "failed steps so far = 2", "failed steps so far = 2"),
        ("errors", 1.0, 3.0, "failed steps so far 2 to 3", "failed steps so far 2 to 3"),
        ("is_error", 0.5, INF, "this step failed", "this step failed"),
        ("is_error", -INF, 0.5, "this step did not fail", "this step did not fail"),
        ("repeat_rate", 0.000753, INF, f"{REPEATS}: any (> 0.0753 %)", "share of repeats so far: any"),
        (
            *("repeat_rate", -INF, 0.000753),
            *(f"{REPEATS}: next to none (<= 0.0753 %)", "share of repeats so far: next to none"),
        ),
        ("repeat_rate", 0.000753, 0.4, f"{REPEATS} 0.0753 to 40 %", "share of repeats so far 0.0753 to 40 %"),
        ("tool_entropy", 1.0, 1.58496, "spread of calls over tools 1 to 1.58 bits", "spread over tools 1 to 1.58"),
        # Sizes are said as they are counted, not as they are kept, which is as a logarithm.
        ("size_result", 0, 10.5, "length of the result 1 to 10 characters", "length of result 1 to 10"),
        ("size_result", 10.5, INF, "length of the result >= 11 characters", "length of result >= 11"),
        ("size_result", 0, 1.5, "length of the result = 1 character", "length of result = 1"),
    ],
)
def test_tests_in_words(feature: str, low: float, high: float, full: str, short: str) -> None:
    if FEATURES[PLACES[feature]].kind == "logarithm":
        low, high = math.log1p(low), math.log1p(high)
    asked = Asked(PLACES[feature], low, high)
    assert (say(asked, ()), say(asked, (), short=True)) == (full, short)


def test_a_typical_length_below_one_character_is_said_as_what_it_means() -> None:
    name, at = "typical length of observations so far", PLACES["mean_size_observation"]
    low, high = Asked(at, -math.inf, math.log1p(0.624)), Asked(at, math.log1p(0.624), math.inf)
    assert say(low, ()) == f"{name} <= 0.624 characters (mostly empty)"
    assert say(high, ()) == f"{name} > 0.624 characters (not mostly empty)"
    assert say(low, (), short=True) == "observations so far: mostly empty"
    assert say(Asked(at, -math.inf, math.log1p(1234.4)), ()) == f"{name} <= 1234 characters"
    assert say(Asked(at, math.log1p(0.624), math.log1p(17)), ()) == f"{name} 0.624 to 17 characters"


def test_every_feature_has_a_short_name_of_its_own() -> None:
    assert SHORT.keys() == PLACES.keys()
    steps = {SHORT["step"], SHORT["log_step"]}  # the same number, kept in two ways
    assert len(steps) == 1 and len(set(SHORT.values())) == len(SHORT) - 1
    for feature in FEATURES:
        for low, high in ((-math.inf, 0.5), (0.5, math.inf)):
            asked = Asked(PLACES[feature.name], low, high)
            assert len(say(asked, (), short=True)) <= 42 and ", in" not in say(asked, ())
            assert len(say(asked, (), short=True)) <= len(say(asked, ()))


def test_names_are_short_and_begin_with_what_was_asked_last() -> None:
    way = (Asked(PLACES["errors"], 1.5, math.inf), Asked(-1, 0.5, math.inf), Asked(PLACES["is_error"], 0.5, math.inf))
    terms = ("result:not found",)
    assert name_leaves([way], terms) == ("this step failed, `not found` in the result",)
    assert name_leaves([way], ("result:" + "x" * 50,)) == ("this step failed",)
    assert name_leaves([()], ()) == ("any step",)
    assert not repeats(Asked(-1, 0.5, math.inf)) and not reads_history(Asked(-1, 0.5, math.inf))
    assert not repeats(Asked(PLACES["call_seen"], -math.inf, 0.5)) and repeats(Asked(PLACES["call_seen"], 0.5, 2.0))


def test_leaves_that_end_alike_are_told_apart_by_the_way_to_them() -> None:
    """Two branches that ask the same last: their names reach back to where they part."""
    early, late = Asked(PLACES["step"], -math.inf, 12.5), Asked(PLACES["step"], 12.5, math.inf)
    middle = [Asked(PLACES["messages"], -math.inf, 5.5), Asked(PLACES["calls"], 3.5, math.inf)]
    last = [Asked(PLACES["repeated_calls"], -math.inf, 0.5), Asked(PLACES["repeated_calls"], 0.5, math.inf)]
    found = [(first, *middle, end) for first in (early, late) for end in last]
    assert name_leaves(found, ()) == (
        "repeated calls so far = 0, tool calls so far >= 4, step <= 12",
        "repeated calls so far >= 1, tool calls so far >= 4, step <= 12",
        "repeated calls so far = 0, tool calls so far >= 4, step >= 13",
        "repeated calls so far >= 1, tool calls so far >= 4, step >= 13",
    )


def test_ranges_that_overlap_are_told_apart_by_another_test() -> None:
    """A step may lie in both, so neither name says which of them it is."""
    early, late = Asked(PLACES["step"], -math.inf, 12.5), Asked(PLACES["step"], 12.5, math.inf)
    apart, near = Asked(PLACES["errors"], 1.5, 4.5), Asked(PLACES["errors"], 2.5, 4.5)
    other = Asked(PLACES["calls"], 3.5, math.inf)
    names = name_leaves([(early, other, apart), (late, other, near)], ())
    assert names == (
        "failed steps so far 2 to 4, tool calls so far >= 4, step <= 12",
        "failed steps so far 3 to 4, tool calls so far >= 4, step >= 13",
    )
    beside = Asked(PLACES["errors"], 4.5, 9.5)
    names = name_leaves([(early, other, apart), (early, other, beside)], ())
    calls = "tool calls so far >= 4"
    assert names == (f"failed steps so far 2 to 4, {calls}", f"failed steps so far 5 to 9, {calls}")


def test_leaves_that_rounding_makes_alike_have_their_number_in_front() -> None:
    at = PLACES["error_rate"]
    found = [(Asked(at, -math.inf, 0.25001),), (Asked(at, -math.inf, 0.25002),), (Asked(at, 0.3, math.inf),)]
    same = "share of failed steps so far <= 25 %"
    assert name_leaves(found, ()) == (f"0: {same}", f"1: {same}", "share of failed steps so far > 30 %")


def test_no_two_symbols_of_a_tree_have_the_same_name(fitted: dict[str, Alphabet]) -> None:
    for name in ("tree-context", "steps"):
        assert len(set(fitted[name].glosses)) == len(fitted[name].glosses) > 3


def test_what_does_not_explain_itself_is_explained_once(fitted: dict[str, Alphabet]) -> None:
    said = explain(["typical length of results so far <= 9 characters", "typical length of results so far = 0"])
    assert len(said) == 1 and said[0].startswith("Typical length")
    assert explain(["has word `recent` in the result", "failed steps so far = 0", ""]) == ()
    assert [s.partition(" ")[0] for s in explain(["share of steps: any (> 0.1 %)"])] == ["Any:"]
    of_tree = " ".join(explain(fitted["tree-context"].conditions))
    assert ("geometric mean" in of_tree) == any("typical length" in c for c in fitted["tree-context"].conditions)
