"""Bad input: a message with place and remedy, exit code 2, never a traceback and never a line of data."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GOOD = [
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Hi."},
]


def line(**fields: Any) -> str:
    return json.dumps({"run_id": "a", "outcome": "success", "messages": GOOD, **fields}) + "\n"


BAD_RUNS = {
    "truncated": ('{"run_id": "a", "messages": [{"role": "us', ["runs.jsonl", "line 1"]),
    "not json": ("once upon a time\n", ["runs.jsonl", "line 1"]),
    "nothing": ("", ["runs.jsonl", "found no run in 1 file(s)", "prefixguard parse"]),
    "a number": ("17\n", ["runs.jsonl", "a number"]),
    "null": ("null\n", ["runs.jsonl", "null"]),
    "messages are a text": (line(messages="hello"), ["runs.jsonl"]),
    "messages are a number": (line(messages=5), ["runs.jsonl"]),
    "messages are numbers": (line(messages=[1, 2, None]), ["runs.jsonl", "skipped all 3 events"]),
    "roles are wrong": (line(messages=[{"role": 7, "content": []}]), ["runs.jsonl", "skipped all 1 events"]),
    "no messages": (line(messages=[]), ["prefixguard parse"]),
    "deep": ("[" * 100_000, ["runs.jsonl"]),
}


@pytest.mark.parametrize("kind", BAD_RUNS)
@pytest.mark.parametrize("command", ["train", "evaluate", "score", "watch", "parse", "info"])
def test_runs_that_are_none(cli, tmp_path: Path, lab_bundle: Path, kind: str, command: str) -> None:
    content, places = BAD_RUNS[kind]
    path = tmp_path / "runs.jsonl"
    path.write_text(content)
    adapter = ("--adapter", "openai_chat")
    arguments = {
        "train": (path, *adapter, "--out", tmp_path / "m"),
        "parse": (path, *adapter, "--json"),
        "info": (path, *adapter),
    }.get(command, (lab_bundle, path))
    said = cli(command, *arguments)
    assert (said.code, said.out) == (2, ""), said.err
    assert "Error: " in said.err and "unexpected" not in said.err
    for place in places:
        assert place in said.told
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (line(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": "z" * 50_000_000}]), "zzz"),
        (line().replace("Hi.", "a\\ud800b"), "a"),
        (line().replace('"Hi."', '"Hi.", "score": NaN'), "Hi."),
        (line(run_id=None, task_id=[1], outcome={"a": 1}, extra=1e308), "Hi."),
    ],
    ids=["50 MB line", "lone surrogate", "NaN", "odd types beside the run"],
)
def test_odd_runs_are_read(cli, tmp_path: Path, lab_bundle: Path, raw: str, seen: str) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(raw)
    said = cli("parse", path, "--adapter", "openai_chat", "--json")
    assert said.code == 0, said.err
    assert seen in said.lines[0]["action"] and len(said.lines[0]["action"]) < 10_000
    assert cli("parse", path, "--adapter", "openai_chat").code == 0
    scored = cli("score", lab_bundle, path)
    assert [reading["level"] != "UNKNOWN" for reading in scored.lines] == [True]


def test_an_empty_run_alone_is_an_error_with_its_place(cli, tmp_path: Path, lab_bundle: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(line(messages=[]))
    said = cli("score", lab_bundle, path)
    assert f"Error: {path}: 1 run, none with a step. See what the adapter makes of the events" in said.told
    path.write_text(line(messages=[]) + line(run_id="b"))
    said = cli("score", lab_bundle, path)
    assert said.code == 0 and {one["run_id"] for one in said.lines} == {"b"}
    assert "1 run without a step (1 success) was left out." in said.err


def test_bytes_that_are_no_text_are_replaced_and_counted(cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_bytes(line().encode().replace(b"Hi.", b"H\xff\xfe."))
    said = cli("parse", path, "--adapter", "openai_chat", "--json")
    assert said.code == 0 and "\ufffd" in said.lines[0]["action"]
    assert "2 bytes were not UTF-8 and were replaced." in said.err


def test_one_class_of_outcomes_cannot_be_trained_on(cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(line(run_id=f"r{i}", task_id=f"t{i}") for i in range(40)))
    said = cli("train", path, "--adapter", "openai_chat", "--out", tmp_path / "m")
    assert said.code == 2
    assert "Error: all 40 runs ended in success: both outcomes are needed to learn from." in said.told
    assert "--labels" in said.told


def test_one_class_by_labels_says_which_labels_met_no_run(cli, tmp_path: Path) -> None:
    path, labels = tmp_path / "runs.jsonl", tmp_path / "labels.csv"
    path.write_text("".join(line(run_id=f"r{i}", task_id=f"t{i}") for i in range(40)))
    labels.write_text("run_id,outcome\nr1,success\nr77,failure\n")
    said = cli("train", path, "--adapter", "openai_chat", "--labels", labels, "--out", tmp_path / "m")
    assert said.code == 2 and "all 40 runs ended in success" in said.told
    assert "1 label names no run that was read: 'r77'." in said.told and "39 runs have no label" in said.told


def test_runs_without_outcome_cannot_be_trained_on(cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(line(run_id=f"r{i}", outcome="true") for i in range(40)))
    said = cli("train", path, "--adapter", "openai_chat", "--out", tmp_path / "m")
    assert said.code == 2
    assert "40 runs have no outcome: add one with --labels" in said.told


def test_run_ids_that_occur_twice(cli, tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(line() + line() + line())
    said = cli("parse", path, "--adapter", "openai_chat", "--json")
    assert [one["run_id"] for one in said.lines] == ["a", "a#2", "a#3"]
    assert "2 runs had the id of another run" in said.err
    strict = cli("parse", path, "--adapter", "openai_chat", "--json", "--strict")
    assert strict.code == 2 and "'a' occurs before" in strict.err


def test_an_adapter_for_another_format(cli, lab_file: Path, tmp_path: Path) -> None:
    said = cli("train", lab_file, "--adapter", "tau_bench", "--out", tmp_path / "m")
    assert said.code == 2
    assert f"prefixguard parse {lab_file} --adapter tau_bench" in said.told


def test_an_unknown_adapter_names_the_nearest_and_how_to_make_one(cli, lab_file: Path) -> None:
    said = cli("parse", lab_file, "--adapter", "tau-bensh")
    assert said.code == 2
    assert "no adapter called 'tau-bensh'" in said.told and "tau_bench" in said.told
    assert "induce-adapter" in said.told


def test_there_are_no_such_runs(cli, lab_bundle: Path) -> None:
    said = cli("score", lab_bundle, "no/such/folder")
    assert said.code == 2 and "no/such/folder: there is no such file or folder" in said.told


@pytest.mark.parametrize("command", ["score", "evaluate", "watch"])
@pytest.mark.parametrize("damage", ["a flipped byte", "a newer schema", "a missing file", "a cut file"])
def test_a_bundle_that_is_not_whole(
    cli, tmp_path: Path, lab_bundle: Path, lab_file: Path, command: str, damage: str
) -> None:
    bundle = tmp_path / "m"
    shutil.copytree(lab_bundle, bundle)
    model, manifest = bundle / "model.onnx", bundle / "manifest.json"
    if damage == "a flipped byte":
        data = bytearray(model.read_bytes())
        data[len(data) // 2] ^= 1
        model.write_bytes(data)
        wanted = "model.onnx: damaged"
    elif damage == "a newer schema":
        told = manifest.read_text()
        manifest.write_text(re.sub(r"prefixguard/bundle/v\d+", "prefixguard/bundle/v9", told))
        wanted = "newer"
    elif damage == "a missing file":
        (bundle / "vocabulary.bin").unlink()
        wanted = "vocabulary.bin: cannot be read (No such file or directory)"
    else:
        model.write_bytes(model.read_bytes()[:-1])
        wanted = "bytes instead of"
    said = cli(command, bundle, lab_file)
    assert (said.code, said.out) == (2, "")
    assert wanted in said.told
    assert cli("info", bundle).code == 2


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.slow
def test_a_full_disk_while_training(lab_file: Path, tmp_path: Path) -> None:
    """Files cannot grow beyond 64 KB here, which fails as a full disk does: while a file is written."""
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))\n"
        "from prefixguard.cli import main; main()"
    )
    options = [
        "--adapter",
        "openai_chat",
        "--epochs",
        "1",
        "--symbol-epochs",
        "1",
        "--members",
        "1",
        "--teacher",
        "0",
        "--max-features",
        "64",
    ]
    command = [sys.executable, "-c", program, "train", str(lab_file), *options, "--out", str(tmp_path / "m")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "Error: " in done.stderr and str(tmp_path) in done.stderr
    assert "unexpected" not in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("run_id,outcome\na,maybe\n", "line 2: outcome 'maybe'. Write success, failure or unknown."),
        ("name,result\na,1\n", "needed: run_id,outcome[,task_id,mistake_step,mistake_agent]"),
        ("run_id,outcome\na,success\na,failure\n", "line 3: run 'a' was labelled before"),
    ],
)
def test_labels_that_are_none(cli, tmp_path: Path, lab_bundle: Path, content: str, told: str) -> None:
    runs, labels = tmp_path / "runs.jsonl", tmp_path / "labels.csv"
    runs.write_text(line())
    labels.write_text(content)
    said = cli("evaluate", lab_bundle, runs, "--labels", labels)
    assert said.code == 2
    assert "labels.csv" in said.told and told in said.told


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--epochs", "0"), "epochs = 0: a whole number of at least 1 is needed"),
        (("--budget", "0.9"), "budget = 0.9: a number between"),
        (("--backend", "lstm"), "backend 'lstm': choose one of gru"),
        (("--device", "tpu"), "device 'tpu': choose auto, cpu or cuda"),
    ],
)
def test_options_out_of_range(cli, lab_file: Path, tmp_path: Path, flags: tuple[str, ...], told: str) -> None:
    said = cli("train", lab_file, "--adapter", "openai_chat", "--out", tmp_path / "m", *flags)
    assert said.code == 2 and told in said.told


def test_a_bundle_that_is_there_is_not_written_over(cli, lab_file: Path, lab_bundle: Path) -> None:
    before = (lab_bundle / "manifest.json").read_bytes()
    said = cli("train", lab_file, "--adapter", "openai_chat", "--out", lab_bundle)
    assert said.code == 2 and "--overwrite" in said.told
    assert (lab_bundle / "manifest.json").read_bytes() == before
