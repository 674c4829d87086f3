"""Records beside their raw events, and readings, as people see them."""

from __future__ import annotations

import json
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from prefixguard.cli.console import people, say, visible
from prefixguard.runtime import Level, Reading
from prefixguard.stepview import SideBySide, StepRecord

#: Fields of a record, in the order in which they are shown and written.
FIELDS = ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status")
_LONGEST = 1200  # characters of one event or field in the table
_STYLES = {Level.OK: "green", Level.WATCH: "yellow", Level.ALARM: "bold red", Level.UNKNOWN: "magenta"}


def reading_line(reading: Reading) -> Text:
    """Step, level, the two risks, and why.

    >>> reading_line(Reading(3, 0.05, 0.625, Level.WATCH, 2, None, ("the step failed",), None, 80.0)).plain
    'step   3  WATCH    fails 0.625  soon 0.050  the step failed'
    """
    line = Text(f"step {reading.step:3d}  ")
    line.append(f"{reading.level.value:7s}", style=_STYLES[reading.level])
    if reading.outcome_risk is None or reading.imminent_risk is None:
        return line.append(f"  {visible(reading.unknown_reason or 'no reason is known')}")
    line.append(f"  fails {reading.outcome_risk:.3f}  soon {reading.imminent_risk:.3f}")
    if reading.reasons:
        line.append(f"  {visible('; '.join(reading.reasons))}", style="dim")
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
    return text


def _cut(text: str, longest: int, lines: int | None) -> str:
    kept = text[:longest]
    if lines is not None:
        kept = "\n".join(kept.split("\n")[:lines])
    return text if len(kept) == len(text) else f"{kept} ... ({len(text) - len(kept):,} more characters)"
