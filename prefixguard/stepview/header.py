"""The header of a live run: what rules read of the run while it goes on, and no more."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from prefixguard.stepview.paths import Step
from prefixguard.stepview.scope import MISSING
from prefixguard.stepview.text import cut

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
    names: list[str] = []
    for step in steps:
        if step[0] != "name":
            break
        names.append(step[1])
    return tuple(names)


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
