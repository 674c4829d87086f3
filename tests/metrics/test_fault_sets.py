"""Fault sets: the worked example, say-yes-to-all, a plain definition on random rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.metrics import FaultRow, FaultSets, fault_set_figures, say_yes_to_all

MODES = [*(f"FM-1.{i}" for i in range(1, 6)), *(f"FM-2.{i}" for i in range(1, 7)), *(f"FM-3.{i}" for i in range(1, 4))]


def of_modes(run: str, gold: set[str], said: set[str] | None) -> FaultRow:
    return FaultRow(run, FaultSets.of(modes=gold), None if said is None else FaultSets.of(modes=said))


@pytest.mark.parametrize(
    ("classes", "macro", "words", "count"),
    [
        ("union", 1 / 3, "union of gold and predicted", 3),
        ("gold", 0.5, "gold only", 2),
        (MODES, 1 / 14, "fixed 14", 14),
    ],
)
def test_the_class_list_makes_the_macro_figure(classes: Any, macro: float, words: str, count: int) -> None:
    """One run right, one wrong: micro .50 whatever the list, macro .333, .50 or .071."""
    rows = [of_modes("1", {"FM-1.1"}, {"FM-1.1"}), of_modes("2", {"FM-1.2"}, {"FM-1.3"})]
    found = fault_set_figures(rows, "error", classes=classes, n_resamples=0)
    assert found.micro_f1 == 0.5
    assert found.macro_f1 == pytest.approx(macro)
    assert (found.class_list, found.classes) == (words, count)
    assert (found.hits, found.wrong, found.missed) == (1, 1, 1)


def test_to_say_yes_to_all_fourteen_is_worth_something() -> None:
    """With one mode a run: precision 1/14, recall 1, micro-F1 13.33 per cent."""
    rows = [of_modes(str(i), {MODES[i % 14]}, set()) for i in range(184)]
    found = fault_set_figures(say_yes_to_all(rows, MODES), "error", classes=MODES)
    assert found.precision == pytest.approx(1 / 14)
    assert found.recall == 1.0
    assert round(100 * found.micro_f1, 2) == 13.33
    assert found.intervals["micro_f1"] == pytest.approx((2 / 15, 2 / 15))


@pytest.mark.parametrize("per_run", [1, 2, 5, 14])
def test_saying_yes_scores_the_base_rate(per_run: int) -> None:
    rows = [of_modes(str(i), set(MODES[:per_run]), set()) for i in range(3)]
    base = per_run / 14
    found = fault_set_figures(say_yes_to_all(rows, MODES), "error", n_resamples=0)
    assert found.micro_f1 == pytest.approx(2 * base / (1 + base))


def test_saying_yes_of_all_agents_counts_at_every_grain() -> None:
    gold = FaultSets.of([("Coder", "FM-1.1")])
    rows = say_yes_to_all([FaultRow("a", gold, None)], MODES, {"a": ["Coder", "Web"]})
    by_grain = {g: fault_set_figures(rows, g, n_resamples=0) for g in ("pair", "agent", "error")}  # type: ignore[arg-type]
    assert by_grain["pair"].precision == pytest.approx(1 / 28)
    assert by_grain["agent"].precision == 0.5
    assert by_grain["error"].precision == pytest.approx(1 / 14)
    assert {figures.recall for figures in by_grain.values()} == {1.0}


def test_a_failed_audit_counts_as_a_miss_and_is_counted() -> None:
    rows = [of_modes("1", {"FM-1.1"}, {"FM-1.1"}), of_modes("2", {"FM-1.1"}, None)]
    found = fault_set_figures(rows, "error", n_resamples=0)
    assert (found.runs, found.failed_audits, found.missed) == (2, 1, 1)
    assert found.micro_f1 == pytest.approx(2 / 3)


def test_a_mode_without_an_agent_counts_at_the_error_grain_only() -> None:
    said = FaultSets.of([("Coder", "FM-1.1")], modes=["FM-2.1"])
    rows = [FaultRow("a", FaultSets.of([("Coder", "FM-1.1"), ("Web", "FM-2.1")]), said)]
    assert fault_set_figures(rows, "error", n_resamples=0).micro_f1 == 1.0
    assert fault_set_figures(rows, "pair", n_resamples=0).recall == 0.5


def test_nothing_to_find_and_nothing_named_is_no_figure() -> None:
    found = fault_set_figures([of_modes("1", set(), set())], "error")
    assert math.isnan(found.micro_f1)
    assert math.isnan(found.macro_f1)
    assert fault_set_figures([of_modes("1", set(), set())], "error", classes=MODES).macro_f1 == 0.0
    assert math.isnan(fault_set_figures([], "pair").precision)


def test_wrong_lists_and_rows_are_refused() -> None:
    rows = [of_modes("1", {"FM-1.1"}, set())]
    with pytest.raises(ConfigError, match='class list "all" is unknown'):
        fault_set_figures(rows, "error", classes="all")
    with pytest.raises(ConfigError, match="no fixed class list"):
        fault_set_figures(rows, "pair", classes=MODES)
    with pytest.raises(DataError, match="a run is there twice"):
        fault_set_figures(rows * 2, "error")


PAIRS = st.frozensets(st.tuples(st.sampled_from("ABC"), st.sampled_from(MODES[:4])), max_size=4)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.tuples(PAIRS, st.none() | PAIRS), max_size=8),
    st.sampled_from(["pair", "agent", "error"]),
    st.booleans(),
)
def test_figures_are_their_plain_definitions(data: Any, grain: Any, gold_only: bool) -> None:
    rows = [
        FaultRow(str(i), FaultSets.of(gold), None if said is None else FaultSets.of(said), f"t{i % 3}")
        for i, (gold, said) in enumerate(data)
    ]
    found = fault_set_figures(rows, grain, classes="gold" if gold_only else "union", n_resamples=20)

    def labels(pairs: Any) -> set[Any]:
        return {"pair": set(pairs), "agent": {a for a, _ in pairs}, "error": {m for _, m in pairs}}[grain]

    said = [(labels(gold), labels(said or ())) for gold, said in data]
    tp, fp, fn = (
        sum(len(part(g, s)) for g, s in said) for part in (lambda g, s: g & s, lambda g, s: s - g, lambda g, s: g - s)
    )
    assert (found.hits, found.wrong, found.missed) == (tp, fp, fn)
    micro = 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else math.nan
    assert found.micro_f1 == pytest.approx(micro, nan_ok=True)
    each = []
    for label in {x for g, s in said for x in (g if gold_only else g | s)}:
        p = [sum(label in s and label in g for g, s in said), sum(label in s for _, s in said)]
        r = sum(label in g for g, _ in said)
        precision, recall = (p[0] / p[1] if p[1] else 0.0), (p[0] / r if r else 0.0)
        each.append(2 * precision * recall / (precision + recall) if precision + recall else 0.0)
    assert found.macro_f1 == pytest.approx(sum(each) / len(each) if each else math.nan, nan_ok=True)
