"""The simulation played again: the same bytes, the same chances on both sides, and drift that is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.errors import ConfigError, ReplayDrift, ReplayError
from prefixguard.factory import LabelledRun
from prefixguard.factory.environments import Environments, SimulationEnvironment, open_environment
from prefixguard.simulation import Turn, generate, play
from prefixguard.trace import Outcome


def test_runs_of_the_simulation_play_again_byte_for_byte() -> None:
    world = SimulationEnvironment(7)
    for run in generate(60, seed=7):
        labelled = world.labelled(run)
        world.replay(labelled, len(world.decisions(labelled)))
        assert world.verify() == run["outcome"]
        assert world.trace()["messages"] == run["messages"]


@given(st.integers(0, 400), st.data())
def test_doing_the_same_again_changes_nothing(number: int, data: st.DataObject) -> None:
    """What the agent did anyway, forced at any of its decisions and with its own chances, gives the same run."""
    run = play(3, number, f"x/{number}")
    choice = data.draw(st.sampled_from(run.choices))
    assert play(3, number, f"x/{number}", turns=[Turn(choice.place, True, choice.fault)]) == run


@given(st.integers(0, 400), st.data())
def test_all_before_a_turn_stays_as_it_was(number: int, data: st.DataObject) -> None:
    run = play(3, number, f"x/{number}")
    choice = data.draw(st.sampled_from(run.choices))
    other = play(3, number, f"x/{number}", turns=[Turn(choice.place, salt="another")])
    assert other.messages[: choice.before - 1] == run.messages[: choice.before - 1]
    assert other.choices[: run.choices.index(choice)] == run.choices[: run.choices.index(choice)]


def test_a_changed_record_is_noticed(corpus: list[LabelledRun]) -> None:
    run = corpus[0]
    messages = [dict(message) for message in run.run["messages"]]
    at = max(i for i, message in enumerate(messages) if message["role"] == "assistant")
    messages[at]["content"] = "something else"
    world = Environments().of(run)
    with pytest.raises(ReplayDrift, match=rf"run '{run.run_id}', step {len(run.records())}: the simulation plays it"):
        world.replay(replace(run, run={**run.run, "messages": messages}), 0)


def test_an_agent_may_be_led_step_by_step() -> None:
    """Told at every decision to make no fault, it reaches the goal; told to make one, it is seen at once."""
    world = open_environment("simulation:5")
    assert "Hi" in world.reset("support-00002", "0", "guessing") or world.trace()["messages"]
    while world.verify() is Outcome.UNKNOWN:
        said = world.step({"fault": None})
    assert world.verify() is Outcome.SUCCESS and said
    assert not world.complaint(LabelledRun(world.trace(), "safe", provenance=world.provenance()))
    world.reset("support-00002", "0", "guessing")
    world.step({"fault": "mistyped_lookup"})
    assert [message for message in world.trace()["messages"] if str(message.get("content")).startswith("Error")]


def test_a_copy_goes_its_own_way(corpus: list[LabelledRun]) -> None:
    failed = next(run for run in corpus if run.source == "natural")
    world = Environments().of(failed)
    world.replay(failed, 0)
    before = world.trace()
    for salt in ("a", "b", "c"):
        world.fork().continuation(salt)
    assert world.trace() == before and world.verify() is Outcome.UNKNOWN
    assert world.continuation(None) is Outcome.FAILURE and world.trace()["messages"] == failed.run["messages"]


def test_agents_are_named_in_the_messages(corpus: list[LabelledRun]) -> None:
    names = {record.agent for run in corpus for record in run.records()}
    assert names == {"reception", "orders", "returns"}


def test_what_cannot_be_opened_is_said(corpus: list[LabelledRun]) -> None:
    with pytest.raises(ConfigError, match="there is no environment 'webshop'; there are simulation"):
        open_environment("webshop")
    with pytest.raises(ConfigError, match="the world of the simulation is a whole number"):
        open_environment("simulation:x")
    with pytest.raises(ReplayError, match="was not made in an environment"):
        Environments().of(replace(corpus[0], provenance={}))
    with pytest.raises(ReplayError, match="was not made in this environment"):
        SimulationEnvironment(4).replay(corpus[0], 0)
    with pytest.raises(ConfigError, match="there is no agent 'nobody' in the simulation; there are: careful"):
        SimulationEnvironment().reset("support-00000", "0", "nobody")
    with pytest.raises(ConfigError, match="careful never makes the fault 'gave_up' at begin"):
        play(7, 0, "x", agent="careful", turns=[Turn(2, True, "gave_up")])
