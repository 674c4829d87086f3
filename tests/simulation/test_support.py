from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.simulation import generate
from prefixguard.simulation.rng import Rng
from prefixguard.simulation.support.faults import PROFILES, Profile, broken, other_email
from prefixguard.simulation.support.observer import Observer, plan
from prefixguard.simulation.support.script import Script
from prefixguard.simulation.support.tasks import make_task, reach_goal
from prefixguard.simulation.support.tools import OUTAGE, TOOLS, Database
from prefixguard.simulation.support.transcript import acts, phrase

Runs = list[dict[str, Any]]
SEED = 13


def play(number: int, player: int, name: str, profiles: Sequence[Profile] = PROFILES) -> Script:
    task = make_task(SEED, number)
    database = Database(task.shop)
    script = Script(task, plan(task, profiles), profiles, player, database, name)
    script.play()
    return script


# ---- the verdict ----------------------------------------------------------------------------------------------


def test_replaying_the_calls_of_a_run_gives_its_results_and_its_outcome(lab_runs: Runs) -> None:
    """The recorded history is the whole truth: nothing but its calls touched the database."""
    for run in lab_runs[:400]:
        task = make_task(SEED, int(run["task_id"].split("-")[1]))
        database, right = Database(task.shop), Database(task.shop)
        answers = {m["tool_call_id"]: m["content"] for m in run["messages"] if m["role"] == "tool"}
        for message in run["messages"]:
            for call in message.get("tool_calls", ()):
                if answers[call["id"]] != OUTAGE:
                    answer = database.call(call["function"]["name"], call["function"]["arguments"])
                    assert answer == answers[call["id"]], run["run_id"]
        reached = database.state() == reach_goal(right, task)
        assert reached == (run["outcome"] == "success"), run["run_id"]


@pytest.mark.parametrize("number", range(40))
def test_every_goal_is_reachable_and_every_silent_slip_misses_it(number: int) -> None:
    task = make_task(SEED, number)
    database = Database(task.shop)
    fresh = database.state()
    goal = reach_goal(database, task)
    assert goal != fresh
    for place, wish in enumerate(task.wishes):
        for wrong in (*wish.silent, *filter(None, [wish.mistyped])):
            other = list(task.wishes)
            other[place] = dataclasses.replace(wish, arguments=wrong)
            database = Database(task.shop)
            state = reach_goal(database, dataclasses.replace(task, wishes=tuple(other)))
            answer = database.call(wish.tool, json.dumps(wrong))
            assert state != goal
            assert not answer.startswith("Error") or wish.kind in ("cancel", "return", "exchange")


# ---- the tools ------------------------------------------------------------------------------------------------


@given(number=st.integers(0, 30), draw=st.data())
def test_a_tool_never_raises_and_an_error_changes_nothing(number: int, draw: st.DataObject) -> None:
    task = make_task(SEED, number)
    known = [task.customer.user_id, task.wishes[0].order.order_id, *map(str, task.wishes[0].arguments.values())]
    values = st.one_of(st.sampled_from(known), st.text(), st.integers(), st.floats(), st.none(), st.lists(st.text()))
    tool = draw.draw(st.sampled_from(list(TOOLS)))
    arguments = draw.draw(st.fixed_dictionaries(dict.fromkeys(TOOLS[tool], values)))
    database = Database(task.shop)
    before = database.state()
    answer = database.call(tool, json.dumps(arguments))
    if answer.startswith("Error: "):
        assert database.state() == before
    else:
        json.loads(answer)


@pytest.mark.parametrize(
    ("tool", "arguments", "answer"),
    [
        ("get_order", '{"order_id": "#W1', "Error: arguments are not valid JSON"),
        ("get_order", "[]", "Error: arguments must be an object"),
        ("get_order", "{}", "Error: missing argument 'order_id'"),
        ("get_order", '{"order_id": "x", "y": 1}', "Error: unexpected argument 'y'"),
        ("get_order", '{"order_id": 5}', "Error: 'order_id' must be a string"),
        ("get_order", '{"order_id": "\\ud800"}', "Error: 'order_id' is not valid text"),
        ("get_order", '{"order_id": "#W1"}', "Error: order #W1 not found"),
        ("drop_tables", "{}", "Error: there is no tool named drop_tables"),
    ],
)
def test_a_tool_says_what_is_wrong(tool: str, arguments: str, answer: str) -> None:
    database = Database(make_task(SEED, 0).shop)
    assert database.call(tool, arguments) == answer


