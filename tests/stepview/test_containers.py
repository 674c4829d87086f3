"""Containers: text with sections, notebooks, folders, archives, tables."""

from __future__ import annotations

import io
import json
import re
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from prefixguard.distribution import install_command
from prefixguard.errors import MissingExtraError, TraceError
from prefixguard.stepview import ReadReport, read_runs, zip_archives
from prefixguard.trace import archives

LOG = {
    "events": {"split": {"of": "$.body", "head": "(?P<kind>Act|Obs): "}},
    "rules": [
        {"when": {"@.kind": "Act"}, "emit": "call", "arguments": "@.body"},
        {"when": {"@.kind": "Obs"}, "emit": "result", "result": "@.body"},
    ],
    "join": {"by": "order"},
    "hidden": ["$.section"],
}
TEXT = """preface
== TRIAL 1 ==
-- GOOD --
Task: a
Act: 1\r
Obs: \x1b[31mx\x1b[0m
-- BAD --
Task: b
Act: 2
== TRIAL 2 ==
-- GOOD --
Task: c
Act: 3
Obs: z
End of run
Task 4
"""
SECTIONED = {
    "format": "text",
    "runs": {
        "split": {"head": r"(?m)^Task: (?P<task>\w+)\n"},
        "section": [r"(?m)^== TRIAL (?P<trial>\d) ==$", r"(?m)^-- (?P<verdict>\w+) --$"],
        "tail": "(?m)^End of run$",
    },
}


def test_text_with_sections_and_tails(make: Any, read: Any) -> None:
    verdict = {"of": "$.section.verdict", "success": "GOOD", "failure": "BAD"}
    adapter = make(
        container=SECTIONED, run={"task": "$.task", "groups": {"n": "$.section.trial"}, "outcome": verdict}, **LOG
    )
    runs = read(adapter, TEXT, "log.txt")
    assert [(r.run_id, r.task_id, r.groups["n"], r.outcome.value) for r in runs] == [
        ("log.txt#1", "a", "1", "success"),
        ("log.txt#2", "b", "1", "failure"),
        ("log.txt#3", "c", "2", "success"),
    ]
    assert [[(s.arguments, s.result) for s in r.records] for r in runs] == [[("1", "x")], [("2", "")], [("3", "z")]]


def test_one_text_one_run(make: Any, read: Any) -> None:
    adapter = make(container={"format": "text"}, run={}, **LOG)
    report = ReadReport()
    (only,) = read(adapter, b"Act: \xff\nObs: ok", "one.log", report=report)
    assert (only.run_id, only.records[0].arguments, report.bad_bytes) == ("one.log", "\ufffd", 1)


def test_a_notebook_is_the_text_of_its_outputs(make: Any, read: Any) -> None:
    outputs = [
        {"output_type": "stream", "text": ["Task: a\nA", "ct: 1\n"]},
        {"output_type": "execute_result", "data": {"text/plain": "Obs: 2\n"}},
        {"output_type": "display_data", "data": {"image/png": "..."}},
        None,
    ]
    cells = [{"outputs": [{"text": "Task: zero\nAct: 0\n"}]}, {"source": "x"}, {"outputs": outputs}, {"outputs": []}]
    notebook = {"cells": cells, "nbformat": 4}
    container = {"format": "notebook", "runs": SECTIONED["runs"]}
    runs = read(make(container=container, run={"task": "$.task"}, **LOG), notebook, "x.ipynb")
    assert [(r.task_id, r.records[0].result) for r in runs] == [("zero", ""), ("a", "2")]
    last = make(container={**container, "cells": "last"}, run={"task": "$.task"}, **LOG)
    assert [r.task_id for r in read(last, notebook, "x.ipynb")] == ["a"]
    with pytest.raises(TraceError, match="not a Jupyter notebook"):
        read(last, {"worksheets": []}, "x.ipynb")


