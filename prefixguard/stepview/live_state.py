"""What a live parser keeps between two events: room in bytes for texts that wait and for the header of the run, and the
check of a state that was saved."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.paths import MISSING, Step
from prefixguard.stepview.text import CUT_MARK, cut

_LONGEST_TEXT = 1 << 17
_LONGEST_LIST = 4096
_MOST = 1 << 64

#: A type (`int`: not negative, below 2**64; `str`: valid text), a tuple of alternatives (values or shapes), a list with
#: the shape of its elements, or an object with the shape of each field.
Shape = Any


def checked(state: Any, shape: Shape, where: str = "state") -> Any:
    """The state itself, if it has the shape. TraceError that names the part which has not."""
    if not _fits(state, shape):
        if isinstance(shape, dict) and isinstance(state, dict) and state.keys() == shape.keys():
            for name, inner in shape.items():
                checked(state[name], inner, f"{where}.{name}")
        raise TraceError(
            f"{where} is not what a parser of this adapter saves. Restore the run with the adapter and the release "
            "that saved it."
        )
    return state


def _fits(value: Any, shape: Shape) -> bool:
    if isinstance(shape, tuple):
        return any(_fits(value, one) for one in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and len(value) <= _LONGEST_LIST and all(_fits(one, shape[0]) for one in value)
    if isinstance(shape, dict):
        same = isinstance(value, dict) and value.keys() == shape.keys()
        return same and all(_fits(value[name], inner) for name, inner in shape.items())
    if shape is int:
        return type(value) is int and 0 <= value < _MOST
    if shape is str:
        return isinstance(value, str) and len(value) <= _LONGEST_TEXT and _is_valid(value)
    if isinstance(shape, type):
        return type(value) is shape
    return type(value) is type(shape) and bool(value == shape)


def _is_valid(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def checked_counts(state: Any, most: int, where: str) -> dict[str, int]:
    """Counts by name. TraceError where they are none, or more than `most`."""
    is_object = isinstance(state, dict) and len(state) <= most
    if not is_object or not all(_fits(name, str) and len(name) <= 100 and _fits(n, int) for name, n in state.items()):
        raise TraceError(f"{where} is not a list of counts. Restore the run from the state that was saved.")
    return dict(state)


#: Bytes for all that waits: calls for their results, speech for its call, observations for the next step, and of text
#: formats the event in the making.
ROOM = 6_750
#: Code points that the budgets of observation, action and arguments may have together for `ROOM` to hold. An adapter
#: with wider ones is for readers that are no monitor; it gets room for all of them.
_WIDEST = 12_000
#: Least bytes that a text keeps.
SHORTEST = 96
#: Bytes of an object that holds a text: a string of Python, or UTF-8 with its place.
_TEXT, _PACKED_TEXT = 58, 150


def room_for(budgets: dict[str, tuple[int, int]]) -> int:
    """Bytes for what waits, with these budgets."""
    widest = sum(sum(budgets[name]) for name in ("observation", "action", "arguments"))
    return ROOM if widest <= _WIDEST else 4 * (widest + sum(budgets["result"]))


def body_for(budgets: dict[str, tuple[int, int]], room: int) -> tuple[int, int]:
    """Bytes that are kept of the head and the tail of an event of a text format: three times as many as the widest
    field has code points, as far as there is room."""
    head, tail = (3 * max(pair[side] for pair in budgets.values()) for side in (0, 1))
    most = room * 3 // 4
    if head + tail > most:
        head, tail = most * head // (head + tail), most * tail // (head + tail)
    return head, tail


def cost(text: str | None) -> int:
    """Bytes that a text takes besides its own while it waits."""
    if not text:
        return 0
    return _TEXT if text.isascii() else _PACKED_TEXT


def size(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def level(sizes: list[int], room: int) -> int:
    """The most that every text may have, so that all together fit; `SHORTEST` at least.

    >>> level([10, 400, 900], 610)
    300
    """
    left = room
    for n, one in enumerate(sorted(sizes)):
        share = left // (len(sizes) - n)
        if one > share:
            return max(share, SHORTEST)
        left -= one
    return room


def cut_to(text: str, most: int) -> str:
    """The head and the tail of a text, in `most` bytes of UTF-8."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text
    left = most - len(CUT_MARK)
    tail = left * 2 // 5
    return data[: left - tail].decode("utf-8", "ignore") + CUT_MARK + data[len(data) - tail :].decode("utf-8", "ignore")


