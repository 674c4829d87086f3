"""How often something was seen among the most recent: counts by 64-bit hash, in a table of fixed size."""

from __future__ import annotations

import struct

from prefixguard.errors import SavedSessionError

#: Counts end here: one more makes no difference to a feature.
MOST = 1000

_KEY = 8  # bytes of an entry that hold the hash, the lowest first
_ENTRY = _KEY + 2  # and two for its count
_PLACES = struct.Struct("<HH")  # where the next new hash goes, and how many bytes are in use


class RecentCounts:
    """Counts of the `size` different hashes that came in last; when a further one comes, the first one makes room.

    All entries are in one array of bytes, so that the search for a hash is one call.
    """

    __slots__ = ("_at", "_entries", "_used")

    def __init__(self, size: int) -> None:
        self._entries = bytearray(size * _ENTRY)
        self._at = 0
        self._used = 0

    def bump(self, key: int) -> int:
        """How often `key` was seen before (at most MOST); counts it once more. key: below 2^64."""
        entries = self._entries
        i = self._find(key)
        if i < 0:
            i = self._at
            entries[i : i + _KEY] = key.to_bytes(_KEY, "little")
            entries[i + _KEY] = 1
            entries[i + _KEY + 1] = 0
            self._used = max(self._used, i + _ENTRY)
            self._at = (i + _ENTRY) % len(entries)
            return 0
        seen = entries[i + _KEY] | entries[i + _KEY + 1] << 8
        if seen < MOST:
            entries[i + _KEY] = seen + 1 & 255
            entries[i + _KEY + 1] = seen + 1 >> 8
        return seen

    def get(self, key: int) -> int:
        """How often `key` was seen before (at most MOST)."""
        i = self._find(key)
        return self._entries[i + _KEY] | self._entries[i + _KEY + 1] << 8 if i >= 0 else 0

    @property
    def packed_bytes(self) -> int:
        """Length of what `pack` gives."""
        return _PLACES.size + len(self._entries)

    def pack(self) -> bytes:
        """The whole table as bytes."""
        return _PLACES.pack(self._at, self._used) + self._entries

    def unpack(self, data: bytes) -> None:
        """Take over a packed table of this size, `packed_bytes` long. Raises SavedSessionError for what is none."""
        at, used = _PLACES.unpack_from(data)
        size = len(self._entries)
        if at % _ENTRY or used % _ENTRY or used > size or at != (used if used < size else min(at, size - _ENTRY)):
            raise SavedSessionError("A saved table of recent counts is damaged, and with it the session.")
        self._entries[:] = data[_PLACES.size :]
        self._at, self._used = at, used

    def _find(self, key: int) -> int:
        """Where the entry of `key` begins, -1 where there is none."""
        raw = key.to_bytes(_KEY, "little")
        i = self._entries.find(raw, 0, self._used)
        while i > 0 and i % _ENTRY:  # bytes of two entries that happen to read like it
            i = self._entries.find(raw, i + 1, self._used)
        return i
