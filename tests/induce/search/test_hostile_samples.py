"""Samples that nobody meant well: inference ends, soon, with an adapter or a sentence."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hand_written import chats, propose, steps, wanted
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import PrefixGuardError, TraceError

NO_RUNS: dict[str, Any] = {
    "package.json": {
        "name": "shop",
        "version": "1.0.0",
        "scripts": {"build": "tsc", "test": "jest"},
        "contributors": [{"name": "Ann", "email": "ann@shop.example"}, {"name": "Bo", "email": "bo@shop.example"}],
    },
    "places.json": {
        "type": "FeatureCollection",
        "features": [{"type": "Feature", "properties": {"name": f"place {i}"}} for i in range(40)],
    },
    "people.json": [{"id": i, "name": f"Name {i}", "email": f"n{i}@people.example"} for i in range(30)],
    "commits.json": [{"sha": f"{i:040x}", "author": "ab"[i % 2] * 3, "message": f"Mend {i}"} for i in range(40)],
    "products.json": [
        {"sku": f"A{i}", "reviews": [{"user": f"u{j}", "text": f"I like {i} but {j} is bad"} for j in range(4)]}
        for i in range(30)
    ],
    "questions.jsonl": [{"question": f"What is {i} plus {i}?", "answer": f"It is {2 * i}, I think"} for i in range(40)],
    "numbers.json": [1, 2, 3],
    "text.json": "only a text",
    "nothing.json": {},
    "null.json": None,
    "deep.json": '{"a":' * 5000 + "1" + "}" * 5000,
    "half.json": '{"messages": [{"role": "user", "content": "hi',
    "binary.bin": bytes(range(256)) * 50,
}


@pytest.mark.parametrize("name", sorted(NO_RUNS))
def test_what_is_no_run_of_an_agent_is_refused_in_words(name: str, tmp_path: Path) -> None:
    content = NO_RUNS[name]
    with pytest.raises(TraceError) as caught:
        propose(tmp_path, {name: json.dumps(content) if name == "text.json" else content})
    assert "looks like the events of an agent's runs" in str(caught.value)
    assert "--hint events" in str(caught.value)


def test_files_with_nothing_in_them_are_said(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="no file with anything in it"):
        propose(tmp_path, {"a.json": "", "b.jsonl": " \n\n"})


def test_one_event_is_too_little(tmp_path: Path) -> None:
    with pytest.raises(TraceError):
        propose(tmp_path, {"a.json": {"messages": [{"role": "user", "content": "hi there"}]}})


def nested(depth: int, kind: str) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"k": value} if kind == "object" else [value]
    return value


def in_event(**more: Any) -> list[dict[str, Any]]:
    runs = chats()
    for run in runs:
        run["messages"][2].update(more)
    return runs


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"a.json": in_event(deep=nested(800, "object"))}, id="deep object"),
        pytest.param({"a.json": in_event(deep=nested(800, "list"))}, id="deep list"),
        pytest.param({"a.json": in_event(deep='{"a":' * 20_000 + "1" + "}" * 20_000)}, id="deep JSON in a string"),
        pytest.param({"a.json": chats(), "deep.json": NO_RUNS["deep.json"]}, id="deep file beside"),
        pytest.param({"a.json": chats(6, 3, wide={f"k{i}": i for i in range(8_000)})}, id="many keys beside"),
        pytest.param({"a.json": in_event(wide={f"k{i}": {"a": i} for i in range(3_000)})}, id="many keys in an event"),
        pytest.param({"a.json": json.dumps(chats(score=float("nan"), most=float("inf")))}, id="no numbers"),
        pytest.param({"a.json": chats(number=-(10**400))}, id="a huge number"),
        pytest.param(
            {"a.json": json.dumps(chats()).replace('"role": "assistant"', '"role": "zz", "role": "assistant"')},
            id="a key twice",
        ),
        pytest.param({"a.json": chats(), "empty.json": "", "other.bin": b"\0\1\2"}, id="other files"),
        pytest.param({"run[1].json": chats(3), "{b,c}*.json": chats(6)[3:]}, id="odd file names"),
    ],
)
def test_runs_are_read_all_the_same(files: dict[str, Any], tmp_path: Path) -> None:
    began = time.process_time()
    _, runs = propose(tmp_path, files)
    assert sorted(steps(run) for run in runs) == sorted(wanted(i) for i in range(6))
    assert time.process_time() - began < 10


def test_half_characters_are_read(tmp_path: Path) -> None:
    text = json.dumps(chats()).replace("All is done", "\\ud800 is done").replace("A seat", "\\udfff seat")
    _, runs = propose(tmp_path, {"a.json": text})
    assert [steps(run) for run in runs] == [wanted(i) for i in range(6)]


def test_half_characters_in_names_end_in_an_adapter_or_an_error(tmp_path: Path) -> None:
    for n, name in enumerate(("content", "role", "messages", "run_id", "reward")):
        text = json.dumps(chats()).replace(f'"{name}"', f'"{name[:2]}\\ud800{name[2:]}"')
        try:
            propose(tmp_path / str(n), {"a.json": text})
        except PrefixGuardError as exc:
            assert str(exc).encode("utf-8", "backslashreplace")


def test_events_of_every_type_do_not_stop_those_that_are_right(tmp_path: Path) -> None:
    runs = chats()
    for run, odd in zip(
        runs, ([None, {}], [3], ["text"], [[1, 2], True], [{"role": None}], [{"role": ["a"]}]), strict=True
    ):
        run["messages"] += odd
    _, found = propose(tmp_path, {"a.json": runs})
    assert [steps(run)[:3] for run in found] == [wanted(i)[:3] for i in range(6)]


def test_names_that_look_like_paths_are_names(tmp_path: Path) -> None:
    odd = {
        "role": "@.x",
        "content": "$",
        "tool_calls": "a b[*]",
        "tool_call_id": "ro\"l'e",
        "reward": "",
        "task_id": "[0]",
    }
    text = json.dumps(chats())
    for name, other in odd.items():
        text = text.replace(json.dumps(name) + ":", json.dumps(other) + ":")
    _, runs = propose(tmp_path, {"a.json": text})
    assert [steps(run) for run in runs] == [wanted(i) for i in range(6)]


def test_values_that_look_like_paths_or_patterns_are_values(tmp_path: Path) -> None:
    text = json.dumps(chats())
    for name, other in {"assistant": "$.x", "tool": "(a+)+$", "user": "@[*]", "system": "^"}.items():
        text = text.replace(f'"role": "{name}"', f'"role": "{other}"')
    _, runs = propose(tmp_path, {"a.json": text})
    assert [steps(run)[:3] for run in runs] == [wanted(i)[:3] for i in range(6)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(
            st.sampled_from(["role", "content", "messages", "id", "tool", "args", "result", "type", "x"])
            | st.text(max_size=5),
            inner,
            max_size=5,
        )
    ),
    max_leaves=40,
)


@settings(max_examples=40, deadline=None)
@given(values=st.lists(json_values, min_size=1, max_size=4), lines=st.booleans())
def test_any_json_ends_in_an_adapter_or_an_error_of_ours(
    values: list[Any], lines: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("any")
    files = {"a.jsonl": values} if lines else {f"{i}.json": value for i, value in enumerate(values) if value != ""}
    with suppress(PrefixGuardError):
        told = {name: json.dumps(value) if isinstance(value, str) else value for name, value in files.items()}
        propose(root, told)
