"""How often the conditions of declared behaviours held so far: 17 bytes for each behaviour."""

from __future__ import annotations

import struct
from typing import Final

from prefixguard.behaviours.declared import DeclaredBehaviour, DeclaredBehaviours
from prefixguard.errors import SavedSessionError
from prefixguard.stepview import StepRecord

#: Times, the first step of them, the last 64 steps as bits (the last is the lowest), and whether `unless_before` held.
_LAYOUT: Final = struct.Struct("<IIQB")
_BITS: Final = (1 << 64) - 1
_MOST: Final = (1 << 32) - 1


class DeclaredCounts:
    """What is kept of a run for the behaviours of a file."""

    __slots__ = ("_data",)

    def __init__(self, declared: DeclaredBehaviours) -> None:
        self._data = bytearray(_LAYOUT.size * len(declared.behaviours))

    def step(
        self, declared: DeclaredBehaviours, record: StepRecord, consequence: str, step: int
    ) -> list[tuple[DeclaredBehaviour, int, int]]:
        """Take a step in. Returns what holds at it, each with the step since when and how often.

        step: its number, from 1. consequence: its kind.
        """
        found = []
        for i, one in enumerate(declared.behaviours):
            times, since, bits, is_over = _LAYOUT.unpack_from(self._data, i * _LAYOUT.size)
            if one.reset is not None and one.reset(record, consequence):
                times = since = bits = 0
            holds = one.when(record, consequence)
            bits = (bits << 1 | holds) & _BITS
            if holds:
                since = since if times else step
                times = min(times + 1, _MOST)
            elif one.in_a_row:
                times = 0
            if holds and not is_over:
                n, began = times, since
                if one.within:
                    latest = bits & ((1 << one.within) - 1)
                    n, began = latest.bit_count(), step - latest.bit_length() + 1
                if n >= one.at_least:
                    found.append((one, began, n))
            if one.unless_before is not None and one.unless_before(record, consequence):
                is_over = 1
            _LAYOUT.pack_into(self._data, i * _LAYOUT.size, times, since, bits, is_over)
        return found

    @property
    def packed_bytes(self) -> int:
        """Length of what `pack` gives."""
        return len(self._data)

    def pack(self) -> bytes:
        """All counts as bytes."""
        return bytes(self._data)

    def unpack(self, data: bytes, step: int) -> None:
        """Take over packed counts of the same file, `packed_bytes` long. step: of the run.

        Raises SavedSessionError for what no run gives.
        """
        for times, since, bits, is_over in _LAYOUT.iter_unpack(data):
            if times > step or since > step or bits.bit_length() > step or is_over > 1:
                raise SavedSessionError(
                    "The saved counts of declared behaviours are damaged, and with them the session."
                )
        self._data[:] = data
