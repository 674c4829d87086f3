"""Events that come again: `drop_repeats` knows the identifiers that it saw last."""

from __future__ import annotations

from array import array
from typing import Any

from prefixguard.stepview.fingerprint import fingerprint
from prefixguard.stepview.saved import checked
from prefixguard.stepview.values import as_id

#: Identifiers of events that are remembered, the latest.
REMEMBERED = 256
_MASK = (1 << 32) - 1


class Repeats:
    """Remembers the last identifiers it saw."""

    __slots__ = ("next", "seen")

    def __init__(self) -> None:
        self.seen = array("I")  # a ring of hashes of 32 bits
        self.next = 0

    def is_new(self, value: Any) -> bool:
        """Was this identifier not seen among the last ones? What has none is always new."""
        name = as_id(value)
        if name is None:
            return True
        key = fingerprint(name) & _MASK
        if key in self.seen:
            return False
        if len(self.seen) < REMEMBERED:
            self.seen.append(key)
        else:
            self.seen[self.next] = key
            self.next = (self.next + 1) % REMEMBERED
        return True

    def state(self) -> dict[str, Any]:
        return {"seen": list(self.seen), "next": self.next}

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, {"seen": [int], "next": int}, "state.repeats")
        self.seen = array("I", [key & _MASK for key in state["seen"][:REMEMBERED]])
        self.next = state["next"] % REMEMBERED
