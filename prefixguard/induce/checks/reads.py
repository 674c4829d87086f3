"""Was the set read: runs, documents, events that no rule took, outcomes and tasks; and in the order of its events?"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding, Severity, finding
from prefixguard.stepview import NO_GROUP, moment_of
from prefixguard.trace import Outcome

#: Unread runs, of all, past which it is an error.
TOO_MANY_UNREAD = 0.5
#: Lines without a value to group by, of all lines: up to the first they are headings, past the second an error.
_HEADINGS, _TOO_MANY_LINES = 0.1, 0.5
_NAMED = 5
#: Share of neighbouring events whose times run backwards that is worth a warning.
BACKWARDS = 0.02
#: Names of moments, and what makes them lengths of time.
_TIME = re.compile(
    r"(?i)(^|_)(time|timestamp|ts|date|created|started|start)(_at|_time|_unix|_ms|_ns)?$|(UnixNano|Timestamp)$"
)
_SPAN = re.compile(r"(?i)duration|elapsed|latency|second|generation|end|took|total")


def check_reads(evidence: Evidence) -> Iterator[Finding]:
    """What reading the whole set met."""
    report = evidence.report
    ungrouped = [where for where, reason in report.skipped if reason.endswith(NO_GROUP)]
    unread = [(where, reason) for where, reason in report.skipped if not reason.endswith(NO_GROUP)]
    empty, skipped = sum(report.empty.values()), sum(report.events_skipped.values())
    found, runs = max(1, report.runs + empty + len(unread)), max(1, report.runs)
    won, lost = evidence.outcomes.get(Outcome.SUCCESS, 0), evidence.outcomes.get(Outcome.FAILURE, 0)
    evidence.figures.update(
        documents=report.documents,
        runs=report.runs,
        runs_looked_at=len(evidence.seen),
        runs_empty=empty,
        runs_read=report.runs / found,
        runs_succeeded=won,
        runs_failed=lost,
        records=report.records,
        unread=len(unread),
        events_skipped=skipped,
        results_late=report.late_results,
        outcomes_known=(won + lost) / runs,
        tasks_known=1 - evidence.without_task / runs,
    )
    if unread:
        (where, reason), share = unread[0], len(unread) / found
        severity: Severity = "error" if share > TOO_MANY_UNREAD else "warning"
        what = f"{len(unread)} document(s) or run(s) could not be read; the first: {reason}"
        yield finding("reads.unread", severity, what, where, unread=len(unread), share=share)
    if ungrouped:
        yield _ungrouped(ungrouped, report.events, report.documents)
    if empty:
        share = empty / found
        what = ", ".join(f"{n} {outcome}" for outcome, n in sorted(report.empty.items()))
        what = f"{empty} run(s) gave no record ({what})."
        yield finding("reads.empty", "warning" if share > 0.2 else "note", what, "rules", empty=empty, share=share)
    for said in report.labels.notes():
        yield finding("reads.labels", "warning", said)
    if n := report.duplicate_ids:
        what = f"{n} run(s) have an id that another run has."
        yield finding("reads.ids", "warning", what, "run.id", runs=n, share=n / runs)
    if n := report.bad_bytes:
        yield finding("reads.bytes", "note", f"{n} byte(s) are not UTF-8.", bytes=n)
    if kinds := sorted(report.events_skipped.items(), key=lambda kv: (-kv[1], kv[0])):
        named = ", ".join(f"{n} {kind}" for kind, n in kinds[:_NAMED])
        more = f" and {len(kinds) - _NAMED} more kinds" if len(kinds) > _NAMED else ""
        what = f"no rule takes {skipped} event(s): {named}{more}."
        yield finding("reads.skipped", "note", what, "rules", events=skipped, kinds=len(kinds))
    if n := report.runs - won - lost:
        what = f"{n} of {report.runs} run(s) have no known outcome."
        yield finding("reads.outcome", "note" if won + lost else "warning", what, "run.outcome", runs=n, share=n / runs)
    if n := report.companions_missing:
        what = f"{n} outcome(s) should stand in a companion file: it is not there, or its path finds nothing."
        yield finding("reads.companions", "warning" if n > report.runs / 2 else "note", what, "run.outcome", runs=n)
    if n := evidence.without_task:
        what = f"{n} of {report.runs} run(s) have no task: splits go by run there."
        yield finding("reads.task", "note", what, "run.task", runs=n, share=n / runs)


def _ungrouped(places: Sequence[str], events: int, documents: int) -> Finding:
    """Lines that belong to no run: a heading or a summary a file is nothing to worry about, most lines are."""
    share, a_file = len(places) / (len(places) + events), len(places) / max(1, documents)
    headings = share <= _HEADINGS or (share < _TOO_MANY_LINES and a_file <= 1)
    severity: Severity = "note" if headings else "warning" if share <= _TOO_MANY_LINES else "error"
    what = f"{len(places)} line(s) have no value to group by, so they belong to no run."
    return finding("reads.ungrouped", severity, what, places[0], lines=len(places), share=share, a_document=a_file)


def check_order(evidence: Evidence) -> Iterator[Finding]:
    """Do records stand in the order of their events, and do the fields of events that look like times run forwards?"""
    sorts = evidence.adapter.program.events.order_by is not None
    pairs = backwards = 0
    for seen in evidence.seen:
        positions = [record.event for record in seen.run.records if record.event >= 0]
        pairs += max(0, len(positions) - 1)
        backwards += 0 if sorts else _falls(positions)
    if pairs:
        evidence.figures["in_order"] = 1 - backwards / pairs
    if backwards:
        what = f"{backwards} of {pairs} records come before one whose event is earlier."
        yield finding("order.events", "warning", what, "join", share=backwards / pairs)
    if not sorts:
        yield from _times(evidence)


def _times(evidence: Evidence) -> Iterator[Finding]:
    steps: dict[str, list[int]] = {}
    for seen in evidence.seen:
        fields: dict[str, list[float]] = {}
        for event in seen.events:
            for name, value in event.items() if isinstance(event, dict) else ():
                if isinstance(name, str) and _TIME.search(name) and not _SPAN.search(name):
                    fields.setdefault(name, []).append(moment_of(value))
        for name, moments in fields.items():
            known = [moment for moment in moments if not math.isnan(moment)]
            tally = steps.setdefault(name, [0, 0])
            tally[0] += max(0, len(known) - 1)
            tally[1] += _falls(known)
    for name, (total, falls) in sorted(steps.items()):
        if total and falls / total > BACKWARDS:
            what = f"@.{name} runs backwards between {falls} of {total} neighbouring events."
            remedy = f'If the file is not in order: {{"path": ..., "order_by": "@.{name}"}} under `events`.'
            yield Finding("order.times", "warning", what, f"@.{name}", {"share": falls / total}, remedy)


def _falls(moments: Sequence[float]) -> int:
    return sum(b < a for a, b in itertools.pairwise(moments))
