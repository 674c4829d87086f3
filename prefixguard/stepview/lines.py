"""Raw events as lines on a stream, while the agent runs: one JSON value a line, or text as it comes.

A line is bounded: what is longer is read past and told, never held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from prefixguard.stepview.adapter import Adapter
from prefixguard.stepview.jsontext import decode

#: Bytes of a line that is still an event. Adapters keep far less of any event.
MAX_LINE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class EventLine:
    """One line. number: from 1. event: decoded, or a piece of text. problem: why it is no event; None if it is one."""

    number: int
    event: Any
    problem: str | None


def read_events(stream: BinaryIO, adapter: Adapter, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[EventLine]:
    """Every line of the stream as soon as it is there; blank lines of JSON are passed over. Never raises for a line.

    An adapter of text gets each line with its newline, as bytes.
    """
    text = adapter.program.events.split is not None
    number = 0
    while line := stream.readline(max_bytes + 1):
        number += 1
        if len(line) > max_bytes:
            while line and not line.endswith(b"\n"):
                line = stream.readline(1 << 20)
            yield EventLine(number, None, f"line {number} is longer than the {max_bytes:,} bytes that are read")
        elif text:
            yield EventLine(number, line, None)
        elif not line.isspace():
            yield _decoded(number, line)


def _decoded(number: int, line: bytes) -> EventLine:
    try:
        return EventLine(number, decode(line), None)
    except UnicodeDecodeError as exc:
        return EventLine(number, None, f"line {number} is not UTF-8 ({exc.reason} at byte {exc.start + 1})")
    except (ValueError, RecursionError) as exc:
        why = "nested too deeply" if isinstance(exc, RecursionError) else str(exc).partition(":")[0]
        return EventLine(number, None, f"line {number} is not JSON ({why}); events are one JSON value a line")
