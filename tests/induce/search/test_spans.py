"""Spans: attributes in pairs, JSON in strings, histories that each call of the model repeats, and order by time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from prefixguard.induce.samples import open_samples
from prefixguard.induce.search.columns import is_attributes
from prefixguard.induce.search.door import propose_by_search
from prefixguard.stepview import Adapter, read_runs

RUNS = 6
ASKED = [
    ("Which town is the farthest north of all?", "Thanks, and which one is in the far south?"),
    ("How many parcels came in on Monday?", "And how many of these were sent back?"),
    ("Who has the key of the lower gate?", "Then who has the key of the upper one?"),
]


def _pairs(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]


def _spans(run: int) -> tuple[list[dict[str, Any]], list[tuple[str, str, str]]]:
    """Spans in the order in which they end, and the steps: what arrived, the tool or what was said, what came back."""
    history: list[dict[str, Any]] = [{"who": "system", "text": "You look things up and then you answer in one line."}]
    spans: list[dict[str, Any]] = []
    steps = []
    clock = 1_772_000_000 + 1000 * run
    for turn, question in enumerate(ASKED[run % 3]):
        history.append({"who": "user", "text": question})
        heard = question
        for look in range(2):
            call = {"name": ("find", "count")[look], "given": {"key": f"{run}{turn}{look}", "limit": look}}
            back = f"row {look} of run {run}: it is number {17 * run + turn} there"
            reply = {"who": "model", "calls": [{"id": f"c{run}{turn}{look}x", **call}]}
            said = {"step": "model", "in": json.dumps(history), "out": json.dumps([reply])}
            tool = {"step": "tool", "tool.name": call["name"], "tool.given": json.dumps(call["given"]), "back": back}
            spans += [
                {"trace": f"t-{run:04d}", "from": clock + 5, "to": clock + 6, "attributes": _pairs(tool)},
                {"trace": f"t-{run:04d}", "from": clock + 1, "to": clock + 4, "attributes": _pairs(said)},
            ]
            history += [reply, {"who": "tool", "text": back}]
            steps.append((heard, call["name"], back))
            clock, heard = clock + 10, ""
        answer = {"who": "model", "text": f"It is number {17 * run + turn}, as far as I can see."}
        said = {"step": "model", "in": json.dumps(history), "out": json.dumps([answer])}
        spans.append({"trace": f"t-{run:04d}", "from": clock + 1, "to": clock + 4, "attributes": _pairs(said)})
        history.append(answer)
        steps.append(("", answer["text"], ""))
        clock += 10
    return spans, steps


def test_spans_are_read_with_what_arrived_between_them(tmp_path: Path) -> None:
    truth = {}
    with (tmp_path / "spans.jsonl").open("w", encoding="utf-8") as out:
        for run in range(RUNS):
            spans, truth[f"t-{run:04d}"] = _spans(run)
            out.writelines(json.dumps(span) + "\n" for span in spans)
    spec = propose_by_search(open_samples(tmp_path), name="spans").spec
    assert spec["events"]["order_by"] == "@.from"
    found = {}
    for run in read_runs(tmp_path, Adapter(dict(spec))):
        name = run.source.rpartition(" ")[2]
        found[name] = [(r.observation, r.action if r.tool == "respond" else r.tool, r.result) for r in run.records]
    assert found == truth


def test_a_list_of_pairs_is_an_object() -> None:
    assert is_attributes([{"key": "a", "value": {"stringValue": "x"}}])
    assert not is_attributes([])
    assert not is_attributes([{"key": "a", "value": 1}, {"name": "b", "value": 2}])
