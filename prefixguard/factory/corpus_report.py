"""What a command of the factory made, and what it left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prefixguard.factory.skips import Skips


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """The end of a command.

    path: of what was written. counts: of what is in it, in the order in which they are told; plain numbers, or numbers
    by name. skips: what was left out. notes: sentences that a person should read.
    """

    path: Path
    counts: Mapping[str, Any]
    skips: Skips = field(default_factory=Skips)
    notes: tuple[str, ...] = ()

    def to_text(self) -> str:
        """A line of counts, then a line for every reason of leaving something out, and the notes."""
        told = []
        for name, count in self.counts.items():
            inside = ", ".join(f"{key} {_number(one)}" for key, one in count.items()) if hasattr(count, "items") else ""
            told.append(f"{name}: {inside or _number(count)}")
        return "\n".join([f"{self.path}: {'; '.join(told)}.", *self.skips.notes(), *self.notes])

    def as_json(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {
            "path": str(self.path),
            "counts": dict(self.counts),
            "skipped": self.skips.as_json(),
            "notes": list(self.notes),
        }


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)
