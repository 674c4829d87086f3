"""Files that a user names: regular files and pipes that end, and everything else refused at once."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from prefixguard.errors import ConfigError, TraceError
from prefixguard.stepview import load_adapter
from prefixguard.trace import named_file, open_documents, open_named, read_labels, read_named

pytestmark = pytest.mark.skipif(os.name == "nt", reason="files of POSIX")

KINDS = {
    "fifo": "is a named pipe, not a file",
    "socket": "is a socket, not a file",
    "zero": "is a device or a terminal, not a file",
    "folder": "is a folder, not a file",
    "absent": "No such file or directory",
    "loop": "symbolic links",
}


@pytest.fixture
def odd() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:  # a short path: that of a socket is bounded
        root = Path(folder)
        os.mkfifo(root / "fifo")
        (root / "folder").mkdir()
        (root / "zero").symlink_to("/dev/zero")
        (root / "loop").symlink_to(root / "loop")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(root / "socket"))
            yield root


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_refused_at_once(odd: Path, kind: str) -> None:
    for opened in (lambda path: read_named(path, 10, error=ConfigError, remedy="Mend it."), read_labels, load_adapter):
        with pytest.raises((ConfigError, TraceError, ValueError)) as caught:
            opened(odd / kind)
        assert KINDS[kind] in str(caught.value) and str(odd / kind) in str(caught.value)
    with pytest.raises(ConfigError, match=r"Mend it\.$"):
        read_named(odd / kind, 10, error=ConfigError, remedy="Mend it.")


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_runs_that_are_no_file_are_refused_at_once(odd: Path, kind: str) -> None:
    with pytest.raises(TraceError, match=str(odd / kind)), open_documents(odd / kind):
        pass


def test_a_file_has_a_bound(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"12345")
    assert read_named(path, 5) == b"12345"
    with pytest.raises(TraceError, match=r"f: 5 bytes, and at most 4 are read\. Check"):
        read_named(path, 4)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # holes: a terabyte that takes no room
    with pytest.raises(TraceError, match=r"1,099,511,627,776 bytes, and at most 268,435,456 are read"):
        read_labels(path)


def piped(data: bytes) -> tuple[Path, int, int]:
    """A pipe that holds the data, as a path; the descriptors of its two ends."""
    reading, writing = os.pipe()
    os.write(writing, data)
    return Path(f"/dev/fd/{reading}"), reading, writing


@pytest.fixture
def pipes() -> Iterator[list[int]]:
    opened: list[int] = []
    yield opened
    for descriptor in opened:
        with suppress(OSError):
            os.close(descriptor)


@pytest.mark.parametrize("data", [b'{"run_id": "a", "outcome": "success"}\n', b"run_id,outcome\na,success\n"])
def test_a_pipe_of_this_process_is_read_to_its_end(pipes: list[int], data: bytes) -> None:
    path, reading, writing = piped(data)
    os.close(writing)
    pipes.append(reading)
    assert list(read_labels(path)) == ["a"]
    with pytest.raises(TraceError, match=r"holds no label.*a pipe can be read once only"):
        read_labels(path)


def test_a_silent_pipe_is_given_up(pipes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    path, *ends = piped(b"run_id")
    pipes.extend(ends)
    monkeypatch.setattr(named_file.read_named, "__kwdefaults__", {**read_named.__kwdefaults__, "patience": 0.05})
    with pytest.raises(TraceError, match=r"nothing came through the pipe for 0.05 s"):
        read_labels(path)


def test_a_pipe_has_a_bound_too(pipes: list[int]) -> None:
    path, *ends = piped(b"12345")
    pipes.extend(ends)
    os.close(ends[1])
    with pytest.raises(TraceError, match="more than 4 bytes"):
        read_named(path, 4)


def test_runs_may_come_through_a_pipe(pipes: list[int]) -> None:
    path, reading, writing = piped(b'{"a": 1}\n{"b": 2}\n')
    os.close(writing)
    pipes.append(reading)
    with open_documents(path) as documents:
        (document,) = documents.matching(["*.json"])
        first, document = document.first_lines(1)
        assert first == [b'{"a": 1}\n'] and document.read() == b'{"a": 1}\n{"b": 2}\n'


def test_a_file_that_was_another_when_it_was_looked_at(odd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is judged is what was opened."""
    (odd / "file").write_bytes(b"x")
    regular = (odd / "file").stat()
    monkeypatch.setattr(Path, "stat", lambda self, **_: regular)
    with pytest.raises(TraceError, match="is a named pipe"):
        open_named(odd / "fifo")


def test_a_link_is_followed_only_where_that_is_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor one that is put in the place of the file between the look and the opening."""
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x")
    link.symlink_to(file)
    assert read_named(link, 1) == read_named(file, 1, links=False) == b"x"
    with pytest.raises(TraceError, match="link: is a symbolic link, and only the file itself is read"):
        read_named(link, 1, links=False)
    seen = file.stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: seen)
    with pytest.raises(TraceError, match=r"link: cannot be read .*symbolic links"):
        read_named(link, 1, links=False)
