"""Names of agents: whole names only, and only where one agent alone is meant."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prefixguard.escalate.agent_names import UNNAMED, AgentNames, agent_of, base_name, folded, same_agent, shown_name
from prefixguard.stepview import StepRecord


def step(index: int, agent: str = "", actor: str = "agent") -> StepRecord:
    return StepRecord(index, actor, agent, "respond", "", "", "text", "", "ok", index - 1)


def names(*spelled: str, **aliases: str) -> AgentNames:
    return AgentNames(spelled, aliases)


def test_agents_of_a_run_in_the_order_in_which_they_act() -> None:
    records = [step(1, "user", "user"), step(2, "Planner"), step(3, "Coder"), step(4, "Planner"), step(5, "", "system")]
    assert AgentNames.of(records).names == ("Planner", "Coder")


def test_a_run_without_names_has_one_agent() -> None:
    assert AgentNames.of([step(1), step(2)]).names == (UNNAMED,)
    assert AgentNames.of([step(1, actor="user")]).names == (UNNAMED,)
    assert AgentNames.of([]).resolve("Agent") == "agent"
    assert agent_of(step(1)) == "agent"
    assert agent_of(step(1, "bob", "user")) == "user"


@pytest.mark.parametrize(
    "said",
    ["Orchestrator", "orchestrator", "Orchestrator (thought)", "Orchestrator (-> WebSurfer)", " **Orchestrator** "],
)
def test_case_marks_and_a_part_in_parentheses_do_not_count(said: str) -> None:
    assert names("Orchestrator", "WebSurfer").resolve(said) == "Orchestrator"


@pytest.mark.parametrize("said", ["web_surfer", "Web Surfer", "WEB-SURFER", "`WebSurfer`", '"WebSurfer"'])
def test_separators_do_not_count(said: str) -> None:
    assert names("Orchestrator", "WebSurfer").resolve(said) == "WebSurfer"


@pytest.mark.parametrize("said", ["Web", "Surfer", "WebSurfer2", "WebSurfer and Orchestrator", "", "  ", "()", "1"])
def test_a_part_of_a_name_is_no_name(said: str) -> None:
    assert names("Orchestrator", "WebSurfer", "Assistant", "10").resolve(said) is None


def test_of_two_agents_that_become_the_same_neither_is_meant() -> None:
    two = names("Coder (A)", "Coder (B)")
    assert two.resolve("Coder") is None
    assert two.resolve("Coder (C)") is None
    assert two.resolve("coder (b)") == "Coder (B)"
    assert names("Web_Surfer", "WebSurfer").resolve("websurfer") is None
    assert names("Web_Surfer", "WebSurfer").resolve("WebSurfer") == "WebSurfer"


def test_a_run_that_spells_the_part_in_parentheses() -> None:
    assert names("Orchestrator (thought)", "WebSurfer").resolve("Orchestrator") == "Orchestrator (thought)"
    assert names("Coder (A)", "Tester").resolve("Coder (B)") is None


def test_aliases_come_last_and_lead_to_agents_of_the_run() -> None:
    aliased = AgentNames(("Orchestrator", "WebSurfer"), {"manager": "Orchestrator", "WebSurfer": "Orchestrator"})
    assert aliased.resolve("Manager") == "Orchestrator"
    assert aliased.resolve("WebSurfer") == "WebSurfer"
    assert AgentNames(("WebSurfer",), {"manager": "Orchestrator"}).resolve("manager") is None
    assert AgentNames(("A", "B"), {"the boss": "A", "The-Boss": "B"}).resolve("THE BOSS") is None


def test_a_name_as_a_prompt_shows_it_is_found_again() -> None:
    odd = "Team | lead\n(of two)\u202e" + "x" * 200
    assert "\n" not in shown_name(odd) and "|" not in shown_name(odd) and len(shown_name(odd)) <= 80
    assert names(odd, "Other").resolve(shown_name(odd)) == odd


def test_same_agent() -> None:
    assert same_agent("Orchestrator (thought)", "Orchestrator")
    assert same_agent("orchestrator", "Orchestrator (-> X)")
    assert not same_agent("Coder (A)", "Coder (B)")
    assert not same_agent("Orchestrator (thought)", "Orchestrator", normalised=False)
    assert same_agent("A", "A", normalised=False)
    assert not same_agent("Assistant", "Assistant_2")
    assert not same_agent("", "") and not same_agent(None, "A") and not same_agent("A", None)
    assert not same_agent("--", "__")


@given(st.lists(st.text(max_size=20), max_size=5), st.text(max_size=20), st.dictionaries(st.text(), st.text()))
def test_only_agents_of_the_run_are_found(spelled: list[str], said: str, aliases: dict[str, str]) -> None:
    found = AgentNames(tuple(spelled), aliases).resolve(said)
    assert found is None or found in spelled


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_names_are_the_same_both_ways(left: str, right: str) -> None:
    assert same_agent(left, right) == same_agent(right, left)
    assert folded(folded(left)) == folded(left) or not left.isascii()
    assert base_name(base_name("x" + left)) in "x" + left
