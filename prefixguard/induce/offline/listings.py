"""Events of the samples as the interpreter will see them: attributes made plain, replays dropped, in time order."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from prefixguard.induce.offline.arrays import parse_inside
from prefixguard.induce.offline.places import spell, text_size
from prefixguard.induce.offline.source import Source
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import unflatten


def listings_of(source: Source) -> tuple[list[list[Any]], Any]:
    """Events with typed or dotted attributes made plain and payloads decoded, ordered in time; and the `events` of the
    spec."""
    sample = [event for view in source.views[:40] for event in view.events[:40] if isinstance(event, dict)]
    fields = _attributes(sample)
    events: Any = source.events
    listings = [list(view.events) for view in source.views]
    if fields:
        listings = [[_plain(event, fields) for event in listing] for listing in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "unflatten": [spell("@", (field,)) for field in fields]}
    held = _payloads(sample)
    if held:
        listings = [[_decoded(event, held) for event in listing] for listing in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "decode": [spell("@", (field,)) for field in held]}
    again = _replayed(listings)
    if again is not None:
        listings = [list({str(_at(event, again)): event for event in reversed(one)}.values())[::-1] for one in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "drop_repeats": spell("@", (again,))}
    order = _order(listings)
    if order is not None:
        place, key = order
        listings = [sorted(listing, key=key) for listing in listings]
        events = events if isinstance(events, dict) else {"path": events}
        events = {**events, "order_by": spell("@", place), "window": 256}
    return listings, events


def _attributes(sample: list[dict[str, Any]]) -> list[str]:
    """Fields that hold typed OpenTelemetry attributes or an object with dotted names."""
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for event in sample:
        for key, value in event.items():
            if (
                isinstance(value, list)
                and value
                and all(isinstance(v, dict) and set(v) >= {"key", "value"} for v in value)
            ) or (isinstance(value, dict) and value and sum("." in name for name in value) >= 0.5 * len(value)):
                found[key] += 1
            there[key] += value not in (None, [], {})
    return sorted(key for key, n in found.items() if n >= 0.6 * there[key])


def _payloads(sample: list[dict[str, Any]]) -> list[str]:
    """Fields that hold most of what events say, as an object spelled in JSON. Arguments and results, which are a part
    of an event, are read where they stand."""
    found: Counter[str] = Counter()
    there: Counter[str] = Counter()
    size: Counter[str] = Counter()
    total = 0
    for event in sample:
        total += text_size(event)
        for key, value in event.items():
            if isinstance(value, str) and value:
                there[key] += 1
                if value.lstrip()[:1] == "{" and isinstance(parse_inside(value), dict):
                    found[key] += 1
                    size[key] += len(value)
    n = max(1, len(sample))
    return sorted(
        key for key, k in found.items() if k >= 0.8 * there[key] and k >= 0.6 * n and size[key] >= 0.5 * total
    )


def _decoded(event: Any, fields: list[str]) -> Any:
    if not isinstance(event, dict):
        return event
    found = dict(event)
    for field in fields:
        inner = parse_inside(found[field]) if isinstance(found.get(field), str) else None
        found[field] = found.get(field) if inner is None else inner
    return {key: value for key, value in found.items() if key in event}


def _plain(event: Any, fields: list[str]) -> Any:
    if not isinstance(event, dict):
        return event
    return {key: unflatten(value) if key in fields else value for key, value in event.items()}


def _at(event: Any, key: str) -> Any:
    return event.get(key) if isinstance(event, dict) else None


def _replayed(listings: list[list[Any]]) -> str | None:
    """The id of events that stand twice, word for word, in a run: a transcript that was resumed."""
    names = {str(key) for one in listings[:20] for event in one[:20] if isinstance(event, dict) for key in event}
    for key in sorted(names):
        n = there = again = 0
        for listing in listings[:60]:
            seen: dict[str, Any] = {}
            for event in listing:
                value = _at(event, key)
                n += 1
                if not isinstance(value, str) or len(value) < 6 or " " in value:
                    continue
                there += 1
                if value in seen:
                    again += 1
                    if seen[value] != event:
                        again = -(1 << 30)
                seen[value] = event
        if 0 < again <= 0.2 * there and there >= 0.7 * n:
            return key
    return None


def _may_be_time(value: Any) -> bool:
    """A number, or a text that begins with one, as dates do."""
    if isinstance(value, str):
        return value[:1].isdigit() and len(value) <= 40
    return isinstance(value, int | float) and not isinstance(value, bool)


def _order(listings: list[list[Any]]) -> tuple[tuple[str, ...], Any] | None:
    """The time by which events must be put in order, where the file has them otherwise."""
    best: tuple[float, str] | None = None
    for key in sorted(
        {key for listing in listings[:20] for event in listing[:5] if isinstance(event, dict) for key in event}
    ):
        named = affinity(key, Meaning.TIME)
        if named < 0.7:
            continue
        wrong = n = 0
        ok = True
        for listing in listings[:60]:
            values: list[Any] = [_at(event, key) for event in listing]
            if not all(map(_may_be_time, values)):
                ok = False
                break
            if len({type(value) for value in values}) > 1:
                ok = False
                break
            wrong += sum(a > b for a, b in pairwise(values))
            n += max(0, len(values) - 1)
        if ok and n and wrong > 0.03 * n:
            start = 0.5 * ("start" in key.lower()) - 0.5 * ("end" in key.lower())
            if best is None or (-(named + start), key) < (-best[0], best[1]):
                best = named + start, key
    if best is None:
        return None
    key = best[1]
    return (key,), lambda event: event.get(key) if isinstance(event, dict) else ""
