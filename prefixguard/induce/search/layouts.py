"""Where runs and events can be: every list of the documents that could be events, at every level that could be a run;
lines that share an id; numbered objects, parallel lists, lists inside lists, JSON inside strings."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice, pairwise
from statistics import median
from typing import Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.samples import Kind, SampleFile
from prefixguard.induce.search.columns import INSIDE, Node, is_attributes, is_time, opened_json, written
from prefixguard.induce.search.evidence import MOST_EVENTS, Evidence
from prefixguard.induce.search.given import given_layouts
from prefixguard.induce.search.globs import narrow
from prefixguard.induce.search.places import Place, find, first, spell
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import Adapter, canonical
from prefixguard.stepview.events import expand, opened
from prefixguard.stepview.reorder import sort_key
from prefixguard.stepview.values import TABLES

SCHEMA = "prefixguard/adapter/v1"
#: Layouts that families are asked about.
MOST_LAYOUTS = 14
#: Entries that a numbered object may have in a spec.
_MOST_NUMBERED = 120
_DEEPEST = 9
#: Layouts that are tried with what stands beside their events.
_MOST_WIDER = 6
#: Share of the elements that have the id which gathers them into runs; the others are of no run, such as heartbeats.
LEAST_GROUPED = 0.85
#: Share of all elements that the files with that id must hold.
LEAST_SHARED = 0.5
#: Share of the events' text that a field of JSON must hold for being read as if it were no text.
_PAYLOAD = 0.5
#: What tells how a run went is no event of it.
_OF_NO_EVENT = (Meaning.OUTCOME, Meaning.MISTAKE, Meaning.HARNESS)


@dataclass(slots=True, eq=False)
class Layout:
    """A way to find runs and events. container, events: of the spec. events_of: raw events of the runs that are looked
    at, as rules see them. prior: the higher, the sooner it is tried. why: a sentence. backwards: share of neighbouring
    events whose times are in the other order, where sorting would mend it."""

    container: dict[str, Any]
    events: Any
    prior: float
    why: str
    events_of: list[list[Any]] = field(default_factory=list)
    share: float = 0.0
    backwards: float = 0.0
    _node: Node | None = field(default=None, init=False)

    def spec(self, rules: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
        """A spec of this layout with these rules."""
        return {
            "schema": SCHEMA, "name": "candidate", "version": "1.0.0", "description": "", "container": self.container,
            "run": {}, "events": self.events, **more, "rules": written(list(rules)),
        }  # fmt: skip

    @property
    def likely(self) -> float:
        """The prior of its candidates: less where the elements of a document that is a list make one run together, or
        elements are left out."""
        of = self.events if isinstance(self.events, dict) else {"path": self.events}
        path = next(iter((*of.get("flatten", ()), *of.get("zip", {}).values(), of.get("path"))))
        crossed = "runs" not in self.container and isinstance(path, str) and path.startswith("$[*]") and path != "$[*]"
        inner = isinstance(self.events, dict) and "flatten" in self.events and path == "$[*]"
        left = 1 - self.share if "group_by" in self.container else 0.0
        return (-1.5 if crossed or inner else 0.5 - 10 * left) - 3 * self.backwards

    @property
    def sight(self) -> str:
        """What is seen of the samples: the container, and the first events of its runs, in what and in which order."""
        events = [[hash(canonical(event)) for event in run[:60]] for run in self.events_of[:6]]
        nested = isinstance(self.events, dict) and "flatten" in self.events
        return repr((self.container, nested, [len(run) for run in self.events_of], events))

    def node(self) -> Node:
        """All events of all runs."""
        if self._node is not None:
            return self._node
        events = [e for run in self.events_of for e in run]
        runs = [i for i, run in enumerate(self.events_of) for _ in run]
        self._node = Node("", events, list(range(len(events))), runs)
        return self._node


def layouts(evidence: Evidence) -> list[Layout]:
    """The likeliest layouts of the samples' JSON, best first."""
    if "layouts" not in evidence.cache:
        found = given_layouts([*_listed(evidence), *_grouped(evidence)], evidence)
        out: dict[str, Layout] = {}
        for layout in sorted(found, key=lambda one: -one.prior):
            if len(out) >= MOST_LAYOUTS:
                break
            if _open(layout, evidence):
                out.setdefault(layout.sight, layout)
        for layout in list(out.values())[:_MOST_WIDER]:
            for wide in (*_wider(layout, evidence), *_decoded(layout), *_ordered(layout)):
                if wide.events_of or _open(wide, evidence):
                    out.setdefault(wide.sight, wide)
        evidence.cache["layouts"] = sorted(out.values(), key=lambda one: -one.prior)
    ready: list[Layout] = evidence.cache["layouts"]
    return ready


