"""Adapters: what identifies one, how it is found, and that any other JSON is refused in a sentence."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import AdapterError, UnknownAdapterError
from prefixguard.stepview import Adapter, list_adapters, load_adapter


def test_blanks_and_order_do_not_count(chat: dict[str, Any]) -> None:
    adapter = Adapter(chat)
    spread = json.dumps(dict(reversed(list(chat.items()))), indent=4).encode()
    same = Adapter.from_bytes(spread, "spec.json")
    assert same.sha256 == adapter.sha256
    assert len(adapter.sha256) == 64
    assert Adapter.from_bytes(adapter.to_bytes(), "x").to_bytes() == adapter.to_bytes()
    assert Adapter(chat | {"version": "1.0.1"}).sha256 != adapter.sha256
    assert (adapter.name, adapter.version) == ("chat", "1.0.0")


def test_a_spec_is_loaded_from_a_path(chat: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(chat))
    assert load_adapter(path).name == load_adapter(str(path)).name == "chat"
    path.write_text('{"schema": ')
    with pytest.raises(AdapterError, match=r"mine.json line 1, column 12: an adapter is a JSON file"):
        load_adapter(path)
    with pytest.raises(UnknownAdapterError, match="No adapter can be read there"):
        load_adapter(tmp_path / "none.json")


def test_shipped_adapters_are_found_by_name() -> None:
    names = list_adapters()
    assert list(names) == sorted(names)
    for name in names:
        assert load_adapter(name).name == name


def test_an_unknown_name_tells_the_nearest_and_the_way_out() -> None:
    with pytest.raises(UnknownAdapterError) as caught:
        load_adapter("tau-bensh")
    assert "Nearest: tau_bench" in str(caught.value)
    assert "prefixguard induce-adapter" in str(caught.value)
    with pytest.raises(UnknownAdapterError, match="Shipped: "):
        load_adapter("zzzzqqqq")


NO_CONTAINER: list[tuple[Any, str]] = [
    (None, "'container' is missing"),
    ("xml", "one of json, jsonl, "),
    ({"format": "json", "entries": "*"}, "unknown key 'entries'"),
    ({"format": "json", "runs": "@.x"}, "a path from the document"),
    ({"format": "json", "files": [3]}, "a glob such as"),
    ({"format": "zip", "entries": [3]}, "container.entries: a glob such as"),
    ({"format": "folder"}, "the name of a file that every folder of a run holds"),
    ({"format": "folder", "marker": "../x", "members": {"a": "b"}}, "the name of a file"),
    ({"format": "folder", "marker": "x"}, "names and files of the folder"),
    (
        {"format": "folder", "marker": "x", "members": {"a": {"path": "b", "format": "xml"}}},
        '"json", "jsonl" or "text"',
    ),
    ({"format": "text", "runs": "$[*]"}, '{"split": {"head": RE}}'),
    ({"format": "text", "runs": {"split": {"head": "("}}}, "not a regular expression of RE2"),
    ({"format": "notebook", "cells": "first"}, '"all" or "last"'),
    ({"format": "jsonl", "group_by": "@.x", "elements": "$.x"}, "a path from the line"),
    ({"format": "jsonl", "delegates": {}}, 'it goes with "group_by"'),
    ({"format": "jsonl", "group_by": "@.x", "delegates": {"id": "@.id"}}, "which events begin a delegate"),
    (
        {
            "format": "jsonl",
            "group_by": "@.x",
            "delegates": {"id": "@.i", "parent": "@.p", "when": "else", "beside": {}},
        },
        "which events are agents",
    ),
    ([], "an empty list of containers"),
]
NO_EVENTS: list[tuple[Any, str]] = [
    ("messages", "events is a path"),
    ({}, "events has exactly one of path, zip, split, flatten; here: none"),
    ({"path": "$.a", "zip": {}}, "here: path and zip"),
    ({"path": "$.a", "sort": 1}, "unknown key 'sort'"),
    ({"path": "$.a", "pad": []}, "unknown key 'pad'"),
    ({"zip": []}, "zip holds names and paths"),
    ({"zip": {"a": "$.a[*]"}, "pad": ["b"]}, "a list of names that zip has: a"),
    ({"split": {"of": "$.a"}}, "split is"),
    ({"split": {"head": "(?P<body>x)"}}, "a group cannot be called body"),
    ({"split": {"head": "("}}, "not a regular expression of RE2"),
    ({"flatten": ["$.a[*]"]}, "two or three paths from outside in"),
    ({"path": "$.a", "drop_last": 0}, "a whole number from 1"),
    ({"path": "$.a", "drop_last": True}, "a whole number from 1"),
    ({"path": "$.a", "window": "x"}, "a whole number from 1"),
    ({"path": "$.a", "keep": True}, "keep is true or false and goes with until"),
    ({"path": "$.a", "unflatten": "$.b"}, 'a field of the event, such as "@.attributes"'),
    ({"path": "$.a", "decode": "@.b.c"}, 'decode: it names a field of the event, such as "@.payload"'),
]
NO_OUTCOME: list[tuple[Any, str]] = [
    ({"of": "$.r", "success": 1}, "'failure' is missing"),
    ({"of": "$.r", "success": 1, "failure": "else"}, '"else" needs a "type"'),
    ({"of": "$.r", "type": "string", "success": "else", "failure": "else"}, "one side only"),
    ({"of": "$.r", "type": "int", "success": 1, "failure": 0}, "it is one of string"),
]
NO_LABELS: list[tuple[Any, str]] = [
    ([], "run.labels: an object with mistake_step"),
    ({"mistake": "$.step"}, "unknown key 'mistake'"),
    ({"mistake_step": "$.step", "step_base": 2}, "step_base is 0 or 1"),
    ({"step_field": "@.n"}, "goes with mistake_step"),
    ({"mistake_step": "$.step", "step_base": 1, "step_field": "@.n"}, "without step_base"),
    ({"faults": "$.blamed"}, "run.labels.faults: "),
    ({"faults": {"each": "$.blamed"}}, "run.labels.faults: "),
    ({"faults": {"agent": "$.blamed"}}, "run.labels.faults: "),
    ({"faults": {"each": "$.blamed", "agent": "@.a", "step": "@.b"}}, "unknown key 'step'"),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"schema": "prefixguard/adapter/v2"},
            "this release reads 'prefixguard/adapter/v1'. A newer schema needs a newer",
        ),
        ({"schema": None}, "schema None"),
        ({"name": ""}, "'name' is a text that is not empty"),
        ({"version": 1}, "'version' is a text"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"rules": []}, "rules: a list of at least one rule"),
        ({"rules": ["x"]}, "rules[0]: a rule is an object"),
        ({"rules": [{"emit": "shout"}]}, "rules[0]: emit 'shout'; it is one of skip, observe"),
        ({"rules": [{"emit": "result"}]}, "a rule that emits 'result' needs 'result'"),
        ({"rules": [{"emit": "say", "result": "@.x"}]}, "unknown key 'result'"),
        ({"rules": [{"emit": "say", "actor": "robot"}]}, "'robot' is no actor"),
        ({"rules": [{"emit": "skip", "then": "go"}]}, '"then" is "stop"'),
        ({"status": "fine"}, 'status[0]: a status rule is {"when"'),
        ({"status": {"is": "ok"}}, "status is a list"),
        ({"budgets": {"result": [1]}}, "budgets.result: head and tail in code points"),
        ({"budgets": {"tool": [1, 1]}}, "unknown key 'tool'"),
        ({"budgets": {"result": [0, 0]}}, "head and tail in code points"),
        ({"join": {"by": "time"}}, '"id" or "order"'),
        ({"join": {"else": "first"}}, '"next", "last", "position" or "none"'),
        ({"join": {"mismatch": "x"}}, '"late"'),
        ({"run": []}, "run: an object"),
        ({"run": {"labels": []}}, "run.labels"),
        ({"run": {"labels": {"step_base": 2}}}, "step_base is 0 or 1"),
        ({"hidden": "$.x"}, "hidden: a list of paths"),
        ({"hidden": [3]}, "hidden[0]"),
        ({"waived": ["$.x"]}, "why is it harmless"),
        ({"container": []}, "an empty list of containers"),
        ({"container": [{"format": "json", "runs": []}]}, "an empty list of cases"),
        ({"container": [{"format": "json", "runs": [{"when": "else"}]}]}, 'a case is {"when": condition over %'),
        ({"container": [{"format": "json", "runs": [{"path": "@.x"}]}]}, "a path from the document"),
        ({"events": {"path": []}}, "an empty list of cases"),
        ({"events": {"path": [{"path": {"const": 1}}]}}, 'a case is {"when": condition over $'),
        ({"events": {"path": [{"path": "$.x", "wen": 1}]}}, "unknown key 'wen'"),
        *(({"container": one}, message) for one, message in NO_CONTAINER),
        *(({"events": one}, message) for one, message in NO_EVENTS),
        *(({"run": {"outcome": one}}, message) for one, message in NO_OUTCOME),
        *(({"run": {"labels": one}}, message) for one, message in NO_LABELS),
    ],
)
def test_no_adapter(make: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises(AdapterError) as caught:
        make(**change) if change != {"schema": None} else Adapter({"name": "x"})
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"adapter chat, {next(iter(change))}" if "events" in change else "adapter")


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from(["", "$", "@.a", "^.b", "else", "x", "(", "$.info"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["when", "of", "text", "re", "a"]), inner, max_size=2)
    ),
    max_leaves=5,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    return [path] + [place for key, value in inner for place in places(value, (*path, key))]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_broken_spec_is_always_an_adapter_error(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(list_adapters()))
    spec: Any = json.loads(load_adapter(name).to_bytes())
    target = data.draw(st.sampled_from([place for place in places(spec) if place]))
    node = copy.deepcopy(spec)
    inner = node
    for key in target[:-1]:
        inner = inner[key]
    inner[target[-1]] = data.draw(anything)
    try:
        Adapter(node)
    except AdapterError as exc:
        assert len(str(exc)) > 20


@pytest.mark.parametrize("value", [None, [], "x", 3, {}])
def test_what_is_no_object_is_no_adapter(value: Any) -> None:
    with pytest.raises(AdapterError):
        Adapter(value)
