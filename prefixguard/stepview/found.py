"""Runs that a document holds, what of it could not be read, and one bad run that does not end the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.errors import PrefixGuardError, TraceError
from prefixguard.stepview.compiling import Base, DataPlace
from prefixguard.stepview.jsontext import decode, decode_text
from prefixguard.stepview.paths import MISSING, Companions, Getter, Scope
from prefixguard.trace.documents import Document


@dataclass(frozen=True, slots=True)
class Found:
    """One run in its document.

    document: the JSON value that holds the run. position: from 1. key: its name in an object of runs. several: whether
    there can be more than one. is_json: the run is a value of JSON, so it must be an object or an array. alone: whether
    there is no other but its delegates; known where labels are joined. delegate: what it is called besides the run that
    called it; None: it is no delegate. whole: what tells the id, task, groups and outcome of a run and its delegates;
    MISSING where the format has none, and the run tells it.
    """

    run: Any
    document: Any
    position: int
    where: str
    key: Any = MISSING
    several: bool = True
    is_json: bool = False
    alone: bool = False
    delegate: str | None = None
    whole: Any = MISSING


@dataclass(frozen=True, slots=True)
class Unread:
    """Something in a document that could not be read; the rest can."""

    where: str
    reason: str


def those_alone(found: Iterator[Found]) -> Iterator[Found]:
    """The runs of one document, with the one that is the only one there marked, and its delegates: the file's name is
    their name too."""
    waiting: list[Found] = []
    for one in found:
        if waiting and (one.whole is MISSING or one.whole is not waiting[0].whole):
            yield from (*waiting, one, *found)
            return
        waiting.append(one)
    yield from (replace(one, alone=True) for one in waiting)


#: From a document to its runs.
Runs = Callable[[Document, Companions, "Counts"], Iterator[Found | Unread]]


@dataclass(frozen=True, slots=True)
class Container:
    """The compiled `container` of a spec.

    runs: yields what a document holds; TraceError if it cannot be read at all. files: globs of its documents. group_by:
    which run a line is of, where lines are events. goes_on: whether an event may be of a run that other groups are of
    too. run, document: what $ and % stand for; % cannot be used where it is
    None.
    """

    runs: Runs
    files: tuple[str, ...]
    format: str = ""
    group_by: Getter | None = None
    goes_on: Callable[[Scope], bool] | None = None
    run: Base = field(default_factory=lambda: Base(DataPlace("run")))
    document: Base | None = None


class Counts:
    """Bad bytes met while reading."""

    __slots__ = ("bad_bytes",)

    def __init__(self) -> None:
        self.bad_bytes = 0

    def text(self, data: bytes) -> str:
        """UTF-8; bytes that are not are replaced by U+FFFD and counted."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            text = data.decode("utf-8", "replace")
            self.bad_bytes += text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
            return text

    def json(self, data: bytes, where: str, line: int | None = None) -> Any:
        """JSON bytes as values. TraceError with the place and what to do."""
        data = data.removeprefix(b"\xef\xbb\xbf")
        try:
            try:
                return decode(data)
            except UnicodeDecodeError:
                return decode_text(self.text(data))
        except ValueError as exc:
            raise TraceError(_not_json(exc, data, where, line)) from exc


class SharedCounts(Counts):
    """For several readings of the same documents: JSON that one decoded is there for the next, up to a size."""

    __slots__ = ("_kept", "_room")

    def __init__(self, room: int) -> None:
        """room: bytes of raw JSON whose values are kept."""
        super().__init__()
        self._room = room
        self._kept: dict[tuple[str, int | None], Any] = {}

    def json(self, data: bytes, where: str, line: int | None = None) -> Any:
        key = (where, line)
        if key in self._kept:
            return self._kept[key]
        value = super().json(data, where, line)
        if len(data) <= self._room:
            self._room -= len(data)
            self._kept[key] = value
        return value


def _not_json(exc: ValueError, data: bytes, where: str, line: int | None) -> str:
    at = "" if line is None else f" line {line}"
    if hasattr(exc, "lineno"):
        at = f" line {exc.lineno if line is None else line}, column {getattr(exc, 'colno', 1)}"
    if not data.strip():
        return f"{where}{at}: the file is empty. Remove it, or write the run again."
    cut_off = getattr(exc, "pos", 0) >= len(data.rstrip()) - 2
    hint = "It looks cut off; write it again." if cut_off else "Mend or remove it, or name another adapter."
    return f"{where}{at}: not JSON ({getattr(exc, 'msg', None) or exc}). {hint}"


#: Characters of a foreign error that a message shows.
_LONGEST = 200


@contextmanager
def contained(where: str) -> Iterator[None]:
    """Whatever interpreting one run or document raises becomes a TraceError that says where. Errors of ours, and an
    interruption, leave as they are."""
    try:
        yield
    except PrefixGuardError:
        raise
    except RecursionError as exc:
        raise TraceError(f"{where}: nested too deeply to be read. Remove it.") from exc
    except MemoryError as exc:
        raise TraceError(f"{where}: does not fit into memory. Remove it, or split it.") from exc
    except OSError as exc:
        raise TraceError(f"{where}: cannot be read ({exc.strerror or exc}). Check it, or copy it again.") from exc
    except Exception as exc:  # an adapter calls many libraries on what strangers wrote
        raise TraceError(
            f"{where}: cannot be interpreted ({type(exc).__name__}: {str(exc)[:_LONGEST]}). Mend or remove it; "
            "if it is well-formed, this is a fault of PrefixGuard that is worth reporting."
        ) from exc
