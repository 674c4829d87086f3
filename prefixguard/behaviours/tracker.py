"""What a run has shown so far, as far as behaviours rest on it: numbers and tables of a fixed size.

`observing` says how a step changes them. The context's own counts and tables are used and not kept again.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Final

from prefixguard.behaviours.catalogue import CONSEQUENCES
from prefixguard.behaviours.counting import DeclaredCounts
from prefixguard.behaviours.declared import DeclaredBehaviours
from prefixguard.behaviours.recent_entries import RecentEntries
from prefixguard.context import RecentCounts
from prefixguard.errors import ConfigError, SavedSessionError

#: Characters of a tool's name that are kept for the evidence.
_NAME: Final = 40
#: Tools that a run was offered: at most so many are known; of more, none.
MOST_TOOLS: Final = 64
_TOOL: Final = 4
#: Behaviours that come and go, and are counted over the whole run, or until something ends the row.
COUNTED: Final = (
    "missing_tool", "prose_as_command", "reply_refused", "call_as_text", "answer_without_call",
    "identifier_from_nowhere", "write_after_failed_read",
)  # fmt: skip
_COUNT: Final = struct.Struct("<IH")
_DEED, _ERROR = struct.Struct("<QIIH"), struct.Struct("<QIH")


@dataclass(slots=True, eq=False)
class BehaviourTracker:
    """What is kept of a run. Fixed size: `packed_bytes`. Made by `start`."""

    step: int = 0
    changed: int = 0  # last step at which the world may have changed
    cut: int = 0  # first step at which a text was cut, so that what it held is not known; 0: none was
    waited: int = 0  # last step at which the agent waited
    calls: int = 0  # calls but thoughts and waits
    named: int = 0  # 1 once a call had a tool's name
    alternating: int = 0  # calls up to this one of which each equals the one before the last, results too
    errors: int = 0  # calls that failed in a row
    errors_since: int = 0
    failed_step: int = 0  # of a failed call that was not repaired; 0: there is none
    failed_read: int = 0  # of a failed or empty read, when it is the last call; 0: it is not
    failed_last: int = 0  # of the last call, when it failed; 0: it did not
    growth: int = 0
    growth_since: int = 0
    edits: int = 0  # since the last test
    edits_since: int = 0
    tests_failed: int = 0  # of the last tests, when they failed; 0: they did not
    tests_again: int = 0  # times that the same tests failed in a row
    tests_since: int = 0
    empty: int = 0  # reads in a row that gave nothing
    empty_since: int = 0
    same_tool: int = 0
    messages: int = 0  # in a row, nothing in between
    messages_since: int = 0
    quiet: int = 0  # steps without a call
    failed_kind: int = 0
    last_length: int = 0  # code points of the last call's arguments
    cap: int = 0  # steps that a run may have; 0: nobody knows
    # What steps took, see `spending`: steps that say it, the sum of its logarithms in thousandths, too much in a row.
    time_n: int = 0
    time_sum: int = 0
    slow: int = 0
    slow_since: int = 0
    cost_unit: int = 0
    cost_n: int = 0
    cost_sum: int = 0
    dear: int = 0
    dear_since: int = 0
    # Hashes of texts; 0: there is none.
    observation: int = 0
    last: int = 0  # the last call with its result, and the one before it
    before: int = 0
    failed_tool: int = 0
    last_tool: int = 0  # of the last call, as the record has it, and as `Consequence` does
    last_name: int = 0
    tests_hash: int = 0
    speaker: int = 0
    #: Of each behaviour of `COUNTED` the first step at which it held, and how often it did.
    counted: bytearray = field(default_factory=lambda: bytearray(_COUNT.size * len(COUNTED)))
    #: Names of the tools that the run was offered, by their hash, sorted; none: nobody knows, or there are too many.
    offered: bytes = b""
    failed_name: str = ""
    #: Calls and messages: result, first step with it, last step, times.
    deeds: RecentEntries = field(default_factory=lambda: RecentEntries(24, _DEED))
    #: Errors: the call that had it, the first step, times.
    errors_said: RecentEntries = field(default_factory=lambda: RecentEntries(8, _ERROR))
    #: How often each tool was used, and, under another key, how often it failed.
    names: RecentCounts = field(default_factory=lambda: RecentCounts(40))
    #: What somebody declared besides the catalogue, and its counts.
    declared: DeclaredBehaviours | None = None
    declared_counts: DeclaredCounts | None = None

    @property
    def packed_bytes(self) -> int:
        """Length of what `pack` gives: `TRACKER_BYTES`, and 17 for each declared behaviour."""
        return TRACKER_BYTES + (self.declared_counts.packed_bytes if self.declared_counts is not None else 0)

    def offer(self, tools: Iterable[str] | None, cap: int | None) -> None:
        """Take in what the run is given, before its first step; see `start`. None: as it was."""
        if cap is not None:
            if not 1 <= cap <= MOST_STEPS:
                raise ConfigError(
                    f"The limit of steps is {cap}: use a number of steps from 1, or None if nobody knows."
                )
            self.cap = cap
        if tools is not None:
            names = sorted({short_hash(name) for name in tools})
            self.offered = b"".join(names) if len(names) <= MOST_TOOLS else b""

    def once_more(self, name: str) -> tuple[int, int]:
        """Count a behaviour of `COUNTED` at this step. Returns the first step at which it held, and how often."""
        at = COUNTED.index(name) * _COUNT.size
        first, times = _COUNT.unpack_from(self.counted, at)
        first, times = first or self.step, min(times + 1, 0xFFFF)
        _COUNT.pack_into(self.counted, at, first, times)
        return first, times

    def start_over(self, name: str) -> None:
        """Count a behaviour of `COUNTED` from nothing again."""
        _COUNT.pack_into(self.counted, COUNTED.index(name) * _COUNT.size, 0, 0)

    def is_offered(self, tool: str) -> bool | None:
        """Whether the run was offered a tool of this name; None where nobody knows."""
        if not self.offered:
            return None
        name = short_hash(tool)
        return any(self.offered[at : at + _TOOL] == name for at in range(0, len(self.offered), _TOOL))


_NUMBERS: Final = tuple(f.name for f in fields(BehaviourTracker) if f.type == "int")
_HASHES: Final = ("observation", "last", "before", "failed_tool", "last_tool", "last_name", "tests_hash", "speaker")
#: No greater than the number of steps.
_OF_STEPS: Final = tuple(
    n for n in _NUMBERS if n not in (*_HASHES, "failed_kind", "last_length", "cap", "cost_unit", "time_sum", "cost_sum")
)
_FIXED: Final = struct.Struct(f"<{len(_NUMBERS) - len(_HASHES)}I{len(_HASHES)}Q{_NAME}s{_TOOL * MOST_TOOLS}sB")
#: No number that is kept in four bytes is greater.
MOST_STEPS: Final = (1 << 32) - 1


def start(
    tools: Iterable[str] | None = None, cap: int | None = None, declared: DeclaredBehaviours | None = None
) -> BehaviourTracker:
    """The tracker of a run before its first step.

    tools: names of the tools that the run is offered; None: nobody knows. cap: steps that a run may have; None: nobody
    knows. declared: behaviours besides those of the catalogue. Raises ConfigError for a cap below 1.
    """
    tracker = BehaviourTracker()
    tracker.offer(tools, cap)
    if declared is not None:
        tracker.declared, tracker.declared_counts = declared, DeclaredCounts(declared)
    return tracker


def short_hash(name: str) -> bytes:
    """Four bytes of a tool's name."""
    return hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=_TOOL).digest()


