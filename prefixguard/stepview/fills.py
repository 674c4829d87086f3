"""How the events of a run fall to its records, and how the fields of records are filled: counts of a few numbers,
however many runs there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixguard.stepview.live_state import checked
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.signals import SIGNALS

#: Events that `skipped` looks back on.
WINDOW = 64
_MASK = (1 << WINDOW) - 1


class EventGaps:
    """Counts of one run, a few numbers. An event is one that rules are tried on: a message, a row, a piece of a log.

    events: so far. without_step: since the last record; longest_without_step: the most that was in this run.
    skipped: of the last `WINDOW` events, those that no rule took or that could not be read; most_skipped: the most
    that was in this run.
    """

    __slots__ = ("_index", "_recent", "events", "longest_without_step", "most_skipped", "skipped", "without_step")

    def __init__(self) -> None:
        self.events = self.without_step = self.longest_without_step = self.skipped = self.most_skipped = 0
        self._recent = 0  # a bit an event, the newest lowest: was it skipped?
        self._index = 0

    def unread(self) -> None:
        """One more event, which could not be read at all."""
        self.count(True, self._index)

    def count(self, is_skipped: bool, index: int) -> None:
        """One more event. index: number of the last record that is complete with it."""
        self.events += 1
        if index != self._index:
            self._index = index
            self.without_step = 0
        else:
            self.without_step += 1
            if self.without_step > self.longest_without_step:
                self.longest_without_step = self.without_step
        if is_skipped or self._recent:
            self._recent = (self._recent << 1 | is_skipped) & _MASK
            self.skipped = self._recent.bit_count()
            if self.skipped > self.most_skipped:
                self.most_skipped = self.skipped

    def state(self) -> dict[str, int]:
        """All of it, by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def resume(self, state: Any) -> None:
        """TraceError where it is no state of this."""
        checked(state, dict.fromkeys(self.__slots__, int), "state.gaps")
        for name in self.__slots__:
            setattr(self, name, state[name] & _MASK)


#: What is watched, in the order of `fill_marks`.
SERIES = (
    "the tool", "calls", "the arguments of calls", "the observation", "the agent's text",
    "the agent's text where it speaks", "the results of calls", "the status of calls",
)  # fmt: skip


def fill_marks(record: StepRecord) -> tuple[bool | None, ...]:
    """For every series: is it filled in this step? None where it does not apply."""
    tool = record.tool
    speaks = tool == "respond"
    calls = tool != "" and not speaks
    text = record.action != ""
    return (
        tool != "",
        calls,
        record.arguments != "" if calls else None,
        record.observation != "",
        text,
        text if speaks else None,
        record.result != "" if calls else None,
        record.status != "unknown" if calls else None,
    )


@dataclass(slots=True, eq=False)
class SameText:
    """Whether a text is the same wherever it is not empty. texts: so many were not. shown: how the first begins."""

    texts: int = 0
    differs: bool = False
    shown: str = ""
    _first: int = 0

    def add(self, text: str) -> None:
        """One more."""
        if not text:
            return
        self.texts += 1
        if self.texts == 1:
            self._first, self.shown = hash(text), text[:40]
        elif not self.differs:
            self.differs = hash(text) != self._first


@dataclass(slots=True, eq=False)
class FillCounts:
    """Counts over runs: how often each series is filled, and its longest stretch of empty steps a run.

    runs, steps: so many. one_step: runs of one step. unseen: runs without any observation. calls_with_words: calls in
    whose step the agent says something too. with_text: steps with any text but names of tools. same: by field of the
    record, whether its text is ever another; "step": of all texts of a step together. signals: steps that have each of
    `SIGNALS`.
    """

    runs: int = 0
    steps: int = 0
    one_step: int = 0
    unseen: int = 0
    calls_with_words: int = 0
    with_text: int = 0
    applies: list[int] = field(default_factory=lambda: [0] * len(SERIES))
    filled: list[int] = field(default_factory=lambda: [0] * len(SERIES))
    longest: list[Counter[int]] = field(default_factory=lambda: [Counter() for _ in SERIES])
    signals: list[int] = field(default_factory=lambda: [0] * len(SIGNALS))
    same: dict[str, SameText] = field(
        default_factory=lambda: {name: SameText() for name in ("tool", "observation", "action", "result", "step")}
    )

    def add(self, records: Iterable[StepRecord]) -> None:
        """One run. Steps that are scores have no fields."""
        stretch, most = [0] * len(SERIES), [0] * len(SERIES)
        steps = observed = 0
        for record in records:
            if record.score is not None:
                continue
            steps += 1
            for i, value in enumerate(record.signals or ()):
                self.signals[i] += value is not None
            observed += record.observation != ""
            self._texts(record)
            for i, is_filled in enumerate(fill_marks(record)):
                if is_filled is None:
                    continue
                self.applies[i] += 1
                if is_filled:
                    self.filled[i] += 1
                    stretch[i] = 0
                else:
                    stretch[i] += 1
                    most[i] = max(most[i], stretch[i])
        if not steps:
            return
        self.runs += 1
        self.steps += steps
        self.one_step += steps == 1
        self.unseen += not observed
        for counter, n in zip(self.longest, most, strict=True):
            counter[n] += 1

    def _texts(self, record: StepRecord) -> None:
        text = "\0".join((record.arguments, record.observation, record.action, record.result))
        self.with_text += len(text) > 3
        self.calls_with_words += record.action != "" and record.tool not in ("", "respond")
        same = self.same
        same["step"].add(f"{record.tool}\0{text}")
        for name in ("tool", "observation", "action", "result"):
            same[name].add(getattr(record, name))

    def series(self, name: str) -> tuple[int, int]:
        """Steps that a series applies to, and those of them in which it is filled."""
        i = SERIES.index(name)
        return self.applies[i], self.filled[i]

    def to_json(self) -> dict[str, Any]:
        """Runs, and for every series the steps that it applies to, the share in which it is filled and its longest
        stretch of empty steps."""
        fields = {}
        for name, n, filled, longest in zip(SERIES, self.applies, self.filled, self.longest, strict=True):
            share = round(filled / n, 6) if n else 0.0
            fields[name] = {"steps": n, "filled": share, "longest_empty": highest(longest)}
        signals = {name: round(n / self.steps, 6) for name, n in zip(SIGNALS, self.signals, strict=True) if n}
        return {"runs": self.runs, "fields": fields, **({"signals": signals} if signals else {})}


def highest(counts: Mapping[int, int]) -> int:
    """The highest value, or the next ones where one run in a thousand is passed over."""
    left = sum(counts.values()) // 1000
    for value in sorted(counts, reverse=True):
        left -= counts[value]
        if left < 0:
            return value
    return 0
