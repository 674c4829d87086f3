"""The report: all that is known of an adapter is in it, and nothing in it can pose as markup."""

from __future__ import annotations

import json
import re
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from prefixguard.induce.checks import CheckReport, Finding
from prefixguard.induce.proposal import Choice, LeftOut, Mapped, Option, Proposal, Usage
from prefixguard.induce.report import Report
from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import Recognised

OPTIONS = (Option("goal", "$.goal", 0.6, "repeats", "x"), Option("id", "$.id", 0.4, "no"))


def report(**changes: Any) -> Report:
    finding = Finding(
        "leaks.verdict", "error", "the last step tells the end", "status", MappingProxyType({"auc": 0.99}), "cut it"
    )
    fields: dict[str, Any] = {
        "samples": Samples(
            "/home/me/secret place/runs",
            (SampleFile("a.json", "/home/me/secret place/runs/a.json", Kind.JSON, 1234, {}, ""),),
            (("b.json", "empty"),),
        ),
        "proposal": Proposal(
            {"name": "mine", "version": "1.0.0", "waived": [{"path": "@.text", "reason": "cut"}]},
            (Mapped("@.did", "tool", 0.5, 0.75, "few values | many"),),
            (LeftOut("$.won", "tells the end", 0.125),),
            (Choice("task", OPTIONS, 1, "rule"),),
            ("a note",),
        ),
        "check": CheckReport(
            "mine",
            "ab" * 32,
            (finding,),
            MappingProxyType({"runs": 12, "coverage": 0.9, "step_microseconds_median": 7.7}),
            MappingProxyType({"tool": 1.0}),
        ),
        "recognised": (Recognised("tau2", 3, 9, 1.0, 1.0, 0.0, 0.0, 0.0),),
        "usage": Usage("m", 2, 1000, 50, 0.25, "It was not taken."),
        "mended": ("The outcome was written by hand.",),
        "notes": ("another",),
    }
    return Report(**{**fields, **changes})


def test_everything_is_in_both_forms() -> None:
    made = report()
    page, kept = made.to_markdown(), json.loads(json.dumps(made.to_dict(), allow_nan=False))
    for said in (
        "# Adapter mine 1.0.0", "ab" * 32,
        "| @.did | tool | 50% | 0.75 | few values \\| many |", "| \\$.won | 12.5% |",
        "**task: rule**", "| goal | 0.60 |", "| **id** | 0.40 |", "a note",
        "another", "The outcome was written by hand.",
        "| @.text | cut |",
        "| error | leaks.verdict | status | the last step tells the end | cut it |", "| runs | 12 |",
        "| b.json | empty |",
        "m: 2 rounds, 1,000 tokens", "cost 0.2500", "It was not taken.", "tau2 reads 3 runs",
    ):  # fmt: skip
        assert said in page, said
    assert kept["samples"] == {
        "name": "runs", "files": 1, "bytes": 1234, "left_out": [{"path": "b.json", "why": "empty"}],
    }  # fmt: skip
    assert kept["check"]["findings"][0]["numbers"] == {"auc": 0.99} and kept["mended"] and kept["usage"]["cost"] == 0.25


def test_no_place_of_this_machine_and_no_clock() -> None:
    text = report().to_markdown() + json.dumps(report().to_dict())
    assert "secret place" not in text and "microseconds" not in text


def test_a_proposal_without_anything_is_a_page_too() -> None:
    check = CheckReport("", "", (), MappingProxyType({}), MappingProxyType({}))
    page = report(proposal=Proposal({}), check=check, usage=None, recognised=(), mended=(), notes=()).to_markdown()
    assert "none: the spec could not be compiled" in page and "Nothing." in page


@given(st.text(max_size=400))
def test_text_from_samples_stays_in_its_cell(text: str) -> None:
    page = report(proposal=Proposal({}, (Mapped(text + "\\|", "x", 1.0, 1.0, "why"),))).to_markdown()
    (row,) = (line for line in page.split("\n") if line.endswith("| x | 100% | 1.00 | why |"))
    assert "\r" not in row and len(row) <= 700
    assert len(re.sub(r"\\(.)", "", row).split("|")) == 7, "borders that are not escaped"


def test_long_tables_are_cut_and_say_so() -> None:
    page = report(proposal=Proposal({}, (Mapped("@.x", "y", 1.0, 1.0, "why"),) * 100)).to_markdown()
    assert page.count("| @.x | y |") == 60 and "\n40 more in the JSON." in page
