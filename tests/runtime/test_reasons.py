"""Reasons are true, few and safe to print."""

import numpy as np
import pytest
import tiny_monitor
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.context import FEATURES
from prefixguard.encoder import SparseRow
from prefixguard.runtime.reading import MOST, plain, say_feature, say_reasons, say_term

NAMES = [feature.name for feature in FEATURES]
D = len(NAMES)
VOCABULARY = tiny_monitor.vocabulary()


def reasons(pushes: dict[str, float], terms: dict[str, float], values: dict[str, float]) -> tuple[str, ...]:
    of_context, context = np.zeros(D, np.float32), np.zeros(D, np.float32)
    for name, push in pushes.items():
        of_context[NAMES.index(name)] = push
    for name, value in values.items():
        context[NAMES.index(name)] = value
    columns = sorted(VOCABULARY.terms.index(term) for term in terms)
    row = SparseRow(np.array(columns, np.int64), np.ones(len(columns), np.float32))
    of_terms = np.array([terms[VOCABULARY.terms[c]] for c in columns], np.float32)
    return say_reasons(of_context, of_terms, row, context, np.zeros(D, np.float32), VOCABULARY)


def test_the_strongest_come_first_and_only_pushes_towards_failure() -> None:
    said = reasons({"errors": 1.0, "step": -9.0}, {"result:error": 2.0, "result:ok": -5.0}, {"errors": 4})
    assert said == ("word `error` in the result", "failed steps so far: 4 (usually 0)")


def test_nothing_moved_it() -> None:
    assert reasons({}, {}, {}) == ()
    assert reasons({"errors": -1.0}, {"result:ok": -1.0}, {}) == ()


def test_one_reason_a_group_and_a_word() -> None:
    """Three reasons say three things."""
    pushes = {"errors": 3.0, "error_rate": 2.9, "failed_tools": 2.8, "call_seen": 1.0, "step": 0.5}
    said = reasons(pushes, {}, {"errors": 2, "call_seen": 1, "step": 9})
    assert said == (
        "failed steps so far: 2 (usually 0)",
        "times this very call was made before: 1 (usually 0)",
        "step number: 9 (usually 0)",
    )


def test_at_most_three() -> None:
    pushes = {"errors": 3.0, "call_seen": 1.0, "step": 0.5, "ungrounded": 0.4}
    assert len(reasons(pushes, {"result:error": 5.0}, {})) == MOST


def test_a_contribution_that_is_no_number_gives_no_reason() -> None:
    assert reasons({"errors": float("nan")}, {}, {}) == ()


@pytest.mark.parametrize("feature", FEATURES, ids=NAMES)
def test_every_feature_has_words(feature: object) -> None:
    for value in (0.0, 1.0, 2.0, 0.123456):
        said = say_feature(feature, value, 0.5)  # type: ignore[attr-defined]
        assert "{" not in said
        assert 5 < len(said) < 120


def test_terms_from_hostile_runs_are_harmless() -> None:
    assert say_term("result:\u202eevil\x1b") == "word `\\u202eevil\\x1b` in the result"
    assert len(say_term("result:" + "x" * 10_000)) < 100


@given(st.text(), st.integers(1, 50))
def test_plain_text_is_one_printable_line_of_limited_length(text: str, limit: int) -> None:
    said = plain(text, limit)
    assert len(said) <= limit
    assert said.isprintable()
    if text.isprintable() and len(text) <= limit:
        assert said == text