def _open(layout: Layout, evidence: Evidence) -> bool:
    """Reads the events of the layout's runs by the interpreter; False where there are too few to be runs."""
    try:
        adapter = Adapter(layout.spec([{"emit": "skip"}]))
    except PrefixGuardError:
        return False
    layout.events_of = []
    source = adapter.program.events
    for run in evidence.runs(adapter):
        try:
            raw = evidence.events(adapter, run)
            inner = [e for element in raw for e, *_ in expand(source, run.scope, element)] if source.levels else raw
        except PrefixGuardError:
            continue
        inner = [opened(e, source) for e in inner[:MOST_EVENTS]]
        objects = [e for e in inner if isinstance(e, dict)]
        inner = objects if len(objects) >= 0.5 * len(inner) else inner  # a few of other types are no events
        if inner:
            layout.events_of.append(inner)
    lengths = [len(one) for one in layout.events_of]
    if not lengths or sum(lengths) < 3:
        return False
    flat = _flat([event for events in layout.events_of for event in events])
    if flat and not source.unflatten:
        base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
        layout.events = {**base, "unflatten": flat}
        return _open(layout, evidence)
    middle = median(lengths)
    layout.prior += 1.0 if middle >= 3 else 0.4 if middle >= 2 else 0.0
    layout.prior += 0.1 * min(5, len(lengths))
    return True


def _flat(events: Sequence[Any]) -> list[str]:
    """Fields of the events that spell an object flat: as pairs of key and value, or under names with dots in them."""
    found: Counter[str] = Counter()
    for event in events:
        for name, value in event.items() if isinstance(event, dict) else ():
            keys = list(value) if isinstance(value, dict) else []
            found[name] += is_attributes(value) or sum("." in key for key in keys) > 0.5 * max(1, len(keys))
    return [spell("@", (name,)) for name, n in found.items() if n >= 0.3 * len(events)]


@dataclass(slots=True)
class _ListPlace:
    """A list at one place over all documents. mass: characters of texts inside. lengths, files: of its instances.
    form: list, numbered (an object whose keys count), named (an object of alike objects), columns (parallel lists)."""

    mass: int = 0
    lengths: list[int] = field(default_factory=list)
    files: dict[str, None] = field(default_factory=dict)
    form: str = "list"
    columns: Counter[str] = field(default_factory=Counter)
    largest: int = 0


def _survey(documents: Sequence[tuple[SampleFile, Any]]) -> tuple[dict[Place, _ListPlace], int]:
    places: dict[Place, _ListPlace] = defaultdict(_ListPlace)
    seen: set[int] = set()

    def walk(value: Any, place: Place, path: str) -> int:
        if isinstance(value, str):
            inner = opened_json(value) if len(value) > 40 and len(place) <= 5 and INSIDE not in place else None
            if inner is not None and not (place and place[-1] is None):
                walk(inner, (*place, INSIDE), path)
            if hash(value) in seen:
                return 0
            seen.add(hash(value))
            return min(len(value), 2000) if len(value) > 3 else 0
        if len(place) > _DEEPEST:
            return 0
        if isinstance(value, dict):
            form = _form(value)
            if form:
                mass = sum(walk(item, (*place, None), path) for item in value.values())
                _note(places[place], mass, len(value), path, form)
                return mass
            mass = sum(walk(item, (*place, str(key)), path) for key, item in value.items())
            columns = {k: len(v) for k, v in value.items() if isinstance(v, list) and v and _plain(v)}
            if len(columns) >= 2 and max(columns.values()) - min(columns.values()) <= 1 and max(columns.values()) >= 2:
                one = places[(*place, "\x00columns")]
                _note(one, mass, max(columns.values()), path, "columns")
                one.columns.update(columns.keys())
            return mass
        if is_attributes(value):
            return sum(walk(item["value"], (*place, item["key"]), path) for item in value)
        if isinstance(value, list):
            mass = sum(walk(item, (*place, None), path) for item in value)
            if any(isinstance(item, dict | list) for item in value[:20]):
                _note(places[place], mass, len(value), path, "list")
            return mass
        return 0

    total = sum(walk(value, (), file.path) for file, value in documents)
    return places, total


