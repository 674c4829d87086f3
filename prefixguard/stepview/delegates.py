"""Runs of delegates: what happened below a call that began another agent, in a trace that holds both.

The calling agent does not see the steps of the other one, nor its reply before it returns. So the events below such a
call, at any depth, are a run of their own; the event of the call itself stays with the caller.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.paths import Getter, Scope
from prefixguard.stepview.values import as_id, compile_value

_KEYS = ("id", "parent", "when")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands in its trace. begins: events below it are of a delegate."""

    id: str | None
    parent: str | None
    begins: bool


@dataclass(frozen=True, slots=True)
class Delegates:
    """The compiled `delegates` of a container: id of an event, id of the one above it, and which begin a delegate."""

    id: Getter
    parent: Getter
    when: Condition

    def place(self, scope: Scope) -> Place:
        """Of the event in the scope."""
        return Place(as_id(self.id(scope)), as_id(self.parent(scope)), self.when(scope))


@dataclass(frozen=True, slots=True)
class NamedDelegates:
    """Where events name the delegate that they are of."""

    name: Getter

    def place(self, scope: Scope) -> str | None:
        """The delegate of the event in the scope."""
        return as_id(self.name(scope))


def compile_delegates(spec: Any, site: Site) -> Delegates | NamedDelegates:
    """AdapterError if it is wrong."""
    if isinstance(spec, dict) and spec.keys() == {"name"}:
        return NamedDelegates(compile_value(spec["name"], site.at("name")))
    if not isinstance(spec, dict) or set(spec) - {"comment"} != set(_KEYS):
        raise site.error(
            '{"id": "@.id", "parent": "@.parent_id", "when": which events begin a delegate}, or {"name": "@.agent"}.'
        )
    return Delegates(
        compile_value(spec["id"], site.at("id")),
        compile_value(spec["parent"], site.at("parent")),
        compile_when(spec["when"], site.at("when")),
    )


def apart(events: Sequence[Any], places: Sequence[Place | str | None]) -> Iterator[tuple[str | None, list[Any]]]:
    """The events of every agent: of the caller first, under None, then of every delegate, under what it is called: the
    id of the event that began it. An event is of the nearest delegate above it; one whose parents go round in a circle,
    or are not there, of what is known of them. A place that is a name, or None, is the delegate itself."""
    of_id = {place.id: place for place in places if isinstance(place, Place) and place.id is not None}
    known: dict[str | None, str | None] = {None: None}  # id of an event -> the delegate that events below it are of
    runs: dict[str | None, list[Any]] = {None: []}
    for event, place in zip(events, places, strict=True):
        own = _above(place.parent, of_id, known) if isinstance(place, Place) else place
        runs.setdefault(own, []).append(event)
    return iter(runs.items())


def _above(at: str | None, of_id: dict[str, Place], known: dict[str | None, str | None]) -> str | None:
    """The delegate that events below this one are of; known: of those that were asked for before."""
    chain: list[str] = []
    while at is not None and at not in known:
        above = of_id.get(at)
        if above is None or above.begins:
            known[at] = None if above is None else at
            break
        known[at] = None  # for those that stand in a circle
        chain.append(at)
        at = above.parent
    known.update(dict.fromkeys(chain, known[at]))
    return known[at]
