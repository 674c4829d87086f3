"""Reading replies: forms that are tolerated, contents that are not, and hostile ones that must not hang."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_server import at_most

from prefixguard.auditor.hypothesis_answers import HypothesisLabel, label_of, read_one, read_several
from prefixguard.escalate.agent_names import AgentNames

NAMES = AgentNames(("Orchestrator", "WebSurfer", "File_Surfer"))
ENTAIL, NEUTRAL, CONTRADICT, ERROR = HypothesisLabel


@pytest.mark.parametrize(
    ("reply", "label", "agents"),
    [
        ('{"label": "entail", "agents": ["WebSurfer"]}', ENTAIL, ("WebSurfer",)),
        ('{"label": "neutral", "agents": []}', NEUTRAL, ()),
        ('{"label": "contradict"}', CONTRADICT, ()),
        ('```json\n{"label": "entail", "agents": ["WebSurfer"]}\n```', ENTAIL, ("WebSurfer",)),
        ('Sure! {"label": "entail", "agents": ["WebSurfer"]} Hope it helps [1].', ENTAIL, ("WebSurfer",)),
        ('[{"label": "entail", "agents": ["WebSurfer"]}]', ENTAIL, ("WebSurfer",)),
        ('{"answers": [{"label": "entail", "agents": ["WebSurfer"]}]}', ENTAIL, ("WebSurfer",)),
        (
            '{"label": "entail", "agents": ["WebSurfer"]}\n{"label": "A", "agents": ["Orchestrator"]}',
            ENTAIL,
            ("WebSurfer", "Orchestrator"),
        ),
        ('{"LABEL": "ENTAIL", "Agents": "websurfer"}', ENTAIL, ("WebSurfer",)),
        ('{"label": "A"}', ENTAIL, ()),
        ('{"label": "b.", "agents": null}', NEUTRAL, ()),
        ('{"label": "C (contradict)", "agents": []}', CONTRADICT, ()),
        ('{"label": "entailed", "agent": "file surfer"}', ENTAIL, ("File_Surfer",)),
        ('{"label": "entail", "agents": "WebSurfer, Orchestrator"}', ENTAIL, ("WebSurfer", "Orchestrator")),
        ('{"label": "entail", "agents": ["Orchestrator (thought)"]}', ENTAIL, ("Orchestrator",)),
        ('{"label": "entail", "agents": ["WebSurfer", "websurfer"]}', ENTAIL, ("WebSurfer",)),
        ('<think>{"label": "neutral"}?</think>{"label": "entail", "agents": ["WebSurfer"]}', ENTAIL, ("WebSurfer",)),
        ('<answer>{"label": "neutral"}</answer>', NEUTRAL, ()),
        ('{"label": "entail"} no: <answer>{"label": "neutral"}', NEUTRAL, ()),
        ("neutral", NEUTRAL, ()),
        (" **C** ", CONTRADICT, ()),
    ],
)  # fmt: skip
def test_forms_that_are_tolerated(reply: str, label: HypothesisLabel, agents: tuple[str, ...]) -> None:
    read = read_one(reply, NAMES)
    assert (read.label, read.agents, read.fault) == (label, agents, "")


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("", "empty"),
        ("The statement seems true of WebSurfer.", "no-verdict"),
        ('{"labels": "entail"}', "no-verdict"),
        ('{"label": "entail", "agents": ["WebSur', "no-verdict"),
        ('<think>{"label": "entail", "agents": ["WebSurfer"]}', "no-verdict"),
        ('{"label": "entail", "label": "neutral"}', "no-verdict"),
        ('{"label": true}', "unknown-label"),
        ('{"label": 1}', "unknown-label"),
        ('{"label": ["entail"]}', "unknown-label"),
        ('{"label": "not entail"}', "unknown-label"),
        ('{"label": "entail or neutral"}', "unknown-label"),
        ('{"label": "yes"}', "unknown-label"),
        ('{"label": ""}', "unknown-label"),
        ('{"label": "entail"}\n{"label": "neutral"}', "conflicting-labels"),
        ('[{"label": "A", "agents": ["WebSurfer"]}, {"label": "C"}]', "conflicting-labels"),
    ],
)
def test_what_cannot_be_read_is_an_error(reply: str, fault: str) -> None:
    read = read_one(reply, NAMES)
    assert (read.label, read.fault, read.agents) == (ERROR, fault, ())
    assert read.detail


def test_a_cut_reply() -> None:
    """Before its answer it is an error of its own; after it, the answer stands."""
    assert read_one('{"label": "entail", "agents": ["Web', NAMES, cut=True).fault == "truncated"
    assert read_one("neutral", NAMES, cut=True).fault == "truncated"
    read = read_one('{"label": "entail", "agents": ["WebSurfer"]}\n{"label": "ent', NAMES, cut=True)
    assert (read.label, read.agents) == (ENTAIL, ("WebSurfer",))
    assert read.notes == ("the reply was cut after this answer",)


def test_unknown_agents_are_kept_apart() -> None:
    """They blame nobody: no part of a name is a name."""
    read = read_one('{"label": "entail", "agents": ["Web", "WebSurfer2", "none", "WebSurfer"]}', NAMES)
    assert read.agents == ("WebSurfer",)
    assert read.unknown_agents == ("Web", "WebSurfer2")


def test_an_entailed_mode_may_have_nobody() -> None:
    read = read_one('{"label": "entail", "agents": ["Nobody Known", 7, {"name": "WebSurfer"}]}', NAMES)
    assert (read.label, read.agents, read.unknown_agents) == (ENTAIL, (), ("Nobody Known",))
    assert read.notes == ("an agent that is no text", "an agent that is no text", "no agent of the run is named")


@pytest.mark.parametrize("label", ["neutral", "contradict"])
def test_agents_of_what_is_not_entailed_are_dropped(label: str) -> None:
    read = read_one(f'{{"label": "{label}", "agents": ["WebSurfer"]}}', NAMES)
    assert (read.label.value, read.agents) == (label, ())
    assert read.notes == (f"agents were named with {label}",)


def test_where_the_label_stands() -> None:
    reply = 'So: {"agents": ["WebSurfer"], "label" : "Entail"}'
    read = read_one(reply, NAMES)
    assert read.label_at is not None
    assert reply[slice(*read.label_at)] == "Entail"
    assert read.raw == reply[4:]


CODES = ("FM-1.1", "FM-2.3", "FM-3.2")


@pytest.mark.parametrize(
    "reply",
    [
        '{"mode": "FM-1.1", "label": "entail", "agents": ["WebSurfer"]}\n{"mode": "FM-2.3", "label": "neutral"}\n'
        '{"mode": "FM-3.2", "label": "contradict"}',
        '[{"mode": "1.1", "label": "A", "agent": "WebSurfer"}, {"code": "fm-3.2", "label": "C"}, '
        '{"mode": "FM-2.3: drifts", "label": "B"}]',
        '{"FM-1.1": {"label": "entail", "agents": ["WebSurfer"]}, "FM-2.3": "neutral", "FM-3.2": {"label": "C"}}',
        '{"results": [{"mode": "FM-1.1", "label": "entail", "agents": ["WebSurfer"]}, '
        '{"mode": "FM-2.3", "label": "neutral"}, {"mode": "FM-3.2", "label": "contradict"}]}',
    ],
)
def test_several_at_once(reply: str) -> None:
    read = read_several(reply, NAMES, CODES)
    assert [(code, answer.label) for code, answer in read.items()] == list(
        zip(CODES, (ENTAIL, NEUTRAL, CONTRADICT), strict=True)
    )
    assert read["FM-1.1"].agents == ("WebSurfer",)


def test_modes_that_are_not_answered_are_errors_of_their_own() -> None:
    answered = '{"mode": "FM-2.3", "label": "entail", "agents": ["WebSurfer"]}'
    reply = answered + '\n{"mode": "FM-9.9", "label": "entail"}\n{"mode": '
    read = read_several(reply, NAMES, CODES)
    assert [answer.fault for answer in read.values()] == ["no-verdict", "", "no-verdict"]
    read = read_several(reply, NAMES, CODES, cut=True)
    assert [answer.fault for answer in read.values()] == ["truncated", "", "truncated"]


def test_a_mode_that_is_answered_twice() -> None:
    """Twice the same label: one agent an object. Two labels: an error of this mode alone."""
    reply = "\n".join(
        json.dumps({"mode": mode, "label": label, "agents": agents})
        for mode, label, agents in (
            ("FM-1.1", "entail", ["WebSurfer"]),
            ("FM-1.1", "entail", ["Orchestrator"]),
            ("FM-2.3", "entail", ["WebSurfer"]),
            ("FM-2.3", "neutral", []),
            ("FM-3.2", "neutral", []),
        )
    )
    read = read_several(reply, NAMES, CODES)
    assert read["FM-1.1"].agents == ("WebSurfer", "Orchestrator")
    assert (read["FM-2.3"].fault, read["FM-2.3"].agents) == ("conflicting-labels", ())
    assert read["FM-3.2"].label is NEUTRAL


@given(st.text(max_size=300), st.booleans())
def test_any_text_has_a_defined_outcome(text: str, cut: bool) -> None:
    for read in (read_one(text, NAMES, cut=cut), *read_several(text, NAMES, CODES, cut=cut).values()):
        assert (read.label is ERROR) == bool(read.fault)
        assert read.label is ENTAIL or not read.agents


@given(
    st.sampled_from(["entail", "neutral", "contradict"]),
    st.lists(st.sampled_from(NAMES.names), unique=True),
    st.text(st.characters(exclude_characters="{}[]<"), max_size=50),
    st.integers(0, 4),
)
def test_what_is_asked_for_is_read_back(label: str, agents: list[str], prose: str, indent: int) -> None:
    reply = prose + json.dumps({"label": label, "agents": agents}, indent=indent or None) + prose
    read = read_one(reply, NAMES)
    assert read.label.value == label
    assert read.agents == (tuple(agents) if label == "entail" else ())


@pytest.mark.parametrize(
    "text",
    ["{" * 200_000, "[" * 200_000, '{"a":' * 50_000, '[{"label":' * 20_000, '{"label": "' * 20_000, '"' * 200_000],
    ids=["braces", "brackets", "nested", "lists", "labels", "quotes"],
)
def test_hostile_replies_do_not_hang(text: str) -> None:
    """A quarter of a minute would be a hang; what is quadratic takes longer."""
    with at_most(15):
        assert read_one(text, NAMES).label is ERROR


def test_only_the_end_of_a_huge_reply_is_read() -> None:
    huge = '{"label": "neutral"}' + "x" * 100_000 + '{"label": "entail", "agents": ["WebSurfer"]}'
    assert read_one(huge, NAMES).agents == ("WebSurfer",)


@pytest.mark.parametrize("said", [None, 3, True, "", "entail neutral", "x" * 300, "ab", "none"])
def test_what_is_no_label(said: object) -> None:
    assert label_of(said) is None
