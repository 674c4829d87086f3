"""What the compilation of one part of a spec knows (where it is, what its roots stand for, what it reads), and the
refusal to read into a record what a live run does not show.

Every path is resolved to a place: a root and steps from it. Two places overlap when one contains the other. Places that
`hidden` names, and places that `outcome` reads, may not be read into a record (PrefixGuard 4.1: the view of a step
holds only what was there when the step was made). What `outcome` reads may be read if what gives it away is cut out
first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from prefixguard.errors import AdapterError
from prefixguard.stepview.paths import Step, is_path, parse_path
from prefixguard.stepview.schema import MOST_COMPARISONS, MOST_READINGS

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DataPlace:
    """Somewhere in the data. root: `document`, `run`, `file`, or `sibling:` and its template."""

    root: str
    steps: tuple[Step, ...] = ()

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
class PlaceReading:
    """One reading of a place by the spec.

    where: which part of the spec. is_cut: a regular expression takes something out before it is used.
    looks_inside: False for tests of mere presence or type, which learn nothing of what is inside.
    spelled: the path as the spec has it. of_run: the path starts at the run.
    """

    place: DataPlace
    where: str
    is_cut: bool = False
    looks_inside: bool = True
    spelled: str = ""
    of_run: bool = False

    def __str__(self) -> str:
        return self.spelled or str(self.place)


@dataclass(slots=True)
class Readings:
    """All readings of a spec, by what they serve."""

    record: list[PlaceReading] = field(default_factory=list)
    outcome: list[PlaceReading] = field(default_factory=list)
    hidden: list[PlaceReading] = field(default_factory=list)
    waived: list[DataPlace] = field(default_factory=list)

    def refuse_hidden(self, name: str) -> None:
        """AdapterError for the first reading of a record that a live run could not make. name: of the adapter."""
        others = len(self.hidden) + len(self.waived) + len(self.outcome)
        if len(self.record) * others > MOST_COMPARISONS:
            raise AdapterError(
                f"adapter {name}: {len(self.record):,} places of records and {others:,} that are hidden, waived or the "
                "outcome's are too many to compare. Make the spec smaller."
            )
        for one in self.record:
            if any(overlaps(one.place, place) for place in self.waived):
                continue
            here = f"adapter {name}, {one.where}: reads {one}, which overlaps"
            for hidden in self.hidden:
                if overlaps(one.place, hidden.place, one.looks_inside):
                    raise AdapterError(
                        f"{here} the hidden {hidden}: it is not there while the run is live. Read a narrower path, or "
                        "take the path out of `hidden` if it is visible."
                    )
            for other in () if one.is_cut else self.outcome:
                if overlaps(one.place, other.place, one.looks_inside):
                    raise AdapterError(
                        f"{here} {other} that the outcome is read from: a monitor would learn the answer. Take out "
                        'what gives it away with {"cut": RE, "of": ...}, or state under `waived` why the path is '
                        'harmless: {"path": ..., "reason": ...}.'
                    )


def _may_be_same(a: Step, b: Step) -> bool:
    wild = ("all", "filter")
    if a[0] in wild or b[0] in wild:
        return True
    if a[0] == b[0] == "index":
        return bool(a[1] == b[1]) or (a[1] < 0) != (b[1] < 0)
    return a == b


def overlaps(a: DataPlace, b: DataPlace, looks_inside: bool = True) -> bool:
    """Whether one place is inside the other (or the same). Without `looks_inside`: whether `a` is inside `b`."""
    if a.root != b.root or (not looks_inside and len(a.steps) < len(b.steps)):
        return False
    return all(_may_be_same(x, y) for x, y in zip(a.steps, b.steps, strict=False))


@dataclass(frozen=True, slots=True)
class Base:
    """What a root stands for in the data.

    place: where it is; None where it is nowhere in the data. columns: place of each name in it (rows of a zip).
    is_text: a piece of text that a split made: `body` is that text, other names are groups of its head.
    is_cut: what gives the outcome away was cut out already. also: where else it may be, by cases.
    """

    place: DataPlace | None
    columns: Mapping[str, DataPlace] | None = None
    is_text: bool = False
    is_cut: bool = False
    also: tuple[DataPlace, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the spec that is being compiled.

    where: for messages ("rules[2].action"). roots: place that each root of a path stands for here; a root that is not
    in it cannot be used here. sink: readings go there. in_record: the value goes into a record, so it must be there
    live and its cost bounded. all_parts: a `join` with an absent part is absent (ids). is_cut: inside a `cut`.
    is_structure: a list whose elements are read one by one, not text of a record.
    fields: names of record fields that may be tested (status rules). in_test: part of a condition.
    """

    where: str
    roots: Mapping[str, Base]
    sink: list[PlaceReading] = field(default_factory=list)
    in_record: bool = False
    all_parts: bool = False
    is_cut: bool = False
    looks_inside: bool = True
    is_structure: bool = False
    fields: tuple[str, ...] = ()
    in_test: bool = False

    def at(self, part: str) -> Site:
        """The same, one part deeper."""
        dot = "." if self.where and not part.startswith("[") else ""
        return replace(self, where=f"{self.where}{dot}{part}")

    def listing(self) -> Site:
        """For the lists that events and elements come from: only a list inside something hidden is refused."""
        return replace(self, is_structure=True)

    def with_roots(self, roots: Mapping[str, Base]) -> Site:
        """The same, where these roots stand for something else, or can be used too."""
        return replace(self, roots={**self.roots, **roots})

    def error(self, message: str) -> AdapterError:
        """The error that something is wrong here."""
        return AdapterError(f"{self.where}: {message}")

    def keys(self, spec: Any, allowed: Sequence[str], example: str = "", needs: Sequence[str] = ()) -> dict[str, Any]:
        """The spec, which is an object with these keys only. AdapterError for any other key; with the example, for
        what is no object or lacks what it needs."""
        if not isinstance(spec, dict) or not spec.keys() >= set(needs):
            raise self.error(example)
        for key in spec:
            if key not in allowed:
                raise self.error(f"unknown key {key!r}; it can have: {', '.join(allowed)}.")
        return spec

    def optional(self, spec: Mapping[str, Any], key: str, compiled: Callable[[Any, Site], T]) -> T | None:
        """What becomes of the value under a key; None where the spec has no such key."""
        return compiled(spec[key], self.at(key)) if key in spec else None

    def choice(self, spec: Mapping[str, Any], key: str, options: tuple[Any, ...], said: str = "") -> Any:
        """The value under a key: one of the options, and the first where there is none. said: ends the error."""
        value = spec.get(key, options[0])
        if not any(type(value) is type(one) and value == one for one in options):
            raise self.at(key).error(said or " or ".join(f'"{one}"' for one in options) + ".")
        return value

    def base(self, root: str) -> Base:
        """What a root stands for here. AdapterError where it cannot be used."""
        if root not in self.roots:
            seen = " ".join(sorted(self.roots)) or "none"
            raise self.error(f"{root} cannot be used here; roots that can: {seen}.")
        return self.roots[root]

    def resolve(self, root: str, steps: tuple[Step, ...]) -> tuple[DataPlace, ...]:
        """The places that a path reads; none where it is not in the data (a position, a key)."""
        if root in ("$key", "$index", "@index"):
            return ()
        base = self.base(root)
        name = steps[0][1] if steps and steps[0][0] == "name" else None
        if base.columns is not None:
            if name is not None and name in base.columns:
                column = base.columns[name]
                return (DataPlace(column.root, column.steps + steps[1:]),)
            return tuple(base.columns.values()) if name is None else ()
        if base.place is None:
            return ()
        if base.is_text:
            return () if self.in_test and name not in (None, "body") else (base.place,)
        return tuple(DataPlace(place.root, place.steps + steps) for place in (base.place, *base.also))

    def note(self, places: Sequence[DataPlace], is_cut: bool = False, spelled: str = "", of_run: bool = False) -> None:
        """Write down that these places are read here. AdapterError beyond `MOST_READINGS`."""
        if len(self.sink) + len(places) > MOST_READINGS:
            raise self.error(f"the spec reads more than {MOST_READINGS:,} places. Make it smaller.")
        cut = self.is_cut or is_cut or self.is_structure
        looks_inside = self.looks_inside and not self.is_structure
        self.sink.extend(PlaceReading(place, self.where, cut, looks_inside, spelled, of_run) for place in places)

    def base_of(self, spec: Any) -> Base:
        """What the elements of a value (`each`) stand for: the place of its path, or of what it is made from."""
        if is_path(spec):
            root, steps = parse_path(spec, self.where)
            places = self.resolve(root, steps)
            is_cut = root in self.roots and self.roots[root].is_cut
            return Base(places[0], is_cut=is_cut, also=places[1:]) if places else Base(None)
        for name in (
            ("json", "text", "otlp", "of", "elements", "first", "join", "list") if isinstance(spec, dict) else ()
        ):
            inner = spec.get(name)
            if isinstance(inner, list) and inner:
                inner = inner[0]
            if is_path(inner) or isinstance(inner, dict):
                return self.base_of(inner)
        return Base(None)
