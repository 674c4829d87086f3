"""A live run gives the records that the whole file gives: fed event by event, or as text cut anywhere."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError
from prefixguard.evaluation.leaks.raw import SeenRun
from prefixguard.induce.checks.evidence import SEED, Evidence, feed_of
from prefixguard.induce.checks.finding import Finding
from prefixguard.stepview import DataPlace, PlaceReading, StepRecord, overlaps

#: Runs that are fed live.
MOST_RUNS = 60

_COMPARED = tuple(one.name for one in fields(StepRecord))


def check_stream(evidence: Evidence) -> list[Finding]:
    """Feed sampled runs as a live session would, with what is known at the start, and compare records."""
    program = evidence.adapter.program
    if program.events.drop_last:
        return [
            Finding(
                "stream.offline",
                "note",
                f"the spec drops the last {program.events.drop_last} event(s), so it reads whole runs only.",
                "events.drop_last",
                remedy='For live use, replace it by a test of the event itself ("until").',
            )
        ]
    chosen = evidence.seen[:: max(1, len(evidence.seen) // MOST_RUNS)][:MOST_RUNS]
    different = []
    for number, seen in enumerate(chosen):
        why = _difference(evidence, seen, random.Random(SEED + number))
        if why:
            different.append((seen, why))
    evidence.figures["runs_streamed"] = len(chosen)
    evidence.figures["streams_equal"] = 1 - len(different) / max(1, len(chosen))
    if not different:
        return []
    seen, why = different[0]
    reorders = program.events.order_by is not None
    return [
        Finding(
            "stream.window" if reorders else "stream",
            "note" if reorders else "error",
            f"{len(different)} of {len(chosen)} run(s) read otherwise live than from the file; "
            f"in {seen.run.source}: {why}.",
            "events",
            {"runs": len(different), "share": len(different) / len(chosen)},
            "Events arrive too far out of order for the window: raise `window`."
            if reorders
            else "Read nothing that is only there when the run is over: hidden and outcome places are not in the "
            "header of a live run, nor is the document (%).",
        )
    ]


def _difference(evidence: Evidence, seen: SeenRun, chance: random.Random) -> str:
    """Where the live records differ from those of the file; "" if they do not."""
    try:
        parser = evidence.adapter.parser(header_of(evidence, seen))
        records: list[StepRecord] = []
        for event in _live(feed_of(evidence.adapter, seen.scope), chance):
            records.extend(parser.observe(event))
        records.extend(parser.end())
    except AdapterError as exc:
        return str(exc)
    except PrefixGuardError as exc:
        return f"a live run cannot be read ({exc})"
    if len(records) != len(seen.run.records):
        return f"{len(records)} records live, {len(seen.run.records)} from the file"
    for live, whole in zip(records, seen.run.records, strict=True):
        for name in _COMPARED:
            if getattr(live, name) != getattr(whole, name):
                return f"{name} of record {whole.index}"
    return ""


def _live(feed: list[Any], chance: random.Random) -> Iterator[Any]:
    """Events as they are; text in chunks of odd lengths, some of them as bytes cut inside a character."""
    if not feed or not all(isinstance(line, str) for line in feed) or not feed[0].endswith("\n"):
        yield from feed
        return
    data = "".join(feed).encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode()
    at = 0
    while at < len(data):
        size = chance.choice((1, 7, 61, 509, 4099))
        yield data[at : at + size]
        at += size


def header_of(evidence: Evidence, seen: SeenRun) -> dict[str, Any] | None:
    """What is known when the run starts: `$` without its events, without what is hidden, without the outcome."""
    run = seen.scope.run
    if not isinstance(run, dict):
        return None
    program = evidence.adapter.program
    base = program.container.run.place or DataPlace("run", ())
    events = program.events.base
    streams = [place for place in (events.place, *events.also, *(events.columns or {}).values()) if place is not None]
    streams = [
        DataPlace(place.root, place.steps[:-1] if place.steps[-1:] == (("all",),) else place.steps) for place in streams
    ]
    gone = [
        one.place for one in (*program.readings.hidden, *_unshared(program.readings.outcome, program.readings.record))
    ]
    pruned = _without([*gone, *streams], base, run, 0)
    return pruned if isinstance(pruned, dict) else None


def _unshared(outcome: list[PlaceReading], record: list[PlaceReading]) -> list[PlaceReading]:
    """Places that only the outcome is read from: what a record shares with it, it reads with a cut."""
    return [one for one in outcome if not any(overlaps(one.place, other.place) and other.is_cut for other in record)]


def _without(places: list[DataPlace], at: DataPlace, value: Any, depth: int) -> Any:
    """The value with these places taken out; what is not touched is shared with the original."""
    touched = [place for place in places if overlaps(place, at) and len(place.steps) > len(at.steps)]
    if not touched or depth > 6:
        return value
    if isinstance(value, dict):
        kept = {}
        for name, inner in value.items():
            here = DataPlace(at.root, (*at.steps, ("name", name)))
            if not any(overlaps(place, here) and len(place.steps) == len(here.steps) for place in touched):
                kept[name] = _without(touched, here, inner, depth + 1)
        return kept
    if isinstance(value, list):
        kept_items = []
        for i, inner in enumerate(value):
            here = DataPlace(at.root, (*at.steps, ("index", i)))
            if not any(overlaps(place, here) and len(place.steps) == len(here.steps) for place in touched):
                kept_items.append(_without(touched, here, inner, depth + 1))
        return kept_items
    return value
