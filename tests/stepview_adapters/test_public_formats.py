"""Adapters of public formats: what their samples say is read, and so are the shapes that the samples have not."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from agreement import agree, read_truth, readings

from prefixguard.stepview import load_adapter, read_runs

INDUCE = Path(__file__).parents[1] / "induce"
#: Samples, and the adapter that reads them.
SAMPLES = {
    **{name: name for name in (
        "a2a", "anthropic_messages", "atif", "autogen", "claude_code", "langgraph", "mcp", "openai_agents",
        "openai_responses", "openhands", "openinference", "otel_genai", "otel_genai_old", "smolagents",
    )},
    "inspect": "inspect_log",
    "langgraph_dumpd": "langgraph",
}  # fmt: skip
#: Samples whose format has no error flag: the text tells most of them.
WITHOUT_FLAG = ("atif", "openai_responses", "otel_genai_old")
#: Samples that tell the outcome where their format has a place for it.
WITH_OUTCOME = ("a2a", "atif", "inspect", "langgraph_dumpd", "openhands", "otel_genai")
REPORTED = sorted(set(SAMPLES.values()))
SHIPPED = Path(__file__).parents[2] / "stepview_adapters"


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_read_as_the_truth_says(name: str) -> None:
    folder = INDUCE / "samples" / name
    found = readings(read_runs(folder, load_adapter(SAMPLES[name])), folder)
    truth = agree(found, read_truth(INDUCE / "truth" / f"{name}.jsonl"))
    figures = (truth.runs, truth.records, truth.tools, truth.actors, truth.observations)
    assert figures == (1.0,) * 5
    assert {truth.arguments, truth.results, truth.actions} <= {1.0, None}
    assert truth.status is not None and truth.status >= (0.94 if name in WITHOUT_FLAG else 1.0)
    if name in WITH_OUTCOME:
        assert truth.outcomes == 1.0


@pytest.mark.parametrize("name", REPORTED)
def test_a_report_says_what_was_induced_and_what_was_mended(name: str) -> None:
    report = json.loads((SHIPPED / f"{name}.report.json").read_text(encoding="utf-8"))
    page = (SHIPPED / f"{name}.report.md").read_text(encoding="utf-8")
    assert report["adapter"]["sha256"] == load_adapter(name).sha256
    assert (
        report["origin"] == ("hand" if name == "otel_genai_old" else "offline")
        and report["mended"]
        and "Changed by hand" in page
    )
    assert not [one for one in report["check"]["findings"] if one["severity"] == "error"]
    size = sum(path.stat().st_size for path in (SHIPPED / "golden" / name).rglob("*") if path.is_file())
    assert 1000 < size < 30 << 10


#: Shapes of events by name: an adapter, events, and what their records hold besides tool respond and status ok.
SHAPES: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))
_FIELDS = {"tool": "respond", "arguments": "", "observation": "", "action": "", "result": "", "status": "ok"}


@pytest.mark.parametrize("case", SHAPES)
def test_shapes_that_the_samples_have_not(case: str) -> None:
    shape = SHAPES[case]
    parser = load_adapter(shape["adapter"]).parser({})
    records = [record for event in shape["events"] for record in parser.observe(event)] + parser.end()
    found = [{field: getattr(record, field) for field in _FIELDS} for record in records]
    assert found == [{**_FIELDS, **record} for record in shape["records"]]
    assert "Hidden thought" not in repr(records)
    assert not [name for name in parser.counters if name.startswith("skipped")]


def sample(value: Any, *more: Any) -> dict[str, Any]:
    scores = {f"s{i}": {"value": one} for i, one in enumerate((value, *more))}
    return {"id": "a", "uuid": f"{value}{more}", "scores": scores, "messages": [{"role": "assistant", "content": "x"}]}


def test_scores_of_an_inspect_log(tmp_path: Path) -> None:
    samples = [
        sample("C"),
        sample(1.0),
        sample(True, "C"),
        sample("I"),
        sample(0),
        sample("C", "I"),
        sample("P"),
        sample({"a": 1}),
    ]
    (tmp_path / "log.json").write_text(json.dumps({"version": 2, "samples": samples}))
    with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("samples/a_epoch_1.json", json.dumps({**sample("N"), "uuid": "zipped"}))
    outcomes = [run.outcome.value for run in read_runs(tmp_path, load_adapter("inspect_log"), strict=True)]
    assert sorted(outcomes) == ["failure"] * 3 + ["success"] * 3 + ["unknown"] * 3
    by_id = {run.run_id: run.outcome.value for run in read_runs(tmp_path, load_adapter("inspect_log"))}
    assert by_id["zipped"] == "failure" and by_id["C('I',)"] == by_id["P()"] == "unknown"


def test_subagents_are_runs_of_their_own(tmp_path: Path) -> None:
    def line(n: int, **more: Any) -> str:
        message = {"id": f"m{n}", "content": [{"type": "text", "text": f"text {n}"}]}
        return json.dumps({"type": "assistant", "uuid": str(n), "message": message, **more}) + "\n"

    (tmp_path / "s.jsonl").write_text(line(1) + line(2, isSidechain=True) + line(3, parent_tool_use_id="toolu_9"))
    (tmp_path / "s" / "subagents").mkdir(parents=True)
    (tmp_path / "s" / "subagents" / "agent-x.jsonl").write_text(line(4, isSidechain=True, agentId="x"))
    runs = {run.run_id: run.records[0].action for run in read_runs(tmp_path, load_adapter("claude_code"), strict=True)}
    assert runs == {"s": "text 1", "s/sidechain": "text 2", "s/toolu_9": "text 3", "agent-x/x": "text 4"}


@pytest.mark.parametrize(
    ("name", "events"),
    [
        ("anthropic_messages", [{"role": "assistant", "content": "x"}]),
        ("autogen", [{"type": "TextMessage", "source": "a", "content": "x"}]),
        ("langgraph", [{"type": "ai", "content": "x"}]),
        ("openai_responses", [{"type": "message", "role": "assistant", "content": "x"}]),
        ("smolagents", [{"step_number": 1, "model_output": "x"}]),
        ("openhands", [{"action": "message", "source": "agent", "args": {"content": "x"}}]),
    ],
)
@pytest.mark.parametrize("form", ["array of events", "array of runs", "lines", "one"])
def test_runs_lie_in_files_as_people_have_them(name: str, events: list[Any], form: str, tmp_path: Path) -> None:
    under = {"smolagents": "steps", "openai_responses": "items", "openhands": "history"}.get(name, "messages")
    run = {under: events}
    file, text = {
        "array of events": ("a.json", json.dumps(events)),
        "array of runs": ("a.json", json.dumps([run, run])),
        "lines": ("a.jsonl", json.dumps(run) + "\n" + json.dumps(run) + "\n"),
        "one": ("a.json", json.dumps(run)),
    }[form]
    (tmp_path / file).write_text(text)
    runs = list(read_runs(tmp_path, load_adapter(name), strict=True))
    assert len(runs) == (2 if form in ("array of runs", "lines") else 1)
    assert all(run.records[0].action == "x" for run in runs)


@pytest.mark.parametrize(
    "labels", [("pass", "PASS", "success"), ("fail", "incorrect", "failure"), ("pass", "fail", "unknown")]
)
def test_evaluations_of_a_trace(labels: tuple[str, str, str], tmp_path: Path) -> None:
    *given, outcome = labels
    key = "gen_ai.evaluation.score.label"
    events = [
        {"name": "gen_ai.evaluation.result", "attributes": [{"key": key, "value": {"stringValue": one}}]}
        for one in given
    ]
    reply = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": [{"parts": [{"type": "text", "content": "x"}]}]}
    spans = [{"traceId": "t", "attributes": reply}, {"traceId": "t", "attributes": {}, "events": events}]
    export = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
    for file in ("a.json", "a.jsonl"):
        (tmp_path / file).write_text(json.dumps(export) + "\n")
    runs = list(read_runs(tmp_path, load_adapter("otel_genai"), strict=True))
    assert [run.outcome.value for run in runs] == [outcome] * 2
    assert [run.run_id for run in runs] == ["a.json", "t"]
