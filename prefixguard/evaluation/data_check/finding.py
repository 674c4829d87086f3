"""What a check of runs found, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from prefixguard.evaluation.leaks.finding import LeakFinding, Severity

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
    about: "length", "step cap" or "group" and its name, where a leak audit may say the same; "loss: " and a field; else
        empty.
    """

    severity: Severity
    text: str
    about: str = ""


def subject(finding: SaidFinding) -> str:
    """What a finding of the leak audit is about, as `DataFinding.about` says it; "" where it is of no such kind."""
    if not isinstance(finding, LeakFinding) or finding.kind != "shortcut":
        return ""
    if finding.field != "length":
        return finding.field
    return "length" if finding.token == "number of steps" else "step cap"
