"""A way to find runs and events in the samples, and how much of what it finds is said anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.offline.places import leaves
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.samples import SampleFile

#: Documents that are walked, spread over the samples, and nodes in each.
MOST_DOCUMENTS = 80


#: Runs that a source keeps for inference.
MOST_RUNS = 300


@dataclass(slots=True)
class Source:
    """A way to find runs and events. container, events: parts of the spec. runs: path of the runs in the document,
    None where the document is the run. prior: the higher, the sooner it is tried."""

    container: dict[str, Any]
    runs: str | None
    events: Any
    event_places: tuple[str, ...]
    views: list[RunView]
    prior: float
    why: str
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    group_by: Any = None
    root: str = ""
    novelty: float = 1.0
    inner: float = 0.0
    share: float = 1.0
    notes: list[str] = field(default_factory=list)


def novelty_of(source: Source) -> float:
    """Share of the events' text that is not said before, in this run or another: low where every event, or every run,
    repeats the history."""
    seen: set[int] = set()
    new = total = 0
    for view in source.views[:60]:
        for event in view.events[:200]:
            for _, value in leaves(event):
                if isinstance(value, str) and len(value) >= 16:
                    total += len(value)
                    if hash(value) not in seen:
                        seen.add(hash(value))
                        new += len(value)
    return new / total if total else 1.0


def inner_share(source: Source) -> float:
    """Share of what the events say anew that stands in lists of four and more objects inside an event: high where the
    events are runs."""
    seen: set[int] = set()
    inside = total = 0

    def size(value: Any, deep: bool) -> None:
        nonlocal inside, total
        if isinstance(value, dict):
            for item in value.values():
                size(item, deep)
        elif isinstance(value, list):
            long = deep or (len(value) >= 4 and sum(isinstance(item, dict) for item in value) >= 4)
            for item in value:
                size(item, long and not (isinstance(item, dict) and set(item) == {"key", "value"}))
        elif isinstance(value, str) and len(value) >= 16 and hash(value) not in seen:
            seen.add(hash(value))
            total += len(value)
            inside += len(value) * deep

    for view in source.views[:40]:
        for event in view.events[:100]:
            size(event, False)
    return inside / total if total else 0.0


def spread(files: Sequence[SampleFile], n: int) -> list[SampleFile]:
    step = max(1, -(-len(files) // n))
    return list(files[::step])
