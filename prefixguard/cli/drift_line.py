"""A line for people when the runs of a file are no longer like those that set the alarm."""

from __future__ import annotations

from prefixguard.cli.console import say
from prefixguard.cli.terminal_text import visible
from prefixguard.errors import BundleError
from prefixguard.runtime import DriftSignal, Monitor, NewTasks, ScoredRun


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
