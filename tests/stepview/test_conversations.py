"""Conversations in traces: every event is of one agent, and a call of a model goes on with what it repeats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from processor_time import least_seconds

from prefixguard.errors import AdapterError
from prefixguard.stepview import read_runs
from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.conversations import TracedEvent, agents, compile_conversations, joined
from prefixguard.stepview.delegates import compile_delegates
from prefixguard.stepview.paths import Scope

SPEC: dict[str, Any] = {
    "container": {
        "format": "jsonl",
        "group_by": "@.trace",
        "delegates": {"id": "@.id", "parent": "@.parent", "when": {"@.kind": "tool"}},
        "conversations": {
            "when": {"@.kind": "model"},
            "begins": "@.begins",
            "ends": "@.ends",
            "heard": "@.heard",
            "said": "@.said",
            "session": "@.session",
        },
    },
    "run": {"id": "$.group"},
    "events": {"path": "$.events[*]", "order_by": "@.begins", "window": 1},
    "rules": [{"when": {"@.kind": "model"}, "emit": "say", "action": "@.said"}, {"emit": "skip"}],
    "hidden": [],
}


def turns(agent: str, times: Sequence[int], **fields: Any) -> list[dict[str, Any]]:
    """An agent's calls of its model, each asked with all that was said before. times: when each begins; it takes 1."""
    heard, found = [f"task of {agent}"], list[dict[str, Any]]()
    for n, begins in enumerate(times):
        said = f"{agent} says {n}"
        span = {"kind": "model", "trace": f"{agent}{n}", "id": f"{agent}{n}", "begins": begins, "ends": begins + 1}
        found.append(span | {"heard": list(heard), "said": said} | fields)
        heard += [said, f"result {n} for {agent}"]
    return found


def read(make: Any, path: Path, spans: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """What each run says."""
    (path / "x.jsonl").write_text("\n".join(map(json.dumps, spans)))
    return {run.run_id: [record.action for record in run.records] for run in read_runs(path, make(**SPEC), strict=True)}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=14), st.randoms(use_true_random=False))
def test_calls_without_a_span_above_are_one_run_an_agent_however_they_mix(order: list[int], random: Any) -> None:
    times = {name: [2 * n for n, one in enumerate(order) if one == name] for name in set(order)}
    spans = [span for name in times for span in turns(f"a{name}", times[name])]
    random.shuffle(spans)
    found = joined({span["trace"]: [traced(span)] for span in spans})
    said = {name: sorted(event.event["said"] for event in events) for name, events in found.items()}
    assert said == {f"a{name}0": sorted(f"a{name} says {n}" for n in range(len(times[name]))) for name in times}


def traced(span: dict[str, Any]) -> TracedEvent:

    site = Site("", {"@": Base(None)})
    delegates = compile_delegates(SPEC["container"]["delegates"], site)
    scope = Scope(event=span)
    told = compile_conversations(SPEC["container"]["conversations"], delegates, site)
    return told.read(scope, delegates.place(scope), (0, 0))


@given(st.integers(3, 8), st.integers(1, 12))
def test_a_conversation_goes_on_where_its_beginning_was_left_out(kept: int, n: int) -> None:
    """Packages drop what is more than a span may hold."""
    spans = [span for name in ("a", "b") for span in turns(name, range(0, 2 * n, 2))]
    spans = [span | {"heard": span["heard"][-kept:]} for span in spans]
    found = joined({span["trace"]: [traced(span)] for span in spans})
    assert {name: len(events) for name, events in found.items()} == {"a0": n, "b0": n}


def test_an_answer_may_be_repeated_in_other_words_where_it_is_clear_whose_it_is(make: Any, tmp_path: Path) -> None:
    first, second = turns("a", [0, 4])
    second["heard"][1] = "Calling tools: (a says 0)"
    assert read(make, tmp_path, [first, second]) == {"a0": ["a says 0", "a says 1"]}
    other = first | {"trace": "b", "id": "b", "said": "otherwise", "begins": 2, "ends": 3}
    assert len(read(make, tmp_path, [first, other, second])) == 3


def test_traces_with_a_span_above_their_calls_stay_apart(make: Any, tmp_path: Path) -> None:
    spans = [*turns("a", [0, 2], parent="loop"), *turns("b", [4])]
    assert read(make, tmp_path, spans) == {"a0": ["a says 0"], "a1": ["a says 1"], "b0": ["b says 0"]}


def test_traces_of_one_session_are_one_run(make: Any, tmp_path: Path) -> None:
    spans = [*turns("a", [0], session="s"), *turns("b", [2], session="s"), *turns("c", [4], session="t")]
    assert read(make, tmp_path, spans) == {"a0": ["a says 0", "b says 0"], "c0": ["c says 0"]}


def test_the_same_task_again_is_another_run(make: Any, tmp_path: Path) -> None:
    first, again = turns("a", [0, 2]), turns("a", [4, 6])
    for n, span in enumerate(again):
        span |= {"trace": f"again{n}", "id": f"again{n}", "said": f"otherwise {n}"}
    again[1]["heard"][1] = "otherwise 0"
    said = {"a0": ["a says 0", "a says 1"], "again0": ["otherwise 0", "otherwise 1"]}
    assert read(make, tmp_path, [*first, *again]) == said


