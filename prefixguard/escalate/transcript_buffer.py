"""The steps of a run that a session keeps for the auditor: all of them, but of a long run only some texts."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from prefixguard.stepview import StepRecord

#: What stands where a text of the run was not kept, for an auditor that shows records in its own way.
NOT_KEPT = "[not kept]"
_TEXTS = ("arguments", "observation", "action", "result")
_NAMES = ("actor", "agent", "tool", "status")
#: Characters of a name that are kept; names stay for every step, so they must not be texts.
MAX_NAME = 200
#: What either end of a text of a large step may keep, as a part of the limit: the first one that makes it small enough.
_ENDS = (8, 16, 32, 64, 128)


@dataclass(slots=True, unsafe_hash=True)
class UnkeptStep(StepRecord):
    """A step without its texts. `fit` leaves it out and says so; the words in `action` are not the agent's."""


@dataclass(frozen=True, slots=True)
class Hole:
    """Where in a text some was not kept. field: name of the record's field. begin, end: positions of the remark that
    stands there. left_out: characters that are gone."""

    field: str
    begin: int
    end: int
    left_out: int


@dataclass(slots=True, unsafe_hash=True)
class ShortenedStep(StepRecord):
    """A step of whose long texts only the ends were kept. holes: at most one a field."""

    holes: tuple[Hole, ...] = ()


class TranscriptBuffer:
    """Steps in order, their texts within a limit. Not thread-safe, one a run.

    A quarter of the limit is for the beginning (the task), the rest for the newest steps; between, texts are replaced
    by `NOT_KEPT` (`UnkeptStep`), while index, actor, agent, tool and status stay. So what grows with a long run is some
    hundred bytes a step. Of a single step that is larger than a quarter, each text keeps its beginning and its end
    (`ShortenedStep`); of a name, what is beyond `MAX_NAME` goes. First and newest step always have their texts.
    """

    __slots__ = ("_bytes", "_head", "_limit", "_next", "_sizes", "_steps")

    def __init__(self, limit: int) -> None:
        """limit: bytes of texts, in UTF-8."""
        self._limit = limit
        self._steps: list[StepRecord] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._head: int | None = 0  # bytes of the beginning; None: it is full
        self._next = 0  # the next step whose texts go

    def add(self, record: StepRecord) -> bool:
        """Keep one more; False for what is no record of texts (which a session reads as UNKNOWN)."""
        if not isinstance(record, StepRecord):
            return False
        if not all(isinstance(getattr(record, name), str) for name in (*_TEXTS, *_NAMES)):
            return False
        if any(len(getattr(record, name)) > MAX_NAME for name in _NAMES):
            record = replace(record, **{name: getattr(record, name)[:MAX_NAME] for name in _NAMES})
        size = _size(record)
        if size > self._limit // 4:
            for share in _ENDS:
                short = _cut(record, max(self._limit // share, 1))
                size = _size(short)
                if size <= self._limit // 4:
                    break
            record = short
        if self._head is not None and (not self._steps or self._head + size <= self._limit // 4):
            self._head += size
            self._next += 1
        else:
            self._head = None
        self._steps.append(record)
        self._sizes.append(size)
        self._bytes += size
        while self._bytes > self._limit and self._next < len(self._steps) - 1:
            texts = dict.fromkeys(_TEXTS, "")
            self._steps[self._next] = _as(UnkeptStep, self._steps[self._next], **texts | {"action": NOT_KEPT})
            self._bytes -= self._sizes[self._next]
            self._next += 1
        return True

    def prefix(self) -> tuple[StepRecord, ...]:
        """The steps so far."""
        return tuple(self._steps)

    @property
    def n_bytes(self) -> int:
        """Bytes of the texts that are kept, without the marks of those that are not."""
        return self._bytes

    def __len__(self) -> int:
        return len(self._steps)


def _size(record: StepRecord) -> int:
    texts = (getattr(record, name) for name in _TEXTS)
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass")) for text in texts)


def _as(kind: type[UnkeptStep | ShortenedStep], record: StepRecord, **changes: Any) -> StepRecord:
    """The step as another kind, with these fields changed."""
    return kind(**{one.name: getattr(record, one.name) for one in fields(StepRecord)} | changes)


def _cut(record: StepRecord, half: int) -> StepRecord:
    """The step with at most `half` characters of either end of every text, and a remark between."""
    texts: dict[str, str] = {}
    holes: list[Hole] = []
    for name in _TEXTS:
        text: str = getattr(record, name)
        if len(text) > 2 * half + len(NOT_KEPT):
            texts[name] = f"{text[:half]}{NOT_KEPT}{text[-half:]}"
            holes.append(Hole(name, half, half + len(NOT_KEPT), len(text) - 2 * half))
    return _as(ShortenedStep, record, **texts, holes=tuple(holes))
