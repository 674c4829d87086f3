"""Laws of the context: no look ahead, fixed memory, work that grows with the step alone, numbers always finite."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from types import FrameType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from plain_encoder import record, runs

from prefixguard import context
from prefixguard.context import ContextState
from prefixguard.context.bloom import CAPACITY
from prefixguard.encoder import Vocabulary, fit_vocabulary, tokenize
from prefixguard.stepview import StepRecord, serialize

LIMIT = 19 * 1024 + 512


def update(state: ContextState, r: StepRecord) -> NDArray[np.float32]:
    return context.update(state, r, tokenize(serialize(r)))


@settings(deadline=None)
@given(runs(8), runs(4))
def test_what_comes_later_changes_nothing(run: Sequence[StepRecord], later: Sequence[StepRecord]) -> None:
    """The vectors of a prefix are those of the whole run, and stay as they are once given out."""
    alone = context.start()
    expected = [update(alone, r).copy() for r in run]
    state = context.start()
    rows = [update(state, r) for r in [*run, *later]]
    for row, same in zip(rows, expected, strict=False):
        np.testing.assert_array_equal(row, same)


@settings(deadline=None)
@given(runs(6), runs(6))
def test_runs_do_not_see_each_other(one: Sequence[StepRecord], other: Sequence[StepRecord]) -> None:
    """Two states fed in turn say what each says alone; a new state remembers nothing."""
    alone = [[update(state, r) for r in run] for run in (one, other) for state in [context.start()]]
    states = context.start(), context.start()
    for i in range(max(len(one), len(other))):
        for run, state, rows in zip((one, other), states, alone, strict=True):
            if i < len(run):
                np.testing.assert_array_equal(update(state, run[i]), rows[i])


@settings(deadline=None)
@given(runs())
def test_every_number_is_finite(run: Sequence[StepRecord]) -> None:
    state = context.start()
    for r in run:
        row = update(state, r)
        assert row.shape == (context.N_FEATURES,) and row.dtype == np.float32 and row.flags.writeable
        assert np.isfinite(row).all() and (row >= 0).all() and (row <= 1000).all()


def test_names_of_agents_and_positions_are_not_read() -> None:
    """Who it is and where the run came from are shortcuts, not evidence."""
    one = record(tool="get", result="a b", agent="gpt")
    np.testing.assert_array_equal(
        update(context.start(), one), update(context.start(), replace(one, agent="other", index=77, event=9))
    )
    assert {f.name for f in fields(StepRecord)} >= {"agent", "index", "event"}


HUGE = ("ab cd1 " * 150_000)[: 1 << 20]


@pytest.mark.parametrize("name", ["arguments", "observation", "action", "result", "tool", "actor"])
@pytest.mark.parametrize("text", [HUGE, "9" * (1 << 20), "日本語 ß " * 100_000, " " * (1 << 20), "\ud800\u0000" * 1000])
def test_fields_of_a_megabyte(name: str, text: str) -> None:
    """One long word, many words, none, bytes above ASCII, what is no text at all."""
    state = context.start()
    for _ in range(2):
        r = record(**{"tool": "t", name: text})
        row = update(state, r)
        assert np.isfinite(row).all()
    assert int(row[[f.name for f in context.FEATURES].index("call_seen")]) == 1


def state_bytes(thing: Any) -> int:
    """Bytes of an object with all it holds; Python keeps one object for each small integer, which costs nothing."""
    if isinstance(thing, int) and thing <= 256:
        return 0
    if isinstance(thing, np.ndarray):
        return sys.getsizeof(thing) + (thing.nbytes if thing.base is not None else 0)
    held: list[Any] = list(thing) if isinstance(thing, list | tuple) else []
    held += [getattr(thing, slot) for slot in getattr(type(thing), "__slots__", ())]
    return sys.getsizeof(thing) + sum(map(state_bytes, held))


def fed(n_steps: int, n_words: int) -> ContextState:
    """A state after steps of which no two share a tool, a call, a message, a result or a word."""
    state = context.start()
    for i in range(n_steps):
        text = " ".join(f"s{i}w{j}" for j in range(n_words // 3))
        r = record(tool=f"t{i}" if i % 2 else "", arguments=text + "a", action=text + "b", result=text, status="error")
        update(state, r)
    return state


def test_memory_does_not_grow() -> None:
    """Counters above 256 are objects of their own in Python: 32 bytes each, and no more."""
    fresh, full = state_bytes(context.start()), state_bytes(fed(400, 90))
    assert 14_336 < fresh <= full <= LIMIT
    assert state_bytes(fed(1_200, 90)) <= full + 200


def test_saturation_is_counted() -> None:
    state = fed(100, 90)
    assert (state.vocabulary <= CAPACITY, state.saturated) == (True, 0)
    state = fed(800, 90)
    assert state.saturated == state.vocabulary - CAPACITY > 0


def operations(work: Callable[[], object]) -> int:
    """Python's own instructions that `work` takes, with those of all it calls: the same on any machine, unlike time."""
    n = 0

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal n
        frame.f_trace_opcodes = True
        n += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return n


def test_a_step_costs_the_same_late_in_the_run() -> None:
    """What has been seen is looked up, not gone through: 2,000 steps in, a step takes no more than 100 steps in."""
    r = record(tool="late", arguments='{"id": 99}', action="some words", result="more words 12")
    early, late = fed(100, 30), fed(2_000, 30)
    assert operations(lambda: update(late, r)) <= operations(lambda: update(early, r))


@pytest.mark.parametrize("kept", ["all", "none"])
def test_no_loop_over_bytes_or_words(kept: str) -> None:
    """100 or 100,000 words, all new: only bits and terms that fall together take another pass over what is left."""

    def step(n: int) -> StepRecord:
        text = " ".join(f"x{i}" for i in range(n // 4))
        return record(tool="t", arguments=text, observation=text + " y1", action=text, result=text)

    documents = [(0, serialize(step(400 if kept == "all" else 4)))]
    vocabulary = fit_vocabulary(lambda: documents, min_tasks=1)[0]
    steps = [step(n) for n in (100, 1_000, 10_000, 100_000)]
    counts = [operations(partial(whole_path, vocabulary, r)) for r in steps]
    assert max(counts) <= min(counts) + 500, counts


def whole_path(vocabulary: Vocabulary, r: StepRecord) -> None:
    tokens = tokenize(serialize(r))
    vocabulary.encode(tokens)
    context.update(context.start(), r, tokens)
