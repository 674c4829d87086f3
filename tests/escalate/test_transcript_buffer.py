"""Steps stay, texts go from the middle, and what is kept is bounded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.escalate.transcript_buffer import MAX_NAME, NOT_KEPT, ShortenedStep, TranscriptBuffer, UnkeptStep
from prefixguard.stepview import StepRecord

STEP = StepRecord(1, "agent", "Planner", "ls", "{}", "", "", "", "ok")


def of(sizes: list[int], limit: int, letter: str = "x") -> TranscriptBuffer:
    kept = TranscriptBuffer(limit)
    for index, size in enumerate(sizes, 1):
        assert kept.add(replace(STEP, index=index, arguments="", result=letter * size))
    return kept


def test_a_run_within_the_limit_is_kept_as_it_is() -> None:
    kept = of([100] * 20, 4096)
    assert [record.result for record in kept.prefix()] == ["x" * 100] * 20
    assert (kept.n_bytes, len(kept)) == (2000, 20)


def test_of_a_long_run_the_middle_goes() -> None:
    kept = of([100] * 200, 4096).prefix()
    texts = [record.result == "x" * 100 for record in kept]
    assert texts[:10] == [True] * 10 and texts[-20:] == [True] * 20
    middle = texts.index(False)
    last = len(texts) - 1 - texts[::-1].index(False)
    assert not any(texts[middle : last + 1])  # one gap
    assert [record.index for record in kept] == list(range(1, 201))
    assert {record.action for record in kept[middle : last + 1]} == {NOT_KEPT}
    assert [isinstance(record, UnkeptStep) for record in kept] == [not there for there in texts]
    assert {(record.agent, record.tool, record.status) for record in kept} == {("Planner", "ls", "ok")}


def test_a_huge_step_keeps_its_ends() -> None:
    kept = TranscriptBuffer(4096)
    kept.add(replace(STEP, result="begin" + "é" * 10**6 + "end"))
    (record,) = kept.prefix()
    assert record.result.startswith("begin") and record.result.endswith("end") and NOT_KEPT in record.result
    assert kept.n_bytes <= 1024
    assert isinstance(record, ShortenedStep)
    (hole,) = record.holes
    assert hole.field == "result" and record.result[hole.begin : hole.end] == NOT_KEPT
    assert hole.left_out + len(record.result) - len(NOT_KEPT) == 10**6 + 8
    assert len(record.result) > 256  # as much as a quarter of the limit allows


def test_the_first_step_is_never_without_texts() -> None:
    kept = TranscriptBuffer(1024)
    long = dict.fromkeys(("arguments", "observation", "action", "result"), "\U0001f600" * 10**4)
    for index in range(1, 30):
        kept.add(replace(STEP, index=index, **long))  # type: ignore[arg-type]
    unkept = [isinstance(record, UnkeptStep) for record in kept.prefix()]
    assert not unkept[0] and not unkept[-1] and sum(unkept) >= 20
    assert kept.n_bytes <= 1024


@settings(deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=60), st.integers(1024, 8192), st.sampled_from(["x", "é", "\U0001f600"]))
def test_the_limit_holds(sizes: list[int], limit: int, letter: str) -> None:
    kept = of(sizes, limit, letter)
    prefix = kept.prefix()
    assert [record.index for record in prefix] == list(range(1, len(sizes) + 1))
    assert kept.n_bytes == sum(len(record.result.encode()) for record in prefix) <= limit
    if prefix:  # the newest step is never dropped
        assert prefix[-1].action != NOT_KEPT


def test_a_prefix_that_was_given_out_does_not_change() -> None:
    kept = of([500] * 6, 4096)
    before = kept.prefix()
    texts = [record.result for record in before]
    for index in range(7, 60):
        kept.add(replace(STEP, index=index, result="y" * 500))
    assert [record.result for record in before] == texts


def test_names_are_no_place_for_texts() -> None:
    """They stay for every step, so they are bounded whatever the run's format lets through."""
    kept = TranscriptBuffer(4096)
    for index in range(1, 50):
        kept.add(replace(STEP, index=index, agent="a" * 10**5, tool="t" * 10**5))
    assert {(record.agent, record.tool) for record in kept.prefix()} == {("a" * MAX_NAME, "t" * MAX_NAME)}


@pytest.mark.parametrize(
    "bad",
    [
        None,
        5,
        {"index": 1},
        replace(STEP, result=5),  # type: ignore[arg-type]
        replace(STEP, action=None),  # type: ignore[arg-type]
        replace(STEP, agent=None),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_record_is_not_kept(bad: Any) -> None:
    kept = TranscriptBuffer(4096)
    assert not kept.add(bad)
    assert kept.prefix() == ()
