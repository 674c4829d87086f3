"""Documents on disk or on a stream: a file, a folder, a glob, a tar archive, or standard input.

Documents come in the order of their paths inside the folder of runs, so that the same folder always reads the same.
Companion files (a verifier's report on a run) are found relative to a document, and never outside that folder,
whatever a path or a link says.
"""

from __future__ import annotations

import io
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, BinaryIO

import re2

from prefixguard.errors import TraceError
from prefixguard.trace.archives import SUFFIXES, unpack
from prefixguard.trace.named_file import is_inherited_pipe, open_named, read_bounded, read_named

#: A document that has to be read whole, such as one JSON value, may have so many bytes.
LARGEST_DOCUMENT = 1 << 30
#: A line of a document that is read line by line may have so many bytes. Longer ones are read past, in bounded memory,
LONGEST_LINE = 256 << 20
#: and the rest of a document is left out after so many bytes that were read past.
MOST_PASSED = 8 << 30

_CHUNK = 1 << 20
_TOO_LARGE = "Write the runs as JSON lines, one run a line, or into several files."


@dataclass(frozen=True, slots=True)
class Document:
    """One document.

    path: inside the folder of runs, with forward slashes. where: what a person calls it, for messages.
    file: on disk; None for a stream, which is `pipe`, or else standard input.
    """

    path: str
    where: str
    file: Path | None
    pipe: BinaryIO | None = None
    begun: bytes = b""  # what was already taken from the stream

    @contextmanager
    def stream(self) -> Iterator[BinaryIO]:
        """Its bytes as a stream. TraceError if it cannot be read, or is neither a file nor a pipe."""
        try:
            with self._opened() as stream:
                yield io.BufferedReader(_Continued(self.begun, stream)) if self.begun else stream
        except OSError as exc:
            raise TraceError(
                f"{self.where}: cannot be read ({exc.strerror or exc}). Check the path and its permissions."
            ) from exc

    @contextmanager
    def _opened(self) -> Iterator[BinaryIO]:
        if self.file is None:
            yield standard_input() if self.pipe is None else self.pipe  # which stay open
            return
        with open_named(self.file, shown=self.where) as stream:
            yield stream

    def lines(self) -> Iterator[bytes | None]:
        """Its lines, each with its end; None for one of more than `LONGEST_LINE` bytes, which is read past and not
        kept. TraceError, after which there are no more, where that takes more than `MOST_PASSED` bytes."""
        passed = number = 0
        with self.stream() as stream:
            while line := stream.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) <= LONGEST_LINE:
                    yield line
                    continue
                while line and not line.endswith(b"\n"):
                    passed += len(line)
                    if passed > MOST_PASSED:
                        raise TraceError(
                            f"{self.where} line {number}: {too_long()} {MOST_PASSED:,} bytes were read past; the rest "
                            "of the file is left out."
                        )
                    line = stream.readline(_CHUNK)
                yield None

    def read(self) -> bytes:
        """All its bytes. TraceError where they are more than `LARGEST_DOCUMENT`."""
        with self.stream() as stream:
            return read_bounded(stream, LARGEST_DOCUMENT, self.where, _TOO_LARGE)

    @contextmanager
    def seekable(self) -> Iterator[BinaryIO]:
        """Its bytes as a stream that can be read at any place: of a file nothing is held in memory, of a pipe all."""
        with self.stream() as stream:
            if stream.seekable():
                yield stream
            else:
                yield io.BytesIO(read_bounded(stream, LARGEST_DOCUMENT, self.where, "Write it to a file first."))

    def first_lines(self, n: int) -> tuple[list[bytes], Document]:
        """Its first n lines that are not blank, and a document that still gives all its bytes."""
        found: list[bytes] = []
        taken: list[bytes] = []
        with self.stream() as stream:
            while len(found) < n and (line := stream.readline(LONGEST_LINE + 1)):
                taken.append(line)
                if line.strip():
                    found.append(line)
                if len(line) > LONGEST_LINE:
                    break  # its rest is still in the stream
        return found, self if self.file is not None else replace(self, begun=b"".join(taken))


def too_long() -> str:
    """Why a line is not read, as a sentence."""
    return f"more than {LONGEST_LINE:,} bytes, and at most so many of a line are read. Write one run a line."


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


