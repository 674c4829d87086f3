"""Fields that stop parsing while a run goes on, and what makes that certain enough to say UNKNOWN.

A producer renames a key, and from then on a field of every record is empty: the monitor would go on and judge silence.
So a bundle says how its training runs fill each field, and how their events fall to records, and a session compares.

The rule. A field is watched if it was filled in at least half of the training steps it applies to. It has lapsed when
it has been empty in more steps in a row than `LEAST` and than twice the longest such stretch of a training run (for
calls: three times, since an agent may come to talk only). Likewise for events: no step came for more of them than
`LEAST_EVENTS` and than twice the longest such stretch in training, or more of the last 64 were taken by no rule than
`LEAST_SKIPPED` (a quarter) and than twice the most in training. While that is so, readings are UNKNOWN and name the
field; with the first step that fills it again they are judged again. At the end of a run, however short, a
field that was never filled is named if it was empty in at least `LEAST_NEVER` steps and in more than it ever was in a
row in training. Finished runs are compared in shares (`Expected.missing`).

False signals. If a run is like the n training runs, the chance that its longest stretch exceeds all of theirs is at
most 1 / (n + 1), whatever the distribution (all orders are equally likely), and doubling leaves room on top: it need
not be assumed that steps are independent, which they are not. Between two halves of seven public sets no run in
3,515 was called lapsed. One training run in a thousand may be passed over, so that a broken file does not switch the
rule off. The price is delay: the steps before the limit are judged as they are.

Stretches of steps in which the agent only speaks are no lapse of what calls have: `SERIES` says what applies where.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import BundleError, SavedSessionError
from prefixguard.stepview import FEWEST, NEARLY, SERIES, SIGNALS, EventGaps, FillCounts, StepRecord, fill_marks

LEAST = 6
LEAST_NEVER = 3
LEAST_EVENTS = 12
LEAST_SKIPPED = 16
_FILLED = 0.5
_SEVERAL = 2
_FEWEST_STEPS = 50  # a share of fewer says little


@dataclass(frozen=True, slots=True)
class Expected:
    """When a run is unlike the training runs. limits: by series, steps in a row that a field may be empty; None: not
    watched. longest: the most it was in training. filled: share of the training steps in which it was filled.
    without_step, skipped: of `EventGaps`; None: not known. steps: mean number of them in a training run; None: not
    known. signals: share of the training steps that had each."""

    limits: tuple[int | None, ...]
    longest: tuple[int, ...]
    filled: tuple[float, ...]
    without_step: int | None = None
    skipped: int | None = None
    steps: float | None = None
    signals: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Mapping[str, Any], where: str) -> Expected | None:
        """What a manifest says under `reading`; None for bundles that do not say it. BundleError if it cannot be."""
        reading = manifest.get("reading")
        if reading is None:
            return None
        try:
            fields = [reading["fields"][name] for name in SERIES]
            limits = tuple(map(_limit, SERIES, fields))
            empty = tuple(int(field["longest_empty"]) for field in fields)
            filled = tuple(float(field["filled"]) for field in fields)
            runs = int(reading.get("runs") or 0)
            steps = int(reading["fields"]["the tool"]["steps"]) / runs if runs > 0 else None
            signals = {str(name): float(share) for name, share in reading.get("signals", {}).items()}
            events = reading.get("events")
            if events is None:
                return cls(limits, empty, filled, steps=steps, signals=signals)
            longest, most = int(events["longest_without_step"]), int(events["most_skipped_of_64"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as exc:
            raise BundleError(
                f"{where}: what it says of how training runs were read is damaged. Train it again."
            ) from exc
        return cls(limits, empty, filled, max(LEAST_EVENTS, 2 * longest), max(LEAST_SKIPPED, 2 * most), steps, signals)

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

    def missing(self, fills: FillCounts) -> tuple[str, ...]:
        """What these finished runs lack and the training runs had, a sentence each: steps, where nearly all runs have
        one (`stepview.losses.NEARLY`) and training runs had two or more on average; every field that is watched and
        empty in nearly all steps that could have it."""
        said = []
        if self.steps is not None and self.steps >= _SEVERAL <= fills.runs and fills.one_step >= NEARLY * fills.runs:
            said.append(
                f"{fills.one_step:,} of {fills.runs:,} runs have one step; the monitor's training runs had "
                f"{self.steps:.1f} on average. A whole run may have been read as one event, or each step as a run "
                "(`container`, `events` of the adapter). Look how they are read with prefixguard parse."
            )
        for i, name in enumerate(SERIES):
            steps, full = fills.series(name)
            if self.limits[i] is not None and name != "calls" and steps >= FEWEST and steps - full >= NEARLY * steps:
                said.append(
                    f"{name}: empty in {steps - full:,} of {steps:,} steps; in the monitor's training runs it was "
                    f"filled in {self.filled[i]:.0%}. What the runs are written by, or what the adapter reads, has "
                    "changed: these readings rest on less than the monitor was made from."
                )
        for name, n in zip(SIGNALS, fills.signals, strict=True):
            had = self.signals.get(name, 0.0)
            if had >= _FILLED and fills.steps >= FEWEST and fills.steps - n >= NEARLY * fills.steps:
                said.append(
                    f"{name}: {fills.steps - n:,} of {fills.steps:,} steps do not say it; of the monitor's training "
                    f"steps {had:.0%} did. Absent is not zero, but these readings rest on less than the monitor was "
                    "made from."
                )
        return tuple(said)


def _limit(name: str, field: Mapping[str, Any]) -> int | None:
    if float(field["filled"]) < _FILLED or int(field["steps"]) < _FEWEST_STEPS:
        return None
    return max(LEAST, (3 if name == "calls" else 2) * int(field["longest_empty"]))


class FieldDropout:
    """How long each field of one run has been empty, and whether it was ever filled: sixteen numbers."""

    __slots__ = ("_ever", "_expected", "_stretch")

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._stretch = [0] * len(SERIES)
        self._ever = [False] * len(SERIES)

    def step(self, record: StepRecord) -> str | None:
        """Why a run whose next step this is cannot be judged: the first field that has lapsed. None: none has."""
        stretch, why = self._stretch, None
        for i, is_filled in enumerate(fill_marks(record)):
            if is_filled is None:
                continue
            if is_filled:
                stretch[i] = 0
                self._ever[i] = True
                continue
            n = stretch[i] = stretch[i] + 1
            limit = self._expected.limits[i]
            if limit is not None and n > limit and why is None:
                why = (
                    f"{SERIES[i]}: nothing for {n} steps in a row (training runs: {self._expected.longest[i]} at "
                    "most), so what the adapter reads may have been renamed"
                )
        return why

    def end(self) -> str | None:
        """Of a run that is over: the first field that it never had and training runs did, in words."""
        for i, n in enumerate(self._stretch):
            may_be_empty = SERIES[i] == "calls"  # an agent may talk through a whole run
            if self._expected.limits[i] is None or self._ever[i] or may_be_empty:
                continue
            if max(LEAST_NEVER - 1, self._expected.longest[i]) < n:
                return (
                    f"{SERIES[i]}: nothing in all {n} steps of the run that could have it (training runs: "
                    f"{self._expected.filled[i]:.0%} of the steps), so it was judged by less than what the monitor "
                    "was made from"
                )
        return None

    def counts(self) -> tuple[int, ...]:
        """For every series, steps in a row that it has been empty; then for every series 1 where it was ever filled."""
        return (*self._stretch, *map(int, self._ever))

    def resume(self, counts: tuple[int, ...]) -> None:
        """Go on from `counts`. Raises SavedSessionError unless there are two for every series."""
        n = len(SERIES)
        if len(counts) != 2 * n:
            raise SavedSessionError(f"The saved session has {len(counts)} counts of empty fields, not {2 * n}.")
        self._stretch, self._ever = list(counts[:n]), [bool(was_filled) for was_filled in counts[n:]]

    @property
    def lapsed(self) -> tuple[str, ...]:
        """Fields that have lapsed and not come back."""
        limits = zip(SERIES, self._stretch, self._expected.limits, strict=True)
        return tuple(name for name, n, limit in limits if limit is not None and n > limit)
