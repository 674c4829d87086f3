"""All checks of an adapter, one after the other; their findings, the figures behind them, and the one number that
proposals are compared by."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.induce.checks.determinism import check_determinism
from prefixguard.induce.checks.evidence import Evidence, gather
from prefixguard.induce.checks.finding import SEVERITIES, Finding
from prefixguard.induce.checks.joins import check_joins
from prefixguard.induce.checks.live import check_leaks, check_stream, check_time
from prefixguard.induce.checks.reads import check_order, check_reads
from prefixguard.induce.checks.sense import check_sense
from prefixguard.induce.checks.texts import check_coverage, check_doubling
from prefixguard.stepview import Adapter

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

#: In the order in which they run. Each fills figures of the evidence and returns what it found.
CHECKS: tuple[tuple[str, Callable[[Evidence], Iterable[Finding]]], ...] = (
    ("reads", check_reads),
    ("coverage", check_coverage),
    ("joins", check_joins),
    ("sense", check_sense),
    ("order", check_order),
    ("doubling", check_doubling),
    ("time", check_time),
    ("stream", check_stream),
    ("leaks", check_leaks),
)


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


def check_adapter(
    adapter: Adapter,
    source: str | Path,
    *,
    labels: str | Path | None = None,
    processes: bool = True,
    listen: Callable[[str], None] | None = None,
) -> CheckReport:
    """Check an adapter on a set of runs.

    labels: a file of outcomes joined by run id. processes: read the set in a second process too (see `determinism`).
    listen: told the name of each check before it begins. The whole set is read; what is dear is done on a seeded sample
    of at most 400 runs. A set that cannot be read at all is no exception but a report with that error.
    """
    tell = listen if listen is not None else lambda _: None
    tell("reading")
    try:
        evidence = gather(adapter, source, None if labels is None else Path(labels))
    except TraceError as exc:
        unread = Finding("reads", "error", str(exc), str(source), remedy="Mend the spec, or name the right files.")
        return CheckReport(adapter.name, adapter.sha256, (unread,), MappingProxyType({"runs": 0}), MappingProxyType({}))
    found: list[Finding] = []
    for name, check in CHECKS:
        tell(name)
        found += check(evidence)
    tell("determinism")
    found += check_determinism(evidence, processes=processes)
    figures = MappingProxyType(dict(sorted(evidence.figures.items())))
    return CheckReport(adapter.name, adapter.sha256, worst_first(found), figures, MappingProxyType(evidence.fields))
