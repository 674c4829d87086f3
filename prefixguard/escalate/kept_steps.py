"""The steps of a run that a session keeps for the auditor: all of them, but of a long run only some texts."""

from __future__ import annotations

from dataclasses import replace

from prefixguard.stepview import StepRecord

#: What stands where a text of the run was not kept.
NOT_KEPT = "[not kept]"
_TEXTS = ("arguments", "observation", "action", "result")
_NAMES = ("actor", "agent", "tool", "status")
#: Characters of a name that are kept; names stay for every step, so they must not be texts.
MAX_NAME = 200


class KeptSteps:
    """Steps in order, their texts within a limit. Not thread-safe, one a run.

    A quarter of the limit is for the beginning (the task), the rest for the newest steps; between, texts are replaced
    by `NOT_KEPT`, while index, actor, agent, tool and status stay. So what grows with a long run is some hundred bytes
    a step. Of a single step that is larger than a quarter, each text keeps its beginning and its end; of a name, what
    is beyond `MAX_NAME` goes.
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
            record = _cut(record, self._limit // 32)
            size = _size(record)
        if not self._head_full:
            if self._head_bytes + size <= self._limit // 4:
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
    return replace(record, arguments="", observation="", action=NOT_KEPT, result="")


def _cut(record: StepRecord, end: int) -> StepRecord:
    """The step with at most `end` bytes of either end of every text, and a mark between."""
    half = max(end // 4, 1)  # a character takes up to four bytes

    def cut(text: str) -> str:
        return text if len(text) <= 2 * half else f"{text[:half]} {NOT_KEPT} {text[-half:]}"

    return replace(
        record,
        arguments=cut(record.arguments),
        observation=cut(record.observation),
        action=cut(record.action),
        result=cut(record.result),
    )