@dataclass(slots=True, eq=False)
class Documents:
    """A folder of runs, opened.

    source: as it was named. root: the folder on disk; None for a stream. shown: what messages call the folder; None:
    its path. single: the only document. pipe: the stream; None for standard input. pattern: the glob that documents are
    asked for by. unpacked_without: members of an archive that are not in the folder, and why. left_out: what is in the
    folder, should be a document, and cannot be one, with the reason; complete once `matching` was called.
    """

    source: str
    root: Path | None
    shown: str | None = None
    single: Path | None = None
    pipe: BinaryIO | None = None
    pattern: str | None = None
    unpacked_without: Mapping[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.shown is None:
            self.shown = "" if self.root is None else self.root.as_posix()
        self.root = None if self.root is None else self.root.resolve()

    @property
    def folders(self) -> tuple[str, ...]:
        """What the folder is called: absolute paths, as it was written and with links resolved; none for a stream."""
        if self.root is None:
            return ()
        return tuple(dict.fromkeys((os.path.normpath(Path(self.shown or "").absolute()), self.root.as_posix())))

    def matching(self, patterns: Sequence[str]) -> Iterator[Document]:
        """Documents that match one of the globs, by path. A source that is one file, or a glob itself, is taken as
        it is."""
        if self.root is None:
            where = "standard input" if self.pipe is None else self.source
            return iter([Document("stdin", where, None, self.pipe)])
        if self.single is not None:
            return iter([Document(self.single.name, self.source, self.single)])
        wanted = glob_pattern([self.pattern] if self.pattern is not None else patterns)
        self.left_out = {self._where(path): why for path, why in self.unpacked_without.items() if wanted(path)}
        paths = sorted(self._walk(self.root, wanted))
        return iter([Document(path, self._where(path), self.root / path) for path in paths])

    def _where(self, path: str) -> str:
        readable = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        return readable if self.shown in ("", ".") else f"{self.shown}/{readable}"

    def _walk(self, root: Path, wanted: Callable[[str], bool]) -> Iterator[str]:
        """Paths of what is to be read; what is left out is noted."""

        def unreadable(exc: OSError) -> None:
            inside = os.path.relpath(str(exc.filename), root).replace(os.sep, "/")
            self.left_out[self._where(inside)] = f"the folder cannot be read ({exc.strerror}). Check its permissions."

        for folder, folders, files in os.walk(root, onerror=unreadable):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            inside = os.path.relpath(folder, root).replace(os.sep, "/")
            prefix = "" if inside == "." else f"{inside}/"
            linked = [name for name in folders if Path(folder, name).is_symlink()]
            for name in (*linked, *files):
                path = prefix + name
                if name.startswith(".") or not (name in linked or wanted(path)):
                    continue
                why = _no_document(Path(folder, name), path, root)
                if why is not None:
                    self.left_out[self._where(path)] = why
                elif name not in linked:
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
        path = companion_path(beside, relative)
        if self.root is None or path is None or "\x00" in relative:
            return None
        try:
            file = (self.root / path).resolve()
            return read_named(file, LARGEST_DOCUMENT) if file.is_relative_to(self.root) else None
        except (OSError, ValueError, RuntimeError):  # TraceError is a ValueError; a loop of links, a RuntimeError
            return None


def _no_document(file: Path, path: str, root: Path) -> str | None:
    """Why there is no document at a path of the folder that its name asks for; None where there is one.

    A link to something inside the folder loses nothing: what it leads to is in the folder itself.
    """
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return "its name is not UTF-8. Rename it."
    if not file.is_symlink():
        return None
    try:
        target = file.resolve(strict=True)
    except (OSError, RuntimeError) as exc:  # a loop of links is a RuntimeError before Python 3.13
        return f"a link that leads nowhere ({getattr(exc, 'strerror', None) or 'a loop'}). Mend or remove it."
    if not target.is_relative_to(root):
        return "a link that leaves the folder of runs, which is not followed. Put the runs themselves there."
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
    globs = "|".join(_GLOB.sub(_as_expression, pattern) for pattern in patterns)
    compiled = re2.compile(f"(?s)(?:{globs})")
    return lambda path: compiled.fullmatch(path.encode("utf-8", "replace").decode()) is not None


_GLOB = re.compile(r"(\*\*/|\*\*?|\?)|\{([^}]*)\}|.", re.DOTALL)
_WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def _as_expression(found: re.Match[str]) -> str:
    if found[2] is not None:
        return "(?:" + "|".join(re2.escape(one) for one in found[2].split(",")) + ")"
    return _WILD[found[1]] if found[1] else str(re2.escape(found[0]))


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
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as exc:
        if any(character in text for character in "*?"):
            whole = takewhile(lambda part: not set("*?{") & set(part), path.parts[:-1])
            fixed = Path(*whole)
            if not fixed.is_dir():
                raise TraceError(f"{text}: there is no folder {fixed}. Check the path.") from exc
            yield Documents(text, fixed, pattern=path.relative_to(fixed).as_posix())
            return
        why = f"cannot be opened ({getattr(exc, 'strerror', None) or exc})"
        if isinstance(exc, FileNotFoundError | NotADirectoryError):
            why = "there is no such file or folder"
        raise TraceError(f"{text}: {why}. Check the path.") from exc
    if stat.S_ISDIR(mode):
        yield Documents(text, path)
    elif is_inherited_pipe(path):
        with open_named(path) as pipe:
            yield Documents(text, None, pipe=pipe)
    elif stat.S_ISREG(mode) and text.lower().endswith(SUFFIXES):
        with tempfile.TemporaryDirectory(prefix="prefixguard-") as folder:
            yield Documents(text, Path(folder), shown=text, unpacked_without=unpack(path, Path(folder)))
    else:
        open_named(path).close()  # refuses what is no file, before anything else is done
        yield Documents(text, path.parent, single=path)