def _surveyed(
    kind: Kind, documents: Sequence[tuple[SampleFile, Any]], evidence: Evidence
) -> tuple[dict[Place, _ListPlace], int]:
    if ("survey", kind) not in evidence.cache:
        evidence.cache["survey", kind] = _survey(documents)
    found: tuple[dict[Place, _ListPlace], int] = evidence.cache["survey", kind]
    return found


def _note(one: _ListPlace, mass: int, n: int, path: str, form: str) -> None:
    one.mass += mass
    one.lengths.append(n)
    one.files[path] = None
    one.form = form
    one.largest = max(one.largest, n)


def _plain(items: list[Any]) -> bool:
    return not any(isinstance(item, dict) for item in items[:20])


def _form(value: dict[str, Any]) -> str:
    """Is the object a list in disguise: its keys count, or are ids of things alike?"""
    if len(value) < 2 or not all(isinstance(item, dict | list) for item in value.values()):
        return ""
    keys = list(value)
    if all(key.isdecimal() for key in keys):
        return "numbered"
    shapes = [frozenset(item) if isinstance(item, dict) else frozenset() for item in list(value.values())[:50]]
    common, union = frozenset.intersection(*shapes), frozenset.union(*shapes)
    alike = len(common) >= 2 and len(common) >= 0.6 * len(union)
    return "named" if alike and (sum(any(c.isdigit() for c in key) for key in keys) >= 0.8 * len(keys)) else ""


def _documents(evidence: Evidence, kind: Kind) -> list[tuple[SampleFile, Any]]:
    if kind is Kind.ZIP:
        archives = [file for file in evidence.files if file.kind is kind]
        return [(file, value) for file in archives for _, value in sorted(file.value.items())]
    files = [file for file in evidence.files if file.kind is kind and file.path in evidence.values]
    if kind is Kind.JSONL:
        return [(file, line) for file in files for line in islice(evidence.values[file.path], 1200)]
    return [(file, evidence.values[file.path]) for file in files]


def _listed(evidence: Evidence) -> Iterator[Layout]:
    """A run is a document or a line, or stands in a list of it."""
    for kind in (Kind.JSON, Kind.JSONL, Kind.ZIP):
        documents = _documents(evidence, kind)
        if not documents:
            continue
        places, total = _surveyed(kind, documents, evidence)
        ranked = sorted(places.items(), key=lambda kv: -kv[1].mass)[:14]
        for place, one in ranked:
            share = one.mass / max(1, total)
            if share < 0.04 or one.largest < 2:
                continue
            others = [file.path for file in evidence.samples.files if file.path not in one.files]
            container: dict[str, Any] = {"format": kind.value, "files": narrow(one.files, others)}
            levels = [place[:i] for i, step in enumerate(place) if step is None and INSIDE not in place[:i]]
            for level in [None, *levels]:
                runs = () if level is None else (*level, None)
                mine = dict(container) if level is None else {**container, "runs": spell("$", runs)}
                base = share - 0.15 * sum(step is None for step in place[len(runs) :]) + 0.3 * (level is not None)
                base -= 0.3 * (median(one.lengths) > 400)
                for events in _events(place[len(runs) :], one):
                    yield Layout(mine, events, 2 * base, f"{share:.0%} of the text", share=share)


def _events(below: Place, one: _ListPlace) -> Iterator[Any]:
    """Ways in which a spec spells the list at a place of the run."""
    if one.form == "columns":
        inner = below[:-1]
        names = [k for k, n in one.columns.items() if n >= min(2, len(one.lengths))]
        rare = [k for k in names if one.columns[k] < len(one.lengths)]
        found = {"zip": {k: spell("$", (*inner, k, None)) for k in names}, "pad": names}
        yield {**found, "optional": rare} if rare else found
        return
    if INSIDE in below:
        at = below.index(INSIDE)
        outer, inner = below[:at], below[at + 1 :]
        if None in outer or None in inner:
            return
        path = spell("$", outer)
        yield {"path": {"json": path} if not inner else {"json": path, "path": spell("$", inner)}}
        return
    path = spell("$", (*below, None))
    if one.form == "numbered" and None not in below:
        yield {"path": {"list": [f'{spell("$", below)}["{i}"]' for i in range(_MOST_NUMBERED)]}}
        return
    yield path
    if None in below:
        at = max(i for i, step in enumerate(below) if step is None)
        yield {"flatten": [spell("$", below[: at + 1]), spell("@", (*below[at + 1 :], None))]}


