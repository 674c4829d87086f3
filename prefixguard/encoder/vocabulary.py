"""The vocabulary: which n-grams have a column, with their inverse document frequency; a record becomes a sparse row.

Encoding equals scikit-learn's `TfidfVectorizer(smooth_idf=True, norm="l2")` given the same analyser, to float32.
Source: PrefixGuard 4.2.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from prefixguard.encoder.tokens import TOKENIZER_VERSION, Tokens, ngrams_and_borders
from prefixguard.errors import BundleError, BundleVersionError

_MAGIC = b"PGVOCAB\x01"
_HEADER = struct.Struct("<8sIIQ")  # magic, tokenizer version, number of terms, bytes of term text
#: Most terms of a vocabulary; each takes some hundred bytes of memory.
MOST_TERMS = 1 << 20
_SHIFT = np.array(48, dtype=np.uint64)


@dataclass(slots=True)  # not frozen, which would take fifteen times as long at every step
class SparseRow:
    """TF-IDF row of one record: columns ascending, L2 norm 1, or both arrays empty.

    indices: int64 (nnz,). values: float32 (nnz,).
    """

    indices: NDArray[np.int64]
    values: NDArray[np.float32]


_EMPTY = SparseRow(np.empty(0, np.int64), np.empty(0, np.float32))


class Vocabulary:
    """Columns of n-grams. Made by `fit_vocabulary` or `Vocabulary.from_bytes`; never changed afterwards.

    terms: names (`field:token` or `field:first second`) in column order, which is their sorted order.
    idf: float32 (V,), one for each column, ln((1 + n) / (1 + df)) + 1.
    """

    __slots__ = ("_columns", "_crowded", "_first", "_hashes", "_others", "_weights", "idf", "terms")

    def __init__(self, terms: Sequence[str], hashes: NDArray[np.uint64], idf: NDArray[np.float32]) -> None:
        """terms, hashes, idf: one entry a column, columns in the order of the terms."""
        self.terms = tuple(terms)
        self.idf = np.ascontiguousarray(idf, dtype=np.float32)
        order = np.argsort(hashes, kind="stable")
        n = len(order)
        # Sorted by hash, so that a bucket (the top 16 bits) is a run of entries: `_first` is where it begins (n:
        # empty). With 4,096 terms few buckets hold more than one; those that are not first stand in a dictionary.
        self._hashes = np.asarray(hashes, dtype=np.uint64)[order]
        self._columns = order.astype(np.int64)
        self._weights = self.idf.astype(np.float64)
        buckets = self._hashes >> _SHIFT
        self._first = np.full(1 << 16, n, dtype=np.uint16 if n < 1 << 16 else np.uint32)  # small: it stays in cache
        self._first[buckets[::-1]] = np.arange(n)[::-1]
        crowd = np.flatnonzero(buckets[1:] == buckets[:-1])
        self._crowded = np.zeros(n, dtype=np.bool_)
        self._crowded[crowd] = True  # the next entry is of the same bucket
        self._others = dict(zip(self._hashes[crowd + 1].tolist(), self._columns[crowd + 1].tolist(), strict=True))

    def __len__(self) -> int:
        return len(self.terms)

    def encode(self, tokens: Tokens) -> SparseRow:
        """The sparse TF-IDF row of a record."""
        found = self._look_up(ngrams_and_borders(tokens))
        if len(found) == 0:
            return _EMPTY
        found.sort()
        first = np.empty(len(found) + 1, dtype=np.bool_)
        first[0] = first[-1] = True
        np.not_equal(found[1:], found[:-1], out=first[1:-1])
        at = first.nonzero()[0]
        indices = found.take(at[:-1])
        values = self._weights.take(indices)
        values *= at[1:] - at[:-1]
        values /= math.sqrt(values.dot(values))
        return SparseRow(indices, values.astype(np.float32))

    def _look_up(self, h: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Columns of those n-grams that have one, repeats kept."""
        entry = self._first.take((h >> _SHIFT).view(np.int64), mode="clip")
        candidate = (entry != len(self.terms)).nonzero()[0]
        at, h = entry.take(candidate).astype(np.int64), h.take(candidate)
        hit = self._hashes.take(at) == h
        found: NDArray[np.int64] = self._columns.take(at[hit])
        if self._others:
            again = (self._crowded.take(at) > hit).nonzero()[0]
            others = [self._others[x] for x in h.take(again).tolist() if x in self._others]
            if others:
                found = np.concatenate((found, others))
        return found

    def to_bytes(self) -> bytes:
        """The file `vocabulary.bin`: the same vocabulary gives the same bytes."""
        text = "\n".join(self.terms).encode("utf-8")
        header = _HEADER.pack(_MAGIC, TOKENIZER_VERSION, len(self.terms), len(text))
        return b"".join(
            (
                header,
                self._hashes.astype("<u8").tobytes(),
                self._columns.astype("<i4").tobytes(),
                self.idf.astype("<f4").tobytes(),
                text,
            )
        )

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "vocabulary.bin") -> Vocabulary:
        """Read `vocabulary.bin`. Raises BundleError (damaged) or BundleVersionError (newer tokenizer)."""
        if len(data) < _HEADER.size or not data.startswith(_MAGIC):
            raise BundleError(f"{where}: not a vocabulary file. Train or export the bundle again.")
        _, version, n, n_text = _HEADER.unpack_from(data)
        if version > TOKENIZER_VERSION:
            raise BundleVersionError(
                f"{where}: tokenizer version {version}, this release reads up to {TOKENIZER_VERSION}. "
                "Upgrade prefixguard."
            )
        if version < 1:
            raise BundleError(f"{where}: damaged header. Train or export the bundle again.")
        if n > MOST_TERMS:
            raise BundleError(f"{where}: {n:,} terms; at most {MOST_TERMS:,} are read. Train it again with fewer.")
        if len(data) != _HEADER.size + 16 * n + n_text:
            raise BundleError(f"{where}: {len(data)} bytes do not hold {n} terms. Train or export the bundle again.")
        at = _HEADER.size
        hashes = np.frombuffer(data, "<u8", n, at).astype(np.uint64)
        columns = np.frombuffer(data, "<i4", n, at + 8 * n).astype(np.int64)
        idf = np.frombuffer(data, "<f4", n, at + 12 * n).astype(np.float32)
        try:
            terms = data[at + 16 * n :].decode("utf-8").split("\n") if n else []
        except UnicodeDecodeError as exc:
            raise BundleError(f"{where}: damaged term text. Train or export the bundle again.") from exc
        if not (np.isfinite(idf) & (idf > 0)).all():
            raise BundleError(f"{where}: damaged weights. Train or export the bundle again.")
        in_order = terms == sorted(set(terms)) and (hashes[1:] > hashes[:-1]).all()
        if len(terms) != n or not in_order or not np.array_equal(np.sort(columns), np.arange(n)):
            raise BundleError(f"{where}: damaged term table. Train or export the bundle again.")
        by_column = np.empty(n, dtype=np.uint64)
        by_column[columns] = hashes
        return cls(terms, by_column, idf)
