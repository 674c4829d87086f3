"""Recorded spans: how files hold them changes nothing, delegates belong to their caller, missing texts are said."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from prefixguard.cli.shown import refuse_empty
from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport, load_adapter, losses, read_runs
from prefixguard.trace.split import task_key

RECORDED = Path(__file__).parent / "recorded"
SPANS = {
    str(path.parent.relative_to(RECORDED)): adapter
    for adapter, start in (("openinference", "openinference-*/*"), ("otel_genai", "*/otel_*"))
    for path in sorted(RECORDED.glob(f"{start}/truth.json"))
}
WITHOUT_TEXTS = [name for name in SPANS if name.endswith("_defaults")]


def spans_of(path: Path) -> list[Any]:
    exports = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    scopes = [scope for export in exports for one in export["resourceSpans"] for scope in one["scopeSpans"]]
    return [span for scope in scopes for span in scope["spans"]]


def test_there_are_such_recordings() -> None:
    assert len(SPANS) >= 10 and len(WITHOUT_TEXTS) == 1


def exported(spans: list[Any]) -> str:
    return json.dumps({"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": spans}]}]})


def steps_of(path: Path, adapter: str) -> list[str]:
    """What the records of every run say, without their place in the file."""
    runs = read_runs(path, load_adapter(adapter), strict=True)
    return sorted(str([replace(record, event=0) for record in run.records]) for run in runs)


@pytest.mark.parametrize("export", [name for name in SPANS if name not in WITHOUT_TEXTS])
def test_many_runs_in_one_file_in_any_order_are_read_as_each_alone(export: str, tmp_path: Path) -> None:
    """A collector writes what it has at hand, of whatever runs there are; others write one document."""
    adapter, files = SPANS[export], sorted((RECORDED / export).glob("*/traces.jsonl"))
    spans = sorted((span for path in files for span in spans_of(path)), key=itemgetter("spanId"))
    (tmp_path / "x.jsonl").write_text("".join(exported([span]) + "\n" for span in spans))
    (tmp_path / "x.json").write_text(exported(spans))
    expected = sorted(steps for path in files for steps in steps_of(path, adapter))
    assert steps_of(tmp_path / "x.jsonl", adapter) == expected
    assert steps_of(tmp_path / "x.json", adapter) == expected


def test_a_document_of_one_run_is_called_by_its_file_and_its_delegates_behind(tmp_path: Path) -> None:
    folder = RECORDED / "openinference-instrumentation-langchain-0.1.80" / "langchain_agent"
    for scenario, n in (("plain", 1), ("nested_parallel", 3)):
        (tmp_path / "x.json").write_text(exported(spans_of(folder / scenario / "traces.jsonl")))
        (tmp_path / "labels.csv").write_text("run_id,outcome\nx,failure\n")
        runs = list(read_runs(tmp_path / "x.json", load_adapter("openinference"), labels=tmp_path / "labels.csv"))
        assert [run.run_id.partition("/")[0] for run in runs] == ["x.json"] * n
        assert {run.outcome.value for run in runs} == {"failure"}
        assert len({task_key(run) for run in runs}) == 1


@pytest.mark.parametrize("export", WITHOUT_TEXTS)
def test_an_export_without_texts_is_said_to_be_one_and_what_has_to_be_set(export: str) -> None:
    adapter, report = load_adapter(SPANS[export]), ReadReport()
    for _ in read_runs(f"{RECORDED / export}/**/*.jsonl", adapter, strict=True, report=report):
        pass
    (said,) = losses(report.fills, adapter)
    assert said.severity == "error" and "Nothing can be learned from them." in said.text
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_ONLY" in said.text


def test_spans_that_no_rule_takes_say_what_has_to_be_set(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(exported([{"traceId": "t", "spanId": "s", "name": "answer"}]))
    report = ReadReport()
    assert not list(read_runs(tmp_path, load_adapter("otel_genai"), report=report))
    with pytest.raises(TraceError, match="OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"):
        refuse_empty(report, "RUNS", load_adapter("otel_genai"))


@pytest.mark.parametrize("scenario", ["plain", "nested", "nested_parallel"])
def test_live_calls_of_one_conversation_in_traces_of_their_own_are_one_run(scenario: str) -> None:
    """And those of a trace with another span above are not taken for it."""
    folder = RECORDED / "openinference-instrumentation-openai-0.1.66" / "openai_chat_alone"
    adapter = load_adapter("openinference")
    groups: list[Any] = []
    for _ in read_runs(folder / scenario, adapter, witness=lambda scope: groups.append(scope.run["events"])):
        pass
    assert max(len({span["traceId"] for span in events}) for events in groups) > 1
    for events in groups:
        parser = adapter.parser({})
        for event in events:
            parser.observe(event)
        assert parser.other_run is None
        parser.observe(events[0] | {"traceId": "other", "parentSpanId": "wrapper"})
        parser.observe(events[0] | {"traceId": "another", "parentSpanId": "wrapper"})
        assert parser.other_run is not None
