"""What a person says as fragments of the spec: read, put into a spec, and refused with a hint that would work."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from prefixguard.errors import ConfigError
from prefixguard.induce.fragments import EXAMPLES, HINTS, answers, completed, overlaid, places_of_events, said_of
from prefixguard.induce.proposal import Choice, Option
from prefixguard.induce.samples import open_samples

WHOLE = {"of": "$.reward", "type": "number", "success": {"ge": 1}, "failure": "else"}


@pytest.mark.parametrize("part", EXAMPLES)
def test_every_part_takes_its_example(part: str) -> None:
    said = said_of({part: EXAMPLES[part]})
    found: Any = said.fragment
    for name in part.split("."):
        found = found[name]
    assert found == (json.loads(EXAMPLES[part]) if EXAMPLES[part][0] in '[{"' else EXAMPLES[part])


def test_short_names_and_places_of_steps() -> None:
    said = said_of({"outcome": "$.ok", "runs": "$.all[*]", "tool": "@.do", "success": "yes", "status": "@.failed"})
    assert said.fragment == {"run": {"outcome": "$.ok"}, "container": {"runs": "$.all[*]"}}
    assert said.hints == {"outcome": "$.ok", "runs": "$.all[*]", "tool": "@.do", "success": "yes", "status": "@.failed"}
    more = said_of({"run.outcome": json.dumps(WHOLE), "join": '{"by": "order"}'})
    assert more.hints["outcome"] == "$.reward" and json.loads(more.hints["run.outcome"]) == WHOLE
    assert json.loads(more.hints["fragment"]) == {"run": {"outcome": WHOLE}, "join": {"by": "order"}}
    assert {"outcome", "success", "events", "tool", "run.labels", "container.group_by"} <= set(HINTS)


@pytest.mark.parametrize(
    ("hints", "message"),
    [
        ({"colour": "$.x"}, r"hint 'colour': nothing of that name.*--hint 'run.outcome=\{"),
        ({"outcome": "won"}, r"a path is needed.*Perhaps: --hint 'run.outcome=\$.won'"),
        ({"events": "messages"}, r"Perhaps: --hint 'events=\$.messages\[\*\]'"),
        ({"container.group_by": "trace"}, r"Perhaps: --hint 'container.group_by=@.trace'"),
        ({"tool": "do"}, "a path is needed"),
        ({"run.outcome": '{"of": "$.x", "success": 1, "failure": {"near": 2}}'}, r"near.*For example: --hint"),
        ({"rules": '[{"emit": "shout"}]'}, r"emit.*For example: --hint 'rules=\["),
        ({"events": "$.a["}, r"open bracket.*For example: --hint 'events=\$"),
        ({"join": '{"by": '}, r"not JSON.*For example: --hint 'join=\{"),
        ({"run.task": '{"first": 3}'}, "hint run.task"),
    ],
)
def test_what_is_no_part_is_refused_with_a_hint_that_would_work(hints: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        said_of(hints)


def test_files_of_fragments(tmp_path: Path) -> None:
    file = tmp_path / "part.json"
    file.write_text(json.dumps({"run": {"task": "$.goal"}, "hidden": ["$.x"], "schema": "prefixguard/adapter/v1"}))
    said = said_of({"run.id": "$.no"}, (file,))
    assert said.fragment == {"run": {"task": "$.goal", "id": "$.no"}, "hidden": ["$.x"]}
    for text, message in (("[1]", "no part of a spec"), ('{"colour": 1}', "'colour' is no part"), ("{", "not JSON")):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            said_of({}, (file,))


def test_what_was_said_stands_and_the_rest_is_what_was_inferred() -> None:
    spec = {"container": {"format": "json", "files": "*.json"}, "events": "$.a[*]", "hidden": ["$.reward"],
            "run": {"id": "$.id", "outcome": {"of": "$.b", "success": True, "failure": False}}}  # fmt: skip
    whole = completed(spec, {"run": {"outcome": WHOLE}, "events": "$.c[*]", "hidden": ["$.d"]})
    assert whole["run"] == {"id": "$.id", "outcome": WHOLE} and whole["events"] == "$.c[*]"
    assert whole["hidden"] == ["$.reward", "$.d"] and spec["hidden"] == ["$.reward"]
    assert completed(spec, {"run": {"outcome": "$.b"}}) == spec  # only its place: its sides are inferred
    sides = completed(spec, {"run": {"outcome": {"success": 1, "failure": 0}}})
    assert sides["run"]["outcome"] == {"of": "$.b", "success": 1, "failure": 0}
    assert overlaid({"container": {"format": "json"}}, {"container": {"runs": "$[*]"}})["container"] == {
        "format": "json", "runs": "$[*]",
    }  # fmt: skip


def test_a_question_has_the_flags_that_answer_it() -> None:
    options = (Option("a", WHOLE, 0.4, ""), Option("b", "$.it's", 0.3, ""), Option("none of these", None, 0.3, ""))
    first, second = answers(Choice("outcome", options, 0, ""))
    assert first.startswith("--hint 'run.outcome={") and second == '--hint ' + shlex.quote("run.outcome=$.it's")
    assert said_of({"run.outcome": first.removeprefix("--hint 'run.outcome=")[:-1]}).fragment["run"]["outcome"] == WHOLE
    assert answers(Choice("whatever", options, 0, "")) == []


def test_lists_of_the_samples_are_shown_as_places_of_events(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"log": {"turns": [{"t": i} for i in range(9)]}, "tools": [{}, {}]}))
    assert places_of_events(open_samples(tmp_path)) == ["$.log.turns[*]", "$.tools[*]"]