#: Bytes that a header may take in memory.
HEADER_ROOM = 2_600
_HEAD, _TAIL = 1200, 800
_CONTAINER, _NUMBER, _SLOT = 240, 160, 16
_MOST_BITS = 128
_DEEPEST = 16


@dataclass(frozen=True, slots=True)
class Header:
    """What is kept of a run. size: bytes. is_cut: something that rules could read did not fit."""

    run: Any
    size: int
    is_cut: bool


def compile_header(paths: Iterable[tuple[Step, ...]]) -> Callable[[Any], Header]:
    """From a run to what these paths, which start at it, can find in it."""
    found = sorted({_names(steps) for steps in paths})
    chosen = [one for one in found if not any(one[:n] in found for n in range(len(one)))]

    def header(run: Any) -> Header:
        if run is MISSING or not chosen:
            return Header(MISSING, 0, False)
        trim = _Trim()
        kept: Any = {}
        for names in chosen:
            kept = trim.copy(run, kept, names)
        return Header(kept, HEADER_ROOM - trim.left, trim.is_cut)

    return header


def _names(steps: tuple[Step, ...]) -> tuple[str, ...]:
    """The names that a path begins with."""
    return tuple(step[1] for step in takewhile(lambda step: step[0] == "name", steps))


class _Trim:
    """Copies values as long as there is room; texts are cut as observations are."""

    __slots__ = ("is_cut", "left")

    def __init__(self) -> None:
        self.left = HEADER_ROOM
        self.is_cut = False

    def copy(self, value: Any, into: Any, names: tuple[str, ...]) -> Any:
        """`into` with what the names lead to in the value; unchanged where they lead nowhere."""
        if not names:
            found = self.kept(value, 0)
            return into if found is MISSING else found
        if isinstance(value, dict) and names[0] in value and self._has(_CONTAINER):
            inner = self.copy(value[names[0]], into.get(names[0], {}), names[1:])
            return {**into, names[0]: inner}
        return into

    def kept(self, value: Any, depth: int) -> Any:
        """The value, or as much of it as there is room for; MISSING where there is none."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = cut(str(value), _HEAD, _TAIL)
            if sys.getsizeof(text) > self.left:
                self.is_cut = True
                n = max(self.left - 100, 0) // 12
                text = cut(text, 2 * n, n)
            return text if self._has(sys.getsizeof(text)) else MISSING
        if isinstance(value, int | float):
            is_short = isinstance(value, float) or value.bit_length() <= _MOST_BITS
            return value if is_short and len(getattr(value, "text", "")) < 64 and self._has(_NUMBER) else MISSING
        if not isinstance(value, list | dict) or depth > _DEEPEST or not self._has(_CONTAINER):
            return MISSING
        if isinstance(value, list):
            items = (self.kept(item, depth + 1) for item in takewhile(lambda item: self._has(_SLOT), value))
            return [item for item in items if item is not MISSING]
        inner = {}
        for name, item in value.items():
            if not self._has(_SLOT + sys.getsizeof(name)):
                break
            found = self.kept(item, depth + 1)
            if found is not MISSING:
                inner[name] = found
        return inner

    def _has(self, size: int) -> bool:
        """Is there room for so many bytes? They are taken."""
        if size > self.left:
            self.is_cut = True
            return False
        self.left -= size
        return True
