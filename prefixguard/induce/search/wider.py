"""A layout seen otherwise: in the order of a time, with what stands beside its events, with a payload opened, with the
messages of requests each once."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.search.columns import Node, is_time, opened_json
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.histories import history_events
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.places import Place, spell
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import Adapter, canonical
from prefixguard.stepview.reorder import sort_key

#: Share of the events' text that a field of JSON must hold for being read as if it were no text.
_PAYLOAD = 0.5
#: Names above each other in JSON of a text, and names of one object, that are looked through.
_REACH, _MOST_NAMES = 6, 60
#: Times that are in no order as texts.
_DAY_FIRST = re.compile(r"\d\d?[./]")
#: What tells how a run went is no event of it.
_OF_NO_EVENT = (Meaning.OUTCOME, Meaning.MISTAKE, Meaning.HARNESS)


def ordered(layout: Layout) -> Iterator[Layout]:
    """The layout with its events in the order of a time that most have, where they are in another one."""
    node = layout.node()
    for one in node.fields.values():
        if one.share < 0.8 or one.kind not in ("number", "id", "word", "text") or not one.place:
            continue
        if not all(is_time(value) and not _DAY_FIRST.match(str(value)) for value in islice(one.values.values(), 50)):
            continue
        runs, at, moved = [], 0, 0
        for events in layout.events_of:
            keys = [*accumulate((one.values.get(at + i) for i in range(len(events))), _key_after, initial=(0, 0))][1:]
            moved += sum(a > b for a, b in pairwise(keys))
            runs.append([events[i] for i in sorted(range(len(events)), key=keys.__getitem__)])
            at += len(events)
        if moved < max(1, 0.01 * len(node.elements)):
            continue
        layout.backwards = max(layout.backwards, moved / len(node.elements))
        base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
        mine = Layout(
            layout.container, {**base, "order_by": one.name}, layout.prior + 0.1, f"{layout.why}, by {one.name}"
        )
        mine.events_of, mine.share = runs, layout.share
        yield mine


def talks(layout: Layout) -> Iterator[Layout]:
    """The layout with the messages of requests that hold all of the talk so far, each once."""
    found = history_events(layout.events_of, layout.events) if "group_by" in layout.container else None
    if found is not None and not layout.backwards:
        why = f"{layout.why}, each message once"
        mine = Layout(layout.container, found.events, layout.prior + 0.5, why, share=layout.share, aside=found.aside)
        mine.events_of = found.messages
        yield mine


def decoded(layout: Layout) -> Iterator[Layout]:
    """The layout with a field opened that holds most of what the events say as the text of an object."""
    node = layout.node()
    whole = sum(one.mass for one in node.fields.values())
    for one in node.fields.values():
        objects = sum(isinstance(opened_json(value), dict) for value in one.values.values())
        if len(one.place) == 1 and objects >= 0.7 * len(node.elements) and one.mass > _PAYLOAD * whole:
            base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
            events, why = {**base, "decode": one.name}, f"{layout.why}, {one.name} opened"
            yield Layout(layout.container, events, layout.prior + 0.05, why, share=layout.share)


def unfolded(layout: Layout) -> Iterator[Layout]:
    """The layout with the elements of a list as its events that stands in the JSON of a text of each event so far: the
    one with the most in it."""
    base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
    if not isinstance(base.get("path"), str) or set(base) - {"path", "order_by"}:
        return
    lists: Counter[tuple[str, Place]] = Counter()
    held: dict[tuple[str, Place], dict[int, list[Any]]] = defaultdict(dict)
    for one in layout.node().fields.values():
        for i, text in one.values.items() if one.kind == "json" else ():
            for place, value in _lists(opened_json(text), ()):
                lists[one.name, place] += len(canonical(value))
                held[one.name, place][i] = value
    enough = [key for key, _ in lists.most_common() if len(held[key]) >= 0.5 * sum(map(len, layout.events_of))]
    for name, place in enough[:1]:
        order = {"order_by": "^" + base["order_by"][1:]} if str(base.get("order_by", ""))[:2] == "@." else {}
        events = {"flatten": [base["path"], {"json": name, "path": f"{spell('$', place)}[*]"}], **order}
        mine = Layout(layout.container, events, layout.prior + 0.05, f"{layout.why}, the list in {name}")
        at = iter(range(sum(map(len, layout.events_of))))
        mine.events_of = [[e for _ in run for e in held[name, place].get(next(at), ())] for run in layout.events_of]
        mine.share = layout.share
        yield mine


def _lists(value: Any, place: Place) -> Iterator[tuple[Place, list[Any]]]:
    """Lists of objects, some of them of several, in an object."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        yield place, value
    elif isinstance(value, dict) and len(place) < _REACH:
        for name, inner in islice(value.items(), _MOST_NAMES):
            yield from _lists(inner, (*place, name))


def _key_after(last: Any, value: Any) -> Any:
    """The place in order of an event with this time: without one, that of the event before."""
    return sort_key(value, last)


