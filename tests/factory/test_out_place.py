"""No command writes over what it reads, and what is wrong with a place is said before any work."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from prefixguard.errors import OutputError
from prefixguard.escalate import Endpoint
from prefixguard.factory import annotate, build, collect, import_set, inject, replay

NOBODY = [Endpoint("m", "http://127.0.0.1:9/v1")]
COMMANDS: dict[str, Callable[[Path, Path], object]] = {
    "inject": lambda source, out: inject(source, out),
    "replay": lambda source, out: replay(source, out),
    "annotate": lambda source, out: annotate(source, out, NOBODY),
    "annotate with references": lambda source, out: annotate("other.jsonl", out, NOBODY, references=source),
    "import": lambda source, out: import_set("whoandwhen", str(source), out),
    "import of a pattern": lambda source, out: import_set("whoandwhen", str(source.with_name("c*.jsonl")), out),
    "collect": lambda source, out: collect("simulation", out, recorded=source),
    "build": lambda source, out: build([source], out=out),
    "build against": lambda source, out: build(["other.jsonl"], against=[source], out=out),
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("same", ["path", "another path", "link", "hard link"])
def test_an_out_that_is_an_input_is_refused(command: str, same: str, corpus_file: Path, tmp_path: Path) -> None:
    source = tmp_path / "corpus.jsonl"
    source.write_bytes(corpus_file.read_bytes())
    out = source if same == "path" else tmp_path / "sub" / ".." / "corpus.jsonl"
    if same == "another path":
        (tmp_path / "sub").mkdir()
    elif same != "path":
        out = tmp_path / "same.jsonl"
        (os.symlink if same == "link" else os.link)(source, out)
    there = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match=r"is one of the inputs|is a file: name a folder"):
        COMMANDS[command](source, out)
    assert source.read_bytes() == corpus_file.read_bytes() and sorted(tmp_path.rglob("*")) == there


@pytest.mark.parametrize("command", [name for name in COMMANDS if not name.startswith("build")])
def test_an_out_that_is_a_folder_is_refused(command: str, corpus_file: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder: name a file for OUT"):
        COMMANDS[command](corpus_file, tmp_path)


def test_an_out_in_the_folder_that_is_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="lies in the folder that is read"):
        import_set("whoandwhen", tmp_path, tmp_path / "out.jsonl")


@pytest.mark.parametrize("inside", [False, True])
def test_rows_need_a_folder(inside: bool, corpus_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(OutputError, match="file is a file: name a folder for OUT"):
        build([corpus_file], out=file / "rows" if inside else file)
    assert file.read_text() == "mine"


def test_rows_do_not_replace_a_corpus(corpus_file: Path, tmp_path: Path) -> None:
    source = tmp_path / "train-verdicts.jsonl"
    source.write_bytes(corpus_file.read_bytes())
    with pytest.raises(OutputError, match="is one of the inputs"):
        build([source], out=tmp_path)
