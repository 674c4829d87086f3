"""Events in, records out: one machine for a whole run and for a live one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.stepview.events import Reorder, Repeats, Splitter, expand, opened
from prefixguard.stepview.gaps import EventGaps
from prefixguard.stepview.machine import Machine
from prefixguard.stepview.program import Program
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.rules import kind_of
from prefixguard.stepview.scope import MISSING, Scope, describe

#: Kinds of events that are counted apart; what comes after is counted together.
_MOST_KINDS = 32


class Parser:
    """Turns the events of one run into records as they come. Memory is bounded; nothing is kept of events that are
    over."""

    __slots__ = ("_machine", "_program", "_reorder", "_repeats", "_scope", "_seen", "_splitter", "_stopped", "gaps")

    def __init__(self, program: Program, scope: Scope, *, live: bool) -> None:
        events = program.events
        self._program = program
        self._scope = scope
        self._machine = Machine(program.join, program.cut_observation, program.is_raw)
        #: How the events so far fell to records.
        self.gaps = EventGaps()
        self._splitter = Splitter(events.split) if events.split is not None else None
        self._reorder = Reorder(events.window if live else 1 << 62) if events.order_by is not None else None
        self._repeats = Repeats() if events.drop_repeats is not None else None
        self._seen = 0
        self._stopped = False
        if program.preamble is not None:
            self._machine.observe(program.preamble(scope))
        if live and not program.reads_run:
            scope.run = MISSING

    @property
    def counters(self) -> Mapping[str, int]:
        """How often something happened that a person should know: `skipped: KIND`, `late_results`,
        `calls_without_result`, `repeated_events`, `after_until`, `bad_bytes`."""
        counters = self._machine.counters
        if self._splitter is not None and self._splitter.bad_bytes:
            counters = {**counters, "bad_bytes": self._splitter.bad_bytes}
        return counters

    def observe(self, event: Any) -> list[StepRecord]:
        """Records that are complete with this event: an array element, a row, or a chunk of text cut anywhere.

        TraceError for what cannot be an event of this adapter at all.
        """
        machine = self._machine
        if self._splitter is not None:
            for piece in self._splitter.feed(event):
                self._arrive(piece)
        else:
            self._arrive(event)
        out = machine.out
        if not out:
            return []  # never the list that the machine goes on to fill
        machine.out = []
        return out

    def end(self) -> list[StepRecord]:
        """The stream is over: records that were waiting for more."""
        if self._splitter is not None:
            for piece in self._splitter.end():
                self._arrive(piece)
        if self._reorder is not None:
            for event in self._reorder.rest():
                self._take(*event)
        self._machine.end()
        out, self._machine.out = self._machine.out, []
        return out

    def _arrive(self, element: Any) -> None:
        source = self._program.events
        scope = self._scope
        if not source.levels and self._reorder is None:
            if source.unflatten or source.decode:
                element = opened(element, source)
            index = self._seen
            self._seen = index + 1
            self._take(element, scope.run, MISSING, index)
            return
        for event, parent, grandparent in self._inner(element):
            index = self._seen
            self._seen = index + 1
            if self._reorder is None or source.order_by is None:
                self._take(event, parent, grandparent, index)
                continue
            scope.event, scope.parent, scope.grandparent, scope.index = event, parent, grandparent, index
            for ready in self._reorder.push(source.order_by(scope), (event, parent, grandparent, index)):
                self._take(*ready)

    def _inner(self, element: Any) -> Iterator[tuple[Any, Any, Any]]:
        source = self._program.events
        for event, parent, grandparent in expand(source, self._scope, element):
            yield opened(event, source) if source.unflatten or source.decode else event, parent, grandparent

    def _take(self, event: Any, parent: Any, grandparent: Any, index: int) -> None:
        if self._stopped:
            self._machine.count("after_until")
            return
        source = self._program.events
        scope = self._scope
        machine = self._machine
        scope.event, scope.parent, scope.grandparent, scope.index = event, parent, grandparent, index
        scope.open_calls = len(machine.open)
        if (
            source.drop_repeats is not None
            and self._repeats is not None
            and not self._repeats.is_new(source.drop_repeats(scope))
        ):
            machine.count("repeated_events")
            return
        if source.until is not None and source.until(scope):
            self._stopped = True
            if not source.keep:
                machine.count("after_until")
                return
        turn = self._program.turn
        if turn is not None:
            value = turn(scope)
            scope.turn = None if value is MISSING or isinstance(value, list | dict) else value
        taken = False
        for rule in self._program.rules:
            if rule.when(scope):
                taken = True
                rule.act(machine, scope)
                if not rule.goes_on:
                    break
                scope.open_calls = len(machine.open)
        if not taken:
            self._skip(event)
        self.gaps.count(not taken, machine.index)
        scope.event = MISSING

    def _skip(self, event: Any) -> None:
        program = self._program
        name = kind_of(event)
        if program.kind is not None:
            kind = program.kind(self._scope)
            if isinstance(kind, str) and kind:
                name = kind[:60]
        counters = self._machine.counters
        key = f"skipped: {name}"
        if key not in counters and len(counters) >= _MOST_KINDS:
            key = "skipped: other kinds"
        counters[key] = counters.get(key, 0) + 1


def live_parser(program: Program, header: Mapping[str, Any] | None) -> Parser:
    """A parser for a run that is going on. AdapterError if the spec can only read whole runs."""
    if program.events.drop_last:
        raise AdapterError(
            f"adapter {program.name} drops the last {program.events.drop_last} event(s) of a run, and a live run has "
            f"no last "
            'event yet. Use it on whole runs, or replace drop_last by a test of the event itself ("until").'
        )
    scope = Scope()
    if header is not None:
        scope.run = dict(header)
    return Parser(program, scope, live=True)


def parse_whole(
    program: Program, scope: Scope, *, events_needed: bool = False
) -> tuple[list[StepRecord], Parser, bool]:
    """Records of a whole run, fed event by event through the same machine.

    Returns the records, the parser (for its counters), and whether there were events to read at all. TraceError if the
    place of the events holds something that is no list of events, or is not there and `events_needed`.
    """
    parser = Parser(program, scope, live=False)
    found = program.events.listing(scope)
    records: list[StepRecord] = []
    if found is MISSING and events_needed:
        keys = sorted(map(str, scope.run))[:8] if isinstance(scope.run, dict) else []
        raise TraceError(
            f"nothing where adapter {program.name} has its events; there is {', '.join(keys) or 'nothing'}"
        )
    if found is MISSING or found is None:
        return parser.end(), parser, False
    if program.events.split is not None:
        if not isinstance(found, str):
            raise TraceError(f"the log is {describe(found)}, not a text")
        records.extend(parser.observe(found))
        records.extend(parser.end())
        return records, parser, bool(found.strip())
    if not isinstance(found, list):
        raise TraceError(f"the events are {describe(found)}, not a list")
    if program.events.drop_last:
        found = found[: -program.events.drop_last]
    for event in found:
        records.extend(parser.observe(event))
    records.extend(parser.end())
    return records, parser, True