def test_a_folder_a_run(make: Any, tmp_path: Path) -> None:
    container = {
        "format": "folder",
        "marker": "results.json",
        "members": {
            "res": "results.json",
            "log": {"path": "sessions/agent.log", "format": "text"},
            "out": {"path": "../up.json"},
        },
    }
    log = {**LOG, "events": {"split": {"of": "$.log", "head": "(?P<kind>Act|Obs): "}}, "hidden": ["$.res.ok"]}
    outcome = {"of": "$.res.ok", "type": "boolean", "success": True, "failure": False}
    adapter = make(container=container, run={"id": {"file": "parent"}, "outcome": outcome}, **log)
    for name, ok, text in (("r1", True, "Act: 1\rAct: 2"), ("r2", False, None), ("r3", None, "noise")):
        (tmp_path / name / "sessions").mkdir(parents=True)
        (tmp_path / name / "results.json").write_text(json.dumps({"ok": ok}))
        if text is not None:
            (tmp_path / name / "sessions" / "agent.log").write_text(text)
    report = ReadReport()
    (only,) = read_runs(tmp_path, adapter, report=report)
    assert (only.run_id, only.outcome.value, only.records[0].arguments) == ("r1", "success", "2")
    assert report.empty == {"failure": 1, "unknown": 1}
    (tmp_path / "r3" / "results.json").write_text("{")
    report = ReadReport()
    assert len(list(read_runs(tmp_path, adapter, report=report))) == 1
    assert "r3/results.json (results.json) line 1" in report.skipped[0][1]


def zipped(**members: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), text)
    return buffer.getvalue()


RUN = {"id": "r", "messages": [{"role": "assistant", "content": "hi"}]}


def test_a_zip_of_documents(make: Any, read: Any) -> None:
    adapter = make(container={"format": "zip", "entries": "samples/*.json"})
    data = zipped(header_json="{}", samples__b_json="{broken", samples__a_json=json.dumps(RUN))
    report = ReadReport()
    assert [r.run_id for r in read(adapter, data, "log.eval", report=report)] == ["r"]
    assert "log.eval/samples/b.json line 1, column 2: not JSON" in report.skipped[0][1]
    for bad in (data[:100], b"PK", b""):
        with pytest.raises(TraceError, match=r"log.eval: not a zip archive"):
            read(adapter, bad, "log.eval")


