"""Documents on disk or on a stream: a file, a folder, a glob, a tar archive, or standard input.

Documents come in the order of their paths inside the folder of runs, so that the same folder always reads the same.
Companion files (a verifier's report beside a run) are found relative to a document, and never outside that folder,
whatever a path or a link says.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import re2

from prefixguard.errors import TraceError

_TAR_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".txz", ".tar.bz2")


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    path: inside the folder of runs, with forward slashes. where: what a person calls it, for messages.
    file: on disk; None for standard input.
    """

    path: str
    where: str
    file: Path | None
    begun: bytes = b""  # what was already taken from standard input

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Its bytes as a stream. TraceError if it cannot be read."""
        if self.file is None:
            rest = standard_input()
            yield io.BufferedReader(_Continued(self.begun, rest)) if self.begun else rest
            return
        try:
            with self.file.open("rb") as stream:
                yield stream
        except OSError as exc:
            raise TraceError(
                f"{self.where}: cannot be read ({exc.strerror or exc}). Check the path and its permissions."
            ) from exc

    def read(self) -> bytes:
        """All its bytes."""
        with self.stream() as stream:
            return stream.read()

    def first_lines(self, n: int) -> tuple[list[bytes], Document]:
        """Its first n lines that are not blank, and a document that still gives all its bytes."""
        found: list[bytes] = []
        taken: list[bytes] = []
        with self.stream() as stream:
            while len(found) < n and (line := stream.readline()):
                taken.append(line)
                if line.strip():
                    found.append(line)
        return found, self if self.file is not None else replace(self, begun=b"".join(taken))


class _Continued(io.RawIOBase):
    """Bytes that were taken from a stream, then the rest of it."""

    def __init__(self, begun: bytes, rest: BinaryIO) -> None:
        self._begun, self._rest = memoryview(begun), rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = len(buffer)
        if len(self._begun):
            data, self._begun = bytes(self._begun[:size]), self._begun[size:]
        else:
            data = self._rest.read(size)
        buffer[: len(data)] = data
        return len(data)


def standard_input() -> BinaryIO:
    """The bytes of standard input. TraceError where the process was started without one."""
    if sys.stdin is None:
        raise TraceError("standard input is closed. Send the runs to it, or name a file.")
    return sys.stdin.buffer


class Documents:
    """A folder of runs, opened. root: the folder on disk; None for standard input."""

    def __init__(self, source: str, root: Path | None, single: Path | None = None, pattern: str | None = None) -> None:
        self.source = source
        self.root = None if root is None else root.resolve()
        self._shown = "" if root is None else root.as_posix()
        self._single = single
        self._pattern = pattern

    def matching(self, patterns: Sequence[str]) -> Iterator[Document]:
        """Documents that match one of the globs, by path. A source that is one file, or a glob itself, is taken as
        it is."""
        if self.root is None:
            yield Document("stdin", "standard input", None)
            return
        if self._single is not None:
            yield Document(self._single.name, self.source, self._single)
            return
        wanted = glob_pattern([self._pattern] if self._pattern is not None else patterns)
        for path in sorted(self._walk()):
            if wanted(path):
                shown = path if self._shown in ("", ".") else f"{self._shown}/{path}"
                yield Document(path, shown, self.root / path)

    def _walk(self) -> Iterator[str]:
        root = self.root
        if root is None:
            return
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = Path(folder).relative_to(root).as_posix()
            for name in files:
                path = name if inside == "." else f"{inside}/{name}"
                full = Path(folder) / name
                if name.startswith(".") or not full.is_file():
                    continue
                if full.is_symlink() and not full.resolve().is_relative_to(root):
                    continue
                yield path

    def size(self, path: str) -> int:
        """Bytes of the file at this path inside the folder; 0 where there is none."""
        try:
            return (self.root / path).stat().st_size if self.root is not None else 0
        except (OSError, ValueError):
            return 0

    def companion(self, beside: str, relative: str) -> bytes | None:
        """Bytes of the file at `relative` to the document at `beside`; None where there is none, or outside the
        folder."""
        root = self.root
        if root is None or "\x00" in relative:
            return None
        path = companion_path(beside, relative)
        if path is None:
            return None
        try:
            file = (root / path).resolve()
            if not file.is_relative_to(root) or not file.is_file():
                return None
            return file.read_bytes()
        except (OSError, ValueError):
            return None


def companion_path(beside: str, relative: str) -> str | None:
    """The path at `relative` to the document at `beside`; None where it leaves the folder of runs.

    >>> companion_path("trajs/a.json", "../logs/a/report.json"), companion_path("a.json", "../b")
    ('logs/a/report.json', None)
    """
    parts = beside.split("/")[:-1]
    for part in relative.split("/"):
        if part == "..":
            if not parts:
                return None
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def glob_pattern(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Does a path match one of the globs? `*` and `?` stay within a name, `**/` is any number of folders.

    >>> match = glob_pattern(["**/trajs/*.traj"])
    >>> match("trajs/a.traj"), match("x/y/trajs/a.traj"), match("trajs/b/a.traj")
    (True, True, False)
    """
    alternatives = []
    for pattern in patterns:
        out = []
        at = 0
        while at < len(pattern):
            if pattern.startswith("**/", at):
                out.append("(?:.*/)?")
                at += 3
            elif pattern.startswith("**", at):
                out.append(".*")
                at += 2
            elif pattern[at] == "*":
                out.append("[^/]*")
                at += 1
            elif pattern[at] == "?":
                out.append("[^/]")
                at += 1
            elif pattern[at] == "{" and "}" in pattern[at:]:
                end = pattern.index("}", at)
                out.append("(?:" + "|".join(re2.escape(one) for one in pattern[at + 1 : end].split(",")) + ")")
                at = end + 1
            else:
                out.append(re2.escape(pattern[at]))
                at += 1
        alternatives.append("".join(out))
    compiled = re2.compile("(?s)(?:" + "|".join(alternatives) + ")")
    return lambda path: compiled.fullmatch(path.encode("utf-8", "replace").decode()) is not None


