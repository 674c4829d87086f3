"""Tokens of a serialised record, cut and hashed in one vectorised pass over its bytes.

Tokenizer version 1, defined on bytes so that a compiled twin can be exact: a token is a longest run of ASCII letters,
digits, underscores and bytes >= 0x80; ASCII letters are lower-cased; a tag byte (see `stepview.record`) begins the next
field. Everything else separates tokens. A token is known by a 64-bit hash from here on; its text is only looked up to
name vocabulary terms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.stepview.record import FIELDS

TOKENIZER_VERSION = 1
N_FIELDS = len(FIELDS)

_MASK = (1 << 64) - 1


def _splitmix(seed: int, n: int) -> NDArray[np.uint64]:
    """n fixed pseudo-random 64-bit constants (splitmix64)."""
    out = []
    for _ in range(n):
        seed = (seed + 0x9E3779B97F4A7C15) & _MASK
        z = seed
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        out.append(z ^ (z >> 31))
    return np.array(out, dtype=np.uint64)


_IS_TOKEN = np.zeros(256, dtype=np.bool_)
_IS_TOKEN[[*range(48, 58), *range(65, 91), 95, *range(97, 123), *range(128, 256)]] = True
#: Random value of each byte; upper and lower case share one, and bytes outside tokens are worth nothing.
_VALUE = _splitmix(1, 256)
_VALUE[65:91] = _VALUE[97:123]
_VALUE[~_IS_TOKEN] = 0

_BASE = 0xD6E8FEB86659FD93  # odd, so that it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)


def _powers(base: int, n: int) -> NDArray[np.uint64]:
    """base^0 .. base^(n-1) modulo 2^64."""
    steps = np.full(n, base, dtype=np.uint64)
    steps[0] = 1
    return np.multiply.accumulate(steps)


_TABLE = 1 << 14
_POWERS, _INVERSES = _powers(_BASE, _TABLE), _powers(_INVERSE, _TABLE)


def mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all others (splitmix64's finaliser); works in place and returns `h`."""
    h ^= h >> _30
    h *= _MIX_1
    h ^= h >> _27
    h *= _MIX_2
    h ^= h >> _31
    return h


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one serialised record.

    hashes: uint64 (n,), one a token, in order.
    starts, ends: int64 (n,), byte positions in the document, end exclusive.
    bounds: ints (8,); the tokens of field f are bounds[f]:bounds[f + 1].
    document: the bytes they were cut from, uint8.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    bounds: tuple[int, ...]
    document: NDArray[np.uint8]

    def field(self, f: int) -> NDArray[np.uint64]:
        """Hashes of the tokens of field number f (its position in `stepview.FIELDS`)."""
        return self.hashes[self.bounds[f] : self.bounds[f + 1]]

    def text(self, i: int) -> str:
        """Text of token i, ASCII letters in lower case."""
        raw = self.document[self.starts[i] : self.ends[i]].tobytes()
        return raw.lower().decode("utf-8", "replace")


def tokenize(document: bytes) -> Tokens:
    """Cut a serialised record into tokens. O(length), no Python loop over bytes or tokens.

    >>> t = tokenize(b"\\x01agent\\x02ls\\x03{}\\x04\\x05Look HERE\\x06a_b\\x07ok")
    >>> [t.text(i) for i in range(len(t.hashes))]
    ['agent', 'ls', 'look', 'here', 'a_b', 'ok']
    >>> t.bounds
    (0, 1, 2, 2, 2, 4, 5, 6)
    """
    data = np.frombuffer(document, dtype=np.uint8)
    n = len(data)
    inside = np.zeros(n + 2, dtype=np.bool_)
    inside[1:-1] = _IS_TOKEN[data]
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    starts, ends = edges[0::2], edges[1::2]
    if n < _TABLE:
        powers, inverses = _POWERS, _INVERSES
    else:
        powers, inverses = _powers(_BASE, n + 1), _powers(_INVERSE, n + 1)
    # Polynomial hash of every token at once: prefix sums of value * base^position, differences at the token's edges,
    # shifted back to position 0 by the inverse power.
    sums = np.empty(n + 1, dtype=np.uint64)
    sums[0] = 0
    np.cumsum(_VALUE[data] * powers[:n], out=sums[1:])
    hashes = mix((sums[ends] - sums[starts]) * inverses[starts])
    tags = np.flatnonzero((data - np.uint8(1)) < N_FIELDS)
    bounds = np.searchsorted(starts, tags).tolist()
    bounds.append(len(starts))
    return Tokens(hashes, starts, ends, tuple(bounds), data)


_UNIGRAM = _splitmix(2, N_FIELDS)
_BIGRAM = _splitmix(3, N_FIELDS)
_LEFT = np.uint64(0x9DDFEA08EB382D69)


def ngrams(tokens: Tokens) -> NDArray[np.uint64]:
    """Hashes of the unigrams and then the bigrams of a record, each tied to its field. uint64 (m,).

    Bigrams never cross a field's border. Source: PrefixGuard 4.2.
    """
    h = tokens.hashes
    n = len(h)
    if n == 0:
        return h
    out = np.empty(2 * n - 1, dtype=np.uint64)
    unigrams, bigrams = out[:n], out[n:]
    np.multiply(h[:-1], _LEFT, out=bigrams)
    bigrams += h[1:]
    cross = []
    for f in range(N_FIELDS):
        low, high = tokens.bounds[f], tokens.bounds[f + 1]
        if low < high:
            np.add(h[low:high], _UNIGRAM[f], out=unigrams[low:high])
            bigrams[low : high - 1] += _BIGRAM[f]
            if high < n:
                cross.append(n + high - 1)
    if cross:
        keep = np.ones(len(out), dtype=np.bool_)
        keep[cross] = False
        out = out[keep]
    return mix(out)


def ngram_names(tokens: Tokens) -> list[str]:
    """Names of the n-grams in the order of `ngrams`: `field:token` and `field:first second`. Slow; for naming terms."""
    words = [tokens.text(i) for i in range(len(tokens.hashes))]
    unigrams, bigrams = [], []
    for f, name in enumerate(FIELDS):
        low, high = tokens.bounds[f], tokens.bounds[f + 1]
        unigrams += [f"{name}:{words[i]}" for i in range(low, high)]
        bigrams += [f"{name}:{words[i]} {words[i + 1]}" for i in range(low, high - 1)]
    return unigrams + bigrams
