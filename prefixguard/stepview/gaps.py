"""How the events of a run fall to its records: how long none comes, and how many events no rule takes."""

from __future__ import annotations

from typing import Any

from prefixguard.stepview.saved import checked

#: Events that `skipped` looks back on.
WINDOW = 64
_MASK = (1 << WINDOW) - 1


class EventGaps:
    """Counts of one run, a few numbers. An event is one that rules are tried on: a message, a row, a piece of a log.

    events: so far. without_step: since the last record; longest_without_step: the most that was in this run.
    skipped: of the last `WINDOW` events, those that no rule took or that could not be read; most_skipped: the most
    that was in this run.
    """

    __slots__ = ("_index", "_recent", "events", "longest_without_step", "most_skipped", "skipped", "without_step")

    def __init__(self) -> None:
        self.events = self.without_step = self.longest_without_step = self.skipped = self.most_skipped = 0
        self._recent = 0  # a bit an event, the newest lowest: was it skipped?
        self._index = 0

    def unread(self) -> None:
        """One more event, which could not be read at all."""
        self.count(True, self._index)

    def count(self, is_skipped: bool, index: int) -> None:
        """One more event. index: number of the last record that is complete with it."""
        self.events += 1
        if index != self._index:
            self._index = index
            self.without_step = 0
        else:
            self.without_step += 1
            if self.without_step > self.longest_without_step:
                self.longest_without_step = self.without_step
        if is_skipped or self._recent:
            self._recent = (self._recent << 1 | is_skipped) & _MASK
            self.skipped = self._recent.bit_count()
            if self.skipped > self.most_skipped:
                self.most_skipped = self.skipped

    def state(self) -> dict[str, int]:
        """All of it, by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, dict.fromkeys(self.__slots__, int), "state.gaps")
        for name in self.__slots__:
            setattr(self, name, state[name] & _MASK)
