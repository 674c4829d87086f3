"""What may lie in a folder of runs and is none: each kind is put there by a function of its own."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]

#: What interpreting a run may raise, by the name that a run asks for it.
RAISED: dict[str, BaseException] = {
    "value": ValueError("no number"),
    "recursion": RecursionError("maximum recursion depth exceeded"),
    "memory": MemoryError(),
    "key": KeyError("role"),
    "system": OSError(5, "Input/output error"),
    "type": TypeError("unhashable type: 'list'"),
}


def run(name: str = "good", **more: Any) -> dict[str, Any]:
    """A run that adapter openai_chat reads."""
    return {"run_id": name, "task_id": name, "outcome": "success", "messages": GOOD, **more}


def raise_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs with a key `raises` raise that while they are interpreted."""
    from prefixguard.stepview import reader

    parse_whole = reader.parse_whole

    def raising(program: Any, scope: Any, **options: Any) -> Any:
        if isinstance(scope.run, dict) and scope.run.get("raises") in RAISED:
            raise RAISED[scope.run["raises"]]
        return parse_whole(program, scope, **options)

    monkeypatch.setattr(reader, "parse_whole", raising)


def _write(name: str, data: bytes) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_bytes(data) and None


def _link(name: str, target: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).symlink_to(target)


def _holes(folder: Path) -> None:
    with (folder / "holes.json").open("wb") as file:
        file.truncate(1 << 40)


def _socket(folder: Path) -> None:
    before = Path.cwd()
    os.chdir(folder)  # the path of a socket is bounded
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("s.json")
    finally:
        os.chdir(before)


def _elsewhere(folder: Path) -> Path:
    other = folder.parent / f"{folder.name}-other"
    other.mkdir(exist_ok=True)
    (other / "x.json").write_text(json.dumps(run("outside")))
    return other


def _latin_name(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.json")).write_text(json.dumps(run("latin")))


#: One thing that cannot be read each, below a name of its own.
BAD: dict[str, Callable[[Path], None]] = {
    "a named pipe": lambda folder: os.mkfifo(folder / "pipe.json"),
    "a socket": _socket,
    "a link that leads nowhere": _link("nowhere.json", "gone.json"),
    "a loop of links": _link("loop.json", "loop.json"),
    "a link that leaves the folder": lambda folder: (folder / "out.json").symlink_to(_elsewhere(folder) / "x.json"),
    "a link to a folder elsewhere": lambda folder: (folder / "far").symlink_to(_elsewhere(folder)),
    "a link to a device": _link("zero.json", "/dev/zero"),
    "a file of holes": _holes,
    "a name that is not UTF-8": _latin_name,
    "nothing": _write("empty.json", b""),
    "a run cut off": _write("cut.json", b'{"run_id": "x", "messages": [{"role": "us'),
    "prose": _write("prose.json", b"once upon a time"),
    "bytes": _write("bytes.json", bytes(range(256)) * 8),
    "UTF-16": _write("utf16.json", json.dumps(run("wide")).encode("utf-16")),
    "too deep": _write("deep.json", b"[" * 100_000),
    "deep and closed": _write("closed.json", b'{"messages": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"),
    "a number": _write("number.json", b"17"),
    "messages that are a text": _write("text.json", json.dumps(run("text", messages="hello")).encode()),
    "a line that is none": _write("lines.jsonl", b'{"run_id": "x", "messages": [\n'),
    **{f"raises {kind}": _write(f"{kind}.json", json.dumps(run(kind, raises=kind)).encode()) for kind in RAISED},
}
