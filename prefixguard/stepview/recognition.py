"""Which shipped adapters read some runs, and how well: a known format is said, it never decides."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson

from prefixguard.errors import PrefixGuardError, UnknownAdapterError
from prefixguard.stepview.adapter import RAW, Adapter, list_adapters, load_adapter, raw_view
from prefixguard.stepview.found import Counts, SharedCounts
from prefixguard.stepview.offered import EVENT_SCHEMA
from prefixguard.stepview.reader import ReadReport, read_runs
from prefixguard.trace import Outcome, is_read_once

#: What every event of a running agent says of itself, and the shipped adapter that reads files of them.
EVENTS = "events"
_LONGEST_LINE = 1 << 20
#: Runs that are read to judge an adapter by.
MOST_RUNS = 20
#: Runs and documents that are opened to find those: the first may be empty, or of another kind.
_LOOKED_AT = 60
#: Bytes of JSON that are decoded once for all adapters.
_SHARED = 16 << 20
#: At most this share of the events may be left over, and of the documents unread, for an adapter to read runs well.
_LEFT_OVER = 0.05
_EMPTY = 0.6
#: From this share of the records on, calls of tools are no accident.
_TOOLS = 0.1


@dataclass(frozen=True, slots=True)
class Recognised:
    """A shipped adapter that reads the runs.

    runs, records: read of the first `MOST_RUNS`. outcomes: share of these runs whose outcome it knows; tools: share of
    the records that name a tool other than speech; skipped: share of the events that no rule takes; unread, empty:
    shares of the runs opened that could not be read, and that gave no record; all in [0, 1]. filled: fields with
    text in all these records.
    """

    name: str
    runs: int
    records: int
    outcomes: float
    tools: float
    skipped: float
    unread: float
    empty: float
    filled: int = 0

    @property
    def reads_well(self) -> bool:
        """Is hardly anything left over, and are most outcomes known, or calls of tools found? Many formats hold no
        outcome; labels do. Empty runs are in many sets: an agent that never began. They speak against an adapter only
        where they are most."""
        little = self.skipped <= _LEFT_OVER and self.unread <= _LEFT_OVER and self.empty <= _EMPTY
        return little and (self.outcomes >= 0.5 or self.tools >= _TOOLS)

    def __str__(self) -> str:
        return (
            f"{self.name} reads {self.runs} runs ({self.records} steps): outcome known in {self.outcomes:.0%}, "
            f"{self.skipped:.0%} of the events left over"
        )


def are_events(runs: str | Path) -> bool:
    """Were these runs recorded as events? So says the first line of the first file of JSON lines."""
    place = Path(runs)
    if is_read_once(str(runs)):
        return False
    try:
        path = place if not place.is_dir() else next(iter(sorted(place.rglob("*.jsonl"))), None)
        if path is None:
            return False
        with path.open("rb") as file:
            line = orjson.loads(file.readline(_LONGEST_LINE))
    except (OSError, ValueError):
        return False
    return isinstance(line, dict) and line.get("schema") == EVENT_SCHEMA


def recognise(runs: str | Path) -> tuple[Recognised, ...]:
    """Shipped adapters that read any of these runs, the best first: little left over, then known outcomes, then more
    that is read. Reads the first `MOST_RUNS` runs through each adapter whose files are there; a file that is named
    itself is tried by all of them."""
    if is_read_once(runs):
        return ()
    counts = SharedCounts(_SHARED)
    found = [one for one in (_tried(runs, name, counts) for name in list_adapters()) if one is not None]
    return tuple(
        sorted(
            found,
            key=lambda one: (
                not one.reads_well,
                round(one.skipped + one.unread - one.outcomes, 3),
                -one.filled,
                -one.tools,
                one.name,
            ),
        )
    )


def _tried(runs: str | Path, name: str, counts: Counts) -> Recognised | None:
    report = ReadReport()
    adapter = load_adapter(name)
    outcomes = tools = filled = 0
    try:
        for run in islice(read_runs(runs, adapter, report=report, most=_LOOKED_AT, counts=counts), MOST_RUNS):
            outcomes += run.outcome is not Outcome.UNKNOWN
            tools += sum(record.tool not in ("", "respond") for record in run.records)
            filled += sum(
                bool(text)
                for record in run.records
                for text in (record.arguments, record.observation, record.action, record.result)
            )
    except PrefixGuardError:
        return None
    if not report.runs:
        return None
    return Recognised(
        name,
        report.runs,
        report.records,
        outcomes / report.runs,
        tools / report.records,
        sum(report.events_skipped.values()) / max(report.events, 1),
        len(report.skipped) / report.looked_at,
        sum(report.empty.values()) / report.looked_at,
        filled,
    )


def adapter_for(adapter: str | Path | Adapter | None, runs: str | Path) -> Adapter:
    """The adapter that is named, for these runs: `raw` alone is the control of the shipped one that reads them best,
    and runs that a guard recorded need none.

    UnknownAdapterError where none is named and none can be known; AdapterError as `load_adapter`.
    """
    if isinstance(adapter, Adapter):
        return adapter
    if adapter is None:
        if not are_events(runs):
            raise UnknownAdapterError(
                f"how is {runs} to be read? Say --adapter NAME (shipped: {', '.join(list_adapters())}), or the path of "
                "a .json of your own. Only runs that a guard recorded need none."
            )
        return load_adapter(EVENTS)
    if adapter != RAW:
        return load_adapter(adapter)
    well = [one for one in recognise(runs) if one.reads_well]
    if not well:
        raise UnknownAdapterError(
            f"{RAW!r} is the control of the adapter that reads the runs, and no shipped adapter reads {runs} well. "
            "Say whose control it is: raw:NAME, or raw:PATH of a .json file."
        )
    return raw_view(load_adapter(well[0].name))
