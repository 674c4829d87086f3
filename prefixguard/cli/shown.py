"""What people see of reading and watching: records next to their raw events, readings, and notes in sentences on what
was left out or lost and when runs have changed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from prefixguard.cli.console import people, say, visible
from prefixguard.errors import BundleError, TraceError
from prefixguard.runtime import DriftSignal, Level, Monitor, NewTasks, Reading, ScoredRun, plain
from prefixguard.stepview import JUMPS, LEFT_OUT, Adapter, ReadReport, SideBySide, StepRecord, losses, switch_of

#: Fields of a record, in the order in which they are shown and written.
FIELDS = ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status")
_LONGEST = 1200  # characters of one event or field in the table
_STEP, _NAME = "this step: ", 80
_STYLES = {Level.OK: "green", Level.WATCH: "yellow", Level.ALARM: "bold red", Level.UNKNOWN: "magenta"}


@dataclass(slots=True)
class ReadingLines:
    """The lines of one run's readings, in their order. since: the step since which its alarm sounds. names: of the
    symbols of an automaton, in words."""

    since: int | None = None
    names: tuple[str, ...] = ()

    def line(self, reading: Reading) -> Text:
        """Step, level, the two risks, and why: of an alarm that stays, whatever the risk is now, since when.

        >>> lines = ReadingLines()
        >>> for step, risk in ((3, 0.9), (4, 0.2)):
        ...     print(lines.line(Reading(step, 0.05, risk, Level.ALARM, 2, None, ("why",), None, 80.0)).plain)
        step   3  ALARM    fails 0.900  soon 0.050  why
        step   4  ALARM    fails 0.200  soon 0.050  the alarm of step 3 stays; why
        """
        stays = self.since if reading.level is Level.ALARM else None
        if reading.level is not Level.UNKNOWN:
            self.since = (stays or reading.step) if reading.level is Level.ALARM else None
        before = [f"the alarm of step {stays} stays"] * (stays is not None)
        if reading.symbol is not None and self.names and not any(one.startswith(_STEP) for one in reading.reasons):
            before.append(f"{_STEP}{plain(self.names[reading.symbol], _NAME)}")
        return _line(reading, before if reading.reasons else ())


def _line(reading: Reading, before: Sequence[str]) -> Text:
    line = Text(f"step {reading.step:3d}  ")
    line.append(f"{reading.level.value:7s}", style=_STYLES[reading.level])
    if reading.level is Level.UNKNOWN:
        return line.append(f"  {visible(reading.unknown_reason or 'no reason is known')}")
    if reading.outcome_risk is not None and reading.imminent_risk is not None:
        line.append(f"  fails {reading.outcome_risk:.3f}  soon {reading.imminent_risk:.3f}")
    if said := (*before, *reading.reasons):
        line.append(f"  {visible('; '.join(said))}", style="dim")
    return line


def show_side_by_side(one: SideBySide, longest: int = _LONGEST, lines: int | None = None) -> None:
    """One run: events on the left, records on the right. longest: characters of one event or field. lines: and so many
    lines of it; None for all."""
    run = one.run
    groups = "".join(f", {name} {value}" for name, value in run.groups.items())
    title = f"run {run.run_id}, task {run.task_id or 'not named'}, {run.outcome.value}{groups}; {run.source}"
    say(visible(title), style="bold")
    table = Table("raw events", "records", box=box.SIMPLE_HEAD, show_lines=True, expand=True)
    for column in table.columns:
        column.ratio = 1
        column.overflow = "fold"
    for exchange in one.exchanges:
        raw = "\n".join(_cut(_raw(event), longest, lines) for event in exchange.events)
        records = [_record(record, longest, lines) for record in exchange.records]
        table.add_row(Text(visible(raw)), Text("\n").join(records) or Text("no record"))
    people().print(table)


def _raw(event: Any) -> str:
    return event.rstrip("\n") if isinstance(event, str) else json.dumps(event, ensure_ascii=False, default=str)


def _record(record: StepRecord, longest: int, lines: int | None) -> Text:
    text = Text(f"step {record.index}", style="bold")
    for name in FIELDS:
        value = getattr(record, name)
        if value:
            text.append(f"\n{name}: ", style="cyan not bold")
            text.append(visible(_cut(value, longest, lines)), style="not bold")
    if record.signals is not None:
        text.append("\nsignals: ", style="cyan not bold")
        text.append(
            ", ".join(f"{name} {value:g}" for name, value in record.signals.to_json().items()), style="not bold"
        )
    return text


def _cut(text: str, longest: int, lines: int | None) -> str:
    kept = text[:longest]
    if lines is not None:
        kept = "\n".join(kept.split("\n")[:lines])
    return text if len(kept) == len(text) else f"{kept} ... ({len(text) - len(kept):,} more characters)"


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
    if lost := report.counters.get(LEFT_OUT, 0):
        yield (
            f"{lost:,} figures of what steps took (seconds, tokens, dollars) were left out: no numbers, negative, or "
            "more than a step can take. See the unit that the adapter says under signals."
        )
    if jumps := report.counters.get(JUMPS, 0):
        yield f"{jumps:,} times the clock of the events jumped; the steps there have no duration."
    if report.companions_missing:
        yield f"{report.companions_missing:,} runs lack the companion file that tells their outcome."


def refuse_empty(report: ReadReport, source: str, adapter: Adapter | None = None) -> None:
    """TraceError if every run that was read is empty: an answer about no run would pass for one. adapter: whose
    framework may have left the texts out."""
    empty = sum(report.empty.values())
    if empty and not report.runs:
        raise TraceError(
            f"{source}: {empty:,} {_runs(empty)}, none with a step. See what the adapter makes of the events with: "
            f"prefixguard parse {source}; another adapter may fit better."
            + ("" if adapter is None else switch_of(adapter))
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
