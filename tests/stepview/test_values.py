"""Every kind of value, golden; and what is no value."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.errors import AdapterError
from prefixguard.stepview.compiling import Base, DataPlace, Site
from prefixguard.stepview.paths import MISSING, Scope
from prefixguard.stepview.values import as_id, compile_arguments, compile_text, compile_value

ITEMS = [{"n": 1, "by": "you"}, {"n": 2, "by": "me"}, {"n": 3, "by": "you"}, {"n": 4, "by": "it"}]
EVENT = {
    "text": "Final score: 7 of 10",
    "blocks": [{"type": "text", "text": "look"}, {"type": "image"}],
    "json": '{"b": 1.10, "a": {"c": [1, 2]}}',
    "broken": "{not json",
    "null": None,
    "empty": "",
    "code": 3,
    "items": ITEMS,
    "kind": "ERR",
    "attributes": [{"key": "tool.name", "value": {"stringValue": "ls"}}],
}


def site(**options: Any) -> Site:
    return Site("here", {"@": Base(DataPlace("run", ())), "$": Base(DataPlace("run", ()))}, **options)


def value(spec: Any, **options: Any) -> Any:
    scope = Scope(event=EVENT, file="set/agent-x/run_7.traj.json", key="k1", position=4, index=2)
    return compile_value(spec, site(**options))(scope)


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("@.code", 3),
        ("$key", "k1"),
        ("$index", 4),
        ("@index", 2),
        ({"const": None}, None),
        ({"const": [1]}, [1]),
        ({"first": ["@.absent", "@.null", "@.empty", "@.code", "@.kind"]}, 3),
        ({"first": ["@.absent"]}, MISSING),
        ({"text": "@.blocks"}, "look\n<image>"),
        ({"text": "@.absent"}, MISSING),
        ({"json": "@.json"}, {"b": 1.1, "a": {"c": [1, 2]}}),
        ({"json": "@.json", "path": "$.a.c[-1]"}, 2),
        ({"json": "@.broken"}, MISSING),
        ({"json": "@.code"}, 3),
        ({"re": r"score: (\d+) of (?P<max>\d+)", "of": "@.text"}, "7"),
        ({"re": r"score: (\d+) of (?P<max>\d+)", "of": "@.text", "group": "max"}, "10"),
        ({"re": r"score: (\d+)", "of": "@.text", "group": 0}, "score: 7"),
        ({"re": r"score", "of": "@.text"}, "score"),
        ({"re": r"nothing", "of": "@.text"}, MISSING),
        ({"re": r"x", "of": "@.absent"}, MISSING),
        ({"join": ["@.kind", "@.absent", "@.code"], "sep": "/"}, "ERR/3"),
        ({"join": ["@.absent", "@.empty"]}, MISSING),
        ({"map": {"ERR": "error", "3": "three", "null": "none"}, "of": "@.kind"}, "error"),
        ({"map": {"3": "three"}, "of": "@.code"}, "three"),
        ({"map": {"null": "none"}, "of": "@.null"}, "none"),
        ({"map": {}, "of": "@.kind"}, MISSING),
        ({"map": {}, "of": "@.kind", "else": "@.code"}, 3),
        ({"cut": r"score: \d+", "of": "@.text"}, "Final  of 10"),
        ({"cut": [r"\d", "Final "], "of": "@.text"}, "score:  of "),
        ({"cut": "x", "of": "@.absent"}, MISSING),
        ({"strip": {"const": "  a b \n"}}, "a b"),
        ({"list": ["@.code", "@.absent", "@.kind"]}, [3, "ERR"]),
        ({"object": {"x": "@.code", "y": "@.absent"}}, {"x": 3}),
        ({"elements": "@.items"}, ITEMS),
        ({"elements": "@.items", "behind": {"@.by": "me"}, "path": "$[*].n"}, [3, 4]),
        ({"elements": "@.items", "behind": {"@.by": "me"}, "when": {"@.by": {"not": "you"}}, "path": "$[*].n"}, [4]),
        ({"elements": "@.items", "when": {"@.n": {"re": "[13]"}, "^.code": 3}, "path": "$[*].n"}, [1, 3]),
        ({"elements": "@.items", "behind": "else"}, []),
        ({"elements": "@.items", "behind": {"@.by": "nobody"}, "path": "$[-1].n"}, 4),
        ({"elements": "@.code"}, MISSING),
        ({"otlp": "@.attributes"}, {"tool": {"name": "ls"}}),
        ({"otlp": "@.attributes", "path": "$.tool.name"}, "ls"),
        ({"file": "stem"}, "run_7.traj"),
        ({"file": "name"}, "run_7.traj.json"),
        ({"file": "parent"}, "agent-x"),
        ({"file": "path"}, "set/agent-x/run_7.traj.json"),
        ({"file": "parent", "re": r"agent-(\w+)"}, "x"),
        ({"file": "parent", "re": "zzz"}, MISSING),
    ],
)
def test_value(spec: Any, found: Any) -> None:
    result = value(spec)
    assert result == found
    assert type(result) is type(found) or isinstance(result, int | float)


def test_ids_need_all_their_parts() -> None:
    assert value({"join": ["@.kind", "@.absent"]}, all_parts=True) is MISSING
    assert value({"join": ["@.kind", "@.code"], "sep": "-"}, all_parts=True) == "ERR-3"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("text", "such as {\"const\": 'text'}"),
        (3, "is not a value"),
        (None, "is not a value"),
        ([], "is not a value"),
        ({}, "a value has exactly one of"),
        ({"txt": "@.a"}, "here: txt"),
        ({"text": "@.a", "json": "@.b"}, "here: text and json"),
        ({"text": "@.a", "sep": ","}, "unknown key 'sep'"),
        ({"first": []}, "first holds a list of values"),
        ({"first": "@.a"}, "first holds a list of values"),
        ({"join": ["@.a"], "sep": 1}, "sep is a string"),
        ({"re": "(", "of": "@.a"}, "is not a regular expression of RE2"),
        ({"re": "(?=a)", "of": "@.a"}, "no look-around and no back-references"),
        ({"re": r"(a)\1", "of": "@.a"}, "no look-around and no back-references"),
        ({"re": "a", "of": "@.a", "group": 1}, "has no group 1"),
        ({"re": "a"}, 'needs "of"'),
        ({"cut": "a"}, 'needs "of"'),
        ({"map": [], "of": "@.a"}, 'a map is {"map"'),
        ({"file": "size"}, '"stem", "name", "parent" or "path"'),
        ({"json": "@.a", "path": "@.b"}, "starts with $"),
        ({"sibling": "/etc/passwd"}, "a path relative to the file of the run"),
        ({"sibling": "x/{outcome}.json"}, "in a template"),
        ({"sibling": "x.json", "format": "yaml"}, '"json" or "text"'),
        ("^.a", "^ cannot be used here; roots that can: $ @"),
        ({"object": []}, "object holds names"),
    ],
)
def test_no_value(spec: Any, message: str) -> None:
    with pytest.raises(AdapterError) as caught:
        compile_value(spec, site())
    assert message in str(caught.value)
    assert str(caught.value).startswith("here")


def test_file_names_are_not_read_into_records() -> None:
    with pytest.raises(AdapterError, match="the name of a file is not visible while the run is live"):
        compile_value({"file": "stem"}, site(in_record=True))


def test_values_as_text_and_as_arguments() -> None:
    def text(spec: Any) -> str:
        return compile_text(spec, site())(Scope(event=EVENT))

    def arguments(spec: Any) -> str:
        return compile_arguments(spec, site())(Scope(event=EVENT))

    assert text("@.null") == text("@.absent") == ""
    assert text("@.code") == "3"
    assert text("@.blocks") == "look\n<image>"
    assert arguments({"json": "@.json"}) == arguments("@.json") == '{"a":{"c":[1,2]},"b":1.10}'
    assert arguments("@.broken") == "{not json"
    assert arguments("@.absent") == arguments("@.null") == ""
    assert arguments({"object": {"z": "@.code", "a": "@.kind"}}) == '{"a":"ERR","z":3}'


def test_ids() -> None:
    assert as_id(7) == "7"
    assert as_id("a\ud800") == "a\ufffd"
    assert [as_id(x) for x in (MISSING, None, "", [], {})] == [None] * 5
