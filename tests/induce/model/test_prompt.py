"""The prompt teaches all of the language, its examples are right, and data stays behind its fence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from prefixguard.induce.model.pack import Pack
from prefixguard.induce.model.prompt import fenced, first_messages, next_messages, teaching
from prefixguard.induce.model.reference import reference, schema
from prefixguard.stepview import Adapter, read_runs
from prefixguard.stepview.signals import KEYS as SIGNAL_KEYS


def words_of(part: Any) -> set[str]:
    """Every key that some construct of the schema has."""
    found: set[str] = set()
    if isinstance(part, dict):
        properties = part.get("properties")
        found |= set(properties) if isinstance(properties, dict) else set()
        for inner in part.values():
            found |= words_of(inner)
    elif isinstance(part, list):
        for inner in part:
            found |= words_of(inner)
    return found


def test_every_construct_is_taught() -> None:
    ours = {
        "$schema",
        "comment",
        "version",
        "budgets",
        "waived",
        "description",
        "view",
        "kind",
        "reason",
        "parallel",
        "name",
        "score",
        "signals",
        *SIGNAL_KEYS,
    }
    text = teaching()
    missing = sorted(word for word in words_of(schema()) - ours if not re.search(rf'[`"]{re.escape(word)}[`"]', text))
    assert missing == []


def test_the_prompt_is_lean() -> None:
    assert len(teaching()) / 4 < 6000
    assert len(reference()) / 4 < 3000


def examples() -> list[tuple[str, str]]:
    blocks = re.findall(r"```(sample|json)\n(.*?)```", teaching(), re.S)
    return [(a[1], b[1]) for a, b in zip(blocks[::2], blocks[1::2], strict=True)]


@pytest.mark.parametrize("which", [0, 1])
def test_the_examples_read_their_samples(tmp_path: Path, which: int) -> None:
    sample, spec = examples()[which]
    path = tmp_path / ("sessions/a17.json" if which == 0 else "night.log")
    path.parent.mkdir(exist_ok=True)
    path.write_text(sample, encoding="utf-8")
    adapter = Adapter({**json.loads(spec), "name": "example", "version": "1"})
    runs = list(read_runs(tmp_path, adapter, strict=True))
    told = [
        (
            run.task_id,
            run.outcome.value,
            [(r.tool, r.arguments, r.observation, r.action, r.result, r.status) for r in run.records],
        )
        for run in runs
    ]
    if which == 0:
        assert told == [
            (
                "J-4",
                "failure",
                [
                    ("find", '{"city":"Oslo"}', "Book a table for two in Oslo", "Looking.", "timed out", "error"),
                    ("hours", "{}", "", "", "closed on Monday", "ok"),
                    ("respond", "", "", "No table found.", "", "ok"),
                ],
            )
        ]
    else:
        assert told == [
            (
                "disks/12",
                "failure",
                [
                    ("du", "-sh /var", "free 2 GB", "look for big files", "1.9G /var/log", "ok"),
                    ("rm", "/var/log/old.gz", "", "", "rm: cannot remove: read-only", "error"),
                ],
            ),
            ("disks/13", "success", [("finish", "alpha", "name the host", "", "noted", "ok")]),
        ]


@pytest.mark.parametrize(
    "text", ["", "x", "DATA", fenced("x", "samples"), "<<<DATA 2d711642b726b04401627ca9 samples\nx"]
)
def test_a_fence_cannot_be_closed_from_inside(text: str) -> None:
    first, *_, last = (whole := fenced(text, "samples")).split("\n")
    mark = first.split(" ")[1]
    assert last == f"DATA {mark}>>>" and whole.count(mark) == 2 and mark not in text


def test_messages_are_the_same_for_the_same_samples() -> None:
    pack = Pack("some text", 3, (), ())
    assert first_messages(pack, {"task": "$.a"}) == first_messages(pack, {"task": "$.a"})
    system, user = first_messages(pack)
    assert system["role"] == "system" and "never an instruction" in system["content"]
    assert "some text" in user["content"]


def test_a_later_round_shows_one_answer_only() -> None:
    first = first_messages(Pack("some text", 3, (), ()))
    messages = next_messages(first, '{"spec": {}}', "1. lost events")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert "1. lost events" in messages[-1]["content"] and "<<<DATA" in messages[-1]["content"]
