"""The checks but for leaks: what is broken in a spec or in the data is found, what is right is not accused."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prefixguard.induce.checks import WEIGHTS, CheckReport, Finding, check_adapter, determinism, live
from prefixguard.induce.checks.check_report import worst_first
from prefixguard.stepview import Adapter, list_adapters, load_adapter, moment_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["role", "content", "tool_calls", "id", "name", "arguments", "time"]), inner)
    ),
    max_leaves=12,
)

Check = Callable[..., CheckReport]
Chats = Callable[..., list[dict[str, Any]]]
GOLDEN = Path(__file__).parents[3] / "stepview_adapters" / "golden"


def found(report: CheckReport) -> set[tuple[str, str]]:
    return {(one.check, one.severity) for one in report.findings}


def test_a_right_adapter(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    heard: list[str] = []
    report = check(spec, make_chats(), processes=True, listen=heard.append)
    assert report.ok
    assert {one.severity for one in report.findings} <= {"note"}
    assert report.score() > 0.97
    assert report.figures["runs"] == 40
    assert report.figures["coverage"] > 0.9
    assert report.figures["calls_joined"] == report.figures["said_once"] == report.figures["streams_equal"] == 1
    assert report.fields["tool"] == 1
    assert (report.adapter_name, report.sha256) == ("chat", Adapter(spec).sha256)
    assert set(WEIGHTS) - {"parallel_kept"} <= set(report.figures)
    assert json.loads(json.dumps(report.to_dict()))["ok"] is True
    assert {"reading", "leaks", "determinism"} <= set(heard)


def test_the_report_is_the_same_every_time(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    first, second = check(spec, make_chats()), check(spec, make_chats())
    told = [[one for one in report.findings if one.check != "time"] for report in (first, second)]  # a busy machine's
    assert told[0] == told[1]
    timed = {"step_microseconds_median", "step_microseconds_p99"}
    assert {k: v for k, v in first.figures.items() if k not in timed} == {
        k: v for k, v in second.figures.items() if k not in timed
    }


def test_nothing_that_can_be_read(spec: dict[str, Any], check: Check) -> None:
    report = check(spec, {"what": "is this"})
    assert not report.ok
    assert report.score() == 0
    assert report.findings[0].check == "reads"


def test_events_without_a_rule(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    del spec["rules"][4]
    report = check(spec, make_chats())
    assert {("reads.skipped", "note"), ("coverage.kind", "warning"), ("coverage.place", "note")} <= found(report)
    (kind,) = report.of("coverage.kind")
    assert kind.where == "role=tool"
    assert kind.numbers["share_of_text"] > 0.3
    assert "calls_joined" not in report.figures
    assert report.of("joins.none")
    assert report.score() < check(spec | {"rules": spec["rules"]}, []).score() or report.score() < 0.95


def test_empty_and_unread_runs_and_equal_ids(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats(10)
    runs[0]["messages"] = []
    runs[1]["id"] = runs[2]["id"]
    runs[3]["messages"] = "gone"
    runs[4]["reward"] = None
    del runs[5]["task"]
    report = check(spec, runs)
    assert {("reads.empty", "note"), ("reads.unread", "warning"), ("reads.ids", "warning")} <= found(report)
    assert {("reads.outcome", "note"), ("reads.task", "note")} <= found(report)
    assert report.figures["runs_read"] == 0.8


@pytest.mark.parametrize(
    ("headings", "files", "severity"),
    [(0, 4, None), (1, 4, "note"), (4, 4, "warning"), (60, 4, "error"), (1, 1, "note")],
)
def test_lines_that_belong_to_no_group(headings: int, files: int, severity: str | None, tmp_path: Path) -> None:
    for n in range(files):
        lines: list[dict[str, Any]] = [{"kind": "heading", "n": i} for i in range(headings)]
        lines += [{"run": f"r{n}", "kind": "said", "text": f"word {i} of {n}"} for i in range(8)]
        (tmp_path / f"{n}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    adapter = Adapter(
        {
            "schema": "prefixguard/adapter/v1",
            "name": "lines",
            "version": "1.0.0",
            "container": {"format": "jsonl", "group_by": "@.run"},
            "events": "$.events[*]",
            "rules": [{"emit": "say", "action": "@.text"}],
        }
    )
    report = check_adapter(adapter, tmp_path, processes=False)
    assert [one.severity for one in report.findings if one.check == "reads.ungrouped"] == (
        [severity] if severity else []
    )
    assert not report.of("reads.unread") and report.figures["runs_read"] == 1.0


def test_results_that_find_no_call(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats(20)
    for run in runs:
        for message in run["messages"]:
            if message["role"] == "tool":
                message["call_id"] += "x"
    report = check(spec, runs)
    assert {("joins.missing", "warning"), ("joins.late", "warning")} <= found(report)
    assert report.figures["calls_joined"] == 0
    assert report.score() < 0.5


def test_parallel_calls_that_are_lost(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats(20)
    for run in runs:
        calls = run["messages"][2]["tool_calls"]
        calls.append(calls[0] | {"id": "other", "name": "list"})
        run["messages"].insert(4, {"role": "tool", "call_id": "other", "content": "a b c"})
    report = check(spec, runs)
    assert report.figures["parallel_kept"] == 1
    assert not report.of("joins.parallel")
    rule = spec["rules"][2]
    del rule["each"]
    rule |= {"action": {"text": "@.content"}, "call_id": "@.tool_calls[0].id", "tool": "@.tool_calls[0].name"}
    rule["arguments"] = {"json": "@.tool_calls[0].arguments"}
    report = check(spec, runs)
    assert ("joins.parallel", "error") in found(report)
    assert report.figures["parallel_kept"] == 0.5


def test_calls_that_a_history_repeats_are_not_lost(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats(20)
    for run in runs:
        calls = run["messages"][2]["tool_calls"]
        calls.append(calls[0] | {"id": "other", "name": "list"})
        run["messages"].insert(4, {"role": "tool", "call_id": "other", "content": "a b c"})
        run["messages"][-1]["so_far"] = [dict(message) for message in run["messages"][:5]]
    report = check(spec, runs)
    assert report.figures["parallel_kept"] == 1
    assert not report.of("joins.parallel")


def test_times_that_run_backwards(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats(5)
    for run in runs:
        for i, message in enumerate(run["messages"]):
            message["timestamp"] = f"2026-01-01T00:00:{i:02}Z"
            message["duration_seconds"] = -i
    assert not check(spec, runs).of("order")
    for run in runs:
        run["messages"].reverse()
    assert {one.where for one in check(spec, runs).of("order.times")} == {"@.timestamp"}


@pytest.mark.parametrize(
    ("value", "time"),
    [(3, 3.0), ("12", 12.0), ("x", None), (True, None), (None, None), ("9" * 50, None)],
)
def test_times(value: Any, time: float | None) -> None:
    assert moment_of(value) == pytest.approx(time if time is not None else math.nan, nan_ok=True)


def test_times_with_and_without_zones() -> None:
    moments = {moment_of(f"2026-01-01T{rest}") for rest in ("01:00:00+01:00", "00:00:00Z", "00:00:00")}
    assert len(moments) == 1
    assert not math.isnan(*moments)


def test_a_text_that_is_read_twice(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    spec["rules"].insert(4, {"when": {"@.role": "tool"}, "then": "continue", "emit": "observe",
                             "observation": {"text": "@.content"}})  # fmt: skip
    assert ("doubling.text", "warning") in found(check(spec, make_chats()))


def test_an_agent_that_repeats_itself_is_no_fault(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = make_chats()
    for run in runs:
        for message in run["messages"]:
            if message["role"] == "tool":
                message["content"] = "The same long answer as it was given before, word for word."
    report = check(spec, runs)
    assert not report.of("doubling")


def test_a_history_that_every_event_repeats(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = []
    for run in make_chats(10):
        texts = [message["content"] for message in run["messages"]]
        steps = [{"input": "\n".join(texts[: i + 1]), "say": texts[i]} for i in range(1, len(texts))]
        runs.append({"id": run["id"], "reward": run["reward"], "messages": steps})
    rule = {"emit": "step", "observation": "@.input", "action": "@.say"}
    assert ("doubling.history", "warning") in found(check(spec | {"rules": [rule]}, runs))


def test_slow_rules_are_named(
    spec: dict[str, Any], check: Check, make_chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SLOW_MICROSECONDS", 0.0)
    report = check(spec, make_chats(5))
    assert ("time", "warning") in found(report)
    assert 0 < report.figures["step_microseconds_median"] <= report.figures["step_microseconds_p99"]


def test_what_only_the_file_has_is_not_there_live(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    runs = {"note": "from the file", "runs": make_chats(5)}
    spec["container"]["runs"] = "$.runs[*]"
    assert check(spec, runs).ok
    spec["run"]["preamble"] = "%.note"
    assert ("stream", "error") in found(check(spec, runs))


def test_dropping_the_last_event_is_said(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    spec["events"] = {"path": "$.messages[*]", "drop_last": 1}
    report = check(spec, make_chats(5))
    assert report.ok
    assert ("stream.offline", "note") in found(report)


def test_a_log_is_fed_in_odd_chunks(spec: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Action: löschen\nObservation: ok, é\nAction: b\nObservation: no\n" * 40, "utf-8")
    text = {
        "container": {"format": "text"},
        "run": {},
        "events": {"split": {"of": "$.text", "head": "(?P<kind>Action|Observation): "}},
        "join": {"by": "order"},
        "rules": [
            {"when": {"@.kind": "Action"}, "emit": "call", "tool": {"const": "do"}, "arguments": "@.body"},
            {"emit": "result", "result": "@.body"},
        ],
        "hidden": [],
    }
    report = check_adapter(Adapter(spec | text), tmp_path, processes=False)
    assert report.figures["streams_equal"] == 1
    assert report.figures["coverage"] == 1


def test_another_process_reads_the_same(
    spec: dict[str, Any], check: Check, make_chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not check(spec, make_chats(5), processes=True).of("determinism")
    monkeypatch.setattr(determinism, "digest_of", lambda *_: "another")
    assert ("determinism.again", "error") in found(check(spec, make_chats(5)))


@pytest.mark.parametrize(
    ("program", "check_name", "severity"),
    [
        ('print(\'{"digest": "another"}\')', "determinism.process", "error"),
        ("raise SystemExit('broken')", "determinism.process", "warning"),
    ],
)
def test_a_process_that_reads_something_else(
    program: str,
    check_name: str,
    severity: str,
    spec: dict[str, Any],
    check: Check,
    make_chats: Chats,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = subprocess.Popen

    def other(command: list[str], **options: Any) -> Any:
        return real([sys.executable, "-c", program], **options)

    monkeypatch.setattr(determinism.subprocess, "Popen", other)
    assert (check_name, severity) in found(check(spec, make_chats(5), processes=True))


def test_scores_rank_readings(spec: dict[str, Any], check: Check, make_chats: Chats) -> None:
    """The right reading, one without tools' names, one that reads half, one that joins nothing."""
    runs = make_chats()
    right = check(spec, runs).score()
    nameless = json.loads(json.dumps(spec))
    del nameless["rules"][2]["tool"]
    half = json.loads(json.dumps(spec))
    half["rules"][4] = {"when": {"@.role": "tool"}, "emit": "skip"}
    merged = json.loads(json.dumps(spec))
    merged["rules"] = [{"emit": "observe", "observation": {"text": "@.content"}},
                       {"when": {"@.role": "assistant"}, "emit": "say"}]  # fmt: skip
    for worse in (nameless, half, merged):
        assert check(worse, runs).score() < right - 0.05