def test_a_zip_that_unpacks_to_too_much_is_refused(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound is over all members that would be read, and is that of a tar archive."""
    adapter = make(container={"format": "zip", "entries": "*.json"})
    members = {f"{name}_json": json.dumps(RUN | {"id": name, "pad": " " * 1000}) for name in "abc"}
    data = zipped(**members, other="x" * 100_000)
    monkeypatch.setattr(archives, "MOST_TIMES", 0)
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 5000)
    assert [r.run_id for r in read(adapter, data, "log.zip")] == ["a", "b", "c"], "what is not read does not count"
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 3000)
    with pytest.raises(TraceError, match=r"log.zip: unpacks to more than 3,000 bytes .* If you trust it, unpack it"):
        read(adapter, data, "log.zip")
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 1 << 20)
    monkeypatch.setattr(archives, "MOST_MEMBERS", 3)
    with pytest.raises(TraceError, match=r"log.zip: more than 3 members. If you trust it"):
        read(adapter, data, "log.zip")


def test_a_member_of_a_zip_that_is_too_large(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_archives, "LARGEST_DOCUMENT", 1000)
    report = ReadReport()
    data = zipped(a_json=json.dumps(RUN), b_json=json.dumps(RUN | {"pad": " " * 2000}))
    found = read(make(container={"format": "zip"}), data, "log.zip", report=report)
    assert [r.run_id for r in found] == ["r"]
    assert "log.zip/b.json: 2," in report.skipped[0][1] and "Unpack it, and write its runs as" in report.skipped[0][1]


def packed_by_zstd(**members: str) -> bytes:
    zipfile_zstd = pytest.importorskip("backports.zstd.zipfile")
    buffer = io.BytesIO()
    with zipfile_zstd.ZipFile(buffer, "w", compression=zipfile_zstd.ZIP_ZSTANDARD) as archive:
        for name, text in members.items():
            archive.writestr(name.replace("__", "/").replace("_json", ".json"), text)
    return buffer.getvalue()


def test_members_that_are_packed_by_zstd(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed_by_zstd(samples__a_json=json.dumps(RUN), samples__b_json=json.dumps(RUN | {"id": "b"}) + " " * 9000)
    adapter = make(container={"format": "zip", "entries": "samples/*.json"})
    assert [r.run_id for r in read(adapter, data, "log.eval")] == ["r", "b"]
    at = data.index(b"samples/a.json") + len("samples/a.json")
    report = ReadReport()
    damaged = data[:at] + b"\xff" * 8 + data[at + 8 :]
    assert [r.run_id for r in read(adapter, damaged, "log.eval", report=report)] == ["b"]
    assert "log.eval/samples/a.json: cannot be unpacked (" in report.skipped[0][1]
    monkeypatch.setattr(archives, "MOST_TIMES", 0)
    monkeypatch.setattr(archives, "ALWAYS_UNPACKED", 5000)
    with pytest.raises(TraceError, match=r"log.eval: unpacks to more than 5,000 bytes .* If you trust it, unpack it"):
        read(adapter, data, "log.eval")


def test_a_member_that_unpacks_to_more_than_it_says_is_bounded(make: Any, read: Any) -> None:
    """What an archive says of its members is what is unpacked of them at most."""
    data = bytearray(packed_by_zstd(a_json=json.dumps(RUN) + " " * 50_000_000))
    size = (len(json.dumps(RUN)) + 50_000_000).to_bytes(4, "little")
    for at in (data.index(size), data.rindex(size)):
        data[at : at + 4] = (60).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(TraceError, match=r"log.zip/a.json: cannot be unpacked \(Bad CRC-32"):
        read(make(container="zip"), bytes(data), "log.zip")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_zstd_says_what_to_install(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    data = packed_by_zstd(samples__a_json=json.dumps(RUN))
    for missing in ("backports", "backports.zstd"):
        monkeypatch.setitem(sys.modules, missing, None)
    monkeypatch.delattr(zipfile, "ZIP_ZSTANDARD", raising=False)
    needs = f"log.eval: unpacking zstd needs backports. Install it with: {install_command('zstd')}"
    with pytest.raises(MissingExtraError, match=re.escape(needs)):
        read(make(container={"format": "zip"}), data, "log.eval")
    with pytest.raises(MissingExtraError, match=re.escape(f"{needs}. Or: write the log as JSON: inspect log convert")):
        read(make(container={"format": "inspect"}), data, "log.eval")


def test_a_table_with_json_text_in_a_column(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    steps = [json.dumps(RUN["messages"]), "{broken", None]
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"id": ["x", "y", "z"], "messages": steps, "reward": [1.0, 0.0, 0.0]}), path)
    adapter = make(container={"format": "parquet", "json": "messages"})
    report = ReadReport()
    (only,) = read_runs(path, adapter, report=report)
    assert (only.run_id, only.outcome.value) == ("x", "success")
    assert "t.parquet row 2 column messages line 1" in report.skipped[0][1]
    assert report.empty == {"failure": 1}
    path.write_bytes(b"PAR1 no")
    with pytest.raises(TraceError, match="not a parquet file"):
        list(read_runs(path, adapter))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    needs = f"t.parquet: reading parquet needs pyarrow. Install it with: {install_command('data')}"
    with pytest.raises(MissingExtraError, match=re.escape(needs)):
        list(read_runs(path, adapter))


def test_the_nan_of_a_table_is_no_number(make: Any, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = {"id": ["x", "y"], "messages": [RUN["messages"]] * 2, "reward": [float("nan"), 1.0], "other": [0.0, 0.0]}
    parquet.write_table(pyarrow.table(rows), tmp_path / "t.parquet")
    outcome = {"of": {"first": ["$.reward", "$.other"]}, "success": {"ge": 1}, "failure": {"lt": 1}}
    adapter = make(container="parquet", run={"id": "$.id", "outcome": outcome})
    assert [run.outcome.value for run in read_runs(tmp_path, adapter, strict=True)] == ["failure", "success"]


def test_nested_runs(make: Any, read: Any) -> None:
    adapter = make(container={"format": "json", "runs": "$.groups[*].runs[*]"})
    document = {"groups": [{"runs": [{**RUN, "id": "1"}, {**RUN, "id": "2"}]}, {}, {"runs": {"k": {**RUN, "id": "3"}}}]}
    assert [r.run_id for r in read(adapter, document)] == ["1", "2", "3"]
    one = make(container={"format": "json", "runs": "$.deep.run"})
    assert [r.run_id for r in read(one, {"deep": {"run": RUN}})] == ["r"]


def test_a_table_of_rows_is_a_run_a_file_or_a_group(make: Any, read: Any) -> None:
    rule = {"emit": "step", "tool": "@.tool", "result": "@.seen"}
    table = 'run,tool,seen\na,look,"two\nlines"\nb,go,"a ""quoted"" word"\na,stop,\nb,too,many,cells\n'
    report = ReadReport()
    (only,) = read(make(container="csv", events="$.events[*]", rules=[rule]), table, "t.csv", report=report)
    assert [(s.tool, s.result) for s in only.records] == [
        ("look", "two\nlines"), ("go", 'a "quoted" word'), ("stop", ""),
    ]  # fmt: skip
    assert only.run_id == "t.csv#t.csv" and "more cells than the head" in report.skipped[0][1]
    by_run = {"format": "csv", "group_by": "@.run"}
    grouped = make(container=by_run, events="$.events[*]", rules=[rule], run={"id": "$.group"})
    assert [(r.run_id, len(r.records)) for r in read(grouped, table, "t.csv")] == [("a", 2), ("b", 1)]


def test_tables_beside_the_runs(make: Any, tmp_path: Path) -> None:
    for name in ("x", "y", "z"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name, "steps": [{"tool": "go"}]}))
    (tmp_path / "ends.csv").write_text("\ufeffrun,end\nx,good\ny,bad\n")
    (tmp_path / "ends.tsv").write_text("run;end;said\nx;good;a,b\ny;bad;c,d,e\n")
    (tmp_path / "ends.jsonl").write_text('{"run": "x", "end": "good"}\nnot json\n{"run": "y", "end": "bad"}\n')
    (tmp_path / "ends.map").write_text('{"x": {"end": "good"}, "y": {"end": "bad"}}')
    rules = [{"emit": "step", "tool": "@.tool"}]
    for of in (
        {"sibling": "ends.map", "path": '$["{stem}"].end'},
        {"sibling": "ends.map", "path": '$["{$.name}"].end'},
        {"sibling": "ends.jsonl", "format": "jsonl", "path": "$[run={stem}].end"},  # a list of one
        {"elements": {"sibling": "ends.tsv", "format": "csv"}, "when": {"@.run": {"eq": "$.name"}}, "path": "$[0].end"},
    ):
        run = {"outcome": {"of": of, "type": "string", "success": "good", "failure": "bad"}}
        adapter = make(container={"format": "json", "files": "*.json"}, events="$.steps[*]", rules=rules, run=run)
        assert [r.outcome.value for r in read_runs(tmp_path, adapter)] == ["success", "failure", "unknown"], of
    for table, key, end in (
        ({"sibling": "ends.csv", "format": "csv"}, "@.run", "$[0].end"),
        ({"sibling": "ends.jsonl", "format": "jsonl"}, "@.run", "$[0].end"),
        ({"sibling": "ends.map"}, "@.name", "$[0].value.end"),
    ):
        of = {"elements": table, "when": {key: {"in": {"list": [{"file": "stem"}]}}}, "path": end}
        run = {"outcome": {"of": of, "success": "good", "failure": "bad"}}
        adapter = make(container={"format": "json", "files": "*.json"}, events="$.steps[*]", rules=rules, run=run)
        assert [r.outcome.value for r in read_runs(tmp_path, adapter)] == ["success", "failure", "unknown"], table