def _ordered(layout: Layout) -> Iterator[Layout]:
    """The layout with its events in the order of a time that most have, where they are in another one."""
    node = layout.node()
    for one in node.fields.values():
        if one.share < 0.8 or one.kind not in ("number", "id", "word", "text") or not one.place:
            continue
        if not all(is_time(value) for value in islice(one.values.values(), 50)):
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


def _decoded(layout: Layout) -> Iterator[Layout]:
    """The layout with a field opened that holds most of what the events say as the text of an object."""
    node = layout.node()
    whole = sum(one.mass for one in node.fields.values())
    for one in node.fields.values():
        objects = sum(isinstance(opened_json(value), dict) for value in one.values.values())
        if len(one.place) == 1 and objects >= 0.7 * len(node.elements) and one.mass > _PAYLOAD * whole:
            base = layout.events if isinstance(layout.events, dict) else {"path": layout.events}
            events, why = {**base, "decode": one.name}, f"{layout.why}, {one.name} opened"
            yield Layout(layout.container, events, layout.prior + 0.05, why, share=layout.share)


def _key_after(last: Any, value: Any) -> Any:
    """The place in order of an event with this time: without one, that of the event before."""
    return sort_key(value, last)


def _wider(layout: Layout, evidence: Evidence) -> Iterator[Layout]:
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
            first_of = {"object": {"items": {"list": [{"object": {"asked": text}}]}}}
            both = {"list": [first_of, {"object": {"items": base}}]}
            wide = {"flatten": [outer, both, "@.items[*]"]}
            yield Layout(
                layout.container, wide, layout.prior + 0.05, f"{layout.why}, {text} before", share=layout.share
            )
    if isinstance(events, str) and events.endswith("[*]") and "[*]" not in events[:-3]:
        runs = [run.found.run for run in evidence.runs(adapter)]
        for path, is_like in [] if "group_by" in layout.container else _closing(runs, events, layout, evidence.names):
            last = {"list": [path if is_like else {"object": {"closing": path}}]}
            both = {"list": [{"object": {"items": events[:-3]}}, {"object": {"items": last}}]}
            wide = {"flatten": [both, "@.items[*]"]}
            yield Layout(
                layout.container, wide, layout.prior + 0.05, f"{layout.why}, {path} behind", share=layout.share
            )


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


def _grouped(evidence: Evidence) -> Iterator[Layout]:
    """Lines, or elements of lines and documents, are events; a run is those that share an id, or a file."""
    for kind in (Kind.JSONL, Kind.JSON, Kind.TEXT):
        documents = _documents(evidence, kind) if kind is not Kind.TEXT else _csv_tables(evidence)
        if not documents:
            continue
        places, total = _surveyed(kind, documents, evidence)
        elements: list[Place] = [()] if kind is not Kind.JSON else []
        lists = sorted(places.items(), key=lambda kv: -kv[1].mass)
        elements += [
            (*p, None) for p, one in lists if one.mass > 0.5 * total and INSIDE not in p and one.form != "columns"
        ][: 3 if kind is not Kind.TEXT else 0]
        for place in elements:
            held = [
                (f.path, one) for f, value in documents for one in (find(value, place[:-1]) if place else [[value]])
            ]
            below = [
                ((path, i if place else 0), e) for i, (path, one) in enumerate(held)
                for e in find(one, (None,)) if isinstance(e, dict)
            ]  # fmt: skip
            if len(below) < 4:
                continue
            holding = dict.fromkeys(path for (path, _), _ in below)
            others = [file.path for file in evidence.samples.files if file.path not in holding]
            form = "csv" if kind is Kind.TEXT else kind.value
            container: dict[str, Any] = {"format": form, "files": narrow(holding, others)}
            if place:
                container["elements"] = spell("@", place)
            for group, worth, share, paths in _groups(below, evidence):
                prior = 1.4 + worth - 0.1 * len(place) - 0.5 * (kind is Kind.JSON)
                rest = [file.path for file in evidence.samples.files if file.path not in paths]
                mine = {**container, "files": narrow(paths, rest), "group_by": group}
                yield Layout(mine, "$.events[*]", prior, f"grouped by {group}", share=share)
            if kind is not Kind.JSON:
                more = 1.3 + 0.2 * (len(holding) > 1)
                yield Layout({**container, "group_by": {"file": "path"}}, "$.events[*]", more, "a file", share=1.0)


