"""All checks of an adapter, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

from prefixguard.errors import TraceError
from prefixguard.induce.checks.check_report import CheckReport, worst_first
from prefixguard.induce.checks.coverage import check_coverage
from prefixguard.induce.checks.determinism import check_determinism
from prefixguard.induce.checks.doubling import check_doubling
from prefixguard.induce.checks.evidence import Evidence, gather
from prefixguard.induce.checks.finding import Finding
from prefixguard.induce.checks.joins import check_joins
from prefixguard.induce.checks.leaks import check_leaks
from prefixguard.induce.checks.order import check_order
from prefixguard.induce.checks.reads import check_reads
from prefixguard.induce.checks.sense import check_sense
from prefixguard.induce.checks.streaming import check_stream
from prefixguard.induce.checks.timing import check_time
from prefixguard.stepview import Adapter

#: In the order in which they run. Each fills figures of the evidence and returns what it found.
CHECKS: tuple[tuple[str, Callable[[Evidence], list[Finding]]], ...] = (
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
    return CheckReport(
        adapter.name,
        adapter.sha256,
        worst_first(found),
        MappingProxyType(dict(sorted(evidence.figures.items()))),
        MappingProxyType(dict(evidence.fields)),
    )
