"""Turns what rules say about events into records: joins calls with results, and emits a record when it is complete.

A record is complete as soon as nothing more can join it: speech at once, a call when its result is in. Calls leave
in the
order in which they were made, so one whose result came early waits for those before it. A call that is open when the
agent
acts again, or when the stream ends, leaves with status unknown. Memory is bounded: the observation that waits is cut
as a
field is, and only so many calls can be open.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prefixguard.stepview.record import Status, StepRecord, raw_record
from prefixguard.stepview.scope import Scope

#: Calls that can wait for results at once; the oldest leaves when there is one more.
MOST_OPEN = 256

StatusOf = Callable[[Scope, "Draft"], Status]


@dataclass(frozen=True, slots=True)
class Join:
    """How calls meet results. fallbacks: tried in order where ids do not decide."""

    by_id: bool = True
    fallbacks: tuple[str, ...] = ("next",)
    parallel: bool = False
    any_id: bool = False
    message_scope: bool = False


class Draft:
    """A record that is not complete yet."""

    __slots__ = (
        "action",
        "actor",
        "agent",
        "arguments",
        "call_id",
        "done",
        "event",
        "observation",
        "position",
        "result",
        "status",
        "tool",
        "waits",
    )

    def __init__(
        self, actor: str, agent: str, tool: str, arguments: str, observation: str, action: str, event: int
    ) -> None:
        self.actor = actor
        self.agent = agent
        self.tool = tool
        self.arguments = arguments
        self.observation = observation
        self.action = action
        self.event = event
        self.result = ""
        self.status: Status = "unknown"
        self.call_id: str | None = None
        self.position = 0  # number of the call among those made since the last act
        self.done = False
        self.waits = False  # speech that the next call or step takes with it


class Machine:
    """Records of one run in the making. `out` holds those that are complete; whoever feeds it takes them."""

    __slots__ = (
        "agent",
        "counters",
        "cut_observation",
        "held",
        "index",
        "is_raw",
        "join",
        "open",
        "out",
        "pending",
        "results",
        "turn",
    )

    def __init__(self, join: Join, cut_observation: Callable[[str], str], is_raw: bool = False) -> None:
        self.join = join
        self.is_raw = is_raw
        self.cut_observation = cut_observation
        self.index = 0
        self.pending = ""  # what arrived since the last record
        self.agent = ""  # who speaks, where an event says so for what follows
        self.open: list[Draft] = []
        self.held: Draft | None = None  # speech that calls of the same turn may still join
        self.turn: Any = None
        self.results = 0  # results since the last act
        self.out: list[StepRecord] = []
        self.counters: dict[str, int] = {}

    def count(self, name: str) -> None:
        self.counters[name] = self.counters.get(name, 0) + 1

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

    def hold(self, draft: Draft) -> None:
        """Speech that waits for the call or step that follows; more of it is put together."""
        if self.held is not None and self.held.waits:
            draft.observation = self.held.observation or draft.observation
            draft.action = _together(self.held.action, draft.action)
        else:
            self.release()
        draft.waits = True
        self.held = draft

    def take(self, draft: Draft) -> None:
        """Held speech becomes part of the draft: what the agent said, and saw, before it acted."""
        held = self.held
        if held is not None:
            self.held = None
            draft.observation = held.observation or draft.observation
            draft.action = _together(held.action, draft.action)

    def say(self, draft: Draft, turn: Any) -> None:
        """Speech, or a whole step: complete at once, or with the turn where turns are told apart."""
        if turn is None:
            self._emit(draft)
            return
        if self.held is None:
            if self.open:  # the same turn goes on to speak after it called
                self.flush()
            self.held = draft
        else:
            held = self.held
            held.action = _together(held.action, draft.action)
            held.status = draft.status

    def call(self, draft: Draft, turn: Any) -> None:
        """A call begins to wait for its result."""
        self.take(draft)
        draft.position = self.open[-1].position + 1 if self.open else self.results
        self.open.append(draft)
        if len(self.open) > MOST_OPEN:
            self.count("calls_without_result")
            self._emit(self.open.pop(0))

    def waiting(self, call_id: str | None) -> Draft | None:
        """The open call that a result with this id belongs to; None where it is for none of them."""
        calls = self.open
        join = self.join
        if join.by_id and call_id is not None:
            for draft in calls:
                if draft.call_id == call_id and not draft.done:
                    return draft
        for fallback in join.fallbacks:
            for draft in reversed(calls) if fallback == "last" else calls:
                if draft.done or (fallback == "position" and draft.position != self.results):
                    continue
                if not join.by_id or join.any_id or call_id is None or draft.call_id is None:
                    return draft
        return None

    def result(self, call_id: str | None, text: str, judge: Callable[[Draft], Status]) -> None:
        """What came back: it completes its call, or becomes part of the next observation."""
        self.release()
        draft = self.waiting(call_id)
        self.results += 1
        if draft is None:
            self.count("late_results")
            self._arrived(text)
            return
        draft.result = text
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

    def _emit(self, draft: Draft) -> None:
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
        )
        self.out.append(raw_record(record) if self.is_raw else record)


def _together(first: str, second: str) -> str:
    return f"{first}\n{second}" if first and second else first or second
