"""Small things that readings rest on: kinds by parts inside parts, copies of what others say, texts that are put
together from others, arguments spelled as a list, words that are denied, requests beside the talk."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.induce.search.columns import PARTS, Node, is_time, kinds_of
from prefixguard.induce.search.families.event_kinds import kind_of, score
from prefixguard.induce.search.forms import calls_of, texts_of
from prefixguard.induce.search.histories import history_events
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.objective import _news
from prefixguard.induce.search.outcome_forms import forms_of
from prefixguard.induce.search.wider import ordered
from prefixguard.stepview.spellings import unflatten


def node_of(events: list[dict[str, Any]], of_a_run: int = 4) -> Node:
    return Node("", events, list(range(len(events))), [i // of_a_run for i in range(len(events))])


def test_kinds_are_told_by_parts_inside_parts() -> None:
    parts: list[dict[str, Any]] = [
        {"asked": {"text": "Book a seat."}},
        {"trace": {"work": {"thought": {"text": "I look first."}, "id": "1"}}},
        {"trace": {"work": {"call": {"function": "look"}, "id": "1"}}},
        {"trace": {"work": {"came": {"text": "two seats"}, "id": "1"}}},
    ]
    node = node_of([{"at": i, **part} for i, part in enumerate(parts * 3)])
    split = next(one for one in kinds_of(node) if one.by == PARTS)
    assert {one.label: next(iter(one.when)) for one in split.nodes} == {
        "asked": "@.asked",
        "thought": "@.trace.work.thought",
        "call": "@.trace.work.call",
        "came": "@.trace.work.came",
    }


def test_a_copy_of_what_others_say_is_left_out() -> None:
    said = [f"I shall look at number {i} of the list." for i in range(8)]
    events = [
        event
        for text in said
        for event in (
            {"type": "message", "role": "assistant", "text": text},
            {"type": "log", "line": text},
            {"type": "message", "role": "user", "text": "Yes, and number " + text[-12:]},
        )
    ]
    node = node_of(events, 6)
    split = next(one for one in kinds_of(node) if one.by == "@.type")
    layout = Layout({"format": "json"}, "$.events[*]", 0.0, "")
    layout.events_of = [events[i : i + 6] for i in range(0, len(events), 6)]
    kinds = [kind_of(one, _Names()) for one in split.nodes]  # type: ignore[arg-type]
    score(kinds, layout, _Names())  # type: ignore[arg-type]
    assert {kind.node.label: kind.ranked[0] == "skip" for kind in kinds} == {"message": False, "log": True}


class _Names:
    names = True


def test_a_text_put_together_from_others_says_only_what_is_new() -> None:
    one = ("the", "first", "question", "of", "a", "talk", "that", "goes", "on")
    two = ("a", "reply", "that", "nobody", "gave", "before")
    prompt = ("you", "help", *one, *two, "now")
    assert list(_news([prompt, one, two])) == [two, one, ["you", "help", "now"]]
    quoting = (*one, *(f"w{i}" for i in range(20)))
    assert list(_news([quoting, one]))[1] == quoting


def test_arguments_may_be_a_list_of_names_and_values() -> None:
    calls = [
        {"function": f"find_{i % 3}", "parameters": [{"name": "who", "type": "string", "value": f"number {i}"}]}
        for i in range(9)
    ]
    best = calls_of(node_of(calls))[0]
    assert (best.tool, best.arguments) == ("@.function", {"otlp": "@.parameters"})
    assert unflatten(calls[4]["parameters"]) == {"who": "number 4"}


@pytest.mark.parametrize("pair", [("erledigt", "nicht erledigt"), ("rozwiązane", "未rozwiązane"), ("kept", "not_kept")])
def test_a_word_that_another_denies_is_the_good_one(pair: tuple[str, str]) -> None:
    good, bad = pair
    form = max(forms_of([good, bad, good, good, bad]), key=lambda one: one.odds)
    assert (form.success, form.failure, form.assumed) == (good, bad, False)


def test_requests_beside_the_talk_are_told_by_what_they_share() -> None:
    def request(said: list[str], reply: str, model: str) -> dict[str, Any]:
        messages = [{"role": "ua"[i % 2], "text": text} for i, text in enumerate(said)]
        return {"model": model, "messages": messages, "reply": {"role": "a", "text": reply}}

    runs = []
    for run in range(4):
        said = [f"{what} {run}.{n}" for n in range(3) for what in ("question", "answer")]
        talk = [request(said[:n], said[n], "large") for n in (1, 3, 5)]
        runs.append([talk[0], request([f"A title for {run}."], f"Title {run}", "small"), *talk[1:]])
    found = history_events(runs, "$.events[*]")
    assert found is not None
    assert found.aside == {"^^.model": "small"}
    assert [len(messages) for messages in found.messages] == [6] * 4


def test_a_tool_inside_its_arguments_is_one_where_it_tells_their_names() -> None:
    told: list[dict[str, Any]] = [
        {"verb": "press", "at": "#a"},
        {"verb": "fill", "at": "#b", "with": "x"},
        {"verb": "go", "by": 3},
    ]
    best = calls_of(node_of([{"n": i, "do": told[i % 3]} for i in range(12)]))[0]
    assert (best.tool, best.arguments) == ("@.do.verb", {"json": "@.do"})
    same = [{"n": i, "by": {"kind": ["user", "bot", "admin"][i % 3], "id": f"a{i}"}} for i in range(12)]
    assert all(form.arguments != {"json": "@.by"} for form in calls_of(node_of(same)))


def test_times_with_the_day_first_are_times_and_order_nothing() -> None:
    events = [{"at": f"{i % 28 + 1:02}.0{i % 9 + 1}.2026 10:00:00", "text": f"number {i} of them"} for i in range(12)]
    assert is_time(events[3]["at"])
    layout = Layout({"format": "json"}, "$.events[*]", 0.0, "")
    layout.events_of = [events[:6], events[6:]]
    assert not list(ordered(layout))
    assert [text.value for text in texts_of(layout.node())] == ["@.text"]
