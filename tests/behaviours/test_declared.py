"""Behaviours that a file declares: what they count, and which files are refused, each by a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest
from behaving import Watched, call, fail, say
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard import behaviours
from prefixguard.behaviours import DeclaredBehaviours, load_behaviours
from prefixguard.errors import ConfigError, SavedSessionError
from prefixguard.stepview import StepRecord

Run = list[StepRecord]
ONE: dict[str, Any] = {"name": "mine", "sentence": "It is so.", "when": {"tool": "refund"}}
LOOK = call("get_order")
REFUND = call("refund")


def spec(*listed: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"schema": "prefixguard/behaviours/v1", "name": "shop", "behaviours": list(listed), **more}


def told(one: dict[str, Any], run: Run) -> list[tuple[int, int] | None]:
    """At each step since when and how often the one behaviour holds; None where it does not. Restored at every step."""
    declared = DeclaredBehaviours(spec({**ONE, **one}), "file")
    watched = Watched(behaviours.start(declared=declared))
    out: list[tuple[int, int] | None] = []
    for record in run:
        watched.tracker = behaviours.unpack(behaviours.pack(watched.tracker), declared)
        found = [f for f in watched.step(record) if f.behaviour.name == "mine"]
        out.append((found[0].since, found[0].count) if found else None)
    return out


@pytest.mark.parametrize(
    ("one", "run", "expected"),
    [
        ({}, [LOOK, REFUND, LOOK, REFUND], [None, (2, 1), None, (2, 2)]),
        ({"at_least": 2}, [REFUND, LOOK, REFUND], [None, None, (1, 2)]),
        ({"at_least": 2, "in_a_row": True}, [REFUND, LOOK, REFUND, REFUND], [None, None, None, (3, 2)]),
        ({"at_least": 2, "within": 2}, [REFUND, LOOK, REFUND, REFUND], [None, None, None, (3, 2)]),
        ({"at_least": 2, "within": 3}, [REFUND, LOOK, REFUND], [None, None, (1, 2)]),
        ({"unless_before": {"consequence": "reads"}}, [REFUND, LOOK, REFUND], [(1, 1), None, None]),
        ({"at_least": 2, "reset": {"tool": "get_order"}}, [REFUND, LOOK, REFUND, REFUND], [None, None, None, (3, 2)]),
        ({"when": {"tool": "refund", "status": "error"}}, [REFUND, fail("refund")], [None, (2, 1)]),
        ({"when": {"result": {"re": "(?i)DONE"}}}, [REFUND, fail("refund")], [(1, 1), None]),
        (
            {"when": {"action": {"longer": 3, "shorter": 6}}},
            [say("abc"), say("abcd"), say("abcdef")],
            [None, (2, 1), None],
        ),
        ({"when": {"any": [{"tool": "refund"}, {"tool": "get_order"}]}}, [REFUND, LOOK], [(1, 1), (1, 2)]),
        ({"when": {"not": {"tool": "refund"}}}, [REFUND, LOOK], [None, (2, 1)]),
        ({"when": {"tool": {"is": ["refund", "pay"]}}}, [call("pay"), LOOK], [(1, 1), None]),
        ({"when": {"consequence": "speaks"}}, [say("Hello."), LOOK], [(1, 1), None]),
    ],
)
def test_what_is_counted(one: dict[str, Any], run: Run, expected: list[Any]) -> None:
    assert told(one, run) == expected


def test_tools_are_told_their_kind() -> None:
    declared = DeclaredBehaviours(spec(tools={"escalates": ["call_boss"], "writes": ["get_money"]}), "file")
    watched = Watched(behaviours.start(declared=declared))
    names = [{f.behaviour.name for f in watched.step(call(tool))} for tool in ("call_boss", "get_money", "get_order")]
    assert ["escalates" in names[0], "writes" in names[1], "reads" in names[2]] == [True] * 3


def test_evidence_is_the_call() -> None:
    watched = Watched(behaviours.start(declared=DeclaredBehaviours(spec(ONE), "file")))
    *_, found = watched.step(call("refund", '{"id":1}'))
    assert (found.behaviour.kind, found.evidence) == ("neutral", 'refund {"id":1}')


def many(n: int) -> list[dict[str, Any]]:
    return [{**ONE, "name": f"mine{i}"} for i in range(n)]


FAULT = {**ONE, "kind": "fault", "nudge": "Stop.", "advice": "Look."}
WRONG: list[tuple[Any, str]] = [
    ([], "an object with some of these keys is needed: schema, name"),
    ({"schema": "prefixguard/behaviours/v9"}, "a newer schema needs a newer release"),
    ({**spec(ONE), "code": "x"}, "'code' is no key here"),
    (spec(), "declares neither behaviours nor tools"),
    ({**spec(ONE), "name": "My shop"}, "name: a name is needed: small letters"),
    (spec(*many(33)), "a list of at most 32 behaviours"),
    (spec(ONE, ONE), "two behaviours are called 'mine'"),
    (spec({**ONE, "name": "new_tool"}), "'new_tool' is a behaviour of the catalogue"),
    (spec({**ONE, "sentence": ""}), "a sentence for people is needed"),
    (spec({**ONE, "sentence": "a\nb"}), "a text on one line of at most 200 characters"),
    (spec({**ONE, "kind": "evil"}), "one of fault, artefact, neutral is needed"),
    (spec({**ONE, "kind": "fault"}), "a fault needs what to do about it"),
    (spec({**ONE, "alarm": 3}), "only a fault can have watch and alarm, and this is neutral"),
    (spec({**FAULT, "watch": 5, "alarm": 3}), "alarm 3 comes before watch 5"),
    (spec({k: v for k, v in ONE.items() if k != "when"}), "a condition `when` is needed"),
    (spec({**ONE, "when": {}}), "behaviours[0].when: an object with some of these keys"),
    (spec({**ONE, "when": {"model": "x"}}), "'model' is no key here"),
    (spec({**ONE, "when": {"status": "good"}}), "'good' can never be; it is one of ok, error, unknown"),
    (spec({**ONE, "when": {"consequence": "buys"}}), "'buys' can never be"),
    (spec({**ONE, "when": {"tool": {"is": "pay", "re": "^get"}}}), "its tests contradict one another"),
    (spec({**ONE, "when": {"tool": {"longer": 5, "shorter": 6}}}), "no text is longer than 5 and shorter than 6"),
    (spec({**ONE, "when": {"tool": {"re": "(a"}}}), "is not a regular expression of RE2"),
    (spec({**ONE, "when": {"tool": {"re": r"(a)\1"}}}), "is not a regular expression of RE2"),
    (spec({**ONE, "when": {"tool": {"re": "a*"}}}), "is found in every text, so it tests nothing"),
    (spec({**ONE, "when": {"tool": {"re": "a" * 1001}}}), "more than 1,000 characters"),
    (spec({**ONE, "when": {"tool": {"re": "((a{1,100}){1,100})"}}}), "behaviours[0].when.tool.re"),
    (spec({**ONE, "when": {"tool": 7}}), "an object with some of these keys is needed: is, re"),
    (spec({**ONE, "when": {"any": []}}), "a list of conditions is needed"),
    (spec({**ONE, "in_a_row": True, "within": 3, "at_least": 2}), "in_a_row and within contradict each other"),
    (spec({**ONE, "within": 3, "at_least": 4}), "at_least 4 within 3 steps can never hold"),
    (spec({**ONE, "within": 65, "at_least": 4}), "a whole number from 1 to 64 is needed"),
    (spec({**ONE, "within": 3}), "say nothing with at_least 1"),
    (spec({**ONE, "at_least": 0}), "a whole number from 1 to 1,000 is needed"),
    (spec({**ONE, "at_least": 2, "reset": ONE["when"]}), "can never hold 2 times"),
    (spec({**ONE, "at_least": 2, "unless_before": ONE["when"]}), "can never hold 2 times"),
    (spec(ONE, tools={"buys": ["a"]}), "'buys' is no key here"),
    (spec(ONE, tools={"reads": ["a"], "writes": ["a"]}), "'a' stands under reads and under writes"),
    (spec(ONE, tools={"reads": [7]}), "a list of names of tools is needed"),
    (spec(ONE, tools={"reads": [f"t{i}" for i in range(501)]}), "501 tools; at most 500"),
    (spec({**ONE, "when": {"any": [{"tool": {"re": f"a{i}"}} for i in range(65)]}}), "65 regular expressions"),
]


@pytest.mark.parametrize(("wrong", "sentence"), WRONG, ids=[sentence[:40] for _, sentence in WRONG])
def test_what_is_wrong_is_told_in_a_sentence(wrong: Any, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(wrong))
    with pytest.raises(ConfigError) as raised:
        load_behaviours(path)
    said = str(raised.value)
    assert said.startswith(str(path)) and sentence.lower() in said.lower() and said.endswith(".")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff", "a file of behaviours is JSON, and this is not"),
        (b"[" * 5000, "a file of behaviours is JSON, and this is not"),
        (b'{"schema": 1, "schema": 2}', "the key 'schema' stands twice in one object"),
        (b" " * 70_000, "at most 65,536"),
    ],
)
def test_what_is_no_such_file(data: bytes, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        DeclaredBehaviours.from_bytes(data, "file")


def test_deep_conditions_are_refused() -> None:
    deep: dict[str, Any] = {"tool": "a"}
    for _ in range(20):
        deep = {"not": deep}
    with pytest.raises(ConfigError, match="more than 8 deep"):
        DeclaredBehaviours(spec({**ONE, "when": deep}), "file")


def test_the_hash_is_of_what_it_says() -> None:
    one = DeclaredBehaviours(spec(ONE), "file")
    assert DeclaredBehaviours.from_bytes(json.dumps(spec(ONE), indent=3).encode(), "x").sha256 == one.sha256
    assert DeclaredBehaviours.from_bytes(one.to_bytes(), "x").to_bytes() == one.to_bytes()
    assert DeclaredBehaviours(spec({**ONE, "at_least": 2}), "file").sha256 != one.sha256


def test_damaged_counts_are_refused() -> None:
    declared = DeclaredBehaviours(spec(ONE), "file")
    packed = behaviours.pack(behaviours.start(declared=declared))
    assert len(packed) == behaviours.TRACKER_BYTES + 17
    with pytest.raises(SavedSessionError, match="declared behaviours are damaged"):
        behaviours.unpack(packed[:-1] + b"\x07", declared)
    with pytest.raises(SavedSessionError, match=f"not {behaviours.TRACKER_BYTES}: the session"):
        behaviours.unpack(packed)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["refund", "ok", "a*"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*ONE, "any", "not", "re", "is", "longer", "tool", "status", "within", "at_least"]), inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)  # fmt: skip


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["when", "unless_before", "reset", "at_least", "tools", "within"]), values))
def test_whatever_it_holds_it_opens_or_is_refused(more: dict[str, Any]) -> None:
    try:
        declared = DeclaredBehaviours(spec({**ONE, **more}, tools=more.get("tools", {})), "file")
    except ConfigError:
        return
    watched = Watched(behaviours.start(declared=declared))
    for record in (LOOK, REFUND, say("Hello.")):
        watched.step(record)