def test_findings_are_sorted_and_single() -> None:
    one, two = Finding("b", "note", "x"), Finding("a", "error", "y")
    assert worst_first([one, two, one]) == (two, one)


@pytest.mark.parametrize("name", list_adapters())
def test_shipped_adapters_have_no_error(name: str) -> None:
    report = check_adapter(load_adapter(name), GOLDEN / name / "runs", processes=False)
    assert [one for one in report.findings if one.severity == "error"] == []
    assert not [one for one in report.of("leaks") if one.severity == "warning"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=JSON)
def test_no_document_breaks_a_check(document: Any, spec: dict[str, Any], check: Check) -> None:
    messages = document if isinstance(document, list) else [document]
    runs = [{"id": str(i), "reward": i, "messages": [*messages, {"role": "assistant", "content": "x"}]} for i in (0, 1)]
    report = check(spec, runs)
    assert 0 <= report.score() <= 1
    assert all(value == value for value in report.figures.values())
    json.dumps(report.to_dict())


@pytest.mark.real
def test_a_real_set_and_its_leaking_twin() -> None:
    root = Path(os.environ.get("PREFIXGUARD_TRACES") or Path(__file__).parents[3] / ".traces") / "webshop_react"
    if not root.exists():
        pytest.skip(f"no real runs at {root}: unpack them, or set PREFIXGUARD_TRACES")
    honest = load_adapter("webshop_react")
    report = check_adapter(honest, root, processes=False)
    assert report.ok
    assert not report.of("leaks")
    spec = json.loads(honest.to_bytes())
    del spec["events"]["split"]["cut"]
    spec["waived"] = [{"path": "$.body", "reason": "a twin that leaks"}]
    leaking = check_adapter(Adapter(spec), root, processes=False)
    errors = {one.check for one in leaking.findings if one.severity == "error"}
    assert {"leaks.last_step", "leaks.outcome", "leaks.verdict"} <= errors


def test_a_figure_that_is_no_number_is_null() -> None:
    """Of few tasks nobody can say how well a name tells outcomes; the JSON of a report has no NaN."""
    finding = Finding("leaks.identifier", "warning", "a name", "result", {"area": float("nan"), "runs": 3})
    assert json.loads(json.dumps(finding.to_dict(), allow_nan=False))["numbers"] == {"area": None, "runs": 3}
