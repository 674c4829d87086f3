"""What an adapter reads, and the refusal to read into a record what a live run does not show.

Every path is resolved to a place: a root and steps from it. Two places overlap when one contains the other. Places that
`hidden` names, and places that `outcome` reads, may not be read into a record (PrefixGuard 4.1: the view of a step
holds
only what was there when the step was made); what `outcome` reads may be, if what gives it away is cut out first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefixguard.errors import AdapterError
from prefixguard.stepview.paths import Step
from prefixguard.stepview.spec_bounds import MOST_COMPARISONS


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere in the data. root: `document`, `run`, `file`, or `sibling:` and its template."""

    root: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        root = {"document": "%", "run": "$"}.get(self.root, f"{self.root} $")
        return root + "".join(_spell(step) for step in self.steps)


def _spell(step: Step) -> str:
    if step[0] == "name":
        return f".{step[1]}" if str(step[1]).replace("_", "a").isalnum() else f'["{step[1]}"]'
    if step[0] == "filter":
        return f"[{step[1]}={step[2]}]"
    return "[*]" if step[0] == "all" else f"[{step[1]}]"


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of a place by the spec.

    where: which part of the spec. is_cut: a regular expression takes something out before it is used.
    looks_inside: False for tests of mere presence or type, which learn nothing of what is inside.
    """

    place: Place
    where: str
    is_cut: bool = False
    looks_inside: bool = True
    spelled: str = ""  # the path as the spec has it
    of_run: bool = False  # the path starts at the run

    def __str__(self) -> str:
        return self.spelled or str(self.place)


@dataclass(slots=True)
class Readings:
    """All readings of a spec, by what they serve."""

    record: list[Reading] = field(default_factory=list)
    outcome: list[Reading] = field(default_factory=list)
    hidden: list[Reading] = field(default_factory=list)
    waived: list[Place] = field(default_factory=list)


def _may_be_same(a: Step, b: Step) -> bool:
    wild = ("all", "filter")
    if a[0] in wild or b[0] in wild:
        return True
    if a[0] == b[0] == "index":
        return bool(a[1] == b[1]) or (a[1] < 0) != (b[1] < 0)
    return a == b


def overlaps(a: Place, b: Place, looks_inside: bool = True) -> bool:
    """Is one inside the other (or the same)? Without `looks_inside`, only: is `a` inside `b`?"""
    if a.root != b.root:
        return False
    if not looks_inside and len(a.steps) < len(b.steps):
        return False
    return all(_may_be_same(x, y) for x, y in zip(a.steps, b.steps, strict=False))


def refuse_hidden(readings: Readings, name: str) -> None:
    """AdapterError for the first reading of a record that a live run could not make."""
    others = len(readings.hidden) + len(readings.waived) + len(readings.outcome)
    if len(readings.record) * others > MOST_COMPARISONS:
        raise AdapterError(
            f"adapter {name}: {len(readings.record):,} places of records and {others:,} that are hidden, waived or the "
            "outcome's are too many to compare. Make the spec smaller."
        )
    for reading in readings.record:
        if any(overlaps(reading.place, place) for place in readings.waived):
            continue
        for hidden in readings.hidden:
            if overlaps(reading.place, hidden.place, reading.looks_inside):
                raise AdapterError(
                    f"adapter {name}, {reading.where}: reads {reading}, which overlaps the hidden {hidden}: it "
                    f"is not "
                    "there while the run is live. Read a narrower path, or take the path out of `hidden` if it is "
                    "visible."
                )
        if reading.is_cut:
            continue
        seen: Sequence[Reading] = readings.outcome
        for other in seen:
            if overlaps(reading.place, other.place, reading.looks_inside):
                raise AdapterError(
                    f"adapter {name}, {reading.where}: reads {reading}, which overlaps {other} that the "
                    f"outcome "
                    'is read from: a monitor would learn the answer. Take out what gives it away with {"cut": RE, '
                    '"of": ...}, '
                    'or state under `waived` why the path is harmless: {"path": ..., "reason": ...}.'
                )
