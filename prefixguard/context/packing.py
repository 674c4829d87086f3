"""The context of a run as bytes of one length, and back, so that a session can be saved.

All numbers stand at fixed places, little-endian, so that types and lengths need no further check; what is left to
check is their range.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from prefixguard.context import bloom
from prefixguard.context.state import COUNTS, HASHES, LISTS, NUMBERS, TABLES, ContextState
from prefixguard.errors import SavedSessionError

_FIXED = struct.Struct(f"<{len(COUNTS) + len(HASHES)}Q{len(NUMBERS) + 4 * len(LISTS)}d")
_MOST_COUNTED = 1 << 53
_MOST_NUMBER = 1e18  # the sum of n * log2(n) over more steps than a run can have

#: Length of a packed context.
PACKED_BYTES = _FIXED.size + sum(getattr(ContextState(), name).packed_bytes for name in TABLES) + bloom.N_BYTES


def pack(state: ContextState) -> bytes:
    """All of the state, `PACKED_BYTES` long."""
    whole = [getattr(state, name) for name in COUNTS + HASHES]
    numbers = [getattr(state, name) for name in NUMBERS] + state.means + state.maxima
    tables = [getattr(state, name).pack() for name in TABLES]
    return b"".join((_FIXED.pack(*whole, *numbers), *tables, state.words.tobytes()))


def unpack(data: bytes) -> ContextState:
    """The state that `pack` was given. Raises SavedSessionError for bytes that no state packs to."""
    state = ContextState()
    if len(data) != PACKED_BYTES:
        raise SavedSessionError(f"The saved context has {len(data)} bytes, not {PACKED_BYTES}: the session is damaged.")
    values = _FIXED.unpack_from(data)
    counts, hashes = values[: len(COUNTS)], values[len(COUNTS) : len(COUNTS) + len(HASHES)]
    numbers = values[len(COUNTS) + len(HASHES) :]
    if max(counts) >= _MOST_COUNTED or not all(math.isfinite(x) and 0 <= x <= _MOST_NUMBER for x in numbers):
        raise SavedSessionError("The saved context holds numbers that no run gives: the session is damaged.")
    for name, value in zip(COUNTS + HASHES + NUMBERS, counts + hashes + numbers, strict=False):
        setattr(state, name, value)
    state.means, state.maxima = list(numbers[-8:-4]), list(numbers[-4:])
    at = _FIXED.size
    for name in TABLES:
        table = getattr(state, name)
        table.unpack(data[at : at + table.packed_bytes])
        at += table.packed_bytes
    state.words = np.frombuffer(data, np.uint8, bloom.N_BYTES, at).copy()
    return state
