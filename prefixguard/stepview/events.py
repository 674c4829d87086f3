"""Where the events of a run come from, and in which order: path, zip, split, flatten, and what modifies them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.errors import TraceError
from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.conditions import Condition, compile_cases, compile_when
from prefixguard.stepview.paths import MISSING, Getter, Scope, describe, getter, is_multiple, is_path, parse_path
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.spellings import unflatten
from prefixguard.stepview.splitter import Split
from prefixguard.stepview.values import compile_value, patterns, read_json

_MODIFIERS = ("order_by", "window", "drop_last", "until", "keep", "drop_repeats", "decode", "unflatten", "comment")


@dataclass(frozen=True, slots=True)
class EventSource:
    """The compiled `events` of a spec.

    listing: all events of a whole run, or MISSING. split: for runs that are text. levels: getters from an outer
    element to the inner ones. Modifiers as in the spec. base, parent, grandparent: what @, ^ and ^^ stand for.
    """

    base: Base
    parent: Base
    grandparent: Base | None
    listing: Callable[[Scope], Any]
    split: Split | None = None
    levels: tuple[Getter, ...] = ()
    order_by: Getter | None = None
    window: int = 64
    drop_last: int = 0
    until: Condition | None = None
    keep: bool = False
    drop_repeats: Getter | None = None
    decode: tuple[str, ...] = ()
    unflatten: tuple[str, ...] = ()

    def feed(self, scope: Scope) -> list[Any]:
        """What a parser is fed for a whole run, one after the other: its events, or its lines of text."""
        found = self.listing(scope)
        if isinstance(found, str):
            return found.splitlines(keepends=True)
        return found[: len(found) - self.drop_last] if isinstance(found, list) else []


def compile_events(spec: Any, site: Site) -> EventSource:
    """The `events` part of a spec. AdapterError says what is wrong with it."""
    if is_path(spec):
        spec = {"path": spec}
    if not isinstance(spec, dict):
        raise site.error('events is a path ("$.messages[*]") or an object with path, zip, split or flatten.')
    kinds = [name for name in ("path", "zip", "split", "flatten") if name in spec]
    if len(kinds) != 1:
        raise site.error(f"events has exactly one of path, zip, split, flatten; here: {' and '.join(kinds) or 'none'}.")
    kind = kinds[0]
    site.keys(spec, (kind, *_MODIFIERS, *(("pad", "optional") if kind == "zip" else ())))
    source = {"path": _path, "zip": _zip, "split": _split, "flatten": _flatten}[kind](spec, site)
    inner = site.with_roots({"@": source.base, "^": source.parent})
    said = "keep is true or false and goes with until: is the event that stops the run its last?"
    keep = inner.choice(spec, "keep", (False, True), said)
    if "keep" in spec and "until" not in spec:
        raise site.at("keep").error(said)
    return replace(
        source,
        order_by=inner.optional(spec, "order_by", compile_value),
        drop_repeats=inner.optional(spec, "drop_repeats", compile_value),
        until=inner.optional(spec, "until", compile_when),
        keep=keep,
        drop_last=_number(spec, "drop_last", 0, site),
        window=_number(spec, "window", 64, site),
        decode=fields_of(spec.get("decode", []), site.at("decode"), "@.payload"),
        unflatten=fields_of(spec.get("unflatten", []), site.at("unflatten"), "@.attributes"),
    )


def _number(spec: dict[str, Any], name: str, default: int, site: Site) -> int:
    number = spec.get(name, default)
    if name in spec and (type(number) is not int or not 1 <= number <= 10_000):
        raise site.at(name).error(f"a whole number from 1 to 10000, not {number!r}.")
    return int(number)


def fields_of(spec: Any, site: Site, example: str) -> tuple[str, ...]:
    """Names of fields of the event."""
    fields = []
    for name in spec if isinstance(spec, list) else [spec]:
        root, steps = parse_path(name, site.where)
        if root != "@" or len(steps) != 1 or steps[0][0] != "name":
            raise site.error(f'it names a field of the event, such as "{example}".')
        fields.append(steps[0][1])
    return tuple(fields)


def _path(spec: dict[str, Any], site: Site) -> EventSource:
    here = site.at("path")
    if isinstance(spec["path"], list):
        return _cases(spec["path"], here)
    path = spec["path"]
    get = compile_value(path, here.listing())
    root_and_steps = parse_path(path[:-3], here.where) if is_path(path) and path.endswith("[*]") else None
    if root_and_steps is not None and not is_multiple(root_and_steps[1]):
        get = getter(*root_and_steps)  # the array itself, so that a value that is no array is refused by name
    return EventSource(here.base_of(path), site.base("$"), None, get)


def _cases(spec: list[Any], site: Site) -> EventSource:
    """Where the events are, by what the run looks like: the first case whose `when` holds."""
    cases = compile_cases(spec, site, "$", "$.messages", lambda path, here: compile_value(path, here.listing()))

    def get(scope: Scope) -> Any:
        return next((path(scope) for when, path in cases if when(scope)), MISSING)

    found = [site.at(f"[{i}].path").base_of(case["path"]).place for i, case in enumerate(spec)]
    places = tuple(place for place in found if place is not None)
    base = Base(places[0], also=places[1:]) if places else Base(None)
    return EventSource(base, site.base("$"), None, get)


def _zip(spec: dict[str, Any], site: Site) -> EventSource:
    columns = spec["zip"]
    here = site.at("zip")
    if not isinstance(columns, dict) or not columns:
        raise here.error('zip holds names and paths: {"thought": "$.thoughts[*]", "action": "$.actions[*]"}.')
    pads = spec.get("pad", [])
    optional = spec.get("optional", [])
    for label, names in (("pad", pads), ("optional", optional)):
        if not isinstance(names, list) or not all(name in tuple(columns) for name in names):
            raise site.at(label).error(f"a list of names that zip has: {', '.join(columns)}.")
    getters = {name: compile_value(path, here.at(name).listing()) for name, path in columns.items()}
    bases = {name: here.at(name).base_of(path).place for name, path in columns.items()}
    places = {name: place for name, place in bases.items() if place is not None}

    def listing(scope: Scope) -> Any:
        found: dict[str, list[Any]] = {}
        absent = []
        for name, get in getters.items():
            value = get(scope)
            if value is MISSING or value is None:
                if name not in optional:
                    absent.append(name)
                continue
            if not isinstance(value, list):
                raise TraceError(f"{columns[name]} is {describe(value)}, not a list")
            found[name] = value
        if absent:
            if not any(found.values()):
                return MISSING
            if not set(absent) <= set(pads):
                raise TraceError(f"{columns[absent[0]]} is not there, while {columns[next(iter(found))]} is")
        lengths = {name: len(items) for name, items in found.items()}
        strict = {name: n for name, n in lengths.items() if name not in pads}
        total = max((strict or lengths).values(), default=0)
        for name, n in lengths.items():
            if n > total or (n < total and name not in pads):
                other = next(o for o, length in lengths.items() if length == total)
                raise TraceError(
                    f"parallel lists of different length: {columns[name]} has {n}, {columns[other]} has {total}; "
                    'say which may be shorter with "pad"'
                )
        return [{name: items[i] for name, items in found.items() if i < len(items)} for i in range(total)]

    return EventSource(Base(None, columns=places), site.base("$"), None, listing)


def _split(spec: dict[str, Any], site: Site) -> EventSource:
    here = site.at("split")
    example = 'split is {"of": "$.log", "head": "(?P<kind>Thought|Action) \\\\d+: "}.'
    part = here.keys(spec["split"], ("of", "head", "cut"), example, needs=("head",))
    of = part.get("of", "$.text")
    get = compile_value(of, here.at("of").listing())
    cuts = patterns(part.get("cut", []), here.at("cut"))
    base = here.base_of(of)
    is_cut = bool(cuts) or base.is_cut
    if isinstance(of, dict) and "cut" in of:
        base, is_cut = here.base_of(of.get("of")), True
    head = Pattern(part["head"], here.at("head").where)
    if "body" in head.names:
        raise here.at("head").error("a group cannot be called body: that is the text up to the next head.")
    return EventSource(Base(base.place, is_text=True, is_cut=is_cut), site.base("$"), None, get, Split(head, cuts))


def _flatten(spec: dict[str, Any], site: Site) -> EventSource:
    paths = spec["flatten"]
    here = site.at("flatten")
    if not isinstance(paths, list) or not 2 <= len(paths) <= 3:
        raise here.error('flatten holds two or three paths from outside in: ["$.rounds[*]", "@.calls[*]"].')
    first = compile_value(paths[0], here.at("[0]").listing())
    bases = [site.base("$"), here.base_of(paths[0])]
    levels = []
    for i, path in enumerate(paths[1:], 1):
        inner = here.with_roots({"@": bases[-1], "^": bases[-2]})
        levels.append(compile_value(path, inner.at(f"[{i}]").listing()))
        bases.append(inner.base_of(path))
    return EventSource(bases[-1], bases[-2], bases[-3], first, levels=tuple(levels))


def expand(source: EventSource, scope: Scope, element: Any) -> list[tuple[Any, Any, Any]]:
    """The inner events of an outer one, each with its parent and grandparent."""
    events = [(element, scope.run, MISSING)]
    for level in source.levels:
        inner: list[tuple[Any, Any, Any]] = []
        for event, parent, _ in events:
            scope.event, scope.parent = event, parent
            found = level(scope)
            if isinstance(found, list):
                inner.extend((item, event, parent) for item in found)
        events = inner
    return events


def opened(event: Any, source: EventSource) -> Any:
    """The event with the fields of `decode` read as the JSON that they spell, and those of `unflatten` as nested JSON.
    The event itself is not changed; a text that is no JSON stays as it is."""
    if not isinstance(event, dict):
        return event
    found = dict(event)
    for name in source.decode:
        if isinstance(found.get(name), str) and (value := read_json(found[name])) is not MISSING:
            found[name] = value
    for name in source.unflatten:
        if name in found:
            found[name] = unflatten(found[name])
    return found
