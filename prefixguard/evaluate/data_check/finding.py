"""What a check of runs found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Severity = Literal["error", "warning", "note"]
#: Worst first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


class SaidFinding(Protocol):
    """A finding of another instrument, such as a leak audit, that a check of runs carries along."""

    @property
    def text(self) -> str:
        """A sentence or two."""

    @property
    def severity(self) -> str:
        """error, warning or note; an error makes training on these runs pointless."""


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One thing to know before training.

    severity: an error makes training pointless or the alarm's budget impossible; a warning is worth a look.
    text: a sentence or two, with its numbers and, where there is one, the remedy.
    """

    severity: Severity
    text: str
