"""Does every call have its result, and is none of several calls made side by side lost?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from prefixguard.induce.checks.evidence import Evidence, is_call, parts_of
from prefixguard.induce.checks.finding import Finding, Severity, finding
from prefixguard.stepview import canonical

#: Share of calls without a result, the last of a run aside, that is worth a warning.
MISSING = 0.10
LATE = 0.02
#: Calls of a tool below which nothing is said of it.
FEW = 5

_NAMES = ("name", "function", "tool_name", "function_name", "tool", "recipient_name")
_INPUTS = ("arguments", "input", "args", "parameters", "kwargs", "function", "params")
_DEEPEST = 4


def check_joins(evidence: Evidence) -> Iterator[Finding]:
    """Calls and their results, in the sampled runs; late results in all."""
    yield from _results(evidence)
    late = evidence.report.late_results
    records = evidence.records
    with_result = sum(record.result != "" for record in records)
    all_results = late + with_result * evidence.report.records / max(1, len(records))
    if all_results:
        evidence.figures["results_in_time"] = 1 - late / all_results
    if late and late / all_results >= LATE:
        what = f"{late} result(s) came when no call of theirs was open; they became part of the next observation."
        yield finding("joins.late", "warning", what, "join", late=late, share=late / all_results)
    yield from _parallel(evidence)


def _results(evidence: Evidence) -> Iterator[Finding]:
    total: Counter[str] = Counter()
    without: Counter[str] = Counter()
    at_end = 0
    for seen in evidence.seen:
        for record in filter(is_call, seen.run.records):
            if record is seen.run.records[-1] and not record.result:
                at_end += 1
                continue
            total[record.tool] += 1
            without[record.tool] += record.result == ""
    evidence.figures["calls_open_at_end"] = at_end
    calls = total.total()
    if not calls:
        return
    if not any("result" in rule for rule in evidence.spec["rules"]):
        yield finding("joins.none", "note", "no rule reads a result: the format may record none.", "rules")
        return
    joined = 1 - without.total() / calls
    evidence.figures["calls_joined"] = joined
    if joined >= 1 - MISSING:
        return
    most = sorted(without.items(), key=lambda one: (-one[1], one[0]))[:5]
    named = ", ".join(f"{tool} {n} of {total[tool]}" for tool, n in most if n)
    never = [tool for tool in sorted(total) if FEW <= total[tool] == without[tool]]
    more = f" Tools that never have one: {', '.join(never[:5])}." if never else ""
    what = f"{1 - joined:.0%} of the calls have no result (or an empty one): {named}.{more}"
    yield finding("joins.missing", "warning", what, "join", calls=calls, joined=joined)


def _parallel(evidence: Evidence) -> Iterator[Finding]:
    """Events that hold a list of calls, and give fewer records than it has elements."""
    events = evidence.adapter.program.events
    if events.levels or events.order_by is not None or events.split is not None or events.base.columns is not None:
        return
    made = kept = lost_in = 0
    example = ""
    for seen in evidence.seen:
        records = Counter(record.event for record in seen.run.records if record.tool != "respond")
        told: set[str] = set()  # lists of calls that an event repeats, as requests do that hold all of the talk so far
        for i, event in enumerate(seen.events):
            found = {canonical(part): part for part in parts_of(event, _DEEPEST) if isinstance(part, list)}
            calls = max((_calls_in(part) for text, part in found.items() if text not in told), default=0)
            told.update(found)
            if calls < 2 or not records[i]:
                continue
            made += calls
            kept += min(calls, records[i])
            if records[i] < calls:
                lost_in += 1
                example = example or f"{seen.run.source}, event {i}"
    if made:
        evidence.figures["parallel_kept"] = kept / made
    if lost_in:
        what = (
            f"{lost_in} event(s) hold several calls and give fewer records: {made - kept} of {made} calls are lost; "
            f"the first in {example}."
        )
        severity: Severity = "error" if kept < 0.9 * made else "warning"
        yield finding("joins.parallel", severity, what, "rules", calls=made, kept=kept / made)


def _calls_in(found: list[Any]) -> int:
    """Elements that look like calls: a name and an input, and no result that would make them something else."""
    return sum(
        isinstance(one, dict)
        and any(isinstance(one.get(name), str | dict) for name in _NAMES)
        and any(isinstance(one.get(name), str | dict) for name in _INPUTS)
        for one in found
    )
