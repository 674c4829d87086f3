"""Values that can be outcomes, the sides they take, and those that are never silently a side."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.induce.offline.outcome import judge_values
from prefixguard.stepview import MISSING


def best(values: list[Any], name: str = "") -> dict[str, Any]:
    return judge_values(values, name)[0].spec("$.x")


def test_booleans() -> None:
    assert best([True, False, True], "$.resolved") == {
        "of": "$.x", "type": "boolean", "success": True, "failure": False
    }  # fmt: skip


@pytest.mark.parametrize("name", ["$.is_error", "$.failed", "$.has_failure", "$.incorrect"])
def test_a_name_of_failure_turns_the_sides(name: str) -> None:
    form = best([True, False, False], name)
    assert (form["success"], form["failure"]) == (False, True)


def test_numbers() -> None:
    assert best([0.0, 1.0, 0.0], "$.reward")["success"] == {"ge": 1.0}
    assert best([0.2, 1.0, 0.67, 1.0], "$.score")["failure"] == {"lt": 1.0}
    assert best([0, 1, 1], "$.failed") == {"of": "$.x", "type": "number", "success": {"lt": 1}, "failure": {"ge": 1}}
    assert best([-1, 1, 1], "$.reward")["success"] == {"ge": 1}


def test_a_stray_penalty_does_not_change_the_scale() -> None:
    assert best([0.0, 1.0] * 100 + [-0.18], "$.max_reward")["success"] == {"ge": 1.0}


def test_scores_without_a_top_are_a_guess() -> None:
    form = judge_values([0.2, 0.4, 0.81], "$.score")[0]
    assert "guess" in form.why and form.confidence < judge_values([0.2, 0.4, 1.0], "$.score")[0].confidence


@pytest.mark.parametrize(
    ("values", "success", "failure"),
    [
        (["pass", "fail"], "pass", "fail"),
        (["success", "error_max_turns"], "success", "error_max_turns"),
        (["C", "I", "C"], "C", "I"),
        (["completed", "error_max_turns", "failed"], "completed", {"in": ["error_max_turns", "failed"]}),
        (["CORRECT", "INCORRECT", "HALTED"], "CORRECT", {"in": ["HALTED", "INCORRECT"]}),
        (["1.0", "0.0"], "1.0", "0.0"),
        (["false", "true"], "true", "false"),
    ],
)
def test_words(values: list[str], success: Any, failure: Any) -> None:
    form = best(values, "$.verdict")
    assert (form["type"], form["success"], form["failure"]) == ("string", success, failure)


def test_words_of_one_side_leave_the_other_to_its_usual_words() -> None:
    form = judge_values(["resolved"] * 5, "$.status")[0]
    assert form.side("resolved") == 1 and form.side("failed") == -1 and form.side("pending") == 0


def test_neither_side_stays_unknown() -> None:
    form = judge_values([True, True, False, None, MISSING, "false", 0.5], "$.success")[0]
    assert form.type == "boolean"
    assert [form.side(v) for v in (True, False, None, MISSING, "false", "true", 0.5, 1)] == [1, -1, 0, 0, 0, 0, 0, 0]
    assert judge_values([None, MISSING], "$.success") == []


def test_partial_grades_are_no_side() -> None:
    form = judge_values(["C", "P", "I"], "$.score")[0]
    assert form.side("P") == 0


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (["easy", "hard", "medium"], "$.hardness"),
        (["submitted", "exit_cost"], "$.info.exit_status"),
        ([12, 40, 7], "$.turns_taken"),
        ([3, 1, 9], "$.max_reward_idx"),
        ([f"word{i} passed" for i in range(40)], "$.reward"),
        ([{"a": 1}], "$.reward"),
        ([float("nan")], "$.reward"),
    ],
)
def test_other_values_are_no_outcome(values: list[Any], name: str) -> None:
    assert judge_values(values, name) == []


def test_a_reason_to_stop_is_hardly_an_outcome() -> None:
    assert all(form.confidence < 0.25 for form in judge_values(["user_stop", "max_steps"], "$.termination_reason"))


def test_without_a_name_a_shape_is_still_a_candidate() -> None:
    named = judge_values([True, False], "$.success")[0].confidence
    bare = judge_values([True, False], "$.k7")[0].confidence
    other = judge_values([True, False], "$.streaming")[0].confidence
    assert named > bare > other > 0
    assert bare >= 0.25 > other


@given(
    st.lists(st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.sampled_from(["pass", "fail", "C"])),
    st.sampled_from(["", "$.reward", "$.is_error", "$.k1"]),
)
def test_sides_are_counted_as_judged(values: list[Any], name: str) -> None:
    for form in judge_values(values, name):
        sides = [form.side(value) for value in values]
        assert 0 <= form.confidence <= 1
        assert (sides.count(1), sides.count(-1)) == (form.won, form.lost)


def test_two_values_of_which_one_is_known_are_two_sides() -> None:
    form = judge_values(["resolved"] * 4 + ["handed on"] * 6, "$.verdict")[0]
    assert [form.side(v) for v in ("resolved", "handed on", "other")] == [1, -1, 0]
    assert form.assumed and "guess" in form.why
    assert form.confidence < judge_values(["resolved"] * 4 + ["failed"] * 6, "$.verdict")[0].confidence
    lost = judge_values(["crashed"] * 4 + ["shipped"] * 6, "$.outcome")[0]
    assert (lost.side("shipped"), lost.side("crashed")) == (1, -1)


@pytest.mark.parametrize("other", ["pending", "unknown", "partially done", ""])
def test_a_value_that_decides_nothing_is_no_side(other: str) -> None:
    form = judge_values(["resolved"] * 4 + [other] * 6, "$.verdict")[0]
    assert form.side(other) == 0 and not form.assumed


def test_three_values_of_which_one_is_known_stay_open() -> None:
    form = judge_values(["resolved", "handed on", "parked"] * 4, "$.verdict")[0]
    assert [form.side(v) for v in ("resolved", "handed on", "parked")] == [1, 0, 0]


def test_where_a_person_says_so_two_values_are_two_sides() -> None:
    forms = judge_values(["blau", "gelb", "blau"], "$.farbe", named=True)
    assert [form.success for form in forms] == ["blau", "gelb"] and all(form.assumed for form in forms)
    assert judge_values(["blau", "gelb", "blau"], "$.farbe") == []
    assert judge_values([3, 7, 3], "$.k", named=True)[0].side(7) == 1


@pytest.mark.parametrize(
    ("values", "success", "sides"),
    [
        (["resolved", "escalated"], "escalated", [-1, 1]),
        (["resolved", "escalated", "parked", "pending"], "Resolved", [1, -1, -1, 0]),
        (["a", "b", "c"], '["a", "b"]', [1, 1, -1]),
        ([True, False], "false", [-1, 1]),
        ([1, 4, 5], "4", [-1, 1, 1]),
        ([0, 1, 137], "0", [1, -1, -1]),
        ([f"w{i}" for i in range(30)], "w3", [1 if i == 3 else -1 for i in range(30)]),
    ],
)
def test_a_person_says_which_value_is_a_success(values: list[Any], success: str, sides: list[int]) -> None:
    (form,) = judge_values(values, "$.verdict", success=success)
    assert [form.side(value) for value in values] == sides


def test_a_success_that_no_run_has_is_none() -> None:
    assert judge_values(["resolved", "failed"], "$.verdict", success="solved") == []
    assert judge_values([True, False], "$.verdict", success="yes") == []
