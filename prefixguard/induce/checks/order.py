"""Do records stand in the order of their events, and do times run forwards?"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding

#: Share of neighbouring events whose times run backwards that is worth a warning.
BACKWARDS = 0.02
_TIME = re.compile(
    r"(?i)(^|_)(time|timestamp|ts|date|created|started|start)(_at|_time|_unix|_ms|_ns)?$|(UnixNano|Timestamp)$"
)
_SPAN = re.compile(r"(?i)duration|elapsed|latency|second|generation|end|took|total")


def check_order(evidence: Evidence) -> list[Finding]:
    """Positions of source events, and the fields of events that look like times."""
    pairs = backwards = 0
    sorts = evidence.adapter.program.events.order_by is not None
    for seen in evidence.seen:
        positions = [record.event for record in seen.run.records if record.event >= 0]
        pairs += max(0, len(positions) - 1)
        backwards += 0 if sorts else sum(b < a for a, b in itertools.pairwise(positions))
    found = []
    if pairs:
        evidence.figures["in_order"] = 1 - backwards / pairs
    if backwards:
        found.append(
            Finding(
                "order.events",
                "warning",
                f"{backwards} of {pairs} records come before one whose event is earlier.",
                "join",
                {"share": backwards / pairs},
                'With "scope": "run" a call waits for those before it; otherwise this is a defect.',
            )
        )
    return [*found, *([] if sorts else _times(evidence))]


def _times(evidence: Evidence) -> list[Finding]:
    steps: dict[str, list[int]] = {}
    for seen in evidence.seen:
        fields: dict[str, list[float]] = {}
        for event in seen.events:
            for name, value in event.items() if isinstance(event, dict) else ():
                moment = as_time(value) if _is_time(name) else None
                if moment is not None:
                    fields.setdefault(name, []).append(moment)
        for name, moments in fields.items():
            tally = steps.setdefault(name, [0, 0])
            tally[0] += len(moments) - 1
            tally[1] += _falls(moments)
    found = []
    for name, (total, falls) in sorted(steps.items()):
        if total and falls / total > BACKWARDS:
            found.append(
                Finding(
                    "order.times",
                    "warning",
                    f"@.{name} runs backwards between {falls} of {total} neighbouring events.",
                    f"@.{name}",
                    {"share": falls / total},
                    f'If the file is not in order: {{"path": ..., "order_by": "@.{name}"}} under `events`.',
                )
            )
    return found


def _is_time(name: object) -> bool:
    """Does the name say a moment, and not a length of time?"""
    return isinstance(name, str) and _TIME.search(name) is not None and _SPAN.search(name) is None


def _falls(moments: Sequence[float]) -> int:
    return sum(b < a for a, b in itertools.pairwise(moments))


def as_time(value: Any) -> float | None:
    """Seconds, or any number that grows with time: of a number, a text of digits, an ISO date."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    if not isinstance(value, str) or len(value) > 40:
        return None
    if value.isascii() and value.isdigit():
        return float(value)
    try:
        moment = datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.replace(tzinfo=None).timestamp() - (moment.utcoffset().total_seconds() if moment.tzinfo else 0)  # type: ignore[union-attr]