def test_conversations_that_overlap_are_of_several_agents(make: Any, tmp_path: Path) -> None:
    caller, inner, after = turns("a", [0, 10]), turns("b", [2, 4]), turns("c", [12])
    spans = [span | {"trace": "t", "parent": "loop"} for span in (*caller, *inner, *after)]
    assert read(make, tmp_path, spans) == {
        "t": ["a says 0", "a says 1", "c says 0"],
        "t/b0": ["b says 0", "b says 1"],
    }


def test_a_question_that_was_not_answered_and_is_asked_again_goes_on(make: Any, tmp_path: Path) -> None:
    spans = turns("a", [0, 2, 4])
    spans[1] |= {"said": ""}
    spans.insert(2, spans[1] | {"trace": "retry", "begins": 3, "ends": 4, "said": "a says 1"})
    assert read(make, tmp_path, spans) == {"a0": ["a says 0", "", "a says 1", "a says 2"]}


def test_below_a_tool_that_calls_no_model_there_is_no_agent(make: Any, tmp_path: Path) -> None:
    outer = [span | {"trace": "t", "parent": "loop"} for span in turns("a", [0, 9])]
    tool = {"kind": "tool", "trace": "t", "id": "ask", "parent": "loop", "begins": 2, "ends": 8}
    within = {"kind": "tool", "trace": "t", "id": "fetch", "parent": "ask", "begins": 3, "ends": 4}
    deeper = {"kind": "other", "trace": "t", "id": "http", "parent": "fetch", "begins": 3, "ends": 4}
    found = agents([traced(span) for span in (*outer, tool, within, deeper)])
    assert [name for name, _ in found] == [None]
    inner = [span | {"trace": "t", "parent": "fetch"} for span in turns("b", [3])]
    found = agents([traced(span) for span in (*outer, tool, within, deeper, *inner)])
    assert {name: [event.event["id"] for event in events] for name, events in found} == {
        None: ["a0", "a1", "ask", "fetch"],
        "fetch": ["http", "b0"],
    }


def test_a_call_that_two_packages_tell_is_one(make: Any, tmp_path: Path) -> None:
    spans = [span | {"trace": "t", "parent": "loop"} for span in turns("a", [0, 2])]
    again = [span | {"id": f"{span['id']}-again", "parent": span["id"]} for span in spans]
    assert read(make, tmp_path, [*again, *spans]) == {"t": ["a says 0", "a says 1"]}


#: Spans by position: the one above (perhaps itself, none, or one that is not there), kind, begin, length, and the
#: number of messages of one of two conversations.
FORESTS = st.lists(
    st.tuples(
        st.integers(-1, 9),
        st.sampled_from(("tool", "model", "other")),
        st.integers(0, 9),
        st.integers(0, 5),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=9,
)


@given(FORESTS)
def test_every_event_is_of_one_agent(forest: Any) -> None:
    events = []
    for n, (parent, kind, begins, length, heard, other) in enumerate(forest):
        span = {"id": str(n), "kind": kind, "begins": begins, "ends": begins + length, "n": n}
        if kind == "model":
            span |= {"heard": [f"{other} {i}" for i in range(heard)], "said": f"{other} {heard}"}
        events.append(traced(span if parent < 0 else span | {"parent": str(parent)}))
    found = agents(events)
    names = [name for name, _ in found]
    assert names[0] is None and len(set(names)) == len(names)
    told = [event.event["n"] for _, inside in found for event in inside]
    assert len(set(told)) == len(told)
    left_out = [event for event in events if event.event["n"] not in told]
    below = {one.parent for one in events}
    assert all(event.is_turn and event.id in below for event in left_out)
    assert all([event.event["n"] for event in inside] == sorted(e.event["n"] for e in inside) for _, inside in found)


@pytest.mark.usefixtures("collected")
def test_many_agents_take_time_in_proportion() -> None:
    def seconds(n: int) -> float:
        spans = [turns(f"a{i}", [i])[0] | {"ends": i + 1 + (i % 2)} for i in range(n)]
        events = [traced(span) for span in spans]
        return least_seconds(lambda: agents(events))[0]

    assert seconds(4000) < 40 * seconds(400)


@pytest.mark.usefixtures("collected")
def test_the_same_question_many_times_takes_time_in_proportion() -> None:
    def seconds(n: int) -> float:
        first, second = turns("a", [0, 1])
        events = {}
        for i in range(n):
            for span in (first | {"said": f"{i % 7}"}, second | {"heard": [first["heard"][0], f"{i % 7}", "fine"]}):
                events[f"{i} {span['id']}"] = [traced(span | {"begins": i, "ends": i})]
        return least_seconds(lambda: joined(events))[0]

    assert seconds(2000) < 40 * seconds(200)


def test_what_is_wrong_with_a_spec_is_said(make: Any) -> None:
    for change, said in (
        ({"conversations": {"when": "else"}}, "begins, ends, heard, said"),
        ({"delegates": None}, 'goes with "delegates"'),
        ({"delegates": {"name": "@.agent"}}, "id, parent and when"),
        ({"group_by": None}, 'goes with "group_by"'),
    ):
        container = {name: one for name, one in (SPEC["container"] | change).items() if one is not None}
        with pytest.raises(AdapterError, match=said):
            make(**SPEC | {"container": container})
