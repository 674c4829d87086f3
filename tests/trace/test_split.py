"""Which task is used for what, tasks that hold the same run, and which prefixes are close to a failure."""

import hashlib
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, DataError
from prefixguard.stepview.record import FIELDS, StepRecord
from prefixguard.trace import (
    DEFAULT_SHARES,
    Outcome,
    Run,
    Side,
    imminent_labels,
    link_tasks,
    move_tasks,
    remaining_steps,
    repeat_groups,
    run_digest,
    split_tasks,
    task_hash,
    task_key,
)
from prefixguard.trace.split import _FIELDS

TASKS = [f"task-{i}" for i in range(200)]


def test_default_shares_cut_exactly():
    sizes = Counter(split_tasks(TASKS, seed=13).values())
    assert [sizes[side] for side in Side] == [110, 20, 20, 20, 30]


def test_the_cut_follows_the_hash_of_seed_and_task():
    """The rule as stated, recomputed in plain code: order by SHA-256 of "seed:task", then cut."""
    order = sorted(TASKS, key=lambda task: hashlib.sha256(f"7:{task}".encode()).hexdigest())
    sides = split_tasks(TASKS, seed=7)
    assert [sides[task] for task in order] == (
        [Side.TRAIN] * 110 + [Side.VALIDATION] * 20 + [Side.CALIBRATION] * 20 + [Side.ALARM] * 20 + [Side.TEST] * 30
    )


@given(st.permutations(TASKS[:30]), st.integers(0, 5))
def test_order_and_repetition_of_tasks_do_not_matter(tasks, seed):
    assert split_tasks([*tasks, *tasks[:7]], seed=seed) == split_tasks(TASKS[:30], seed=seed)


def test_another_seed_gives_another_split():
    assert split_tasks(TASKS, seed=1) != split_tasks(TASKS, seed=2)


@given(st.lists(st.lists(st.sampled_from(TASKS), min_size=2, max_size=5), max_size=12), st.integers(0, 3))
def test_linked_tasks_share_a_side(linked, seed):
    sides = split_tasks(TASKS, seed=seed, linked=linked)
    assert list(sides) == TASKS
    for group in linked:
        assert len({sides[task] for task in group}) == 1


def test_links_that_overlap_are_merged_through_tasks_outside_the_corpus():
    sides = split_tasks(TASKS, seed=3, linked=[["task-0", "elsewhere"], ["elsewhere", "task-1"]])
    assert sides["task-0"] == sides["task-1"]
    assert "elsewhere" not in sides


@pytest.mark.parametrize("n", [1, 2, 3, 7, 19, 101])
def test_small_numbers_of_tasks_are_within_one_of_their_share(n):
    sizes = Counter(split_tasks(TASKS[:n], seed=0).values())
    assert sum(sizes.values()) == n
    for side, share in DEFAULT_SHARES.items():
        assert abs(sizes[side] - share * n) < 1


def test_a_side_without_a_share_gets_nothing():
    sides = split_tasks(TASKS, seed=0, shares={Side.TRAIN: 0.8, Side.TEST: 0.2})
    assert Counter(sides.values()) == {Side.TRAIN: 160, Side.TEST: 40}


def test_shares_that_do_not_sum_to_one_are_refused():
    with pytest.raises(ConfigError, match=r"split shares \(train 0.5, test 0.2\) sum to 0.7: make them sum to 1"):
        split_tasks(TASKS, seed=0, shares={Side.TRAIN: 0.5, Side.TEST: 0.2})
    with pytest.raises(ConfigError, match="must be 0 or more each"):
        split_tasks(TASKS, seed=0, shares={Side.TRAIN: 1.5, Side.TEST: -0.5})


def test_no_task_is_refused():
    with pytest.raises(DataError, match="there is no task to split"):
        split_tasks([], seed=0)


def test_task_names_may_hold_anything():
    assert set(split_tasks(["\ud800", "", "é", "\x00"], seed=0)) == {"\ud800", "", "é", "\x00"}


def test_move_takes_the_number_that_counts():
    sides = split_tasks(TASKS, seed=13)
    counting = TASKS[::2]
    move = move_tasks(sides, Side.TRAIN, Side.ALARM, needed=30, seed=13, counting=counting)
    reached = [task for task, side in move.sides.items() if side == Side.ALARM and task in set(counting)]
    assert len(reached) == 30
    assert {task for task in TASKS if sides[task] != move.sides[task]} == set(move.moved)
    assert all(sides[task] == Side.TRAIN for task in move.moved)
    assert any(task not in set(counting) for task in move.moved), "tasks that do not count move along"


def test_move_does_nothing_when_there_are_enough():
    sides = split_tasks(TASKS, seed=13)
    assert move_tasks(sides, Side.TRAIN, Side.ALARM, needed=20, seed=13).moved == ()


def test_move_leaves_what_must_stay_and_moves_nothing_for_nothing():
    sides = split_tasks(TASKS, seed=13)
    most = move_tasks(sides, Side.TRAIN, Side.ALARM, needed=10_000, seed=13, keep=100)
    assert (most.sides, most.moved) == (sides, ())
    move = move_tasks(sides, Side.TRAIN, Side.ALARM, needed=most.reached, seed=13, keep=100)
    assert Counter(move.sides.values())[Side.TRAIN] == 100 and move.reached == most.reached
    assert Counter(move.sides.values())[Side.ALARM] == most.reached


@given(st.lists(st.lists(st.sampled_from(TASKS), min_size=2, max_size=4), max_size=8))
def test_move_keeps_links_whole(linked):
    sides = split_tasks(TASKS, seed=13, linked=linked)
    move = move_tasks(sides, Side.TRAIN, Side.ALARM, needed=45, seed=13, linked=linked)
    for group in linked:
        assert len({move.sides[task] for task in group}) == 1


def test_move_to_the_same_side_is_refused():
    with pytest.raises(ConfigError, match="two different sides"):
        move_tasks({"a": Side.TRAIN}, Side.TRAIN, Side.TRAIN, needed=1, seed=0)


def test_a_run_without_a_task_is_its_own_unit():
    named = Run("r1", "book a flight", Outcome.SUCCESS, (), "x.json")
    nameless = Run("r2", None, Outcome.SUCCESS, (), "x.json")
    assert task_key(named) == "book a flight"
    assert task_key(nameless) == "run r2"
    assert task_hash("t") == hashlib.sha256(b"t").hexdigest()


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


@given(st.integers(0, 60), st.integers(0, 70))
def test_a_failed_run_has_up_to_horizon_plus_one_positives_at_its_end(n_steps, horizon):
    labels = imminent_labels(n_steps, failed=True, horizon=horizon)
    assert labels.tolist() == [int(n_steps - t <= horizon) for t in range(1, n_steps + 1)]
    assert labels.sum() == min(n_steps, horizon + 1)


@given(st.integers(0, 60), st.integers(0, 70))
def test_a_successful_run_has_none(n_steps, horizon):
    assert imminent_labels(n_steps, failed=False, horizon=horizon).sum() == 0


def test_remaining_counts_down_to_zero():
    assert remaining_steps(3).tolist() == [2, 1, 0]
    assert remaining_steps(0).tolist() == []


def test_negative_numbers_are_refused():
    with pytest.raises(ConfigError, match="horizon is -1: it counts steps before the end"):
        imminent_labels(3, failed=True, horizon=-1)
    with pytest.raises(ConfigError, match="a run cannot have -2 steps"):
        remaining_steps(-2)
