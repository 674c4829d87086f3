"""One bad run never ends a batch: it is skipped and named, or refused where that is asked for, and nothing else
leaves than our own errors."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path

import pytest
from bad_runs import BAD, raise_on_demand, run

from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport, load_adapter, read_runs
from prefixguard.trace import Document

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files of POSIX")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a good run at its beginning and one at its end."""
    raise_on_demand(monkeypatch)
    runs = tmp_path / "runs"
    runs.mkdir()
    for name in ("0", "~"):
        (runs / f"{name}.json").write_text(json.dumps(run(name)))
    return runs


@pytest.mark.parametrize("kind", BAD)
def test_the_good_runs_are_read_and_the_bad_one_is_named(folder: Path, kind: str) -> None:
    BAD[kind](folder)
    report, adapter = ReadReport(), load_adapter("openai_chat")
    assert [one.run_id for one in read_runs(folder, adapter, report=report)] == ["0", "~"]
    ((where, reason),) = report.skipped
    assert where.startswith(str(folder)) and reason.endswith((".", ")"))
    assert next(report.left_out()).startswith("1 run or file could not be read and was skipped; the first: ")
    with pytest.raises(TraceError) as caught:
        list(read_runs(folder, adapter, strict=True))
    assert type(caught.value) is TraceError and str(folder) in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_and_a_folder_without_permission(folder: Path) -> None:
    for name in ("closed", "listed"):
        (folder / name).mkdir()
        (folder / name / "a.json").write_text(json.dumps(run("a")))
    (folder / "secret.json").write_text(json.dumps(run("b")))
    (folder / "secret.json").chmod(0)
    (folder / "closed").chmod(0)
    (folder / "listed").chmod(0o400)
    report = ReadReport()
    try:
        assert len(list(read_runs(folder, load_adapter("openai_chat"), report=report))) == 2
        assert len(report.skipped) == 3
    finally:
        for name in ("closed", "listed"):
            (folder / name).chmod(0o700)


def test_a_folder_that_cannot_be_listed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "closed").mkdir()
    scandir = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    report = ReadReport()
    assert len(list(read_runs(folder, load_adapter("openai_chat"), report=report))) == 2
    assert report.skipped == [
        (f"{folder}/closed", "the folder cannot be read (Permission denied). Check its permissions.")
    ]


def test_a_file_that_vanishes_before_it_is_opened(folder: Path) -> None:
    (folder / "5.json").write_text(json.dumps(run("5")))
    report = ReadReport()
    runs = read_runs(folder, load_adapter("openai_chat"), report=report)
    assert next(runs).run_id == "0"
    (folder / "5.json").unlink()
    assert [one.run_id for one in runs] == ["~"]
    assert "5.json: cannot be read (No such file or directory)" in report.skipped[0][1]


def test_a_file_that_breaks_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(document: Document) -> bytes:
        if document.path == "0.json":
            raise OSError(5, "Input/output error")
        return (document.file or Path()).read_bytes()

    monkeypatch.setattr(Document, "read", broken)
    report = ReadReport()
    assert [one.run_id for one in read_runs(folder, load_adapter("openai_chat"), report=report)] == ["~"]
    assert "0.json: cannot be read (Input/output error)" in report.skipped[0][1]


def test_an_interruption_and_a_fault_of_the_caller_are_not_swallowed(folder: Path) -> None:
    for fault in (KeyboardInterrupt, ZeroDivisionError):

        def witness(_: object, fault: type[BaseException] = fault) -> None:
            raise fault

        with pytest.raises(fault):
            list(read_runs(folder, load_adapter("openai_chat"), witness=witness))


def test_good_lines_beside_bad_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raise_on_demand(monkeypatch)
    lines = [json.dumps(run(str(i), **({"raises": "memory"} if i % 3 == 1 else {}))) for i in range(9)]
    (tmp_path / "runs.jsonl").write_text(
        "\n".join([*lines, "[" * 50_000, "\ud800".encode("utf-8", "replace").decode()])
    )
    report = ReadReport()
    read = list(read_runs(tmp_path, load_adapter("openai_chat"), report=report))
    assert [one.run_id for one in read] == ["0", "2", "3", "5", "6", "8"]
    assert [where.rpartition(" ")[2] for where, _ in report.skipped] == ["2", "5", "8", "10", "11"]
    assert "does not fit into memory" in report.skipped[0][1] and "nested too deeply" in report.skipped[3][1]


def test_a_line_that_is_too_long_is_one_bad_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read past in bounded memory, and the lines behind it are read, from a file and from a pipe."""
    monkeypatch.setattr("prefixguard.trace.documents.LONGEST_LINE", 1000)
    good = [json.dumps(run(name)).encode() + b"\n" for name in "ab"]
    with (tmp_path / "runs.jsonl").open("wb") as file:
        file.write(good[0])
        file.seek(64 << 20, os.SEEK_CUR)
        file.write(b"\n" + good[1])
    report = ReadReport()
    tracemalloc.start()
    read = list(read_runs(tmp_path, load_adapter("openai_chat"), report=report))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [one.run_id for one in read] == ["a", "b"] and report.runs == 2
    ((where, why),) = report.skipped
    assert where.endswith("runs.jsonl line 2")
    assert "line 2: more than 1,000 bytes, and at most so many of a line are read. Write one run a line." in why
    assert peak < 16 << 20, "of 64 MiB"


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = json.dumps(run("a")).encode() + b"\n"
    monkeypatch.setattr("prefixguard.trace.documents.LONGEST_LINE", 1000)
    monkeypatch.setattr("prefixguard.trace.documents.MOST_PASSED", 1 << 28)
    with (tmp_path / "runs.jsonl").open("wb") as file:
        file.write(good)
        file.truncate(1 << 40)
    report = ReadReport()
    assert [one.run_id for one in read_runs(tmp_path, load_adapter("openai_chat"), report=report)] == ["a"]
    assert (
        "at most so many of a line are read. Write one run a line. 268,435,456 bytes were read past"
        in report.skipped[0][1]
    )


def test_links_inside_the_folder_lose_nothing(folder: Path) -> None:
    (folder / "again.json").symlink_to("0.json")
    (folder / "here").symlink_to(folder)
    report = ReadReport()
    read = list(read_runs(folder, load_adapter("openai_chat"), report=report))
    assert [one.run_id for one in read] == ["0", "0#2", "~"] and report.skipped == []
