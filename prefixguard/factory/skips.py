"""What a command of the factory left out, counted by reason: nothing is dropped in silence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

#: Places that are kept of each reason.
_SHOWN = 3


@dataclass(slots=True)
class Skips:
    """Counts of what was left out, with the first few places of each reason.

    A reason is a short clause without names or numbers ("the environment drifted"), so that equal ones add up; the
    place says which run, line or step it was.

    >>> skips = Skips()
    >>> skips.add("no messages", "runs.jsonl:3")
    >>> skips.total, list(skips.notes())
    (1, ['1 left out: no messages (runs.jsonl:3).'])
    """

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[str]] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)

    def add(self, reason: str, place: str, cause: str = "") -> None:
        """Count one thing that is left out. cause: what was said of it; the first one of a reason is kept."""
        self.counts[reason] = self.counts.get(reason, 0) + 1
        first = self.places.setdefault(reason, [])
        if len(first) < _SHOWN and place not in first:
            first.append(place)
        if cause:
            self.causes.setdefault(reason, cause)

    @property
    def total(self) -> int:
        """All that was left out."""
        return sum(self.counts.values())

    def notes(self) -> Iterator[str]:
        """A sentence a reason, the most frequent first; none where nothing was left out."""
        for reason, count in sorted(self.counts.items(), key=lambda item: (-item[1], item[0])):
            first, more = self.places[reason], ", ..." if count > len(self.places[reason]) == _SHOWN else ""
            said = f" The first: {self.causes[reason].rstrip('.')}." if reason in self.causes else ""
            yield f"{count:,} left out: {reason} ({', '.join(first)}{more}).{said}"

    def as_json(self) -> dict[str, dict[str, Any]]:
        """By reason the count, the first places, and, where one was said, the first cause."""
        found = dict[str, dict[str, Any]]()
        for reason in sorted(self.counts):
            found[reason] = {"count": self.counts[reason], "first": self.places[reason]}
            if reason in self.causes:
                found[reason]["cause"] = self.causes[reason]
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Mapping[str, Any]]) -> Skips:
        """What `as_json` made, for work that is taken up again."""
        counts, places = {k: int(v["count"]) for k, v in value.items()}, {k: list(v["first"]) for k, v in value.items()}
        return cls(counts, places, {k: str(v["cause"]) for k, v in value.items() if "cause" in v})
