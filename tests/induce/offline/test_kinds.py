"""Which field tells kinds of events apart."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.induce.offline.kinds import ABSENT, PRESENT, divide


def values(events: list[Any], **more: Any) -> list[Any]:
    runs = more.pop("runs", [0] * len(events))
    return [tuple(value for _, value in kind.when) for kind in divide(events, runs, **more)]


def turns(n: int, **names: str) -> list[dict[str, Any]]:
    """A conversation under any names."""
    out = []
    for i in range(n):
        out.append({"role": "user", "content": f"please {i}", "model": "m1"})
        out.append({"role": "assistant", "content": f"well {i}", "model": "m1", "calls": [{"id": i}]})
        out.append({"role": "tool", "content": f"got {i}", "model": "m1", "call_id": i})
    return [{names.get(key, key): value for key, value in event.items()} for event in out]


def test_the_field_with_words_for_who_speaks_divides() -> None:
    assert set(values(turns(10))) == {("user",), ("assistant",), ("tool",)}


def test_its_name_does_not_matter() -> None:
    assert set(values(turns(10, role="k1", content="k2", calls="k3"))) == {("user",), ("assistant",), ("tool",)}


def test_values_without_meaning_divide_where_other_fields_depend_on_them() -> None:
    words = {"user": "zu", "assistant": "ka", "tool": "mo"}
    events = [{**event, "role": words[event["role"]]} for event in turns(10)]
    assert set(values(events)) == {("zu",), ("ka",), ("mo",)}


def test_few_events_divide_by_words_for_who_speaks() -> None:
    events = [
        {"role": role, "content": f"text {i}"} for i, role in enumerate(["system", "user", "assistant", "tool"] * 2)
    ]
    assert {found[0] for found in values(events[:7])} == {"system", "user", "assistant", "tool"}


def test_a_field_that_says_why_the_model_stopped_is_not_who_speaks() -> None:
    events = [{"finish_reason": ("stop", "tool_calls")[i % 2], "content": f"text {i}"} for i in range(20)]
    assert values(events) == [()]


def test_a_key_that_some_have_divides_where_no_field_does() -> None:
    events: list[dict[str, Any]] = []
    for i in range(12):
        events.append({"command": f"do {i}", "why": f"because {i}", "cost": i})
        events.append({"output": f"done {i}", "code": 0, "took": i})
    kinds = divide(events, [0] * len(events))
    tests = {value for kind in kinds for _, value in kind.when}
    assert tests == {PRESENT, ABSENT}
    assert [len(kind.members) for kind in kinds] == [12, 12]


def test_the_hint_divides_whatever_else_would() -> None:
    events = [{**event, "odd": "xy"[i % 2]} for i, event in enumerate(turns(10))]
    first = {kind.when[0] for kind in divide(events, [0] * 30, hint="@.odd")}
    assert first == {(("odd",), "x"), (("odd",), "y")}


def test_tools_are_no_kinds_of_calls() -> None:
    calls = [{"id": f"c{i}", "name": ("open", "close")[i % 2], "args": {"ab"[i % 2]: i}} for i in range(12)]
    assert [kind.when for kind in divide(calls, None, depth=1, reach=1)] == [()]


def test_types_of_blocks_are() -> None:
    blocks = [
        {"type": "text", "text": f"well {i}"} if i % 2 else {"type": "tool_use", "id": f"c{i}", "input": {"a": i}}
        for i in range(12)
    ]
    assert {kind.when[0][1] for kind in divide(blocks, None, depth=1, reach=1)} == {"text", "tool_use"}


@pytest.mark.parametrize("events", [[], [{}], [{"a": 1}], [1, "x", None], [{}, {}]])
def test_nothing_to_divide_is_one_kind(events: list[Any]) -> None:
    (kind,) = divide(events, [0] * len(events))
    assert list(kind.members) == [i for i, event in enumerate(events) if isinstance(event, dict)]


def test_every_event_is_of_one_kind() -> None:
    events = [*turns(10), {"other": 1}, {"role": None}, {"role": ["x"]}]
    members = [i for kind in divide(events, [0] * len(events)) for i in kind.members]
    assert sorted(members) == list(range(len(events)))


def test_an_empty_object_is_no_kind_of_its_own() -> None:
    tools = ["look", "move", "ask"]
    calls = [{"id": f"c{i}", "name": tools[i % 3], "arguments": {f"at_{i % 3}": i}} for i in range(28)]
    calls += [{"id": "c28", "name": "wait", "arguments": {}}, {"id": "c29", "name": "wait", "arguments": {}}]
    kinds = divide(calls, None, depth=1, reach=1)
    assert [kind.label for kind in kinds] == ["all"]
