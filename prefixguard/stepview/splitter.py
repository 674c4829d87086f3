"""Text in chunks cut anywhere, events out: one begins at every line that starts as a head says.

What is kept between two chunks is bounded. A line is rendered as it grows, and taken in pieces where it is wide; of the
text of an event its head and its tail are kept. Both depend on the text alone, not on where the chunks were cut, so a
live run and a whole file read the same.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.live_state import checked, size
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.terminal import WIDEST, advance, render_line, unfinished
from prefixguard.stepview.text import CUT_MARK, cutter, repair

#: Bytes (UTF-8) of a line that are rendered at once. A line that shows more is taken in pieces, which join again
#: without a break; a head has to match within the first of them, and nothing that comes later overwrites one.
LINE = 256
#: Bytes (UTF-8) of the text of an event that are kept at its head and at its tail.
BODY = (2400, 1600)
_cut_field = cutter((150, 50))


@dataclass(frozen=True, slots=True)
class Split:
    """Text becomes events: one begins at every line that starts as `head` says."""

    head: Pattern
    cuts: tuple[Pattern, ...]


@dataclass(slots=True, eq=False)
class Splitter:
    """Text in chunks, events out. The same for a whole text, which is one chunk."""

    split: Split
    #: Bytes to keep of the text of an event that begins, head and tail.
    body: Callable[[], tuple[int, int]] = lambda: BODY
    #: Told how many bytes wait, after every line.
    grows: Callable[[int], None] = lambda size: None
    bad_bytes: int = 0  # that were no UTF-8
    cut: int = 0  # events whose text was too long to be kept whole
    _most: tuple[int, int] = BODY
    _decoder: codecs.IncrementalDecoder | None = None
    _raw: bytes = b""  # of the line in the making, what is not rendered yet: less than LINE
    _carry: str = ""  # an escape that is not over
    _cells: bytes = b""  # what the line shows so far
    at: int = 0  # where its cursor stands
    controls: bool = False
    begun: bool = False  # a piece of the line was taken
    fields: dict[str, Any] | None = None  # groups of the head of the event in the making
    _head: bytes = b""
    _tail: bytes = b""
    lines: int = 0
    is_lost: bool = False

    def __post_init__(self) -> None:
        self._most = self.body()

    def feed(self, chunk: Any) -> Iterator[dict[str, Any]]:
        """Events that are over with this chunk. TraceError for what is not text."""
        if isinstance(chunk, bytes | bytearray):
            chunk = self._decode(bytes(chunk), False)
        elif not isinstance(chunk, str):
            raise TraceError(
                f"an event of type {type(chunk).__name__}: this adapter reads text. "
                "Feed it the text as it comes, a str or bytes."
            )
        return self._feed(chunk)

    def end(self) -> Iterator[dict[str, Any]]:
        """The last line and the last event."""
        if self._decoder is not None:
            yield from self._feed(self._decode(b"", True))
        if self._raw or self._carry or self._cells or self.begun:
            yield from self._line("")
        yield from self._finish()

    def _decode(self, data: bytes, final: bool) -> str:
        if self._decoder is None:
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        text = self._decoder.decode(data, final)
        self.bad_bytes += max(0, text.count("\ufffd") - data.count(b"\xef\xbf\xbd"))
        return text

    def _feed(self, chunk: str) -> Iterator[dict[str, Any]]:
        lines = chunk.split("\n")
        rest = lines.pop()
        for line in lines:
            yield from self._line(line)
        if rest:
            yield from self._grow(rest)

    def _line(self, text: str) -> Iterator[dict[str, Any]]:
        """The rest of a line, which ends here."""
        if len(self._raw) + size(text) <= LINE and not (self._cells or self._carry or self.begun):
            if self._raw:
                text, self._raw = self._raw.decode() + text, b""
            yield from self._take(render_line(text), False)
            return
        yield from self._grow(text)
        self._render(self._raw)
        line = self._cells.decode()
        begun = self.begun
        if self.controls:
            line = line.rstrip(" ")
        self._raw = self._cells = b""
        self._carry, self.at, self.controls, self.begun = "", 0, False, False
        yield from self._take(line, begun)

    def _grow(self, text: str) -> Iterator[dict[str, Any]]:
        """More of a line. It is rendered in blocks that are counted from its start."""
        data = self._raw + repair(text).encode()
        start = 0
        while len(data) - start > LINE:
            end = start + _whole(data[start : start + LINE + 1], LINE)
            self._render(data[start:end])
            start = end
            while len(self._cells) > LINE:
                shown = self._cells.decode()
                n = self.at or len(shown)
                self.at = max(self.at - n, 0)
                self._cells = shown[n:].encode()
                begun, self.begun = self.begun, True
                yield from self._take(shown[:n], begun)
        self._raw = data[start:]

    def _render(self, block: bytes) -> None:
        text = self._carry + block.decode()
        end, self._carry = unfinished(text)
        shown, self.at, controls = advance(self._cells.decode(), self.at, text[:end])
        self._cells = shown.encode()
        self.controls = self.controls or controls

    def _take(self, line: str, begun: bool) -> Iterator[dict[str, Any]]:
        """A line, or a piece of one; begun: a piece before it was taken already."""
        line = repair(line)
        found = None if begun else self.split.head.at_start(line)
        data = line.encode()
        if found is not None:
            yield from self._finish()
            length, fields = found
            self.fields = {name: _cut_field(text) for name, text in fields.items()}
            data = data[length:]
        if not self.lines:
            self.lines, self._most = 1, self.body()
        elif not begun:
            data = b"\n" + data
        self._keep(data)
        self.grows(len(self._head) + len(self._tail))

    def _keep(self, data: bytes) -> None:
        head, tail = self._most
        if not self._tail:
            kept = _whole(data, head - len(self._head))
            self._head += data[:kept]
            data = data[kept:]
        if data:
            data = self._tail + data
            if len(data) > tail:
                self.is_lost = True
                data = data[-tail:].lstrip(_CONTINUED) if tail else b""
            self._tail = data

    def _finish(self) -> Iterator[dict[str, Any]]:
        mark = CUT_MARK if self.is_lost else ""
        body = f"{self._head.decode()}{mark}{self._tail.decode()}"
        fields, self.fields = self.fields, None
        self.cut += self.is_lost
        self._head = self._tail = b""
        self.lines, self.is_lost = 0, False
        self.grows(0)
        for pattern in self.split.cuts:
            body = pattern.without(body)
        body = body.strip()
        if fields is not None:
            yield {**fields, "body": body}
        elif body:
            yield {"body": body}

    def state(self) -> dict[str, Any]:
        """What is kept between two chunks."""
        begun = self._decoder.getstate()[0] if self._decoder is not None else b""
        return {name: getattr(self, name) for name in _KEPT} | {
            "line": [self._raw.decode(), self._carry, self._cells.decode()],
            "head": self._head.decode(),
            "tail": self._tail.decode(),
            "most": list(self._most),
            "bytes": list(begun),
        }

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, _STATE, "state.splitter")
        for name in _KEPT:
            setattr(self, name, state[name])
        if self.fields is not None:
            names = set(self.fields) & set(self.split.head.names)
            checked(self.fields, dict.fromkeys(names, str), "state.splitter.fields")
            self.fields = {name: _cut_field(text) for name, text in self.fields.items()}
        raw, carry, cells = (*state["line"], "", "", "")[:3]
        self._raw, self._carry, self._cells = _cut(raw), carry[:LINE], _cut(cells)
        self.at, self.lines = min(self.at, WIDEST), min(self.lines, 1)
        self._most = tuple(map(min, zip(self._most, (*state["most"], 0, 0), strict=False)))[:2]
        self._head, self._tail = (
            data[: _whole(data, most)]
            for data, most in zip((state["head"].encode(), state["tail"].encode()), self._most, strict=True)
        )
        if state["bytes"]:
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
            self._decoder.setstate((bytes(byte & 255 for byte in state["bytes"][:3]), 0))
        self.grows(len(self._head) + len(self._tail))


_CONTINUED = bytes(range(0x80, 0xC0))
_KEPT = ("at", "begun", "controls", "fields", "lines", "is_lost", "bad_bytes", "cut")
_STATE = {
    "line": [str], "at": int, "controls": bool, "begun": bool, "fields": (None, dict), "head": str, "tail": str,
    "lines": int, "most": [int], "is_lost": bool, "bytes": [int], "bad_bytes": int, "cut": int,
}  # fmt: skip


def _cut(text: str) -> bytes:
    data = text.encode()
    return data[: _whole(data, LINE)]


def _whole(data: bytes, most: int) -> int:
    """Bytes of the data up to `most` that end with a whole character."""
    if len(data) <= most:
        return len(data)
    n = max(most, 0)
    while n > 0 and 0x80 <= data[n] < 0xC0:
        n -= 1
    return n
