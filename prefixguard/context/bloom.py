"""A Bloom filter over 64-bit word hashes, in fixed memory, read and written a whole step at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_BYTES = 24_576
N_BITS = np.uint64(8 * N_BYTES)
N_HASHES = 6
#: Words it holds at a false-positive share of at most 1 %: (1 - exp(-6 * 20000 / 196608))^6 = 0.0091.
CAPACITY = 20_000

_LOW = np.uint64(0xFFFFFFFF)
_32 = np.uint64(32)
_ONE = np.uint64(1)
_STEPS = np.arange(N_HASHES, dtype=np.uint64)[:, None]
_BIT = (np.uint8(1) << np.arange(8, dtype=np.uint8)).astype(np.uint8)


def positions(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bit positions of each word, uint64 (6, n), by double hashing (Kirsch and Mitzenmacher 2006)."""
    p = (h >> _32 | _ONE) * _STEPS
    p += h
    p &= _LOW
    p *= N_BITS
    p >>= _32
    return p


def contains(bits: NDArray[np.uint8], p: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Which words are (probably) in the filter. p: from `positions`. bool (n,)."""
    found: NDArray[np.bool_] = (bits[p >> np.uint64(3)] & _BIT[p & np.uint64(7)]).all(axis=0)
    return found


def insert(bits: NDArray[np.uint8], p: NDArray[np.uint64]) -> None:
    """Set the bits of words. p: from `positions`."""
    flat = p.ravel()
    np.bitwise_or.at(bits, flat >> np.uint64(3), _BIT[flat & np.uint64(7)])