def _csv_tables(evidence: Evidence) -> list[tuple[SampleFile, Any]]:
    """Rows of the tables with one head, each with its file; of several heads the one with most rows."""
    files = [file for file in evidence.files if file.kind is Kind.TEXT and file.path.lower().endswith(".csv")]
    found: dict[tuple[str, ...], list[tuple[SampleFile, Any]]] = {}
    for file in files:
        rows = TABLES["csv"](file.text)
        if rows and len(rows[0]) > 1:
            found.setdefault(tuple(rows[0]), []).extend((file, row) for row in rows)
    return max(found.values(), key=len, default=[])


#: Where a thing stands: the file, and which list of it.
_Holder = tuple[str, int]


def _groups(
    elements: Sequence[tuple[_Holder, dict[str, Any]]], evidence: Evidence
) -> list[tuple[Any, float, float, Mapping[str, None]]]:
    """Fields that gather elements into runs: ids that several share, in every element, and that differ. What most of
    the lists have, such as names of speakers, gathers parts of different runs. With the
    worth of each, the share of the elements that have it, and the files that hold it."""
    values: dict[Place, list[tuple[_Holder, Any]]] = defaultdict(list)
    holders = len({holder for holder, _ in elements})
    for holder, element in elements:
        for place in _id_places(element):
            value = first(element, place)
            if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= 80:
                values[place].append((holder, value))
    out: list[tuple[Any, float, float, Mapping[str, None]]] = []
    sizes = Counter(path for (path, _), _ in elements)
    for place, found in values.items():
        counts = Counter(str(value) for _, value in found)
        paths = dict.fromkeys(path for (path, _), _ in found)
        n = sum(sizes[path] for path in paths)
        if n < LEAST_SHARED * len(elements):
            continue
        if len(found) < 0.7 * n or len(counts) < 2 or n / len(counts) < 2.5:
            continue
        mine = [one for one in elements if one[0][0] in paths]
        other = _completing(place, counts, mine) if len(found) < 0.97 * n else None
        if len(found) < LEAST_GROUPED * n and other is None:
            continue
        digits = sum(any(c.isdigit() for c in value) for value in counts) / len(counts)
        long = median(len(value) for value in counts) >= 6
        texts = all(isinstance(value, str) for _, value in found)
        held_by: dict[str, set[_Holder]] = defaultdict(set)
        for holder, value in found:
            held_by[str(value)].add(holder)
        if holders >= 3 and sum(map(len, held_by.values())) > 0.5 * holders * len(held_by):
            continue
        files = [{path for path, _ in holding} for holding in held_by.values()]
        alone = sum(len(paths) == 1 for paths in files) / len(files)  # an id of a run stays in its file
        path = spell("@", place)
        named = affinity(path, Meaning.RUN_ID) if evidence.names else 0.5
        worth = 0.4 * (digits > 0.7) + 0.3 * long + 0.2 * texts + 0.6 * alone + 0.6 * named - 0.1 * len(place)
        if (texts and digits > 0.5) or alone > 0.9 or named >= 0.8:  # a number that comes again elsewhere is a count
            group = path if other is None else {"first": [path, spell("@", other)]}
            share = 1.0 if other is not None else len(found) / n
            out.append((group, worth - 0.6 * (alone < 0.7), share, paths))
    return sorted(out, key=lambda item: -item[1])[:3]


def _completing(
    place: Place, known: Mapping[str, int], elements: Sequence[tuple[_Holder, dict[str, Any]]]
) -> Place | None:
    """The place of the id in elements that have it elsewhere: the first line of a run calls it otherwise."""
    without = [element for _, element in elements if first(element, place) is None]
    hits = Counter(p for element in without for p in _id_places(element) if str(first(element, p)) in known)
    return next((p for p, n in hits.most_common(1) if n >= 0.9 * len(without)), None)


def _id_places(element: dict[str, Any]) -> Iterator[Place]:
    for key, value in islice(element.items(), 60):
        if isinstance(value, dict):
            yield from ((str(key), str(inner)) for inner in islice(value, 30))
        else:
            yield (str(key),)
