"""What the compilation of one part of a spec knows: where it is, what its roots stand for, and what it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.stepview.paths import Step, is_path, parse_path
from prefixguard.stepview.spec_bounds import MOST_READINGS
from prefixguard.stepview.visibility import Place, Reading


@dataclass(frozen=True, slots=True)
class Base:
    """What a root stands for in the data.

    place: where it is; None where it is nowhere in the data. columns: place of each name in it (rows of a zip).
    is_text: a piece of text that a split made: `body` is that text, other names are groups of its head.
    is_cut: what gives the outcome away was cut out already. also: where else it may be, by cases.
    """

    place: Place | None
    columns: Mapping[str, Place] | None = None
    is_text: bool = False
    is_cut: bool = False
    also: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the spec that is being compiled.

    where: for messages ("rules[2].action"). roots: place that each root of a path stands for here; a root that is not
    in it cannot be used here. sink: readings go there. in_record: the value goes into a record, so it must be there
    live
    and its cost bounded. all_parts: a `join` with an absent part is absent (ids). is_cut: inside a `cut`.
    is_structure: a list whose elements are read one by one, not text of a record.
    fields: names of record fields that may be tested (status rules). in_test: part of a condition.
    """

    where: str
    roots: Mapping[str, Base]
    sink: list[Reading] = field(default_factory=list)
    in_record: bool = False
    all_parts: bool = False
    is_cut: bool = False
    looks_inside: bool = True
    is_structure: bool = False
    fields: tuple[str, ...] = ()
    in_test: bool = False

    def at(self, part: str) -> Site:
        """The same, one part deeper."""
        return replace(
            self, where=f"{self.where}.{part}" if self.where and not part.startswith("[") else self.where + part
        )

    def cutting(self) -> Site:
        return replace(self, is_cut=True)

    def peeking(self) -> Site:
        """For tests that learn only whether something is there, or its type."""
        return replace(self, looks_inside=False)

    def listing(self) -> Site:
        """For the lists that events and elements come from: only a list inside something hidden is refused."""
        return replace(self, is_structure=True)

    def with_roots(self, roots: Mapping[str, Base]) -> Site:
        return replace(self, roots={**self.roots, **roots})

    def error(self, message: str) -> AdapterError:
        return AdapterError(f"{self.where}: {message}")

    def base(self, root: str) -> Base:
        if root not in self.roots:
            seen = " ".join(sorted(self.roots)) or "none"
            raise self.error(f"{root} cannot be used here; roots that can: {seen}.")
        return self.roots[root]

    def resolve(self, root: str, steps: tuple[Step, ...]) -> tuple[Place, ...]:
        """The places that a path reads; none where it is not in the data (a position, a key)."""
        if root in ("$key", "$index", "@index"):
            return ()
        base = self.base(root)
        name = steps[0][1] if steps and steps[0][0] == "name" else None
        if base.columns is not None:
            if name is not None and name in base.columns:
                column = base.columns[name]
                return (Place(column.root, column.steps + steps[1:]),)
            return tuple(base.columns.values()) if name is None else ()
        if base.place is None:
            return ()
        if base.is_text:
            return () if self.in_test and name not in (None, "body") else (base.place,)
        return tuple(Place(place.root, place.steps + steps) for place in (base.place, *base.also))

    def note(self, places: tuple[Place, ...], is_cut: bool = False, spelled: str = "", of_run: bool = False) -> None:
        """Writes down that these places are read here. AdapterError beyond `MOST_READINGS`."""
        if len(self.sink) + len(places) > MOST_READINGS:
            raise self.error(f"the spec reads more than {MOST_READINGS:,} places. Make it smaller.")
        for place in places:
            cut = self.is_cut or is_cut or self.is_structure
            looks_inside = self.looks_inside and not self.is_structure
            self.sink.append(Reading(place, self.where, cut, looks_inside, spelled, of_run))

    def base_of(self, spec: Any) -> Base:
        """What the elements of a value (`each`) stand for: the place of its path, or of what it is made from."""
        if is_path(spec):
            root, steps = parse_path(spec, self.where)
            places = self.resolve(root, steps)
            is_cut = root in self.roots and self.roots[root].is_cut
            return Base(places[0], is_cut=is_cut, also=places[1:]) if places else Base(None)
        if isinstance(spec, dict):
            for name in ("json", "text", "otlp", "of", "first", "join", "list"):
                inner = spec.get(name)
                if isinstance(inner, list) and inner:
                    inner = inner[0]
                if is_path(inner) or isinstance(inner, dict):
                    return self.base_of(inner)
        return Base(None)


def known_keys(spec: Mapping[str, Any], allowed: tuple[str, ...], site: Site) -> None:
    """AdapterError for a key that the construct does not have."""
    for key in spec:
        if key not in allowed:
            raise site.error(f"unknown key {key!r}; it can have: {', '.join(allowed)}.")
