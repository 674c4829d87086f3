"""Laws of behaviours: no look ahead, the same when restored, no names of agents, no step numbers, fixed memory."""

import struct
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from behaving import Watched, bash, call, fail, found_in, names_in, say
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_encoder import record, runs

from prefixguard import behaviours
from prefixguard.behaviours import TRACKER_BYTES, BehaviourTracker
from prefixguard.errors import ConfigError, SavedSessionError
from prefixguard.stepview import StepRecord

TOOLS = ["get_order", "search", "update", "edit_file", "bash", "think", "respond", "sleep", "finish", ""]
COMMANDS = ["pytest -q", "sed -i s/a/b/ x", "grep a .", '{"id":"W71234"}', '{"id":"W9"}', "", "{}"]
RESULTS = ["", "[]", "open", "FAILED a::b\n1 failed", "9 passed", "Unknown tool: update", "Error 4", "W71234 " * 300]
TEXTS = ["", "It has been cancelled.", "Which one?", "update(id=3)", "Long words of an answer. " * 12]

#: Steps of few kinds, so that behaviours begin, go on and end.
likely_runs: st.SearchStrategy[list[StepRecord]] = st.lists(
    st.builds(
        lambda tool, arguments, result, action, observation, status, actor: record(
            tool=tool, arguments=arguments, result=result, action=action, observation=observation, status=status,
            actor=actor, agent="a",
        ),
        st.sampled_from(TOOLS), st.sampled_from(COMMANDS), st.sampled_from(RESULTS), st.sampled_from(TEXTS),
        st.sampled_from(["", "", "", "Go on.", "And now?"]), st.sampled_from(["ok", "ok", "error", "unknown"]),
        st.sampled_from(["agent"] * 9 + ["user"]),
    ),
    max_size=24,
)  # fmt: skip
any_runs = likely_runs | runs(12)


@settings(deadline=None)
@given(any_runs, any_runs)
def test_what_comes_later_changes_nothing(run: Sequence[StepRecord], later: Sequence[StepRecord]) -> None:
    assert found_in([*run, *later])[: len(run)] == found_in(run)


@settings(deadline=None)
@given(any_runs)
def test_a_restored_tracker_goes_on_alike(run: Sequence[StepRecord]) -> None:
    """Packed and unpacked before every step."""
    moved = Watched(behaviours.start(TOOLS, 20))
    for r, expected in zip(run, found_in(run, tools=TOOLS, cap=20), strict=True):
        packed = behaviours.pack(moved.tracker)
        assert len(packed) == TRACKER_BYTES
        moved.tracker = behaviours.unpack(packed)
        assert behaviours.pack(moved.tracker) == packed
        assert moved.step(r) == expected


@settings(deadline=None)
@given(any_runs, any_runs)
def test_runs_do_not_see_each_other(one: Sequence[StepRecord], other: Sequence[StepRecord]) -> None:
    watched = Watched(behaviours.start()), Watched(behaviours.start())
    told: tuple[list[Any], list[Any]] = [], []
    for i in range(max(len(one), len(other))):
        for run, run_watched, said in zip((one, other), watched, told, strict=True):
            if i < len(run):
                said.append(run_watched.step(run[i]))
    assert told == (found_in(one), found_in(other))


@settings(deadline=None)
@given(any_runs, st.permutations(["a", "b", "ab", "id7", "42"]), st.integers(0, 9))
def test_names_of_agents_and_numbers_of_steps_tell_nothing(
    run: Sequence[StepRecord], names: Sequence[str], before: int
) -> None:
    """Agents are told apart, and no more; so many steps of others before the run change no behaviour."""
    new = dict(zip(sorted(names), names, strict=True))
    renamed = [replace(r, agent=new.get(r.agent, r.agent), index=77, event=9) for r in run]
    assert found_in(renamed) == found_in(run)
    silent = record(actor="environment", status="unknown")
    shifted = found_in([silent] * before + list(run))[before:]
    later = [tuple(replace(f, since=f.since + before) for f in findings) for findings in found_in(run)]
    assert [[(f.behaviour, f.count) for f in step] for step in shifted] == [
        [(f.behaviour, f.count) for f in step] for step in later
    ]


