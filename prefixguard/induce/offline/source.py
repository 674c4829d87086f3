"""A way to find runs and events in the samples, and how much of what it finds is said anew."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from prefixguard.induce.offline.arrays import parse_inside
from prefixguard.induce.offline.places import leaves, own_leaves
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.samples import SampleFile

#: Documents that are walked, spread over the samples; of lines, so many times twenty.
MOST_DOCUMENTS = 80
#: Runs that a source keeps for inference.
MOST_RUNS = 300


@dataclass(slots=True)
class Source:
    """A way to find runs and events.

    container, events: parts of the spec. runs: path of the runs in the document, None where the document is the run.
    event_places: paths of the lists that hold events, from the run. views: runs, at most MOST_RUNS, spread. prior: the
    higher, the sooner it is tried; about 0 to 5.5. why: a sentence. files: that hold runs. columns: names of parallel
    lists. group_by: of lines that are events, as in the container. root: what the samples were opened from. share: of
    the samples' text that stands in the events, in [0, 1]. novelty, inner: see `novelty_of`, `inner_share`.
    """

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
    shown = [event for view in source.views[:40] for event in view.events[:100]]
    lists = dict(found for event in shown for found in _spelled(event))
    opened = len(lists) >= 0.8 * len(shown)  # each event holds one as JSON: runs, not pages that came back now and then

    def size(value: Any, deep: bool) -> None:
        nonlocal inside, total
        if opened and id(value) in lists:
            value = lists[id(value)]
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

    for event in shown:
        size(event, False)
    return inside / total if total else 0.0


def _spelled(event: Any) -> list[tuple[int, list[Any]]]:
    """The first string of an event that spells a list of four and more objects, by its identity, with that list."""
    for _, value in islice(own_leaves(event), 60):
        found = parse_inside(value) if isinstance(value, str) and value.lstrip()[:1] == "[" else None
        if isinstance(found, list) and sum(isinstance(item, dict) for item in found) >= 4:
            return [(id(value), found)]
    return []


def spread(files: Sequence[SampleFile], n: int) -> list[SampleFile]:
    """At most n of the files, in their order, drawn by their path: every second file may be of one sort."""
    if len(files) <= n:
        return list(files)
    drawn = sorted(
        files, key=lambda file: hashlib.blake2b(file.path.encode("utf-8", "replace"), digest_size=8).digest()
    )
    kept = {file.path for file in drawn[:n]}
    return [file for file in files if file.path in kept]
