"""The steps of a run that a session keeps for the auditor: all of them, but of a long run only some texts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from prefixguard.stepview import StepRecord

#: What stands where a text of the run was not kept, for an auditor that shows records in its own way.
NOT_KEPT = "[not kept]"
_TEXTS = ("arguments", "observation", "action", "result")
_NAMES = ("actor", "agent", "tool", "status")
#: Characters of a name that are kept; names stay for every step, so they must not be texts.
MAX_NAME = 200
#: What either end of a text of a large step may keep, as a part of the limit: the first one that makes it small enough.
_ENDS = (8, 16, 32, 64, 128)


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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

    __slots__ = ("_bytes", "_head", "_head_bytes", "_head_full", "_limit", "_next", "_sizes", "_steps")

    def __init__(self, limit: int) -> None:
        """limit: bytes of texts, in UTF-8."""
        self._limit = limit
        self._steps: list[StepRecord] = []
        self._sizes: list[int] = []
        self._bytes = 0
        self._head = 0  # steps of the beginning
        self._head_bytes = 0
        self._head_full = False
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
        if not self._head_full:
            if not self._head or self._head_bytes + size <= self._limit // 4:
                self._head_bytes += size
                self._head += 1
                self._next = self._head
            else:
                self._head_full = True
        self._steps.append(record)
        self._sizes.append(size)
        self._bytes += size
        while self._bytes > self._limit and self._next < len(self._steps) - 1:
            self._steps[self._next] = _bare(self._steps[self._next])
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


def _length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _size(record: StepRecord) -> int:
    return _length(record.arguments) + _length(record.observation) + _length(record.action) + _length(record.result)


def _bare(record: StepRecord) -> StepRecord:
    """The step without its texts."""
    return UnkeptStep(
        record.index, record.actor, record.agent, record.tool, "", "", NOT_KEPT, "", record.status, record.event
    )


def _cut(record: StepRecord, half: int) -> StepRecord:
    """The step with at most `half` characters of either end of every text, and a remark between."""
    texts, holes = {}, []
    for name in _TEXTS:
        text: str = getattr(record, name)
        texts[name] = text
        if len(text) > 2 * half + len(NOT_KEPT):
            texts[name] = f"{text[:half]}{NOT_KEPT}{text[-half:]}"
            holes.append(Hole(name, half, half + len(NOT_KEPT), len(text) - 2 * half))
    return ShortenedStep(
        record.index,
        record.actor,
        record.agent,
        record.tool,
        texts["arguments"],
        texts["observation"],
        texts["action"],
        texts["result"],
        record.status,
        record.event,
        tuple(holes),
    )
