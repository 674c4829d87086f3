"""Does every call have its result, and is none of several calls made side by side lost?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from prefixguard.evaluation.leaks.raw import SeenRun
from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import StepRecord

#: Share of calls without a result, the last of a run aside, that is worth a warning.
MISSING = 0.10
LATE = 0.02
#: Calls of a tool below which nothing is said of it.
FEW = 5

_NAMES = ("name", "function", "tool_name", "function_name", "tool", "recipient_name")
_INPUTS = ("arguments", "input", "args", "parameters", "kwargs", "function", "params")
_DEEPEST = 4


def check_joins(evidence: Evidence) -> list[Finding]:
    """Calls and their results, in the sampled runs; late results in all."""
    return [*_results(evidence), *_late(evidence), *_parallel(evidence)]


def _is_call(record: StepRecord) -> bool:
    return record.actor == "agent" and record.tool not in ("", "respond")


def _results(evidence: Evidence) -> list[Finding]:
    total: Counter[str] = Counter()
    joined: Counter[str] = Counter()
    at_end = 0
    for seen in evidence.seen:
        for i, record in enumerate(seen.run.records):
            if not _is_call(record):
                continue
            if i + 1 == len(seen.run.records) and not record.result:
                at_end += 1
                continue
            total[record.tool] += 1
            joined[record.tool] += record.result != ""
    calls = sum(total.values())
    evidence.figures["calls_open_at_end"] = at_end
    if not calls:
        return []
    if not any("result" in rule for rule in evidence.spec["rules"]):
        return [Finding("joins.none", "note", "no rule reads a result: the format may record none.", "rules")]
    share = sum(joined.values()) / calls
    evidence.figures["calls_joined"] = share
    if share >= 1 - MISSING:
        return []
    without = sorted(((total[tool] - joined[tool], tool) for tool in total), key=lambda one: (-one[0], one[1]))
    named = ", ".join(f"{tool} {n} of {total[tool]}" for n, tool in without[:5] if n)
    never = [tool for tool in sorted(total) if total[tool] >= FEW and not joined[tool]]
    more = f" Tools that never have one: {', '.join(never[:5])}." if never else ""
    return [
        Finding(
            "joins.missing",
            "warning",
            f"{1 - share:.0%} of the calls have no result (or an empty one): {named}.{more}",
            "join",
            {"calls": calls, "joined": share},
            "Check call_id on both sides, or join by order; a result that stands in the call's own event is a `step`.",
        )
    ]


def _late(evidence: Evidence) -> list[Finding]:
    late = evidence.report.late_results
    with_result = sum(record.result != "" for seen in evidence.seen for record in seen.run.records)
    looked_at = sum(len(seen.run.records) for seen in evidence.seen)
    results = with_result * evidence.report.records / max(1, looked_at)
    if late + results:
        evidence.figures["results_in_time"] = results / (late + results)
    if not late or late / (late + results) < LATE:
        return []
    return [
        Finding(
            "joins.late",
            "warning",
            f"{late} result(s) came when no call of theirs was open; they became part of the next observation.",
            "join",
            {"late": late, "share": late / (late + results)},
            'Try "scope": "run", "mismatch": "else" or {"by": "order"} under `join`.',
        )
    ]


def _parallel(evidence: Evidence) -> list[Finding]:
    """Events that hold a list of calls, and give fewer records than it has elements."""
    events = evidence.adapter.program.events
    if events.levels or events.order_by is not None or events.split is not None or events.base.columns is not None:
        return []
    made = kept = lost_in = 0
    example = ""
    for seen in evidence.seen:
        records: dict[int, int] = defaultdict(int)
        for record in seen.run.records:
            records[record.event] += record.tool != "respond"
        for i, calls in _calls_side_by_side(seen):
            if records.get(i):
                made += calls
                kept += min(calls, records[i])
                if records[i] < calls:
                    lost_in += 1
                    example = example or f"{seen.run.source}, event {i}"
    if made:
        evidence.figures["parallel_kept"] = kept / made
    if not lost_in:
        return []
    return [
        Finding(
            "joins.parallel",
            "error" if kept < 0.9 * made else "warning",
            f"{lost_in} event(s) hold several calls and give fewer records: {made - kept} of {made} calls are lost; "
            f"the first in {example}.",
            "rules",
            {"calls": made, "kept": kept / made},
            'Read the list with "each": "@.tool_calls[*]", so that every call is a record.',
        )
    ]


def _calls_side_by_side(seen: SeenRun) -> Iterator[tuple[int, int]]:
    for i, event in enumerate(seen.events):
        most = max((_calls_in(found) for found in _lists(event, 0)), default=0)
        if most > 1:
            yield i, most


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        yield value
        for inner in value[:64]:
            yield from _lists(inner, depth + 1)
    elif isinstance(value, dict):
        for inner in value.values():
            if isinstance(inner, dict | list):
                yield from _lists(inner, depth + 1)


def _calls_in(found: list[Any]) -> int:
    """Elements that look like calls: a name and an input, and no result that would make them something else."""
    return sum(
        isinstance(one, dict)
        and any(isinstance(one.get(name), str | dict) for name in _NAMES)
        and any(name in one and isinstance(one[name], str | dict) for name in _INPUTS)
        for one in found
    )
