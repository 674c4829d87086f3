"""What a check found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from prefixguard.results import finite

Severity = Literal["error", "warning", "note"]

#: Worst first.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a person or a proposer should know of.

    check: the check, and after a dot the kind of finding ("leaks.verdict"). severity: an `error` means that the adapter
    must not be used as it is. what: a sentence. where: a raw path as the spec spells paths ("$.info.reward"), a record
    field ("status"), a part of the spec or a file. numbers: what was measured. remedy: what to do.
    option: the option of the command line that waives it; empty where it cannot be.
    """

    check: str
    severity: Severity
    what: str
    where: str = ""
    numbers: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    remedy: str = ""
    option: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; a figure that is no number is None."""
        return {
            "check": self.check,
            "severity": self.severity,
            "what": self.what,
            "where": self.where,
            "numbers": {name: finite(value) for name, value in self.numbers.items()},
            "remedy": self.remedy,
            "option": self.option,
        }
