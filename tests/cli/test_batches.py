"""Every command that reads runs, over a folder in which much is none: the good runs' result, and what was skipped."""

from __future__ import annotations

import json
import os
import shutil
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


@pytest.mark.parametrize("command", COMMANDS)
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
    assert said.code in (0, 1) and "unexpected" not in said.err, said.err
