from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from prefixguard.errors import TraceError

COMMAND = [sys.executable, "-c", "from prefixguard.cli import main; main()"]


def test_done_is_0_and_data_is_on_standard_output_alone(cli, lab_bundle: Path, fresh_lab_file: Path) -> None:
    said = cli("score", lab_bundle, fresh_lab_file)
    assert said.code == 0 and said.err == ""
    assert list(said.lines[0]) == [
        "run_id", "step", "imminent_risk", "outcome_risk", "level", "symbol", "state", "reasons", "unknown_reason",
        "behaviours",
    ]  # fmt: skip


@pytest.mark.parametrize("arguments", [("fly",), ("score",), ("train", "--epochs", "many"), ("evaluate", "a")])
def test_wrong_usage_is_2(cli, arguments: tuple[str, ...]) -> None:
    said = cli(*arguments)
    assert said.code == 2 and said.out == ""
    assert "Usage" in said.err


def test_errors_of_ours_are_a_message_and_2(cli) -> None:
    said = cli("score", "nowhere", "nothing")
    assert (said.code, said.out) == (2, "")
    assert said.told == "Error: No bundle at nowhere: it does not exist. Name the folder that `train` wrote."


def test_unexpected_errors_are_short_and_say_how_to_see_more(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug of ours")

    monkeypatch.setattr("prefixguard.cli.commands.watching.load", broken)
    said = cli("watch", "m", stdin="")
    assert said.code == 2
    assert "Error: unexpected ZeroDivisionError: a bug of ours" in said.err
    assert "prefixguard --traceback watch" in said.err and "PREFIXGUARD_TRACEBACK=1" in said.err


@pytest.mark.skipif(os.name == "nt", reason="closes streams in a POSIX shell")
@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("score {bundle} - <&-", "standard input is closed"),
        ("watch {bundle} <&-", "standard input is closed"),
        ("adapters --json >&-", "standard output is closed"),
    ],
)
def test_closed_streams_are_bad_input(lab_bundle: Path, command: str, told: str) -> None:
    arguments = command.format(bundle=shlex.quote(str(lab_bundle)))
    done = subprocess.run(["sh", "-c", f"{shlex.join(COMMAND)} {arguments}"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert told in done.stderr and "unexpected" not in done.stderr


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_the_traceback_is_shown_when_asked_for(how: str) -> None:
    arguments = ["--traceback"] if how == "flag" else []
    env = {**os.environ, "PREFIXGUARD_TRACEBACK": "1"} if how == "variable" else None
    done = subprocess.run([*COMMAND, *arguments, "watch", "nowhere"], capture_output=True, text=True, env=env)
    assert done.returncode == 2
    assert "Traceback (most recent call last)" in done.stderr and "No bundle at nowhere" in done.stderr


@pytest.mark.parametrize(
    ("command", "sentence"), [("train", "The same command resumes from the last epoch"), ("info", "Nothing is left")]
)
def test_interrupted_is_3_and_says_whether_it_resumes(
    cli, monkeypatch: pytest.MonkeyPatch, lab_file: Path, command: str, sentence: str
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("prefixguard.learn.train", interrupted)
    monkeypatch.setattr("prefixguard.cli.commands.info.info", interrupted)
    said = cli(command, lab_file, "--adapter", "openai_chat")
    assert said.code == 3
    assert "Interrupted." in said.err and sentence in said.told


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_real_interrupt_resumes(lab_file: Path, tmp_path: Path) -> None:
    """Ctrl-C after the first epochs, then the same command: it goes on and ends with a bundle."""
    options = [
        "--adapter",
        "openai_chat",
        "--symbol-epochs",
        "1",
        "--members",
        "1",
        "--max-features",
        "64",
        "--teacher",
        "0",
        "--budget",
        "0.25",
    ]
    # Epochs enough that the signal comes before the last one, on a busy machine too.
    command = [*COMMAND, "train", str(lab_file), *options, "--epochs", "15", "--json"]
    out = tmp_path / "resumed"
    process = subprocess.Popen(
        [*command, "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Where these tests run in the background of a shell, Ctrl-C is ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".*.training/*")):
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert "The same command resumes" in err and "Traceback" not in err
    assert not out.exists()
    done = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["path"] == str(out)
    assert not list(tmp_path.glob(".*.training")), "what it resumed from is gone"


def test_an_alarm_is_1_only_when_asked(cli, lab_bundle: Path, lab_file: Path) -> None:
    alarmed = next(line for line in cli("score", lab_bundle, lab_file).lines if line["level"] == "ALARM")["run_id"]
    arguments = ("watch", lab_bundle, lab_file, "--run-id", alarmed)
    assert cli(*arguments).code == 0
    assert cli(*arguments, "--fail-on-alarm").code == 1


def test_no_alarm_is_0_under_fail_on_alarm(cli, lab_bundle: Path, lab_file: Path) -> None:
    levels: dict[str, set[str]] = {}
    for line in cli("score", lab_bundle, lab_file).lines:
        levels.setdefault(line["run_id"], set()).add(line["level"])
    calm = next(name for name, found in levels.items() if "ALARM" not in found)
    assert cli("watch", lab_bundle, lab_file, "--run-id", calm, "--fail-on-alarm").code == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_behind_standard_output_is_told(lab_bundle: Path, fresh_lab_file: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [*COMMAND, "score", str(lab_bundle), str(fresh_lab_file)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: standard output: cannot be written (No space left on device). Free space")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["--version"], ["train", "--help"]])
def test_help_on_a_full_disk_is_a_sentence(words: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("Error: standard output: cannot be written (No space left on device). Free space")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_reader_that_has_enough_is_no_error(lab_bundle: Path, lab_file: Path) -> None:
    command = [*COMMAND, "score", str(lab_bundle), str(lab_file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=60) == 3
    assert process.stderr.read() == b""
    process.stderr.close()


def test_strict_raises_what_is_otherwise_skipped(cli, lab_bundle: Path, fresh_lab_file: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.jsonl"
    good = fresh_lab_file.read_bytes().splitlines(keepends=True)
    mixed.write_bytes(good[0] + b'{"messages": [\n' + good[1])
    said = cli("score", lab_bundle, mixed)
    assert said.code == 0
    assert {line["run_id"] for line in said.lines} == {"support-00040-0", "support-00040-1"}
    assert "1 run or file could not be read and was skipped; the first:" in said.told and "line 2" in said.told
    assert cli("score", lab_bundle, mixed, "--strict").code == 2


def test_trace_errors_leave_with_their_own_sentence(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise TraceError("runs.jsonl line 4: what, where, remedy.")

    monkeypatch.setattr("prefixguard.cli.commands.info.info", refused)
    assert cli("info", "runs.jsonl").told == "Error: runs.jsonl line 4: what, where, remedy."
