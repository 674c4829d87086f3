"""Every command that reads runs, over a folder in which much is none: the good runs' result, and what was skipped."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bad_runs import BAD, raise_on_demand

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files of POSIX")

QUICK = ("--epochs", 1, "--symbol-epochs", 1, "--members", 1, "--teacher", 0, "--max-features", 64)


@pytest.fixture
def folders(
    tmp_path: Path, lab_file: Path, fresh_lab_file: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[bool], tuple[Path, Path]]:
    """Makes two folders of the same runs, one of them with everything that is no run beside them."""
    raise_on_demand(monkeypatch)

    def make(fresh: bool) -> tuple[Path, Path]:
        good, mixed = tmp_path / "good", tmp_path / "mixed"
        good.mkdir()
        for i, line in enumerate((fresh_lab_file if fresh else lab_file).read_bytes().splitlines()):
            (good / f"{'0~'[i % 2]}{i:03}.json").write_bytes(line)  # before and after what is bad
        shutil.copytree(good, mixed)
        for put in BAD.values():
            put(mixed)
        return good, mixed

    return make


def facts(command: str, out: str, folder: Path) -> Any:
    """What a command says of runs, without times, names of folders and notes on what was skipped."""
    said: list[Any] = [json.loads(line) for line in out.splitlines()]

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            left_out = ("id", "path", "source", "notes", "training_seconds", "seconds", "microseconds", "cost")
            return {name: plain(item) for name, item in value.items() if name not in left_out}
        if isinstance(value, list):
            return [plain(item) for item in value]
        return value.replace(str(folder), "") if isinstance(value, str) else value

    return plain(said)


COMMANDS: dict[str, Callable[[Path, Path, Path], tuple[object, ...]]] = {
    "parse": lambda runs, bundle, out: (runs, "--adapter", "openai_chat", "--json"),
    "info": lambda runs, bundle, out: (runs, "--adapter", "openai_chat", "--json"),
    "check-data": lambda runs, bundle, out: (runs, "--adapter", "openai_chat", "--no-curve", "--json"),
    "train": lambda runs, bundle, out: (runs, "--adapter", "openai_chat", "--out", out, "--json", *QUICK),
    "evaluate": lambda runs, bundle, out: (bundle, runs, "--resamples", 20, "--json"),
    "score": lambda runs, bundle, out: (bundle, runs),
    "compare": lambda runs, bundle, out: (bundle, bundle, "--runs", runs, "--resamples", 20, "--json"),
    "calibrate": lambda runs, bundle, out: (bundle, runs, "--out", out, "--json"),
    "audit": lambda runs, bundle, out: (runs, "--adapter", "openai_chat", "--monitor", bundle),
    "watch": lambda runs, bundle, out: (bundle, runs, "--json"),
    "export": lambda runs, bundle, out: (bundle, runs, "--out", out, "--alphabet", "typed", "--learner", "memoryless"),
}


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=pytest.mark.slow) if name in ("train", "export") else name for name in COMMANDS],
)
def test_the_good_runs_result(
    cli: Any, folders: Callable[..., Any], lab_bundle: Path, tmp_path: Path, command: str
) -> None:
    fresh = command not in ("check-data", "train", "export")
    results = []
    for folder in folders(fresh):
        said = cli(command, *COMMANDS[command](folder, lab_bundle, tmp_path / f"{folder.name}-out"))
        assert said.code in (0, 1), said.err
        assert "unexpected" not in said.err and "Traceback" not in said.err
        results.append((said.code, facts(command, said.out, folder)))
    assert results[0] == results[1]
    told = said.told + " " + said.out
    assert f"{len(BAD)} runs or files could not be read and were skipped; the first: " in told, said.err
    assert "mixed/bytes.json" in told


@pytest.mark.parametrize("command", ["induce-adapter", "check-adapter"])
def test_samples(cli: Any, folders: Callable[..., Any], tmp_path: Path, command: str) -> None:
    _, mixed = folders(True)
    if command == "check-adapter":
        said = cli(command, "openai_chat", mixed, "--no-processes", "--json")
        assert f"{len(BAD)} document(s) or run(s) could not be read" in said.told + said.out
    else:
        said = cli(command, mixed, "--no-recognise", "--no-write", "--yes", "--json")
    assert said.code in (0, 1, 4) and "unexpected" not in said.err, said.err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in ("score", "watch")])
@pytest.mark.slow
def test_labels_that_met_nothing(
    cli: Any, lab_bundle: Path, lab_file: Path, fresh_lab_file: Path, tmp_path: Path, command: str
) -> None:
    runs = lab_file if command in ("check-data", "train", "export") else fresh_lab_file
    first = json.loads(runs.read_bytes().splitlines()[0])
    labels = tmp_path / "labels.csv"
    labels.write_text(f"run_id,outcome\n{first['run_id']},{first['outcome']}\nnobody,failure\n")
    said = cli(command, *COMMANDS[command](runs, lab_bundle, tmp_path / "out"), "--labels", labels)
    told = said.told + " " + said.out
    assert said.code in (0, 1), said.err
    assert "1 label names no run that was read: 'nobody'." in told, said.err
    assert (
        f"{len(runs.read_bytes().splitlines()) - 1} runs have no label and the outcome that the trace gives: " in told
    )


@pytest.mark.parametrize(
    ("command", "option"),
    [("parse", "--labels"), ("evaluate", "--labels"), ("parse", "--adapter"), ("train", "--config"), ("parse", "RUNS")],
)
@pytest.mark.parametrize("kind", ["a named pipe", "a device", "a folder"])
def test_files_that_are_none_are_refused_at_once(
    cli: Any, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path, command: str, option: str, kind: str
) -> None:
    odd = {"a named pipe": tmp_path / "pipe.json", "a device": Path("/dev/zero"), "a folder": tmp_path / "folder.json"}
    os.mkfifo(odd["a named pipe"])
    odd["a folder"].mkdir()
    if option == "RUNS":
        if kind == "a folder":
            return  # of runs
        said = cli(command, odd[kind], "--adapter", "openai_chat")
    else:
        adapter = ("--adapter", "openai_chat") if command == "parse" and option != "--adapter" else ()
        bundle = (lab_bundle,) if command == "evaluate" else ()
        said = cli(command, *bundle, fresh_lab_file, *adapter, option, odd[kind])
    assert (said.code, said.out) == (2, "")
    assert f"Error: {odd[kind]}: is {kind}" in said.told


def test_a_shell_may_pipe_runs_and_labels(fresh_lab_file: Path) -> None:
    program = f"{sys.executable} -c 'from prefixguard.cli import main; main()'"
    first = json.loads(fresh_lab_file.read_bytes().splitlines()[0])["run_id"]
    labels = f"<(printf 'run_id,outcome\\n{first},unknown\\n')"
    line = f"{program} parse <(cat {fresh_lab_file}) --adapter openai_chat --json --labels {labels}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True, timeout=120)
    assert {row["outcome"] for row in map(json.loads, done.stdout.splitlines()) if row["run_id"] == first} == {
        "unknown"
    }