@settings(deadline=None)
@given(any_runs)
def test_findings_are_of_the_past(run: Sequence[StepRecord]) -> None:
    for step, findings in enumerate(found_in(run), 1):
        assert all(1 <= f.since <= step and f.count >= 1 and len(f.evidence) <= 100 for f in findings)


@settings(deadline=None, max_examples=60)
@given(likely_runs, st.lists(st.tuples(st.integers(0, TRACKER_BYTES - 1), st.integers(0, 255)), max_size=4))
def test_a_damaged_tracker_is_refused_or_runs(run: Sequence[StepRecord], damage: list[tuple[int, int]]) -> None:
    """Nothing but SavedSessionError, when it is read and in every step after it."""
    watched = Watched(behaviours.start(TOOLS, 20))
    for r in run:
        watched.step(r)
    data = bytearray(behaviours.pack(watched.tracker))
    for at, value in damage:
        data[at] = value
    try:
        watched.tracker = behaviours.unpack(bytes(data))
    except SavedSessionError as exc:
        assert str(exc).endswith("the session is damaged.") or "is damaged, and with it the session." in str(exc)
        return
    for r in run:
        watched.step(r)


def test_what_no_run_gives_is_refused() -> None:
    tracker = Watched(behaviours.start())
    tracker.step(call("a"))
    whole = behaviours.pack(tracker.tracker)
    with pytest.raises(SavedSessionError, match=f"have {TRACKER_BYTES - 1} bytes, not {TRACKER_BYTES}"):
        behaviours.unpack(whole[1:])
    with pytest.raises(SavedSessionError, match="numbers that no run gives"):
        behaviours.unpack(b"\0\0\0\0" + whole[4:])
    with pytest.raises(ConfigError, match="limit of steps is 0: use a number of steps from 1"):
        behaviours.start(cap=0)


def state_bytes(thing: Any) -> int:
    """Bytes of an object with all it holds; small integers and layouts are shared and cost nothing."""
    if (isinstance(thing, int) and thing <= 256) or isinstance(thing, struct.Struct):
        return 0
    held = [getattr(thing, slot) for slot in getattr(type(thing), "__slots__", ())]
    return sys.getsizeof(thing) + sum(map(state_bytes, held))


def fed(n: int) -> BehaviourTracker:
    """A tracker after steps that are all different."""
    watched = Watched(behaviours.start([f"t{i}" for i in range(64)], 100_000))
    for i in range(n):
        watched.step(fail(f"tool{i}", f"arguments {i}", f"Error: {'x' * (i % 99)}", agent=f"agent {i}"))
        watched.step(say(f"I say something new {i}", f"something arrived {i}"))
    return watched.tracker


def test_memory_is_fixed() -> None:
    """2.5 KB packed are allowed, and 3 KB as Python's objects."""
    assert TRACKER_BYTES <= 2560
    assert state_bytes(fed(100)) <= state_bytes(fed(600)) <= 3072
    assert state_bytes(fed(1200)) <= state_bytes(fed(600)) + 200


HUGE = "ab cd1 " * 150_000


@pytest.mark.parametrize("name", ["arguments", "observation", "action", "result", "tool"])
@pytest.mark.parametrize(
    "text", [HUGE[: 1 << 20], "9" * (1 << 20), "'" * 100_000, "\ud800\u0000" * 1000, "{[(<" * 9999]
)
def test_hostile_texts(name: str, text: str) -> None:
    for base in (bash("ls"), say("x"), call("get", "{}", "x", "error"), call("edit_file"), bash("pytest", "", "error")):
        fields = {name: text} if base.tool != "respond" or name != "tool" else {}
        assert names_in([replace(base, **fields)] * 2)  # type: ignore[arg-type]