@given(number=st.integers(0, 60), name=st.integers(0, 10_000))
def test_broken_calls_are_refused(number: int, name: int) -> None:
    task, rng = make_task(SEED, number), Rng(str(name))
    database = Database(task.shop)
    before = database.state()
    for wish in task.wishes:
        call = broken(rng, wish.tool, wish.arguments)
        text = call if isinstance(call, str) else json.dumps(call)
        assert database.call(wish.tool, text).startswith("Error: ")
    email = other_email(rng, task.customer.email)
    assert database.call("find_user", json.dumps({"email": email})) == f"Error: no user with email {email}"
    assert database.state() == before


# ---- silent faults and the true risk --------------------------------------------------------------------------


def test_a_silent_fault_shows_in_one_value_and_nowhere_else() -> None:
    """The same run, once with its silent faults and once without: the talk and the true risk are the same."""
    profiles = tuple(dataclasses.replace(profile, silent=0.5) for profile in PROFILES)
    without = tuple(dataclasses.replace(profile, silent=0.0) for profile in PROFILES)
    compared = 0
    for number in range(60):
        with_slips = play(number, number % len(PROFILES), f"slip/{number}", profiles)
        slip_steps = [fault["step"] for fault in with_slips.faults if not fault["visible"]]
        clean = play(number, number % len(PROFILES), f"slip/{number}", without)
        if not slip_steps or with_slips.transcript.steps != clean.transcript.steps:
            continue
        compared += 1
        differing = 0
        for left, right in zip(with_slips.transcript.messages, clean.transcript.messages, strict=True):
            assert left["role"] == right["role"]
            assert left["content"] == right["content"] or left["role"] == "tool"
            differing += left.get("tool_calls") != right.get("tool_calls")
        again = sum(message["content"] == OUTAGE for message in clean.transcript.messages)
        assert len(slip_steps) <= differing <= len(slip_steps) + again
    assert compared > 20


def test_the_true_risk_is_the_share_that_fails(lab_runs: Runs) -> None:
    """At a fixed step, of the runs at risk r a share r fails; and it cannot be told in advance which."""
    for step in (2, 5, 8, 12):
        there = [run for run in lab_runs if len(run["metadata"]["true_risk"]) > step]
        risk = np.array([run["metadata"]["true_risk"][step] for run in there])
        failed = np.array([run["outcome"] == "failure" for run in there])
        for part in np.array_split(np.argsort(risk, kind="stable"), 6):
            spread = np.sqrt((risk[part] * (1 - risk[part])).sum()) / len(part)
            assert abs(failed[part].mean() - risk[part].mean()) <= 3.5 * spread + 1e-9, f"step {step + 1}"


def test_the_true_risk_knows_what_is_beyond_repair(lab_runs: Runs) -> None:
    for run in lab_runs:
        risks = run["metadata"]["true_risk"]
        assert all(0 <= risk <= 1 for risk in risks)
        if run["metadata"][
            "observable"
        ]:  # a change that never came is beyond repair once the customer leaves it at that
            assert risks[-1] == 1.0 or run["metadata"]["faults"][-1]["step"] == len(risks), run["run_id"]
        else:
            assert risks[-1] < 1.0, run["run_id"]


def test_a_known_agent_without_faults_has_no_risk() -> None:
    zeros = {field.name: 0.0 for field in dataclasses.fields(Profile) if field.type == "float"}
    perfect = Profile("perfect", **{**zeros, "share": 1.0, "recovers": 1.0})
    for number in range(20):
        script = play(number, 0, f"perfect/{number}", (perfect,))
        assert script.faults == []
        assert set(script.risks) == {0.0}


def test_the_observer_learns_who_is_playing() -> None:
    """Errors speak for the profiles that make them; nothing seen leaves the risk where the plan has it."""
    task = make_task(SEED, 1)
    points = plan(task, PROFILES)
    calm, alarmed = Observer(points, PROFILES), Observer(points, PROFILES)
    assert (
        calm.risk()
        == alarmed.risk()
        == pytest.approx(
            1 - sum(z.share * np.prod([point.survives[i] for point in points]) for i, z in enumerate(PROFILES))
        )
    )
    calm.passed(points[0], None)
    alarmed.passed(points[0], "mistyped_lookup")
    assert calm.risk() < alarmed.risk()


# ---- words ----------------------------------------------------------------------------------------------------


def test_every_line_can_be_said() -> None:
    slots = ["order", "order_id", "reason", "product", "detail", "status", "date", "carrier", "value", "email"]
    slots += ["first", "last", "zip", "again", "count", "street", "city"]
    for act in acts():
        for name in range(60):
            said = phrase(Rng(str(name)), act, **dict.fromkeys(slots, "x"))
            assert not set("[]{}|") & set(said), act


def test_worlds_of_other_seeds_are_other_worlds() -> None:
    def ids(seed: int) -> set[str]:
        return {order.order_id for number in range(5) for order in make_task(seed, number).shop.orders}

    assert not ids(1) & ids(2)
    assert next(generate(1, seed=1))["messages"] != next(generate(1, seed=2))["messages"]
