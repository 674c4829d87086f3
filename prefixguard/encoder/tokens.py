"""Tokens of a serialised record, cut and hashed in one vectorised pass over its bytes.

Tokenizer version 1, defined on bytes so that a compiled twin can be exact: a token is a longest run of ASCII letters,
digits, underscores and bytes >= 0x80; ASCII letters are lower-cased; a tag byte (see `stepview.record`) begins the next
field. Everything else separates tokens. A token is known by a 64-bit hash from here on; its text is only looked up to
name vocabulary terms.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from prefixguard.stepview.record import FIELDS

TOKENIZER_VERSION = 1
N_FIELDS = len(FIELDS)

_MASK = (1 << 64) - 1
_TOKEN = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_TAGS = tuple(bytes([tag]) for tag in range(1, N_FIELDS + 1))


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


#: For `bytes.translate`: 1 for a byte of a token, 0 for any other.
_INSIDE = bytes(_TOKEN.match(bytes([byte])) is not None for byte in range(256))
#: Random value of each byte; upper and lower case share one, and bytes outside tokens are worth nothing.
_VALUE = _splitmix(1, 256)
_VALUE[65:91] = _VALUE[97:123]
_VALUE[~np.frombuffer(_INSIDE, np.bool_)] = 0

_BASE = 0xD6E8FEB86659FD93  # odd, so that it has an inverse modulo 2^64
_INVERSE = pow(_BASE, -1, 1 << 64)


def _constant(value: int) -> NDArray[np.uint64]:
    """An operand without a dimension: numpy takes it faster than a scalar, which counts where arrays are short."""
    return np.array(value, dtype=np.uint64)


_MIX_1, _MIX_2 = _constant(0xBF58476D1CE4E5B9), _constant(0x94D049BB133111EB)
_30, _27, _31 = _constant(30), _constant(27), _constant(31)


def _powers(base: int, n: int) -> NDArray[np.uint64]:
    """base^0 .. base^(n-1) modulo 2^64."""
    steps = np.full(n, base, dtype=np.uint64)
    steps[0] = 1
    return np.multiply.accumulate(steps)


_TABLE = 1 << 16
_POWERS, _INVERSES = _powers(_BASE, _TABLE), _powers(_INVERSE, _TABLE)


def mix(h: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Spread every bit over all others (splitmix64's finaliser); works in place and returns `h`."""
    shifted = h >> _30
    h ^= shifted
    h *= _MIX_1
    np.right_shift(h, _27, shifted)
    h ^= shifted
    h *= _MIX_2
    np.right_shift(h, _31, shifted)
    h ^= shifted
    return h


