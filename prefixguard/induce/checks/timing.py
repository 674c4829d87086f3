"""What an event costs while an agent waits for it."""

from __future__ import annotations

from prefixguard.induce.checks.evidence import Evidence
from prefixguard.induce.checks.finding import Finding

#: Past this, per event at the 99th percentile, it is worth a warning: microseconds.
SLOW_MICROSECONDS = 2_000.0
#: Events below which a 99th percentile says nothing.
FEW = 100


def check_time(evidence: Evidence) -> list[Finding]:
    """Median and 99th percentile of the time that one event takes, in microseconds."""
    times = sorted(1e6 * second for seen in evidence.seen for second in seen.seconds)
    if not times:
        return []
    median, high = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
    evidence.figures["step_microseconds_median"] = round(median, 1)
    evidence.figures["step_microseconds_p99"] = round(high, 1)
    slow = median if len(times) < FEW else high
    if slow <= SLOW_MICROSECONDS:
        return []
    return [
        Finding(
            "time",
            "warning",
            f"reading an event takes {median:,.0f} microseconds (99 % within {high:,.0f}).",
            "rules",
            {"median": median, "p99": high},
            "Long regular expressions over whole events cost most: test a short field first, cut less.",
        )
    ]
