"""What reading met, in sentences for people: what was left out or lost, and when runs have changed."""

from __future__ import annotations

from collections.abc import Iterator

from prefixguard.cli.console import say
from prefixguard.errors import BundleError, TraceError
from prefixguard.results import visible
from prefixguard.runtime import DriftSignal, Monitor, NewTasks, ScoredRun
from prefixguard.stepview import Adapter, ReadReport, losses


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


def lost_lines(report: ReadReport, adapter: Adapter, runs: str) -> list[str]:
    """Of all runs that were read: fields that the adapter reads and that are empty nearly everywhere."""
    return [f"{one.severity}: {one.text}" for one in losses(report.fills, adapter, runs)]


def unlike_lines(report: ReadReport, monitor: Monitor, runs: str) -> list[str]:
    """Of all runs that were read: fields that the monitor's training runs had and these have not. Of a monitor that
    does not say how its training runs were read: what `lost_lines` says."""
    if monitor.expected is None:
        return lost_lines(report, monitor.bundle.adapter, runs)
    return [f"warning: {said}" for said in monitor.expected.missing(report.fills)]


class DriftLine:
    """Watches the runs of a file, one after the other, and says once, on standard error, when they have changed.

    Of tasks that the monitor was not made from the first run counts. Says nothing for a bundle that does not know how
    its calibration runs look.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._signal: DriftSignal | None
        try:
            self._signal = monitor.drift_signal()
        except BundleError:
            self._signal = None
        self._new = NewTasks(monitor.bundle.manifest)

    def observe(self, scored: ScoredRun) -> None:
        """Take one finished run."""
        signal = self._signal
        if signal is None or not self._new.take(scored.run):
            return
        report = signal.observe_run(scored.summary)
        if report is None:
            return
        self._signal = None  # it stands, and has been told
        tasks = f"{signal.runs:,} new task{'' if signal.runs == 1 else 's'}"
        say(visible(f"DRIFT after {tasks}, with run {scored.run.run_id}: {report.to_text()}"))
