"""Does a live run get what the whole file gives: the same records, in time, and nothing that it could not know?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import PurePosixPath
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError
from prefixguard.evaluation.leaks import GIVEN, find_in_raw, find_leaks
from prefixguard.evaluation.leaks.raw import SeenRun
from prefixguard.induce.checks.evidence import SEED, Evidence
from prefixguard.induce.checks.finding import Finding, finding, settled
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import FIELDS, DataPlace, StepRecord, overlaps
from prefixguard.trace import Run

#: Runs that are fed live.
MOST_RUNS = 60
#: Past this, per event at the 99th percentile, it is worth a warning: microseconds.
SLOW_MICROSECONDS = 2_000.0
#: Events below which a 99th percentile says nothing.
FEW = 100

_COMPARED = tuple(one.name for one in fields(StepRecord))
#: How deep the header of a live run is searched for what is not known yet.
_DEEPEST = 6


def check_time(evidence: Evidence) -> Iterator[Finding]:
    """What an event costs while an agent waits for it: median and 99th percentile, in microseconds."""
    times = sorted(1e6 * second for seen in evidence.seen for second in seen.seconds)
    if not times:
        return
    median, high = times[len(times) // 2], times[min(len(times) - 1, int(0.99 * len(times)))]
    evidence.figures.update(step_microseconds_median=round(median, 1), step_microseconds_p99=round(high, 1))
    if (median if len(times) < FEW else high) > SLOW_MICROSECONDS:
        what = f"reading an event takes {median:,.0f} microseconds (99 % within {high:,.0f})."
        yield finding("time", "warning", what, "rules", median=median, p99=high)


def check_leaks(evidence: Evidence) -> Iterator[Finding]:
    """What the leak audit (`evaluation.leaks`) finds in raw places and uncut records of the sample."""
    given = FIELDS if evidence.spec.get("view") == "raw" else GIVEN  # the control has all text in one field
    in_records = find_leaks(map(_named, evidence.seen), given=given)
    errors = 0
    for leak in (*find_in_raw(evidence), *in_records):
        if leak.kind == "shortcut":  # of the runs, which `check-data` says; no adapter can mend it
            continue
        one = Finding(f"leaks.{leak.kind}", leak.severity, leak.text, leak.field, leak.figures, leak.remedy)
        one = settled(one, evidence, leak.place)
        errors += one.severity == "error"
        yield one
    evidence.figures["leaks"] = errors


def _named(seen: SeenRun) -> Run[StepRecord]:
    """The run with its uncut records; names of its file and of who ran it are groups, for the audit to look for.

    Each run counts as a task of its own: samples are of few tasks, and what an adapter lets through is in all of them.
    """
    names = {"file": PurePosixPath(seen.scope.file).name.split(".")[0]} if seen.scope.file else {}
    for key, value in seen.scope.run.items() if isinstance(seen.scope.run, dict) else ():
        is_text = isinstance(key, str) and isinstance(value, str)
        if is_text and max(affinity(key, Meaning.MODEL), affinity(key, Meaning.RUN_ID)) >= 1.0:
            names[f"$.{key}"] = value
    return replace(seen.run, task_id=None, records=seen.wide, groups={**names, **seen.run.groups})


def check_stream(evidence: Evidence) -> Iterator[Finding]:
    """Feed sampled runs as a live session would, with what is known at the start, event by event or as text cut
    anywhere, and compare records."""
    events = evidence.adapter.program.events
    if events.drop_last:
        what = f"the spec drops the last {events.drop_last} event(s), so it reads whole runs only."
        yield finding("stream.offline", "note", what, "events.drop_last")
        return
    chosen = evidence.seen[:: max(1, len(evidence.seen) // MOST_RUNS)][:MOST_RUNS]
    found = [(seen, _difference(evidence, seen, random.Random(SEED + n))) for n, seen in enumerate(chosen)]
    different = [(seen, why) for seen, why in found if why]
    share = len(different) / max(1, len(chosen))
    evidence.figures.update(runs_streamed=len(chosen), streams_equal=1 - share)
    if different:
        seen, why = different[0]
        what = f"{len(different)} of {len(chosen)} run(s) read otherwise live than from the file; in "
        what += f"{seen.run.source}: {why}."
        reorders = events.order_by is not None
        kind = "stream.window" if reorders else "stream"
        yield finding(kind, "note" if reorders else "error", what, "events", runs=len(different), share=share)


def _difference(evidence: Evidence, seen: SeenRun, chance: random.Random) -> str:
    """Where the live records differ from those of the file; "" if they do not."""
    try:
        parser = evidence.adapter.parser(_header(evidence, seen))
        feed = _live(evidence.adapter.program.events.feed(seen.scope), chance)
        records = [record for event in feed for record in parser.observe(event)]
        records += parser.end()
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


def _header(evidence: Evidence, seen: SeenRun) -> dict[str, Any] | None:
    """What is known when the run starts: `$` without its events, without what is hidden, without the outcome."""
    run, events, readings = seen.scope.run, evidence.adapter.program.events.base, evidence.adapter.program.readings
    if not isinstance(run, dict):
        return None
    gone = [one.place for one in readings.hidden]
    for one in readings.outcome:
        # what a record shares with the outcome, it reads with a cut
        if not any(overlaps(one.place, other.place) and other.is_cut for other in readings.record):
            gone.append(one.place)
    for place in (events.place, *events.also, *(events.columns or {}).values()):
        if place is not None:
            gone.append(replace(place, steps=place.steps[:-1]) if place.steps[-1:] == (("all",),) else place)
    header: dict[str, Any] = _without(gone, evidence.run_place, run, 0)
    return header


def _without(places: list[DataPlace], at: DataPlace, value: Any, depth: int) -> Any:
    """The value with these places taken out; what is not touched is shared with the original."""
    touched = [place for place in places if overlaps(place, at) and len(place.steps) > len(at.steps)]
    if not touched or depth > _DEEPEST or not isinstance(value, dict | list):
        return value
    kept: dict[Any, Any] = {}
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        step = ("name" if isinstance(value, dict) else "index", key)
        here = DataPlace(at.root, (*at.steps, step))
        if not any(overlaps(place, here) and len(place.steps) == len(here.steps) for place in touched):
            kept[key] = _without(touched, here, inner, depth + 1)
    return kept if isinstance(value, dict) else list(kept.values())
