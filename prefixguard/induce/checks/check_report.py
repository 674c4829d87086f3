"""All findings about an adapter, the figures behind them, and the one number that proposals are compared by."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.checks.finding import SEVERITIES, Finding

#: What a score is made of, and how much each part weighs. Every part is a share in [0, 1] among the figures of the
#: report; a part that the format cannot have (results that nobody recorded) is left out and the rest is scaled up.
WEIGHTS: dict[str, float] = {
    "coverage": 5.0,  # raw text, hidden places left out, that reaches a record
    "runs_read": 3.0,  # runs that gave records, of those found or unreadable
    "calls_joined": 3.0,  # calls whose result is in their record, the last call of a run aside
    "acts_filled": 3.0,  # records that hold something the agent said or did
    "tools_named": 2.0,  # records with a tool
    "arguments_filled": 1.0,  # calls with arguments
    "in_order": 2.0,  # neighbouring records that stand in the order of their events
    "said_once": 2.0,  # records that say nothing a second time
    "results_in_time": 1.0,  # results that were not late
    "parallel_kept": 2.0,  # calls made side by side that became a record each
    "outcomes_known": 2.0,  # runs with an outcome
    "tasks_known": 1.0,  # runs with a task
}


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What the checks of one adapter on one set of runs came to.

    findings: worst first. figures: counts and shares by name; NaN never. fields: share of records in which a field is
    not empty, by name of the field (`status`: not unknown).
    """

    adapter_name: str
    sha256: str
    findings: tuple[Finding, ...]
    figures: Mapping[str, float | int]
    fields: Mapping[str, float]

    @property
    def ok(self) -> bool:
        """No finding is an error."""
        return not any(finding.severity == "error" for finding in self.findings)

    def of(self, check: str) -> tuple[Finding, ...]:
        """Findings of a check, or of one kind of finding."""
        return tuple(one for one in self.findings if one.check == check or one.check.startswith(f"{check}."))

    def score(self) -> float:
        """How good the reading is, in [0, 1]; 0 for an adapter with an error.

        The weighted geometric mean of the parts in WEIGHTS, each at least 0.01: a reading that does one thing
        hardly at all is worse than one that does all things fairly. Times 0.98 for every warning, 0.5 at least.
        """
        if not self.ok:
            return 0.0
        parts = [(self.figures[name], weight) for name, weight in WEIGHTS.items() if name in self.figures]
        total = sum(weight for _, weight in parts)
        if not total:
            return 0.0
        mean = math.exp(sum(weight * math.log(min(1.0, max(0.01, share))) for share, weight in parts) / total)
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        return mean * max(0.5, 0.98**warnings)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; `schema` names the form."""
        return {
            "schema": "prefixguard/check/v1",
            "adapter": self.adapter_name,
            "sha256": self.sha256,
            "ok": self.ok,
            "score": round(self.score(), 6),
            "findings": [finding.to_dict() for finding in self.findings],
            "figures": dict(self.figures),
            "fields": dict(self.fields),
        }


def worst_first(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sorted by severity, check and place; what is found twice is kept once."""
    kept = {(one.check, one.severity, one.where, one.what): one for one in findings}
    return tuple(
        sorted(kept.values(), key=lambda one: (SEVERITIES.index(one.severity), one.check, one.where, one.what))
    )