def wider(layout: Layout, evidence: Evidence) -> Iterator[Layout]:
    """The layout with what stands beside its events: a text of the element that holds them, before them; a text or an
    object like them behind the last, where runs close."""
    try:
        adapter = Adapter(layout.spec([{"emit": "skip"}]))
    except PrefixGuardError:
        return
    events = layout.events
    if isinstance(events, dict) and "flatten" in events and len(events["flatten"]) == 2:
        outer, inner = events["flatten"]
        base = inner.removesuffix("[*]")
        holders = [e for run in evidence.runs(adapter) for e in evidence.events(adapter, run)]
        for text in _asked(holders, base):
            yield _among(layout, outer, [_said("asked", text), {"object": {"items": base}}], f"{text} before")
    if isinstance(events, str) and events.endswith("[*]") and "[*]" not in events[:-3]:
        runs = [run.found.run for run in evidence.runs(adapter)]
        for path, is_like in [] if "group_by" in layout.container else _closing(runs, events, layout, evidence.names):
            like: dict[str, Any] = {"object": {"items": {"list": [path]}}}
            end = like if is_like else _said("closing", path)
            yield _among(layout, None, [{"object": {"items": events[:-3]}}, end], f"{path} behind")


def between(layout: Layout, evidence: Evidence) -> Iterator[Layout]:
    """The layout with what was asked before the inner list of every element, and the reply behind it."""
    flatten: Sequence[Any] = layout.events.get("flatten", ()) if isinstance(layout.events, dict) else ()
    if len(flatten) != 2 or not isinstance(flatten[1], str):
        return
    adapter = Adapter(layout.spec([{"emit": "skip"}]))
    holders = [e for run in evidence.runs(adapter) for e in evidence.events(adapter, run)]
    inner = flatten[1].removesuffix("[*]")
    for first, last in _around(holders, inner):
        parts = [_said("asked", first), {"object": {"items": inner}}, _said("answered", last)]
        yield _among(layout, flatten[0], parts, f"between {first} and {last}")


def _said(name: str, path: str) -> dict[str, Any]:
    """An event of one text."""
    return {"object": {"items": {"list": [{"object": {name: path}}]}}}


def _among(layout: Layout, outer: Any, parts: Sequence[Any], why: str) -> Layout:
    """The layout with these lists of events, one behind the other, in each element of the outer list or in the run."""
    flatten = [*([outer] if outer is not None else []), {"list": list(parts)}, "@.items[*]"]
    more = 0.05 * (len(parts) - 1)
    return Layout(
        layout.container, {"flatten": flatten}, layout.prior + more, f"{layout.why}, {why}", share=layout.share
    )


def _around(holders: Sequence[Any], inner: str) -> Iterator[tuple[str, str]]:
    """Paths of a text before the inner list and of one behind it, where nearly all that hold the list have both: what
    was asked, and the reply."""
    node = Node("", [h for h in holders if isinstance(h, dict)], list(range(len(holders))), [0] * len(holders))
    order = [one.name for one in node.fields.values()]
    at = next((i for i, name in enumerate(order) if name.startswith(inner)), None)
    texts = [
        f for f in node.fields.values()
        if f.kind == "text" and f.share > 0.8 and f.distinct > 0.3 * len(f.values) and not f.name.startswith(inner)
    ]  # fmt: skip
    before = [f for f in texts if at is not None and order.index(f.name) < at]
    behind = [f for f in texts if at is not None and order.index(f.name) > at]
    if before and behind:
        first, last = (max(side, key=lambda f: (f.mass, -len(f.place))) for side in (before, behind))
        yield first.name, last.name


def _asked(holders: Sequence[Any], inner: str) -> list[str]:
    """Paths of texts beside the inner list, in nearly all that hold one; the one with the most in it."""
    node = Node("", [h for h in holders if isinstance(h, dict)], list(range(len(holders))), [0] * len(holders))
    texts = [
        f for f in node.fields.values()
        if f.kind == "text" and f.share > 0.5 and not f.name.startswith(inner) and f.distinct > 0.3 * len(f.values)
    ]  # fmt: skip
    return [f.name for f in sorted(texts, key=lambda f: (-f.mass, len(f.place)))[:1]]


def _closing(runs: Sequence[Any], events: str, layout: Layout, names: bool) -> list[tuple[str, bool]]:
    """Places beside the events that may be the last of them: an object with an event's keys, or a text that no event
    has. With whether it is like the events."""
    objects = [run for run in runs if isinstance(run, dict)]
    if len(objects) < 2:
        return []
    node = Node("", objects, list(range(len(objects))), list(range(len(objects))))
    shapes = [frozenset(e) for run in layout.events_of for e in run if isinstance(e, dict)]
    keys = frozenset.intersection(*shapes) if shapes else frozenset()
    path = events.replace("$", "@", 1)[:-3]
    found: list[tuple[str, bool]] = []
    order = list(node.fields)
    at = next((i for i, place in enumerate(order) if spell("@", place) == path), 0)
    for i, one in enumerate(node.fields.values()):
        if one.name.startswith(path) or one.share < 0.4 or i < at:
            continue
        if names and max(affinity(one.name, meaning) for meaning in _OF_NO_EVENT) >= 0.6:
            continue
        values = [v for v in one.values.values() if isinstance(v, dict)]
        if keys and len(keys) >= 2 and values and all(keys <= frozenset(v) for v in values):
            found.append(("$" + one.name[1:], True))
        elif one.kind == "text" and one.distinct > 0.7 * len(one.values) and len(one.place) <= path.count("."):
            found.append(("$" + one.name[1:], False))
    return sorted(found, key=lambda item: (not item[1], item[0].count(".")))[:2]
