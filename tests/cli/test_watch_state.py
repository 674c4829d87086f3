"""A run watched across processes gives the lines of one watch."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def messages(fresh_lab_file: Path) -> list[dict[str, Any]]:
    """A run with several steps."""
    runs = [json.loads(line) for line in fresh_lab_file.read_text().splitlines()]
    found: list[dict[str, Any]] = max((run["messages"] for run in runs), key=len)
    return found


def as_lines(messages: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(message) + "\n" for message in messages)


@pytest.mark.slow
def test_in_pieces_it_says_what_one_watch_says(cli, lab_bundle: Path, messages, tmp_path: Path) -> None:
    whole = cli("watch", str(lab_bundle), "-", "--json", stdin=as_lines(messages))
    file, said = tmp_path / "run.session", ""
    for i, message in enumerate(messages):
        last = ["--end"] if i == len(messages) - 1 else []
        done = cli("watch", str(lab_bundle), "-", "--json", "--state", str(file), *last, stdin=as_lines([message]))
        assert done.code == 0
        said += done.out
        assert file.exists() == (not last)
        if not last:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert said == whole.out
    assert said.count("\n") > 2


def test_what_cannot_be_restored_is_refused_and_left_alone(cli, lab_bundle: Path, messages, tmp_path: Path) -> None:
    file = tmp_path / "run.session"
    file.write_bytes(b"something else")
    done = cli("watch", str(lab_bundle), "-", "--state", str(file), stdin=as_lines(messages[:1]))
    assert (done.code, done.out) == (2, "")
    assert f"{file}: These 14 bytes are no saved session. Save it again, or start a new session." in done.told
    assert file.read_bytes() == b"something else"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_block(cli, lab_bundle: Path, messages, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    kinds = {tmp_path / "pipe": "a named pipe", tmp_path: "a folder", Path("/dev/zero"): "a device or a terminal"}
    for path, kind in kinds.items():
        done = cli("watch", str(lab_bundle), "-", "--state", str(path), stdin=as_lines(messages[:1]))
        assert done.code == 2
        assert f"is {kind}, not a file. Name the file that an earlier watch wrote, or a new one." in done.told


def test_a_folder_that_is_not_there(cli, lab_bundle: Path, messages, tmp_path: Path) -> None:
    done = cli("watch", str(lab_bundle), "-", "--state", str(tmp_path / "no" / "x"), stdin=as_lines(messages[:1]))
    assert done.code == 2
    assert "the session cannot be saved (No such file or directory). Name a file that can be written." in done.told


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["-", "--end"], "--end goes with --state FILE"),
        (["runs.json", "--state", "x"], "--state does not go with a file: its runs are whole"),
        (["-", "--state", "x", "--escalate", "m"], "--state does not go with --escalate: questions under way"),
    ],
)
def test_options_that_do_not_go_together(cli, lab_bundle: Path, options: list[str], sentence: str) -> None:
    done = cli("watch", str(lab_bundle), *options, stdin="")
    assert done.code == 2
    assert sentence in done.told
