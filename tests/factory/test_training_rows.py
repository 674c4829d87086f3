"""A training row: the prompt alone says what a reply is worth, by the parser of the deployed auditor."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefixguard.errors import DataError
from prefixguard.escalate import PromptKind, VerdictOutcome, ask_for_verdict
from prefixguard.factory.prompt_steps import steps_of
from prefixguard.factory.skips import Skips
from prefixguard.factory.training_rows import read_rows, row_of
from prefixguard.stepview import StepRecord

TEXT = st.text(st.sampled_from("ab \n|#:0123456789step"), max_size=40)
RECORD = st.builds(
    lambda actor, agent, tool, texts, status: StepRecord(1, actor, agent, tool, *texts, status),
    st.sampled_from(["agent", "agent", "user", "environment"]),
    st.sampled_from(["", "Coder", "Web Surfer", "agent 2"]),
    st.sampled_from(["", "respond", "search"]),
    st.tuples(TEXT, TEXT, TEXT, TEXT),
    st.sampled_from(["ok", "error"]),
)


@settings(deadline=None)
@given(st.lists(RECORD, min_size=1, max_size=12), st.sampled_from([4000, 24_000]))
def test_the_steps_of_a_prompt_are_those_that_were_shown(records: list[StepRecord], budget: int) -> None:
    run = [replace(record, index=number) for number, record in enumerate(records, 1)]
    run = [replace(record, result=record.result * 60) for record in run]
    prompt = ask_for_verdict(PromptKind.ONLINE, run, budget)
    shown = steps_of(prompt.messages)
    gone = {n for begin, end in prompt.excerpt.elided for n in range(begin, end + 1)}
    assert shown.elided == prompt.excerpt.elided
    assert [(r.index, r.actor, r.status) for r in shown.records] == [
        (r.index, r.actor, r.status) for r in run if r.index not in gone
    ]
    assert [r.agent for r in shown.records] == [
        r.agent if r.actor == "agent" else "" for r in run if r.index not in gone
    ]


def row(step: int | None = 2, agent: str | None = "Coder", **more) -> dict:
    records = [
        StepRecord(1, "agent", "Planner", "respond", "{}", "Sort the list.", "Coder, sort it.", "", "ok"),
        StepRecord(2, "agent", "Coder", "run", '{"code":"sort(x)"}', "", "", "Error: x is not defined", "error"),
    ]
    messages = ask_for_verdict(PromptKind.ONLINE, records, 24_000).messages
    facts = {"gold_step": step, "gold_agent": agent, "n_steps": 2, "class": "BE", "family": "t", "run_id": "r"}
    return {"prompt": list(messages), **facts, **more}


def test_the_right_reply_is_worth_most_and_reads_without_a_remark() -> None:
    for value, outcome in ((row(), VerdictOutcome.ALARM), (row(None, None), VerdictOutcome.SAFE)):
        made = row_of(value)
        verdict = made.verdict(made.target)
        assert (verdict.outcome, verdict.notes, made.reward(made.target)) == (outcome, (), 1.0)


def test_a_reply_is_gated_by_what_the_prompt_shows() -> None:
    made = row_of(row())
    assert made.verdict(made.target.replace('"answer": 2', '"answer": 3')).fault == "future-step"
    assert made.reward(made.target.replace("Coder", "Nobody")) == -1.2
    assert made.reward("I would rather not say.") == -1.2


def test_rows_that_cannot_be_used_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps(one) for one in (row(), row(9), row(2, "Nobody"), {"prompt": []})]
    path.write_text("\n".join([*lines, "{", ""]), "utf-8")
    skips = Skips()
    assert len(read_rows(path, skips)) == 1
    assert skips.counts == {
        "not a row of factory build": 2,
        "the decisive step is not among those that the prompt shows": 1,
        "the agent at fault is not among those that the prompt lists": 1,
    }
    path.write_text("{}\n", "utf-8")
    with pytest.raises(DataError, match=r"no row to train on\. 1 left out: not a row of factory build"):
        read_rows(path, Skips())


def test_an_empty_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text("\n")
    with pytest.raises(DataError, match="the file is empty: no row of it to train on"):
        read_rows(tmp_path / "rows.jsonl", Skips())
