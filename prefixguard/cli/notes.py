"""What reading met, in sentences for people."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.errors import TraceError
from prefixguard.stepview import ReadReport


def notes_of(report: ReadReport) -> Iterator[str]:
    """A sentence for everything that a person should know; none when all was read."""
    yield from report.left_out()
    empty = sum(report.empty.values())
    if empty:
        by = ", ".join(f"{n:,} {outcome}" for outcome, n in sorted(report.empty.items()))
        yield f"{empty:,} {_runs(empty)} without a step ({by}) {_was(empty)} left out."
    if report.duplicate_ids:
        count = report.duplicate_ids
        yield f"{count:,} {_runs(count)} had the id of another run; they are called ID#2, ID#3 ..."
    if report.events_skipped:
        most = sorted(report.events_skipped.items(), key=lambda pair: (-pair[1], pair[0]))
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in most[:5])
        yield f"{sum(report.events_skipped.values()):,} events became no part of a record: {kinds}."
    if report.bad_bytes:
        yield f"{report.bad_bytes:,} bytes were not UTF-8 and were replaced."
    if report.late_results:
        yield f"{report.late_results:,} results came after their step was over; they stand in the next observation."
    if report.companions_missing:
        yield f"{report.companions_missing:,} runs lack the companion file that tells their outcome."


def refuse_empty(report: ReadReport, source: str) -> None:
    """TraceError if every run that was read is empty: an answer about no run would pass for one."""
    empty = sum(report.empty.values())
    if empty and not report.runs:
        raise TraceError(
            f"{source}: {empty:,} {_runs(empty)}, none with a step. See what the adapter makes of the events with: "
            f"prefixguard parse {source}; another adapter may fit better."
        )


def _runs(count: int) -> str:
    return "run" if count == 1 else "runs"


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
