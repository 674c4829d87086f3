"""What a live run keeps of identifiers, in few bytes, to know them again: events that come again (`drop_repeats`), and
signs that events of more than one run are fed to one parser.

Three things are signs of another run: an id of the run that events carry changes; the run's opening (a first event
that made no step, such as a system message) comes again after steps; a number that events bear goes back to what it was
at first. Where the format names the run of every event (`group_by`), that name alone counts, as it does in files.
Nothing else is taken for a sign, so in formats whose events have none of these, another run is not noticed.
"""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from prefixguard.stepview.jsontext import canonical
from prefixguard.stepview.live_state import checked
from prefixguard.stepview.paths import MISSING, Getter, Scope
from prefixguard.stepview.text import to_text
from prefixguard.stepview.values import as_id

#: An identifier of plain ASCII is kept as it is up to this length; of all others a digest is kept.
LONGEST_KEPT = 40
_LARGEST = 1 << 53

#: What distinguishes turns: a plain value, equal to another as JSON values are.
Turn = str | int | float | bool | None


def fingerprint(text: str) -> int:
    """64 bits of a hash of the text."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")


def shortened(name: str) -> str:
    """The identifier itself, or a digest of 128 bits where it is long or not ASCII.

    >>> shortened("call_7"), len(shortened("x" * 1000))
    ('call_7', 33)
    """
    if len(name) <= LONGEST_KEPT and name.isascii():
        return name
    return "#" + hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).hexdigest()


def short_id(value: Any) -> str | None:
    """A value as an identifier of bounded length; None where it is none."""
    name = as_id(value)
    return None if name is None else shortened(name)


def short_turn(value: Any) -> Turn:
    """A value that distinguishes turns, in bounded size; None where there is none (absent, null, a list, an object)."""
    if value is MISSING or value is None or isinstance(value, list | dict):
        return None
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and -_LARGEST < value < _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    return shortened(value) if isinstance(value, str) else short_id(value)


#: Identifiers of events that are remembered, the latest.
REMEMBERED = 256
_MASK = (1 << 32) - 1


class Repeats:
    """Remembers the last identifiers it saw."""

    __slots__ = ("next", "seen")

    def __init__(self) -> None:
        self.seen = array("I")  # a ring of hashes of 32 bits
        self.next = 0

    def is_new(self, value: Any, beside: Counter[str]) -> bool:
        """Was this identifier not seen among the last ones? A list or an object is one as a whole. What has none is
        always new. beside: identifiers of events that came in one element with this one, of which it is none again:
        what is said twice in one request was said twice."""
        name = canonical(value) if isinstance(value, list | dict) else as_id(value)
        if name is None:
            return True
        beside[name] += 1
        if beside[name] > 1:
            name = f"{name}\n{beside[name]}"
        key = fingerprint(name) & _MASK
        if key in self.seen:
            return False
        if len(self.seen) < REMEMBERED:
            self.seen.append(key)
        else:
            self.seen[self.next] = key
            self.next = (self.next + 1) % REMEMBERED
        return True

    def state(self) -> dict[str, Any]:
        return {"seen": list(self.seen), "next": self.next}

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, {"seen": [int], "next": int}, "state.repeats")
        self.seen = array("I", [key & _MASK for key in state["seen"][:REMEMBERED]])
        self.next = state["next"] % REMEMBERED


#: Fields of an event by which formats name the run that it is of.
RUN_FIELDS = (
    "sessionId", "session_id", "threadId", "thread_id", "traceId", "trace_id",
    "conversationId", "conversation_id", "contextId", "context_id",
)  # fmt: skip
#: Fields that number the steps of a run.
_NUMBERS = ("number", "step_number", "step_id", "turn_idx")
#: An observation that says less than this, in characters of JSON, may well come again.
_SHORTEST_OPENING = 60
_DEEPEST = 4
#: Last words of the names of fields that differ whenever the same thing is said again.
_PASSING = ("id", "time", "timestamp", "date", "created", "index", "idx", "ts", "at", "seq")
_GROUP = "the value that runs are grouped by"
_LONGEST_KIND, _LONGEST_REASON = 120, 240


@dataclass(slots=True, eq=False)
class RunSigns:
    """Looks at every event of a live run. reason: why the events are of more than one run; None while no sign is."""

    group_by: Getter | None  # which run an event is of, where the format says so
    window: int  # events that wait before rules see them
    goes_on: Callable[[Scope], bool] | None = None  # may the event be of a run that other groups are of too?
    reason: str | None = None
    known: dict[str, int] = field(default_factory=dict)  # the first id of each field that named one, as a hash
    seen: int = 0  # events, as far as they matter
    kind: str = ""  # of the first event
    opening: int | None = None  # its hash, as long as it can be an opening
    is_short: bool = False
    first: str | None = None  # the number that it bears
    left: bool = False  # an event of its kind bore another

    def look(self, scope: Scope, has_acted: bool, has_pending: bool) -> None:
        """The event in the scope, before rules see it. has_acted: the agent did, in this run. has_pending: an
        observation waits."""
        if self.reason is not None:
            return
        event = scope.event
        if self.goes_on is None or not self.goes_on(scope):
            self._names(scope, event)
        if _GROUP in self.known:
            return  # the format says of every event which run it is of, and files are read by that alone
        if not self.seen:
            self.kind = kind_of(event)[:_LONGEST_KIND]
            said = canonical(_lasting(event, 0))
            self.opening, self.is_short = fingerprint(said), len(said) < _SHORTEST_OPENING
            self.first = _number(event)
        elif self.opening is not None or self.first is not None:
            if self.seen == 1 + self.window and (has_acted or (self.is_short and has_pending)):
                self.opening = None
            if has_acted and kind_of(event)[:_LONGEST_KIND] == self.kind:
                self._begins(event)
        self.seen = min(self.seen + 1, self.window + 2)

    def _begins(self, event: Any) -> None:
        if self.opening is not None and fingerprint(canonical(_lasting(event, 0))) == self.opening:
            self.reason = "the run begins a second time: its first event comes again after steps"
        number = _number(event)
        if self.first is None or number is None:
            return
        if number != self.first:
            self.left = True
        elif self.left:
            self.reason = f"the run begins a second time: its steps are numbered from {number} again"

    def _names(self, scope: Scope, event: Any) -> None:
        if self.group_by is not None:
            self._is_same(_GROUP, as_id(self.group_by(scope)))
        if isinstance(event, dict):
            for name in RUN_FIELDS:
                if name in event:
                    self._is_same(name, as_id(event[name]))

    def _is_same(self, name: str, value: str | None) -> None:
        if value is not None and self.known.setdefault(name, fingerprint(value)) != fingerprint(value):
            self.reason = f"{name} is {value[:40]!r} and was another at first"

    def state(self) -> dict[str, Any]:
        """What is kept between two events."""
        return {name: getattr(self, name) for name in _STATE} | {"known": dict(self.known)}

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, _STATE, "state.signs")
        names = [name for name in state["known"] if name in (*RUN_FIELDS, _GROUP)]
        self.known = dict(checked(state["known"], dict.fromkeys(names, int), "state.signs.known"))
        self.seen = min(state["seen"], self.window + 2)
        self.opening, self.is_short, self.left = state["opening"], state["is_short"], state["left"]
        self.kind = state["kind"][:_LONGEST_KIND]
        self.first = state["first"] and state["first"][:_LONGEST_NUMBER]
        self.reason = state["reason"] and state["reason"][:_LONGEST_REASON]


_LONGEST_NUMBER = 9
_STATE = {
    "known": dict, "seen": int, "kind": str, "opening": (None, int), "is_short": bool, "first": (None, str),
    "left": bool, "reason": (None, str),
}  # fmt: skip


def _number(event: Any) -> str | None:
    """The number of its step that an event bears, as digits."""
    if not isinstance(event, dict):
        return None
    for name in _NUMBERS:
        text = as_id(event.get(name))
        if text is not None and len(text) <= _LONGEST_NUMBER and text.isascii() and text.isdigit():
            return text
    return None


def _lasting(value: Any, depth: int) -> Any:
    """The value without what differs whenever the same thing is said again: ids, times, positions."""
    if isinstance(value, dict) and depth < _DEEPEST:
        return {
            name: _lasting(inner, depth + 1)
            for name, inner in value.items()
            if not (isinstance(name, str) and name.replace("Id", "_id").lower().rpartition("_")[2] in _PASSING)
        }
    return value


def kind_of(event: Any) -> str:
    """What to call an event that no rule takes."""
    if isinstance(event, dict):
        for name in ("type", "role", "kind", "event"):
            kind = event.get(name)
            if isinstance(kind, str) and kind:
                return f"{name}={to_text(kind)[:40]}"
        return "object with " + ", ".join(sorted(str(key)[:20] for key in list(event)[:4])) if event else "empty object"
    names = {"str": "text", "NoneType": "null", "int": "number", "float": "number", "bool": "boolean"}
    return names.get(type(event).__name__, type(event).__name__)
