"""Fields that stop parsing while a run goes on, and what makes that certain enough to say UNKNOWN.

A producer renames a key, and from then on a field of every record is empty: the monitor would go on and judge silence.
So a bundle says how its training runs fill each field, and how their events fall to records, and a session compares.

The rule. A field is watched if it was filled in at least half of the training steps it applies to. It has lapsed when
it has been empty in more steps in a row than `LEAST` and than twice the longest such stretch of a training run (for
calls: three times, since an agent may come to talk only). Likewise for events: no step came for more of them than
`LEAST_EVENTS` and than twice the longest such stretch in training, or more of the last 64 were taken by no rule than
`LEAST_SKIPPED` (a quarter) and than twice the most in training. While that is so, readings are UNKNOWN and name the
field; with the first step that fills it again they are judged again.

False signals. If a run is like the n training runs, the chance that its longest stretch exceeds all of theirs is at
most 1 / (n + 1), whatever the distribution (all orders are equally likely), and doubling leaves room on top: it need
not be assumed that steps are independent, which they are not. Between two halves of seven public sets no run in
3,515 was called lapsed. One training run in a thousand may be passed over, so that a broken file does not switch the
rule off. The price is delay: the steps before the limit are judged as they are.

Stretches of steps in which the agent only speaks are no lapse of what calls have: `SERIES` says what applies where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.errors import BundleError
from prefixguard.stepview import EventGaps, ReadReport, StepRecord

#: What is watched, in the order of `marks`.
SERIES = (
    "the tool",
    "calls",
    "the arguments of calls",
    "the observation",
    "the agent's text",
    "the agent's text where it speaks",
    "the results of calls",
    "the status of calls",
)
LEAST = 6
LEAST_EVENTS = 12
LEAST_SKIPPED = 16
_FILLED = 0.5
_FEWEST_STEPS = 50  # a share of fewer says little


def marks(record: StepRecord) -> tuple[bool | None, ...]:
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


class FillCounts:
    """Counts over training runs: how often each series is filled, and its longest stretch of empty steps a run."""

    __slots__ = ("applies", "filled", "longest", "runs")

    def __init__(self) -> None:
        self.runs = 0
        self.applies = [0] * len(SERIES)
        self.filled = [0] * len(SERIES)
        self.longest: list[Counter[int]] = [Counter() for _ in SERIES]

    def add(self, records: Iterable[StepRecord]) -> None:
        """One run."""
        self.runs += 1
        stretch, most = [0] * len(SERIES), [0] * len(SERIES)
        for record in records:
            for i, mark in enumerate(marks(record)):
                if mark is None:
                    continue
                self.applies[i] += 1
                if mark:
                    self.filled[i] += 1
                    stretch[i] = 0
                else:
                    stretch[i] += 1
                    most[i] = max(most[i], stretch[i])
        for counter, n in zip(self.longest, most, strict=True):
            counter[n] += 1

    def to_json(self, report: ReadReport | None = None) -> dict[str, Any]:
        """What a bundle's manifest keeps under `reading`. report: of reading these runs; None: nothing on events."""
        fields = {
            name: {
                "steps": self.applies[i],
                "filled": round(self.filled[i] / self.applies[i], 6) if self.applies[i] else 0.0,
                "longest_empty": _highest(self.longest[i]),
            }
            for i, name in enumerate(SERIES)
        }
        found: dict[str, Any] = {"runs": self.runs, "fields": fields}
        if report is not None and report.longest_without_step:
            found["events"] = {
                "longest_without_step": _highest(report.longest_without_step),
                "most_skipped_of_64": _highest(report.most_skipped),
            }
        return found


def _highest(counts: Mapping[int, int]) -> int:
    """The highest value, or the next ones where one run in a thousand is passed over."""
    left = sum(counts.values()) // 1000
    for value in sorted(counts, reverse=True):
        left -= counts[value]
        if left < 0:
            return value
    return 0


@dataclass(frozen=True, slots=True)
class Expected:
    """When a run is unlike the training runs. limits: by series, steps in a row that a field may be empty; None: not
    watched. longest: the most it was in training. without_step, skipped: of `EventGaps`; None: not known."""

    limits: tuple[int | None, ...]
    longest: tuple[int, ...]
    without_step: int | None = None
    skipped: int | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any], where: str) -> Expected | None:
        """What a manifest says under `reading`; None for bundles that do not say it. BundleError if it cannot be."""
        reading = manifest.get("reading")
        if reading is None:
            return None
        try:
            limits = tuple(_limit(name, reading["fields"][name]) for name in SERIES)
            empty = tuple(int(reading["fields"][name]["longest_empty"]) for name in SERIES)
            events = reading.get("events")
            if events is None:
                return cls(limits, empty)
            longest, most = int(events["longest_without_step"]), int(events["most_skipped_of_64"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
            raise BundleError(
                f"{where}: what it says of how training runs were read is damaged. Train it again."
            ) from exc
        return cls(limits, empty, max(LEAST_EVENTS, 2 * longest), max(LEAST_SKIPPED, 2 * most))

    def gap(self, gaps: EventGaps) -> str | None:
        """Why the events of a run are unlike those of the training runs; None where they are like them."""
        if self.without_step is not None and gaps.without_step > self.without_step:
            return (
                f"no step came of the last {gaps.without_step} events; training runs had one at least "
                f"every {self.without_step // 2 + 1}, so the format may have changed"
            )
        if self.skipped is not None and gaps.skipped > self.skipped:
            return (
                f"{gaps.skipped} of the last 64 events are of no kind that the adapter reads, more than ever in "
                "training: the format may have changed"
            )
        return None


def _limit(name: str, field: Mapping[str, Any]) -> int | None:
    if float(field["filled"]) < _FILLED or int(field["steps"]) < _FEWEST_STEPS:
        return None
    return max(LEAST, (3 if name == "calls" else 2) * int(field["longest_empty"]))


class Lapses:
    """How long each field of one run has been empty: eight numbers."""

    __slots__ = ("_expected", "_stretch")

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._stretch = [0] * len(SERIES)

    def step(self, record: StepRecord) -> str | None:
        """Why a run whose next step this is cannot be judged: the first field that has lapsed. None: none has."""
        stretch, why = self._stretch, None
        for i, mark in enumerate(marks(record)):
            if mark is None:
                continue
            if mark:
                stretch[i] = 0
                continue
            n = stretch[i] = stretch[i] + 1
            limit = self._expected.limits[i]
            if limit is not None and n > limit and why is None:
                why = (
                    f"{SERIES[i]}: nothing for {n} steps in a row (training runs: {self._expected.longest[i]} at "
                    "most), so what the adapter reads may have been renamed"
                )
        return why

    @property
    def lapsed(self) -> tuple[str, ...]:
        """Fields that have lapsed and not come back."""
        return tuple(
            name
            for name, n, limit in zip(SERIES, self._stretch, self._expected.limits, strict=True)
            if limit is not None and n > limit
        )