def text_hash(*parts: str) -> int:
    """One hash of texts, below 2^64 and never 0; of all of them, to the letter."""
    text = "\x1f".join(parts).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") or 1


@lru_cache(maxsize=4096)
def name_hash(name: str) -> int:
    """`text_hash` of a name, of which there are few."""
    return text_hash(name)


#: Length of a packed tracker, without what is declared.
_FRESH: Final = start()
TRACKER_BYTES: Final = (
    _FIXED.size + len(_FRESH.counted) + sum(t.packed_bytes for t in (_FRESH.deeds, _FRESH.errors_said, _FRESH.names))
)


def pack(tracker: BehaviourTracker) -> bytes:
    """All of the tracker but what the file of declared behaviours says, `packed_bytes` long."""
    name = tracker.failed_name.encode("utf-8", "replace")[:_NAME]
    numbers = [getattr(tracker, name) for name in _NUMBERS]
    fixed = _FIXED.pack(*numbers, name, tracker.offered, len(tracker.offered) // _TOOL)
    tables = bytes(tracker.counted) + tracker.deeds.pack() + tracker.errors_said.pack() + tracker.names.pack()
    return fixed + tables + (tracker.declared_counts.pack() if tracker.declared_counts is not None else b"")


def unpack(data: bytes, declared: DeclaredBehaviours | None = None) -> BehaviourTracker:
    """The tracker that `pack` was given; declared: as for `start`. Raises SavedSessionError for bytes that no tracker
    packs to."""
    tracker = start(declared=declared)
    if len(data) != tracker.packed_bytes:
        raise SavedSessionError(
            f"The saved behaviours have {len(data)} bytes, not {tracker.packed_bytes}: the session is damaged."
        )
    *numbers, name, offered, n_offered = _FIXED.unpack_from(data)
    kept = dict(zip(_NUMBERS, numbers, strict=True))
    used = offered[: _TOOL * n_offered]
    hashes = [used[at : at + _TOOL] for at in range(0, len(used), _TOOL)]
    whole = n_offered <= MOST_TOOLS and not any(offered[len(used) :]) and hashes == sorted(set(hashes))
    if (
        max(kept[name] for name in _OF_STEPS) > kept["step"]
        or kept["failed_kind"] >= len(CONSEQUENCES)
        or kept["cost_unit"] > 2
        or not whole
    ):
        raise SavedSessionError("The saved behaviours hold numbers that no run gives: the session is damaged.")
    for field_name, number in kept.items():
        setattr(tracker, field_name, number)
    tracker.offered, tracker.failed_name = used, name.rstrip(b"\0").decode("utf-8", "ignore")
    at = _FIXED.size + len(tracker.counted)
    tracker.counted[:] = data[_FIXED.size : at]
    if any(max(first, times) > tracker.step for first, times in _COUNT.iter_unpack(tracker.counted)):
        raise SavedSessionError("The saved behaviours hold numbers that no run gives: the session is damaged.")
    for table in (tracker.deeds, tracker.errors_said, tracker.names):
        table.unpack(data[at : at + table.packed_bytes])
        at += table.packed_bytes
    if tracker.declared_counts is not None:
        tracker.declared_counts.unpack(data[at:], tracker.step)
    return tracker
