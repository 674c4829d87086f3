"""A Bloom filter over 64-bit word hashes, in fixed memory, read and written a whole step at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

N_BYTES = 14_336
N_HASHES = 6
#: Words it holds at a false-positive share of at most 1 %: (1 - exp(-6 * 11900 / 114688))^6 = 0.0099.
CAPACITY = 11_900

_LOW = np.array(0xFFFFFFFF, dtype=np.uint64)
_BITS = np.array(8 * N_BYTES, dtype=np.uint64)
_1, _3, _7, _32 = (np.array(n, dtype=np.uint64) for n in (1, 3, 7, 32))
_STEPS = np.arange(N_HASHES, dtype=np.uint64)[:, None]
_BIT = (np.uint8(1) << np.arange(8, dtype=np.uint8)).astype(np.uint8)

#: For each word (column) its bits: the byte each is in, int64 (6, n), and its value in there, uint8 (6, n).
Places = tuple[NDArray[np.int64], NDArray[np.uint8]]


def places(h: NDArray[np.uint64]) -> Places:
    """Where the bits of each word are, by double hashing (Kirsch and Mitzenmacher 2006)."""
    p = h >> _32
    p |= _1
    p = p * _STEPS
    p += h
    p &= _LOW
    p *= _BITS
    p >>= _32
    bit = _BIT.take((p & _7).view(np.int64), mode="clip")
    p >>= _3
    return p.view(np.int64), bit


def select(where: Places, words: NDArray[np.bool_]) -> Places:
    """Places of some of the words."""
    at, bit = where
    return at.compress(words, axis=1), bit.compress(words, axis=1)


def missing(bits: NDArray[np.uint8], where: Places) -> NDArray[np.bool_]:
    """Which words are not in the filter, bool (n,). Of words never inserted it misses a few."""
    at, bit = where
    held = bits.take(at, mode="clip")
    held &= bit
    new: NDArray[np.bool_] = np.minimum.reduce(held, axis=0) == 0
    return new


def insert(bits: NDArray[np.uint8], where: Places) -> None:
    """Set the bits of words."""
    at, bit = where
    np.bitwise_or.at(bits, at.ravel(), bit.ravel())
