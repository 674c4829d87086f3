"""What runs lost on their way to records, in lines for people."""

from __future__ import annotations

from prefixguard.runtime import Monitor
from prefixguard.stepview import Adapter, ReadReport, losses


def lost_lines(report: ReadReport, adapter: Adapter, runs: str) -> list[str]:
    """Of all runs that were read: fields that the adapter reads and that are empty nearly everywhere."""
    return [f"{one.severity}: {one.text}" for one in losses(report.fills, adapter, runs)]


def unlike_lines(report: ReadReport, monitor: Monitor, runs: str) -> list[str]:
    """Of all runs that were read: fields that the monitor's training runs had and these have not. Of a monitor that
    does not say how its training runs were read: what `lost_lines` says."""
    if monitor.expected is None:
        return lost_lines(report, monitor.bundle.adapter, runs)
    return [f"warning: {said}" for said in monitor.expected.missing(report.fills)]
