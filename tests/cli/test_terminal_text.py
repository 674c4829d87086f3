"""Nothing from outside acts on a terminal or hides in a line of data, whatever the command."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from prefixguard.cli.app import app
from prefixguard.cli.console import visible, visible_json
from prefixguard.induce.search import beam
from prefixguard.simulation import generate

MONITOR = Path(__file__).parents[2] / "monitors" / "lab"
#: One of each kind: C0, DEL, C1, format characters, marks of direction, separators, private use, tags.
CHARACTERS = (
    "\x1b\x07\x08\x7f\x85\x9b\u00ad\u061c\u200b\u200c\u200d\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2060"
    "\u2066\u2067\u2068\u2069\ufeff\ue000\U000e0041"
)
EVIL = f"e\x1b[31m\x1b]0;t\x07{CHARACTERS}vil"
#: As bytes of UTF-8; C1 characters as such, since a terminal may read bytes.
RAW = tuple(character.encode() for character in CHARACTERS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs whose names, texts, tools and file name hold all of them, and a file whose name is not UTF-8."""
    path = tmp_path_factory.mktemp("hostile") / EVIL
    path.mkdir()
    with (path / f"{EVIL}.jsonl").open("w", encoding="utf-8") as file:
        for run in generate(12, 31, trials=1):
            named = {"run_id": f"{run['run_id']}{EVIL}", "task_id": f"{run['task_id']}{EVIL}", "agent": EVIL}
            for message in run["messages"]:
                message["content"] = f"{EVIL} {message.get('content') or ''}"
                for call in message.get("tool_calls") or ():
                    call["function"]["name"] = f"{EVIL}{call['function']['name']}"
            file.write(json.dumps({**run, **named}, ensure_ascii=False) + "\n")
        file.write(f"no json {EVIL}\n")
    Path(os.fsdecode(bytes(path / "x") + b"\xff\x1b.txt")).write_text(EVIL, encoding="utf-8")
    return path


def nothing_acts(out: bytes) -> None:
    out.decode("utf-8")
    assert not [raw for raw in RAW if raw in out]


def said(*arguments: object, stdin: bytes | None = None) -> tuple[bytes, bytes]:
    result = CliRunner().invoke(app, list(map(str, arguments)), input=stdin, env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    nothing_acts(result.stdout_bytes)
    nothing_acts(result.stderr_bytes)
    return result.stdout_bytes, result.stderr_bytes


READING = ("--adapter", "openai_chat")
COMMANDS = [
    ("parse", "RUNS", *READING),
    ("parse", "RUNS", *READING, "--json"),
    ("parse", "FOLDER", *READING),
    ("info", "RUNS", *READING),
    ("info", "RUNS", *READING, "--json"),
    ("check-data", "RUNS", *READING),
    ("score", MONITOR, "RUNS"),
    ("watch", MONITOR, "RUNS"),
    ("watch", MONITOR, "RUNS", "--json"),
    ("evaluate", MONITOR, "RUNS", "--resamples", "20"),
    ("evaluate", MONITOR, "RUNS", "--resamples", "20", "--json"),
    ("compare", MONITOR, MONITOR, "--runs", "RUNS"),
    ("calibrate", MONITOR, "RUNS", "--out", "OUT"),
    ("audit", "RUNS", "--monitor", MONITOR),
    ("audit", "RUNS", "--monitor", MONITOR, "--json"),
    ("induce-adapter", "RUNS", "--no-write", "--yes", "--offline", "--no-recognise"),
    ("induce-adapter", "RUNS", "--show-pack"),
    ("check-adapter", "openai_chat", "RUNS"),
    ("watch", MONITOR, "RUNS", "--run-id", EVIL),
    ("watch", MONITOR, "-", "--group", EVIL),
]
#: What is not there, or no option, under a name that acts.
MISTAKES = [
    *((command, EVIL) for command in ("parse", "info", "check-data", "train", "induce-adapter")),
    *((command, MONITOR, EVIL) for command in ("evaluate", "score", "watch")),
    *((command, EVIL, EVIL) for command in ("evaluate", "score", "compare", "calibrate", "watch", "export")),
    *((command, "RUNS", f"--{EVIL}") for command in ("parse", "train", "audit", "demo", "adapters")),
    *((command, "RUNS", "--adapter", EVIL) for command in ("parse", "info", "check-data", "train", "audit")),
    ("parse", "RUNS", *READING, "--labels", EVIL),
    ("parse", "RUNS", *READING, "--limit", EVIL),
    ("train", "--config", EVIL),
    ("check-adapter", EVIL, "RUNS"),
    ("audit", "RUNS", "--monitor", EVIL, "--protocol", EVIL),
    (EVIL,),
]


@pytest.mark.parametrize("command", [*COMMANDS, *MISTAKES], ids=lambda command: ascii(" ".join(map(str, command)))[:60])
def test_no_command_lets_anything_act(
    folder: Path, tmp_path: Path, command: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(beam, "MOST_WORK", 1_500.0)  # what is shown matters here, and not how well it was searched for
    places = {"RUNS": folder / f"{EVIL}.jsonl", "FOLDER": folder, "OUT": tmp_path / EVIL}
    out, err = said(*(places.get(str(part), part) for part in command), stdin=f'"{EVIL}"\n'.encode())
    assert out or err


@pytest.mark.parametrize("command", [("watch", MONITOR), ("parse",), ("info",), ("audit", "--monitor", MONITOR)])
def test_on_a_terminal_nothing_acts_but_our_own_colours(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    arguments = [*command, folder / f"{EVIL}.jsonl", *(() if command[0] == "watch" else READING)]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    ours = re.compile(rb"\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*[AKG])|\r")
    assert b"\x1b[" in result.stdout_bytes + result.stderr_bytes
    nothing_acts(ours.sub(b"", result.stdout_bytes))
    nothing_acts(ours.sub(b"", result.stderr_bytes))


def test_lines_of_json_keep_their_values(folder: Path) -> None:
    out, _ = said("score", MONITOR, folder / f"{EVIL}.jsonl")
    lines = [json.loads(line) for line in out.decode().split("\n") if line]
    assert lines and all(line["run_id"].endswith(EVIL) for line in lines)


def test_an_error_with_its_trace_acts_no_more(folder: Path) -> None:
    arguments = [
        sys.executable,
        "-m",
        "prefixguard",
        "--traceback",
        "info",
        os.fsencode(folder / "x") + b"\xff\x1b.tx",
    ]
    result = subprocess.run(arguments, capture_output=True, check=False)
    assert result.returncode == 2 and b"\\udcff" in result.stderr
    nothing_acts(result.stdout + result.stderr)


@given(st.text(st.characters()))
def test_text_that_is_shown_is_shown_once(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown and shown.encode("utf-8").decode() == shown
    assert not set(shown) & set(CHARACTERS)


@given(st.dictionaries(st.text(st.characters()), st.text(st.characters())))
def test_json_that_is_shown_has_the_same_values(value: dict[str, str]) -> None:
    shown = visible_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value and not set(shown) & set(CHARACTERS)


@pytest.mark.parametrize(
    "text", ["مرحبا بالعالم", "שלום", "漢字 かな", "naïve — “q” 3 €", "👩 🏽 ❤️", "a\u00a0b\u3000c"]
)
def test_ordinary_text_stays(text: str) -> None:
    assert visible(text) == text and visible_json(text) == text


def test_an_emoji_of_several_is_shown_as_its_parts() -> None:
    assert visible("👩\u200d💻") == "👩\\u200d💻"