@contextmanager
def open_documents(source: str | Path) -> Iterator[Documents]:
    """A file, folder, glob, tar archive (.gz, .xz) or `-` (standard input), as documents.

    A tar archive is unpacked to a temporary folder that goes away afterwards. TraceError where there is nothing.
    """
    text = str(source)
    if text == "-":
        yield Documents(text, None)
        return
    path = Path(source)
    if path.is_dir():
        yield Documents(text, path)
    elif path.is_file():
        if text.lower().endswith(_TAR_SUFFIXES):
            with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
                _unpack(path, Path(folder))
                documents = Documents(text, Path(folder))
                documents._shown = text
                yield documents
        else:
            yield Documents(text, path.parent, single=path)
    elif any(character in text for character in "*?"):
        fixed = Path(*_fixed_part(path))
        if not fixed.is_dir():
            raise TraceError(f"{text}: there is no folder {fixed}. Check the path.")
        yield Documents(text, fixed, pattern=path.relative_to(fixed).as_posix())
    else:
        raise TraceError(f"{text}: there is no such file or folder. Check the path.")


def _fixed_part(path: Path) -> list[str]:
    parts: list[str] = []
    for part in path.parts[:-1]:
        if any(character in part for character in "*?{"):
            break
        parts.append(part)
    return parts or ["."]


def _unpack(archive: Path, folder: Path) -> None:
    """Regular files of the archive, and nothing else: no links, no devices, no path that leaves the folder."""
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                parts = [part for part in member.name.replace("\\", "/").split("/") if part not in ("", ".")]
                if not member.isfile() or ".." in parts or not parts or ":" in parts[0]:
                    continue
                target = folder.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member) or io.BytesIO()
                with content, target.open("wb") as out:
                    shutil.copyfileobj(content, out)
    except (tarfile.TarError, EOFError, OSError, ValueError) as exc:
        raise TraceError(f"{archive}: cannot be unpacked ({exc}). It may be cut off; copy it again.") from exc
    except Exception as exc:  # lzma and zlib raise their own kinds, which share no base
        raise TraceError(f"{archive}: cannot be unpacked ({exc}). It may be cut off; copy it again.") from exc
