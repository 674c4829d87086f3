"""Turns what rules say about events into records: joins calls with results, and emits a record when it is complete.

A record is complete as soon as nothing more can join it: speech at once, a call when its result is in. Calls leave in
the order in which they were made, so one whose result came early waits for those before it. A call that is open when
the agent acts again, or when the stream ends, leaves with status unknown. Memory is bounded: what waits shares a room
of bytes. Where it is too small, the longest texts are cut, and where there are too many calls, the oldest leave; both
are counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.identity import Turn
from prefixguard.stepview.live_state import SHORTEST, checked, checked_counts, cost, cut_to, level, size
from prefixguard.stepview.record import SCORE_EVENT, Status, StepRecord, raw_record, score_record
from prefixguard.stepview.signals import JUMPS, LEFT_OUT, Figures, StepClock, added, packed, timeless, unpacked
from prefixguard.stepview.text import plain

#: Calls that can wait for results at once, if there is room; the oldest leaves when there is one more.
MOST_OPEN = 64
#: Steps without a score behind which a live run goes on; a number that is further off is a slip.
_MOST_MISSED = 1000
#: Bytes that a call takes while it waits, besides its texts.
_CALL = 200
#: Names of counters, and bytes of them, that are kept apart; what comes after is counted together.
_MOST_COUNTERS, _LONGEST_COUNTERS = 20, 640
_TEXTS = ("arguments", "observation", "action", "result")
_PACKED = (*_TEXTS, "tool", "agent")
_KEPT = ("agent", "index", "is_cut", "pending", "results", "turn")
_DRAFT = {
    **dict.fromkeys(_PACKED, str), "actor": ("agent", "user", "environment", "system"), "call_id": (None, str),
    "done": bool, "event": int, "is_cut": bool, "position": int, "status": ("ok", "error", "unknown"), "waits": bool,
}  # fmt: skip
_STATE = {
    "agent": str, "counters": dict, "held": (None, _DRAFT), "index": int, "is_cut": bool, "open": [_DRAFT],
    "pending": str, "results": int, "turn": (None, str, int, float, bool),
}  # fmt: skip
_SIGNALS = {"clock": list, "drafts": [str]}
#: Bytes of the packed figures of a step that waits.
_FIGURES = 96


@dataclass(frozen=True, slots=True)
class CallJoin:
    """How calls meet results. fallbacks: tried in order where ids do not decide."""

    by_id: bool = True
    fallbacks: tuple[str, ...] = ("next",)
    parallel: bool = False
    any_id: bool = False


@dataclass(slots=True, eq=False)
class OpenStep:
    """A record that is not complete yet."""

    actor: str
    agent: str
    tool: str
    arguments: str
    observation: str
    action: str
    event: int
    result: str = ""
    status: Status = "unknown"
    call_id: str | None = None
    position: int = 0  # number of the call among those made since the last act
    done: bool = False
    waits: bool = False  # speech that the next call or step takes with it
    is_cut: bool = False  # its texts were cut for want of room
    signals: bytes = b""  # what it took so far, packed
    packed: tuple[tuple[str, bytes], ...] = ()  # between events: texts that are smaller as bytes

    def pack(self) -> None:
        """Between events, texts that are not ASCII wait as UTF-8."""
        for name in _PACKED:
            text = getattr(self, name)
            if not text.isascii():
                self.packed += ((name, text.encode("utf-8", "replace")),)
                setattr(self, name, "")

    def unpack(self) -> None:
        for name, data in self.packed:
            setattr(self, name, data.decode())
        self.packed = ()


@dataclass(slots=True, eq=False)
class Machine:
    """Records of one run in the making. `out` holds those that are complete; whoever feeds it takes them."""

    join: CallJoin
    cut_observation: Callable[[str], str]
    room: int  # bytes for what waits
    is_raw: bool = False
    index: int = 0
    pending: str = ""  # what arrived since the last record
    agent: str = ""  # who speaks, where an event says so for what follows
    open: list[OpenStep] = field(default_factory=list)
    held: OpenStep | None = None  # speech that calls of the same turn may still join
    turn: Turn = None
    results: int = 0  # results since the last act
    out: list[StepRecord] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    is_cut: bool = False  # the observation that waits was cut for want of room
    told: bool = False  # did the event tell the agent something?
    clock: StepClock = field(default_factory=StepClock)
    _arriving: bytes = b""  # what the event says of what it took, until a step takes it
    _names: int = 0  # bytes of the counters' names
    _elsewhere: int = 0  # bytes of the room that others use
    _used: int = 0
    _packed: bytes | None = None  # the observation that waits, between events, where it is smaller as bytes

    def count(self, name: str, other: str | None = None, n: int = 1) -> None:
        """Counts under the name, or under the `other` where there are too many names."""
        if name not in self.counters:
            if other is not None and (
                len(self.counters) >= _MOST_COUNTERS or self._names + size(name) > _LONGEST_COUNTERS
            ):
                name = other
            if name not in self.counters:
                self._names += size(name)
        self.counters[name] = self.counters.get(name, 0) + n

    def arrive(self, figures: Figures | None, lost: int, turn: Turn) -> None:
        """An event says what it took, before rules look at it. lost: figures that were left out. turn: of the event;
        what a turn took stands in each of its events, and counts once."""
        if lost:
            self.count(LEFT_OUT, n=lost)
        if figures is not None and turn is not None and turn == self.turn:
            figures = (*(math.nan for _ in figures[:-1]), figures[-1])
        self._arriving = packed(figures)

    def take_signals(self) -> bytes:
        """What the event says that it took; the first step of the event has that."""
        found, self._arriving = self._arriving, b""
        if found and self.clock.tick(unpacked(found)[-1]):
            self.count(JUMPS)
            for draft in self._drafts():
                draft.signals = timeless(draft.signals)
        return found

    def over(self) -> None:
        """The event is over. Where it told the agent something and made no step, the time of the next step begins."""
        if self.told and self._arriving:
            self.take_signals()
            if not self.open:
                self.clock.rest()
        self.told, self._arriving = False, b""

    def observe(self, text: str) -> None:
        """Something arrived that answers no call."""
        self.release()
        self._arrived(text)

    def _arrived(self, text: str) -> None:
        if text:
            self.pending = self.cut_observation(f"{self.pending}\n{text}" if self.pending else text)

    def take_observation(self) -> str:
        text = self.pending
        self.pending = ""
        self.is_cut = False
        return text

    def release(self) -> None:
        """Emits held speech."""
        if self.held is not None:
            draft, self.held = self.held, None
            self._emit(draft)

    def acts(self, turn: Any, takes: bool = False) -> None:
        """The agent acts: what was open is over, unless this belongs to the same turn. takes: by a call or a step,
        which takes speech that waits for one with it."""
        if turn is not None and turn == self.turn:
            return
        self.turn = turn
        if not (takes and self.held is not None and self.held.waits):
            self.release()
        self.flush()

    def flush(self) -> None:
        """Emits all open calls, complete or not."""
        self.results = 0
        if self.open:
            waiting, self.open = self.open, []
            for draft in waiting:
                if not draft.done:
                    self.count("calls_without_result")
                self._emit(draft)

    def score(self, value: Any, step: Any, event: int) -> None:
        """What a verifier said: a record at once. step: its number in the run, where the event says it.

        TraceError for what is no score, or for a number that is not the next. A live run goes on behind a step that is
        missing, or has no score."""
        expected = self.index + 1
        if step is not None and (isinstance(step, bool) or not isinstance(step, int | float) or step % 1 != 0):
            raise TraceError(f"the step {plain(repr(step), 60)} is not a whole number from 1")
        number = expected if step is None else int(step)
        if number < expected:
            late = f"it comes after step {self.index}. Give each step once, in order"
            raise TraceError(f"step {number}: {'steps count from 1' if number < 1 else late}")
        if step is not None and number < expected + _MOST_MISSED:
            self.index = number
        if number > expected:
            missing = f"step {expected} is" if number == expected + 1 else f"steps {expected} to {number - 1} are"
            raise TraceError(f"step {number}: {missing} missing before it. Give a score of every step, in order")
        self.release()
        try:
            record = score_record(number, value, event)
        except TraceError as exc:
            raise TraceError(f"{exc}. An event is one score: {SCORE_EVENT}") from exc
        self.index = number
        self.out.append(record)

    def hold(self, draft: OpenStep) -> None:
        """Speech that waits for the call or step that follows; more of it is put together."""
        if self.held is not None and self.held.waits:
            self.take(draft)
        else:
            self.release()
        draft.waits = True
        self.held = draft

    def take(self, draft: OpenStep) -> None:
        """Held speech becomes part of the draft: what the agent said, and saw, before it acted."""
        held = self.held
        if held is not None:
            self.held = None
            draft.observation = held.observation or draft.observation
            draft.action = _together(held.action, draft.action)
            draft.signals = added(held.signals, draft.signals)

    def say(self, draft: OpenStep, turn: Any) -> None:
        """Speech, or a whole step: complete at once, or with its turn where the events name turns."""
        if turn is None:
            self._emit(draft)
        elif self.held is None:
            if self.open:  # the same turn goes on to speak after it called
                self.flush()
            self.held = draft
        else:
            self.held.action = _together(self.held.action, draft.action)
            self.held.status = draft.status
            self.held.signals = added(self.held.signals, draft.signals)

    def call(self, draft: OpenStep) -> None:
        """A call begins to wait for its result."""
        self.take(draft)
        draft.position = self.open[-1].position + 1 if self.open else self.results
        self.open.append(draft)
        if len(self.open) > MOST_OPEN:
            self._release_first()

    def waiting(self, call_id: str | None, same: tuple[str, str] = ("", "")) -> OpenStep | None:
        """The open call that a result with this id belongs to; None where it is for none of them. same: tool and
        arguments, which tell calls apart where the result has no id."""
        calls = self.open
        join = self.join
        if join.by_id and call_id is not None:
            for draft in calls:
                if draft.call_id == call_id and not draft.done:
                    return draft
        if same[0] and call_id is None:
            alike = [draft for draft in calls if draft.tool == same[0] and not draft.done]
            if alike:
                return next((draft for draft in alike if draft.arguments == same[1]), alike[0])
        for fallback in join.fallbacks:
            for draft in reversed(calls) if fallback == "last" else calls:
                if draft.done or (fallback == "position" and draft.position != self.results):
                    continue
                if not join.by_id or join.any_id or call_id is None or draft.call_id is None:
                    return draft
        return None

    def result(
        self, call_id: str | None, text: str, judge: Callable[[OpenStep], Status], same: tuple[str, str] = ("", "")
    ) -> None:
        """What came back: it completes its call, or becomes part of the next observation."""
        self.release()
        draft = self.waiting(call_id, same)
        self.results += 1
        if draft is None:
            self.count("late_results")
            self._arrived(text)
            return
        draft.result = text
        draft.signals = added(draft.signals, self.take_signals())
        draft.done = True
        draft.status = judge(draft)
        self.settle()

    def settle(self) -> None:
        """Emits the calls at the head of the line that have their results."""
        calls = self.open
        n = 0
        while n < len(calls) and calls[n].done:
            self._emit(calls[n])
            n += 1
        if n:
            del calls[:n]

    def end(self) -> None:
        """The stream ended."""
        self.release()
        self.flush()

    @property
    def has_acted(self) -> bool:
        """Did the agent act in this run?"""
        return bool(self.index or self.open or self.held is not None)

    @property
    def has_pending(self) -> bool:
        """Does an observation wait?"""
        return bool(self.pending or self._packed)

    @property
    def left(self) -> int:
        """Bytes of the room that nothing uses."""
        return self.room - self._used

    def wake(self) -> None:
        """Before an event: what waited as bytes is text again."""
        if self._packed is not None:
            self.pending, self._packed = self._packed.decode(), None
        for draft in self._drafts():
            if draft.packed:
                draft.unpack()

    def rest(self) -> None:
        """After an event: what waits is cut to the room there is, and packed."""
        if not (self.open or self.held is not None or self.pending):
            self._used = 0
            return
        self._fit()
        if not self.pending.isascii():
            self.pending, self._packed = "", self.pending.encode("utf-8", "replace")
        for draft in self._drafts():
            draft.pack()

    def leave(self, used: int) -> None:
        """Between events: others use so many bytes of the room."""
        self._elsewhere = used
        if self._used + used > self.room:
            self.wake()
            self.rest()

    def _drafts(self) -> list[OpenStep]:
        return self.open if self.held is None else [*self.open, self.held]

    def _fit(self) -> None:
        while True:
            drafts = self._drafts()
            names = sum(map(_held, drafts)) + cost(self.pending) + cost(self.agent) + size(self.agent)
            texts = [n for draft in drafts for name in _TEXTS if (n := size(getattr(draft, name)))]
            if self.pending:
                texts.append(size(self.pending))
            left = self.room - self._elsewhere - names
            self._used = names + sum(texts)
            if sum(texts) <= left:
                return
            if len(self.open) <= 1 or left >= SHORTEST * len(texts):
                break
            self._release_first()
        most = level(texts, left)
        for draft in drafts:
            for name in _TEXTS:
                text = getattr(draft, name)
                if size(text) > most:
                    setattr(draft, name, cut_to(text, most))
                    self._counts_cut(draft)
        if size(self.pending) > most:
            self.pending = cut_to(self.pending, most)
            self._counts_cut(self)
        self._used = names + sum(min(n, most) for n in texts)

    def _release_first(self) -> None:
        """The oldest open call leaves; it has no result, since it would have left with it."""
        self.count("calls_released_early")
        self.count("calls_without_result")
        self._emit(self.open.pop(0))
        self.settle()

    def _counts_cut(self, owner: OpenStep | Machine) -> None:
        if not owner.is_cut:
            owner.is_cut = True
            self.count("cut_while_waiting")

    def state(self) -> dict[str, Any]:
        """What is kept between two events."""
        self.wake()
        found = {name: getattr(self, name) for name in _KEPT} | {
            "counters": dict(self.counters),
            "held": None if self.held is None else {name: getattr(self.held, name) for name in _DRAFT},
            "open": [{name: getattr(draft, name) for name in _DRAFT} for draft in self.open],
        }
        if self.clock.now is not None or any(draft.signals for draft in self._drafts()):
            found["signals"] = {"clock": self.clock.state(), "drafts": [one.signals.hex() for one in self._drafts()]}
        self.rest()
        return found

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        signals = None
        if isinstance(state, dict) and "signals" in state:  # not in the state of a run that has none
            signals = checked(state["signals"], _SIGNALS, "state.machine.signals")
            state = {name: value for name, value in state.items() if name != "signals"}
        checked(state, _STATE, "state.machine")
        self.counters = {}
        self._names = 0
        for name, n in checked_counts(state["counters"], 2 * _MOST_COUNTERS, "state.machine.counters").items():
            self.count(name, n=n)
        self.open = [OpenStep(**saved) for saved in state["open"]]
        self.held = None if state["held"] is None else OpenStep(**state["held"])
        self._packed = None
        for name in _KEPT:
            setattr(self, name, state[name])
        if signals is not None:
            self.clock.resume(signals["clock"])
            for draft, data in zip(self._drafts(), signals["drafts"], strict=False):
                draft.signals = _unspelled(data)
        self.rest()

    def _emit(self, draft: OpenStep) -> None:
        self.index += 1
        record = StepRecord(
            self.index,
            draft.actor,
            draft.agent,
            draft.tool,
            draft.arguments,
            draft.observation,
            draft.action,
            draft.result,
            draft.status,
            draft.event,
            signals=self.clock.signals(draft.signals),
        )
        self.out.append(raw_record(record) if self.is_raw else record)


def _together(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second


def _unspelled(data: str) -> bytes:
    """TraceError for what spells no packed figures."""
    try:
        found = bytes.fromhex(data)
    except ValueError:
        found = b"?"
    unpacked(found)
    return found


def _held(draft: OpenStep) -> int:
    """Bytes that a draft takes, without those of its texts."""
    names = (draft.tool, draft.agent, draft.call_id or "")
    return (
        _CALL
        + _FIGURES * bool(draft.signals)
        + sum(size(name) + cost(name) for name in names)
        + sum(cost(getattr(draft, name)) for name in _TEXTS)
    )
