"""What a live run does not show is never read into a record: such a spec is refused, in a sentence."""

from __future__ import annotations

from typing import Any

import pytest

from prefixguard.errors import AdapterError

SAY = {"emit": "say", "action": "@.content"}


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"rules": [{"emit": "say", "action": "$.reward"}]}, "$.reward"),
        ({"rules": [{"emit": "say", "action": {"text": "$.info.task"}}]}, "$.info.task"),
        ({"rules": [{"emit": "say", "action": {"text": "$"}}]}, "$"),
        ({"rules": [{"emit": "say", "action": {"first": ["@.content", {"join": ["^.info"]}]}}]}, "$.info"),
        ({"rules": [{"when": {"$.info.error": {"present": True}}, **SAY}]}, "$.info.error"),
        ({"rules": [SAY], "status": [{"when": {"$.reward": 1}, "is": "error"}]}, "$.reward"),
        ({"rules": [SAY], "turn": "$.info.turn"}, "$.info.turn"),
        ({"rules": [SAY], "run": {"preamble": "$.info.instruction"}}, "$.info.instruction"),
        ({"rules": [SAY], "events": "$.info.messages[*]"}, "$.info.messages"),
        ({"rules": [SAY], "events": {"path": "$.m[*]", "until": {"$.info.x": 1}}}, "$.info.x"),
        ({"rules": [SAY], "events": {"path": "$.m[*]", "order_by": "$.info.t"}}, "$.info.t"),
        ({"rules": [SAY], "events": {"zip": {"content": "$.info[*]"}}}, "$.info"),
        ({"rules": [{"emit": "say", "each": "$.info.calls[*]", "action": "@.x"}]}, "$.info.calls"),
        ({"rules": [{"emit": "say", "action": "%[*].reward"}]}, "[*].reward"),
        ({"hidden": ["@.score"], "rules": [{"emit": "say", "action": "@.score"}]}, "score"),
        ({"hidden": ["@.score"], "rules": [{"emit": "say", "action": {"text": "@"}}]}, "score"),
        ({"hidden": ["@.calls[*].ok"], "rules": [{"emit": "say", "each": "@.calls[*]", "action": "@.ok"}]}, "ok"),
        ({"hidden": ["$.messages[-1]"], "rules": [SAY]}, "[-1]"),
    ],
)
def test_hidden_paths_are_refused(make: Any, parts: dict[str, Any], place: str) -> None:
    run = {"outcome": {"of": {"const": 1}, "success": 1, "failure": 0}}
    with pytest.raises(AdapterError) as caught:
        make(**({"run": run} | parts))
    assert "is not there while the run is live" in str(caught.value) or "overlaps the hidden" in str(caught.value)
    assert place in str(caught.value)
    assert str(caught.value).startswith("adapter chat, ")


def outcome_of(value: Any) -> dict[str, Any]:
    return {"outcome": {"of": value, "type": "string", "success": {"re": "1.0"}, "failure": "else"}}


def test_what_the_outcome_reads_must_be_cut(make: Any) -> None:
    run = outcome_of({"re": r"score (\S+)", "of": "$.messages[-1].content"})
    sentence = r"rules\[0\].action: reads @.content, which overlaps \$.messages\[-1\].content .* would learn the answer"
    with pytest.raises(AdapterError, match=sentence):
        make(run=run, rules=[SAY])
    make(run=run, rules=[{"emit": "say", "action": {"cut": r"score \S+", "of": "@.content"}}])
    waived = [{"path": "@.content", "reason": "the last message is dropped"}]
    make(run=run, rules=[SAY], waived=waived)
    with pytest.raises(AdapterError, match="why is it harmless"):
        make(run=run, rules=[SAY], waived=[{"path": "@.content", "reason": " "}])


def test_a_log_that_holds_the_outcome_must_be_cut(make: Any) -> None:
    events = {"split": {"of": "$.text", "head": "(?P<kind>A|B): "}}
    parts = {"container": {"format": "text"}, "hidden": [], "run": outcome_of({"re": "score (.*)", "of": "$.text"})}
    rules = [{"when": {"@.kind": "A"}, "emit": "say", "action": "@.body"}]
    with pytest.raises(AdapterError, match="a monitor would learn the answer"):
        make(events=events, rules=rules, **parts)
    make(events={"split": {**events["split"], "cut": "score .*"}}, rules=rules, **parts)
    make(events=events, rules=[{**rules[0], "action": {"cut": "score .*", "of": "@.body"}}], **parts)


def test_labels_are_hidden_by_themselves(make: Any) -> None:
    run = {"labels": {"mistake_step": "$.mistake_step", "mistake_agent": "$.mistake_agent"}}
    with pytest.raises(AdapterError, match=r"overlaps the hidden \$?.*mistake_agent"):
        make(run=run, rules=[{"emit": "say", "agent": "$.mistake_agent"}])


def test_what_faults_are_read_from_is_hidden_and_the_number_of_an_event_is_not(make: Any) -> None:
    rules = [{"emit": "say", "action": {"text": "@.step"}}]
    run = {
        "labels": {
            "mistake_step": "$.k",
            "step_field": "@.step",
            "faults": {"each": "$.out.faulty", "agent": {"first": ["@.who", "$.culprit"]}},
        }
    }
    make(run=run, rules=rules)
    for path in ("$.out.faulty[0].who", "$.out", "$.culprit", "$.k"):
        with pytest.raises(AdapterError, match=r"overlaps the hidden"):
            make(run=run, rules=[{"emit": "say", "action": {"text": path}}])


def test_asking_whether_something_is_there_is_no_reading_of_what_is_inside(make: Any) -> None:
    rules = [{"when": {"@": {"type": "object"}}, **SAY}]
    make(hidden=["@.score"], rules=rules, run={})
    with pytest.raises(AdapterError):
        make(hidden=["@.score"], rules=[{"when": {"@.score": {"present": True}}, **SAY}], run={})


def test_evaluation_may_read_what_is_hidden(make: Any) -> None:
    make(run={"id": "$.info.id", "task": "$.info.task", "groups": {"x": "$.info.x"}})


def test_companion_files_are_hidden_place_by_place(make: Any) -> None:
    verdict = {"sibling": "../report.json", "path": "$.resolved"}
    run = {"preamble": {"sibling": "../report.json", "path": "$.instruction"}}
    make(run=run, hidden=[verdict])
    with pytest.raises(AdapterError, match=r"overlaps the hidden sibling:../report.json \$.resolved"):
        make(run={"preamble": {"sibling": "../report.json"}}, hidden=[verdict])
