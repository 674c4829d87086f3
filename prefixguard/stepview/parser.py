"""Events in, records out: one machine for a whole run and for a live one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from copy import copy
from functools import partial
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.stepview.events import expand, opened
from prefixguard.stepview.fills import EventGaps
from prefixguard.stepview.identity import Repeats, RunSigns, kind_of, short_turn
from prefixguard.stepview.jsontext import decode_text, refuse_endless, spelled
from prefixguard.stepview.live_state import Header, checked
from prefixguard.stepview.machine import Machine
from prefixguard.stepview.offered import offer_of
from prefixguard.stepview.paths import MISSING, Scope, describe
from prefixguard.stepview.program import Program
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.reorder import Reorder
from prefixguard.stepview.splitter import Splitter
from prefixguard.stepview.text import repair
from prefixguard.trace import NO_OFFER, RunOffer

#: Bytes of the room that a window of events may use.
_WINDOW_ROOM = 1_000
#: And the identifiers that `drop_repeats` remembers, and the line in the making of a text.
_REPEATS_ROOM, _LINE_ROOM = 1_100, 1_700
_SCHEMA = 1


class Parser:
    """Turns the events of one run into records as they come. Nothing is kept of events that are over.

    Between two calls a live parser keeps at most 9,216 bytes, whatever arrives; what does not fit is cut, or leaves
    early, and is counted.
    """

    __slots__ = (
        "_machine", "_program", "_reorder", "_repeats", "_scope", "_seen", "_signs", "_splitter", "_stopped", "gaps",
    )  # fmt: skip

    def __init__(self, program: Program, scope: Scope, *, live: bool) -> None:
        """scope: of the run; its `run` is the header, of which only what rules read is kept."""
        events = program.events
        self._program = program
        header = program.header(scope.run)
        self._machine = machine = Machine(program.join, program.cut_observation, _left(program, header), program.is_raw)
        if header.is_cut:
            machine.count("header_cut")
        #: How the events so far fell to records.
        self.gaps = EventGaps()
        self._splitter = self._reorder = self._repeats = self._signs = None
        if events.split is not None:
            self._splitter = Splitter(events.split, partial(body_within, program.body, machine), machine.leave)
        if events.order_by is not None:
            n_parts = 3 if events.levels else 1
            self._reorder = Reorder(events.window, _WINDOW_ROOM, n_parts) if live else Reorder(1 << 62, None, n_parts)
        if events.drop_repeats is not None:
            self._repeats = Repeats()
        if live:
            window = events.window if events.order_by is not None else 0
            self._signs = RunSigns(program.container.group_by, window, program.container.goes_on)
        self._seen = 0
        self._stopped = False
        if program.preamble is not None:
            machine.observe(program.preamble(scope))
            machine.rest()
        self._scope = copy(scope)
        self._scope.run = header.run

    @property
    def counters(self) -> Mapping[str, int]:
        """Number of times that something happened which a person should know of: `skipped: KIND`, `late_results`,
        `calls_without_result`, `repeated_events`, `after_until`, `bad_bytes`, `events_out_of_order`; and what did not
        fit: `cut_while_waiting`, `calls_released_early`, `calls_left_out`, `long_texts_cut`,
        `events_released_early`, `header_cut`."""
        counters = dict(self._machine.counters)
        if self._splitter is not None:
            counters |= {"bad_bytes": self._splitter.bad_bytes, "long_texts_cut": self._splitter.cut}
        if self._reorder is not None:
            counters |= {"events_released_early": self._reorder.early, "events_out_of_order": self._reorder.late}
        return {name: n for name, n in counters.items() if n}

    @property
    def other_run(self) -> str | None:
        """Why the events so far are of more than one run; None while there is no sign. Of live runs only."""
        return None if self._signs is None else self._signs.reason

    def observe(self, event: Any) -> list[StepRecord]:
        """Records that are complete with this event: an array element, a row, or a chunk of text cut anywhere.

        TraceError for what cannot be an event of this adapter at all.
        """
        try:
            if self._splitter is not None:
                for piece in self._splitter.feed(event):
                    self._arrive(piece)
            else:
                if self._signs is not None:  # live: the event may be the host's own object
                    refuse_endless(event)
                self._arrive(event)
        finally:
            self._forget()
        return self._records() if self._machine.out else []

    def end(self) -> list[StepRecord]:
        """The stream is over: records that were waiting for more."""
        if self._splitter is not None:
            for piece in self._splitter.end():
                self._arrive(piece)
        if self._reorder is not None:
            for parts, index in self._reorder.rest():
                self._take(self._at(parts, index))
        self._machine.wake()
        self._machine.end()
        self._machine.rest()
        self._forget()
        return self._records()

    def _records(self) -> list[StepRecord]:
        """The records that are complete; never the list that the machine goes on to fill."""
        out = self._machine.out
        if not out:
            return []
        self._machine.out = []
        return out

    def state(self) -> dict[str, Any]:
        """All that is kept of the run between two calls, as plain JSON values; `resume` takes it. Of live runs."""
        return {
            "schema": _SCHEMA,
            "seen": self._seen,
            "stopped": self._stopped,
            "header": None if self._scope.run is MISSING else spelled(self._scope.run),
            **{name: None if part is None else part.state() for name, part in self._parts().items()},
        }

    def _parts(self) -> dict[str, EventGaps | Machine | Splitter | Reorder | Repeats | RunSigns | None]:
        """What keeps a state of its own, by its name there; None where the format does not need it."""
        return {
            "gaps": self.gaps,
            "machine": self._machine,
            "splitter": self._splitter,
            "window": self._reorder,
            "repeats": self._repeats,
            "signs": self._signs,
        }

    def resume(self, state: Any) -> None:
        """Go on where a parser of the same adapter was when its `state` was taken. This one must be fresh.

        TraceError for what is no such state; the parser is then of no use.
        """
        checked(state, _STATE)
        header = state["header"]
        try:
            kept = self._program.header(MISSING if header is None else decode_text(header))
        except ValueError as exc:
            raise TraceError(
                f"state.header is no JSON ({exc}). Restore the run from the state that was saved."
            ) from exc
        self._scope.run = kept.run
        self._machine.room = _left(self._program, kept)
        self._seen, self._stopped = state["seen"], state["stopped"]
        for name, part in self._parts().items():
            if part is not None:
                part.resume(state[name])
            else:
                checked(state[name], None, f"state.{name}")

    def _forget(self) -> None:
        """Nothing of an event is kept that is over."""
        scope = self._scope
        scope.event = scope.parent = scope.grandparent = MISSING
        scope.turn = scope.fields = None

    def _arrive(self, element: Any) -> None:
        source = self._program.events
        scope = self._scope
        inner = expand(source, scope, element) if source.levels else ((element, scope.run, MISSING),)
        said: Counter[str] = Counter()
        for event, parent, grandparent in inner:
            if source.unflatten or source.decode:
                event = opened(event, source)
            index = self._seen
            self._seen = index + 1
            scope.event, scope.parent, scope.grandparent, scope.index = event, parent, grandparent, index
            if self._signs is not None:
                self._signs.look(scope, self._machine.has_acted, self._machine.has_pending)
            if (
                source.drop_repeats is not None
                and self._repeats is not None
                and not self._stopped
                and not self._repeats.is_new(source.drop_repeats(scope), said)
            ):
                self._machine.count("repeated_events")
                continue
            if self._reorder is None or source.order_by is None:
                self._take(scope)
                continue
            parts = [event, parent, grandparent] if source.levels else [event]
            for ready, position in self._reorder.push(source.order_by(scope), parts, index):
                self._take(self._at(ready, position))

    def _at(self, parts: list[Any], index: int) -> Scope:
        """The scope at an event. parts: the event, its parent and grandparent; or the event alone, with the run as its
        parent."""
        scope = self._scope
        scope.event, scope.parent, scope.grandparent = parts if len(parts) == 3 else (parts[0], scope.run, MISSING)
        scope.index = index
        return scope

    def _take(self, scope: Scope) -> None:
        """An event, in its place in the order."""
        machine = self._machine
        if self._stopped:
            machine.count("after_until")
            return
        source = self._program.events
        machine.wake()
        scope.open_calls = len(machine.open)
        if source.until is not None and source.until(scope):
            self._stopped = True
            if not source.keep:
                machine.count("after_until")
                machine.rest()
                return
        turn = self._program.turn
        if turn is not None:
            scope.turn = short_turn(turn(scope))
        if self._program.signals is not None:
            machine.arrive(*self._program.signals(scope), scope.turn)
        taken = False
        for rule in self._program.rules:
            if rule.when(scope):
                taken = True
                rule.act(machine, scope)
                if not rule.goes_on:
                    break
                scope.open_calls = len(machine.open)
        machine.over()
        if not taken:
            kind = None if self._program.kind is None else self._program.kind(scope)
            name = repair(kind[:60]) if isinstance(kind, str) and kind else kind_of(scope.event)
            machine.count(f"skipped: {name}", "skipped: other kinds")
        machine.rest()
        self.gaps.count(not taken, machine.index)


_STATE = {
    "schema": _SCHEMA, "seen": int, "stopped": bool, "header": (None, str), "gaps": dict, "machine": dict,
    "splitter": (None, dict), "window": (None, dict), "repeats": (None, dict), "signs": (None, dict),
}  # fmt: skip


def body_within(body: tuple[int, int], machine: Machine) -> tuple[int, int]:
    """Bytes to keep of the text of an event, head and tail: all of `body`, or what calls that wait leave of it."""
    most = sum(body)
    within = min(most, max(machine.left, most // 2))
    head = body[0] * within // most
    return head, within - head


def _left(program: Program, header: Header) -> int:
    """Bytes of the room that are left for steps: the rest is the header's, and that of parts which not all formats
    need. The same for a whole run as for a live one, so that both read the same."""
    events = program.events
    others = (
        _WINDOW_ROOM * (events.order_by is not None),
        _REPEATS_ROOM * (events.drop_repeats is not None),
        _LINE_ROOM * (events.split is not None),
    )
    return program.room - header.size - sum(others)


def live_parser(program: Program, header: Mapping[str, Any] | None) -> Parser:
    """A parser for a run that is going on. AdapterError if the spec can only read whole runs."""
    if program.events.drop_last:
        raise AdapterError(
            f"adapter {program.name} drops the last {program.events.drop_last} event(s) of a run, and a live run has "
            'no last event yet. Use it on whole runs, or replace drop_last by a test of the event itself ("until").'
        )
    scope = Scope()
    if header is not None:
        scope.run = dict(header)
    return Parser(program, scope, live=True)


def parse_whole(
    program: Program, scope: Scope, *, events_needed: bool = False
) -> tuple[list[StepRecord], Parser, bool, RunOffer]:
    """Records of a whole run, fed event by event through the same machine.

    Returns the records, the parser (for its counters), whether there were events to read at all, and what the events
    before the first record say that the run is given. TraceError if the place of the events holds something that is no
    list of events, or is not there and `events_needed`.
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
        return parser.end(), parser, False, NO_OFFER
    if program.events.split is not None:
        if not isinstance(found, str):
            raise TraceError(f"the log is {describe(found)}, not a text")
        had_events, events = bool(found.strip()), [found]
    elif isinstance(found, list):
        had_events, events = True, found[: len(found) - program.events.drop_last]
    else:
        raise TraceError(f"the events are {describe(found)}, not a list")
    offer = NO_OFFER
    for event in events:
        if not records:
            offer = offer_of(event, offer)
        records.extend(parser.observe(event))
    records.extend(parser.end())
    return records, parser, had_events, offer
