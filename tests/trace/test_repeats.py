from dataclasses import replace

import pytest

from prefixguard.stepview.record import FIELDS, StepRecord
from prefixguard.trace import link_tasks, repeat_groups, run_digest, split_tasks
from prefixguard.trace.split import _FIELDS

STEP = StepRecord(1, "agent", "gpt", "search", '{"q": "x"}', "", "look", "found", "ok", 4)


def test_the_fields_are_those_that_are_serialised():
    assert _FIELDS == FIELDS


@pytest.mark.parametrize("field", FIELDS)
def test_every_serialised_field_counts(field):
    other = replace(STEP, **{field: "error" if field == "status" else "something else"})
    assert run_digest([STEP]) != run_digest([other])


def test_positions_and_agent_names_do_not_count():
    assert run_digest([STEP]) == run_digest([replace(STEP, index=9, event=70, agent="claude")])


def test_text_cannot_move_between_fields_or_records():
    a = replace(STEP, action="ab", result="c")
    b = replace(STEP, action="a", result="bc")
    assert run_digest([a]) != run_digest([b])
    assert run_digest([STEP, STEP]) != run_digest([STEP])
    assert run_digest([a, b]) != run_digest([b, a])


def test_lone_surrogates_are_hashed():
    assert run_digest([replace(STEP, action="\ud800")]) != run_digest([replace(STEP, action="?")])


def test_groups_hold_positions_of_equal_runs():
    assert repeat_groups(["a", "b", "b", "a", "b"]) == [(0, 3), (1, 2, 4)]
    assert repeat_groups(["a", "b"]) == []


def test_repeats_under_two_tasks_end_up_on_one_side():
    tasks = [f"t{i}" for i in range(50)]
    digests = [f"d{i}" for i in range(50)]
    digests[40] = digests[3]
    linked = link_tasks(tasks, digests)
    assert linked == [("t3", "t40")]
    for seed in range(10):
        sides = split_tasks(tasks, seed=seed, linked=linked)
        assert sides["t3"] == sides["t40"]


def test_repeats_within_one_task_link_nothing():
    assert link_tasks(["t", "t"], ["a", "a"]) == []
