"""What is kept under each of the keys that came last, in a table of fixed size."""

from __future__ import annotations

import struct
from typing import Final

from prefixguard.errors import SavedSessionError

_KEY: Final = 8  # bytes of an entry that hold the key, the lowest first
_USED: Final = struct.Struct("<H")


class RecentEntries:
    """Numbers under the `size` keys that were put in last; when a further one comes, the one put in longest ago goes.

    layout: of the numbers of an entry, without padding. All entries are in one string of bytes, the latest last.
    """

    __slots__ = ("_data", "_entry", "_most", "_values")

    def __init__(self, size: int, layout: struct.Struct) -> None:
        self._values = layout
        self._entry = _KEY + self._values.size
        self._most = size * self._entry
        self._data = b""

    def get(self, key: int) -> tuple[int, ...] | None:
        """The numbers under a key; None where it is not among the latest."""
        at = self._find(key)
        return None if at < 0 else self._values.unpack_from(self._data, at + _KEY)

    def put(self, key: int, *numbers: int) -> None:
        """Keep numbers under a key, which is then the latest."""
        at = self._find(key)
        if at < 0:
            at = 0 if len(self._data) == self._most else len(self._data)
        kept = self._data[:at] + self._data[at + self._entry :]
        self._data = kept + key.to_bytes(_KEY, "little") + self._values.pack(*numbers)

    @property
    def packed_bytes(self) -> int:
        """Length of what `pack` gives."""
        return _USED.size + self._most

    def pack(self) -> bytes:
        """The whole table as bytes."""
        return _USED.pack(len(self._data)) + self._data + bytes(self._most - len(self._data))

    def unpack(self, data: bytes) -> None:
        """Take over a packed table of this size. Raises SavedSessionError for what is none."""
        (used,) = _USED.unpack_from(data)
        body = data[_USED.size :]
        keys = {body[at : at + _KEY] for at in range(0, min(used, self._most), self._entry)}
        if used > self._most or used % self._entry or any(body[used:]) or len(keys) != used // self._entry:
            raise SavedSessionError("A saved table of recent calls is damaged, and with it the session.")
        self._data = body[:used]

    def _find(self, key: int) -> int:
        raw = key.to_bytes(_KEY, "little")
        at = self._data.find(raw)
        while at > 0 and at % self._entry:  # bytes of two entries that happen to read like it
            at = self._data.find(raw, at + 1)
        return at