@dataclass(slots=True)  # not frozen, which would take fifteen times as long at every step
class Tokens:
    """Tokens of one serialised record.

    hashes: uint64 (n,), one a token, in order.
    starts: int64 (n,), positions of their first bytes in the document.
    bounds: ints (8,); the tokens of field f are bounds[f]:bounds[f + 1].
    document: the bytes they were cut from.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    bounds: tuple[int, ...]
    document: bytes

    def field(self, f: int) -> NDArray[np.uint64]:
        """Hashes of the tokens of field number f (its position in `stepview.FIELDS`)."""
        return self.hashes[self.bounds[f] : self.bounds[f + 1]]

    def text(self, i: int) -> str:
        """Text of token i, ASCII letters in lower case."""
        found = _TOKEN.match(self.document, int(self.starts[i]))
        return found[0].lower().decode("utf-8", "replace") if found else ""


def tokenize(document: bytes) -> Tokens:
    """Cut a serialised record into tokens. O(length), no Python loop over bytes or tokens.

    document: from `stepview.serialize`, with every field's tag, in order. Raises ValueError where a tag is missing.

    >>> t = tokenize(b"\\x01agent\\x02ls\\x03{}\\x04\\x05Look HERE\\x06a_b\\x07ok")
    >>> [t.text(i) for i in range(len(t.hashes))]
    ['agent', 'ls', 'look', 'here', 'a_b', 'ok']
    >>> t.bounds
    (0, 1, 2, 2, 2, 4, 5, 6)
    """
    n = len(document)
    inside = np.frombuffer(b"\0" + document.translate(_INSIDE), dtype=np.bool_)
    begins = np.empty(n + 1, dtype=np.bool_)
    np.greater(inside[1:], inside[:-1], out=begins[:n])
    begins[n] = True
    edges = begins.nonzero()[0]  # where tokens begin, and the document's end
    starts = edges[:-1]
    tags = [document.index(tag) for tag in _TAGS]
    bounds = (*starts.searchsorted(tags).tolist(), len(starts))
    if n <= _TABLE:
        powers, inverses = _POWERS[:n], _INVERSES
    else:
        powers, inverses = _powers(_BASE, n), _powers(_INVERSE, n)
    # Polynomial hash of every token at once: values times base^position, summed from one token's start to the next's
    # (what stands between is worth nothing), shifted back to position 0 by the inverse power.
    values = _VALUE.take(np.frombuffer(document, dtype=np.uint8), mode="clip")  # "clip": no check of every index
    values *= powers
    sums = np.zeros(n + 1, dtype=np.uint64)
    np.add.accumulate(values, out=sums[1:])
    sums = sums.take(edges)
    hashes = sums[1:] - sums[:-1]
    hashes *= inverses.take(starts)
    return Tokens(mix(hashes), starts, bounds, document)


_UNIGRAM, _BIGRAM = _splitmix(2, N_FIELDS), _splitmix(3, N_FIELDS)
_BORDER = _splitmix(4, 1)
#: Of unigrams, field by field; then, field by field, of its bigrams and of the pair that leaves the field.
_KINDS = np.concatenate((_UNIGRAM, np.stack((_BIGRAM, _BORDER.repeat(N_FIELDS)), axis=1).ravel()))
_LEFT = _constant(0x9DDFEA08EB382D69)


def ngrams_and_borders(tokens: Tokens) -> NDArray[np.uint64]:
    """Hashes of the unigrams, then of each token with the next one: uint64 (2n,).

    A field's last token stands before a token of another field, or before nothing: these pairs are no bigrams, and
    are marked so that their hashes are those of no n-gram. That spares a look-up to pick them out.
    """
    h = tokens.hashes
    n = len(h)
    lengths = [high - low for low, high in pairwise(tokens.bounds)]
    pairs = [kind for length in lengths for kind in ((length - 1, 1) if length else (0, 0))]
    out = _KINDS.repeat(lengths + pairs)
    out[:n] += h
    following = out[n:]
    following += h * _LEFT
    following[:-1] += h[1:]
    return mix(out)


def ngrams(tokens: Tokens) -> NDArray[np.uint64]:
    """Hashes of the unigrams and then the bigrams of a record, each tied to its field. uint64 (m,).

    Bigrams never cross a field's border. Source: PrefixGuard 4.2.
    """
    n = len(tokens.hashes)
    keep = np.ones(2 * n, dtype=np.bool_)
    keep[[n + high - 1 for low, high in pairwise(tokens.bounds) if low < high]] = False
    return ngrams_and_borders(tokens)[keep]


def ngram_names(tokens: Tokens) -> list[str]:
    """Names of the n-grams in the order of `ngrams`: `field:token` and `field:first second`. Slow; for naming terms."""
    words = [tokens.text(i) for i in range(len(tokens.hashes))]
    unigrams, bigrams = [], []
    for f, name in enumerate(FIELDS):
        low, high = tokens.bounds[f], tokens.bounds[f + 1]
        unigrams += [f"{name}:{words[i]}" for i in range(low, high)]
        bigrams += [f"{name}:{words[i]} {words[i + 1]}" for i in range(low, high - 1)]
    return unigrams + bigrams
