"""Every feature against its definition, worked out from the whole history."""

from collections.abc import Sequence

import numpy as np
import plain_context
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from plain_encoder import record, runs

from prefixguard import context
from prefixguard.context import FEATURES, GROUPS
from prefixguard.encoder import tokenize
from prefixguard.stepview import StepRecord, serialize

NAMES = [feature.name for feature in FEATURES]


def vectors(run: Sequence[StepRecord]) -> NDArray[np.float32]:
    """Context vectors of a run, float32 (steps, features)."""
    state = context.start()
    rows = [context.update(state, r, tokenize(serialize(r))) for r in run]
    return np.array(rows, np.float32).reshape(len(rows), len(FEATURES))


def values(run: Sequence[StepRecord], name: str) -> list[float]:
    """One feature over a run."""
    return [round(x, 6) for x in vectors(run)[:, NAMES.index(name)].tolist()]


def assert_by_definition(run: Sequence[StepRecord]) -> None:
    expected = plain_context.features(run)
    for t, (row, plain) in enumerate(zip(vectors(run), expected, strict=True), 1):
        assert plain.keys() == set(NAMES)
        for name, value in zip(NAMES, row.tolist(), strict=True):
            # Counts are exact; shares and means are sums in another order, then rounded to float32.
            assert value == pytest.approx(plain[name], rel=2e-6, abs=2e-6), (t, name)


@settings(deadline=None)
@given(runs())
@example([])
@example([record(status="")])
@example([record(tool="??", arguments="id7"), record(tool="", action="id7"), record(tool="??", status="error")])
def test_every_feature_is_what_it_says(run: Sequence[StepRecord]) -> None:
    assert_by_definition(run)


@settings(deadline=None, max_examples=15)
@given(
    st.lists(
        st.builds(
            lambda tool, i, text, status: record(
                tool=tool, arguments=f'{{"id": "k{i}"}}', action=f"say {text}", result=f"got {i % 9}", status=status
            ),
            st.sampled_from(["search", "respond", "update", "cancel"]),
            st.integers(0, 12),
            st.integers(0, 5),
            st.sampled_from(["ok", "ok", "error"]),
        ),
        min_size=20,
        max_size=45,
    )
)
def test_long_runs_with_many_repeats(run: Sequence[StepRecord]) -> None:
    assert_by_definition(run)


@pytest.mark.parametrize(("name", "size"), [("call_seen", 64), ("message_seen", 32), ("result_seen", 64)])
def test_the_oldest_is_forgotten(name: str, size: int) -> None:
    """A table holds so many different ones; the one that came in first makes room, however often it was seen."""
    made = {"call_seen": ("t", "arguments"), "message_seen": ("", "action"), "result_seen": ("", "result")}
    tool, field = made[name]
    first, others = record(tool=tool, **{field: "x0"}), [record(tool=tool, **{field: f"x{i}"}) for i in range(1, size)]
    assert values([first, first, *others, first], name)[-1] == 2
    another = record(tool=tool, **{field: "one more"})
    assert values([first, first, *others, another, first, others[0]], name)[-2:] == [0, 0]
    assert values([first, first, *others, another, others[0]], name)[-1] == 1


@pytest.mark.parametrize("n", [2, 3, 16_384, 16_385, 40_000])
def test_the_same_words_in_another_order_are_another_call(n: int) -> None:
    """Also in texts past the end of the table of weights, and where only the last two words change places."""
    text = [f"w{i}" for i in range(n)]
    changed = [*text[:-2], text[-1], text[-2]]
    run = [record(tool="t", arguments=" ".join(words), result=" ".join(words)) for words in (text, changed, text)]
    assert values(run, "call_seen") == [0, 0, 1]
    assert values(run, "result_seen") == [0, 0, 1]


def test_identifiers_seen_nowhere_before() -> None:
    """A word with a digit in the arguments must have stood in the run before, or in what has just arrived."""
    run = [
        record(observation="my order is W123", tool="get", arguments='{"id": "w123"}', result="total 45"),
        record(tool="pay", arguments='{"id": "W123", "total": 45}'),
        record(tool="pay", arguments='{"id": "W124", "total": 45}'),
        record(tool="pay", arguments='{"id": "W124", "card": 9, "name": "abc"}'),
        record(tool="", arguments="K1"),
        record(tool="pay", arguments="no identifier"),
    ]
    assert values(run, "ungrounded") == [0, 0, 0.5, 0.5, 0, 0]
    assert values(run, "ungrounded_calls") == [0, 0, 1, 2, 2, 2]


def test_groups_and_texts() -> None:
    assert {feature.group for feature in FEATURES} == set(GROUPS)
    assert len(set(NAMES)) == len(NAMES) == context.N_FEATURES
    for feature in FEATURES:
        assert feature.text.format(value=3)
