"""Events in the order of a key: of a whole run exactly, of a live one within a window that is bounded in bytes."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.jsontext import decode, decode_text, spelled
from prefixguard.stepview.live_state import checked

#: Code points of a text that orders events.
_LONGEST_KEY = 64
_MOST_BITS = 128
#: Bytes that an event in the window takes besides its text.
_ENTRY = 360

Key = tuple[int, Any]


class Reorder:
    """Puts events in the order of a key; live, within a window of events.

    window: events that wait. room: bytes that they may take, as JSON text; None where they are kept as they are (a
    whole run, which is in memory anyway). What does not fit is released early, the first in order first. An event is a
    list of `n_parts` parts: itself, and its parent and grandparent where these have to wait with it.
    """

    __slots__ = ("_heap", "_last", "_n_parts", "_number", "_released", "_room", "_used", "_window", "early", "late")

    def __init__(self, window: int, room: int | None, n_parts: int) -> None:
        self._window, self._room, self._n_parts = window, room, n_parts
        self._heap: list[tuple[Key, int, int, Any, int]] = []  # key, number, bytes, event, position
        self._number = 0
        self._last: Key = (0, 0)
        self._released: Key | None = None
        self._used = 0
        #: Events that left before the window was full, for want of room.
        self.early = 0
        #: Events that came when one that belongs after them had left already.
        self.late = 0

    def push(self, key: Any, event: list[Any], position: int) -> Iterator[tuple[list[Any], int]]:
        """Events that are ready with this one, and their positions in the run."""
        self._last = sort_key(key, self._last)
        self.late += self._released is not None and self._last < self._released
        size, kept = self._packed(event)
        number, self._number = self._number, self._number + 1
        heapq.heappush(self._heap, (self._last, number, size, kept, position))
        self._used += size
        while len(self._heap) > self._window or (self._room is not None and self._used > self._room):
            self.early += len(self._heap) <= self._window
            self._released, n, size, kept, at = heapq.heappop(self._heap)
            self._used -= size
            yield (event if n == number else _read(kept)), at

    def rest(self) -> Iterator[tuple[list[Any], int]]:
        """What waits, at the end."""
        self._used = 0
        while self._heap:
            _, _, _, kept, at = heapq.heappop(self._heap)
            yield _read(kept), at

    def _packed(self, event: list[Any]) -> tuple[int, Any]:
        """Bytes that the event takes while it waits, and what waits. What cannot wait takes more than there is."""
        if self._room is None:
            return 0, event
        data = spelled(event).encode("utf-8", "surrogatepass")
        size = len(data) + _ENTRY
        return (size, data) if data and size <= self._room else (self._room + 1, b"")

    def state(self) -> dict[str, Any]:
        """What is kept between two events. Only of a live run."""
        waiting = [
            [*_saved_key(key), number, kept.decode("utf-8", "replace"), at] for key, number, _, kept, at in self._heap
        ]
        return {
            "waiting": waiting,
            "number": self._number,
            "last": _saved_key(self._last),
            "released": None if self._released is None else _saved_key(self._released),
            "early": self.early,
            "late": self.late,
        }

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, _STATE, "state.window")
        self._heap = [self._resumed(entry) for entry in state["waiting"]]
        heapq.heapify(self._heap)
        self._used = sum(entry[2] for entry in self._heap)
        self._number = state["number"]
        self._last = _read_key(state["last"])
        self._released = None if state["released"] is None else _read_key(state["released"])
        self.early, self.late = state["early"], state["late"]

    def _resumed(self, entry: list[Any]) -> tuple[Key, int, int, Any, int]:
        if len(entry) == 5 and isinstance(entry[3], str) and type(entry[2]) is type(entry[4]) is int:
            data = entry[3].encode("utf-8", "replace")
            try:
                parts = _read(data)
            except ValueError as exc:
                raise TraceError(f"state.window holds an event that is no JSON ({exc}). Save the run again.") from exc
            size = len(data) + _ENTRY
            if isinstance(parts, list) and len(parts) == self._n_parts and size <= (self._room or 0):
                return _read_key(entry[:2]), entry[2], size, data, entry[4]
        raise TraceError("state.window does not hold events. Restore the run from the state that was saved.")


_STATE = {
    "waiting": [[(str, int)]], "number": int, "last": [(str, int)], "released": (None, [(str, int)]), "early": int,
    "late": int,
}  # fmt: skip


def _read(kept: Any) -> list[Any]:
    if isinstance(kept, list):
        return kept
    try:
        found: list[Any] = decode(kept)
    except UnicodeDecodeError:
        found = decode_text(kept.decode("utf-8", "surrogatepass"))
    return found


def sort_key(value: Any, last: Key) -> Key:
    """Numbers, and texts of digits, by value; other texts by code points; what has no key keeps its place."""
    if isinstance(value, bool):
        return last
    if isinstance(value, int):
        return (0, int(value)) if value.bit_length() <= _MOST_BITS else last
    if isinstance(value, float):
        return (0, float(value)) if math.isfinite(value) else last
    if isinstance(value, str) and value:
        is_number = value.isascii() and value.isdigit() and len(value) < 40
        return (0, int(value)) if is_number else (1, value[:_LONGEST_KEY])
    return last


def _saved_key(key: Key) -> list[Any]:
    return [key[0], str(key[1])]


def _read_key(saved: list[Any]) -> Key:
    """TraceError where it is no key that was saved."""
    try:
        kind, text = saved
        if kind == 1 and isinstance(text, str):
            return (1, text[:_LONGEST_KEY])
        number = float(text) if any(letter in text for letter in ".en") else int(text)
        if kind == 0 and isinstance(text, str) and len(text) < 60 and math.isfinite(number):
            return (0, number)
    except (TypeError, ValueError, OverflowError):
        pass
    raise TraceError("state.window holds no place in the order. Restore the run from the state that was saved.")
