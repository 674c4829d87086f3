"""Runs of delegates: what happened below a call that began another agent, in a trace that holds both.

The calling agent does not see the steps of the other one, nor its reply before it returns. So the events below such a
call, at any depth, are a run of their own; the event of the call itself stays with the caller. Agents that run side by
side in one trace see nothing of each other either: each is a run of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.paths import Getter, Scope
from prefixguard.stepview.reorder import Key, sort_key
from prefixguard.stepview.values import as_id, compile_value

_KEYS = ("id", "parent", "when")
_BESIDE = ("when", "begins", "ends")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an event stands in its trace. begins: events below it are of a delegate. lasts: of an agent that may run
    beside others, when it begins and ends."""

    id: str | None
    parent: str | None
    begins: bool
    lasts: tuple[Key, Key] | None = None


@dataclass(frozen=True, slots=True)
class _Beside:
    when: Condition
    begins: Getter
    ends: Getter

    def lasts(self, scope: Scope) -> tuple[Key, Key] | None:
        none: Key = (-1, 0)
        found = sort_key(self.begins(scope), none), sort_key(self.ends(scope), none)
        return found if none not in found and self.when(scope) else None


@dataclass(frozen=True, slots=True)
class Delegates:
    """The compiled `delegates` of a container: id of an event, id of the one above it, and which begin a delegate."""

    id: Getter
    parent: Getter
    when: Condition
    beside: _Beside | None

    def place(self, scope: Scope) -> Place:
        """Of the event in the scope."""
        lasts = None if self.beside is None else self.beside.lasts(scope)
        return Place(as_id(self.id(scope)), as_id(self.parent(scope)), self.when(scope), lasts)


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
    if not isinstance(spec, dict) or set(spec) - {"comment", "beside"} != set(_KEYS):
        raise site.error(
            '{"id": "@.id", "parent": "@.parent_id", "when": which events begin a delegate}, or {"name": "@.agent"}.'
        )
    id, parent = (compile_value(spec[name], site.at(name)) for name in ("id", "parent"))
    beside = site.optional(spec, "beside", _compile_beside)
    return Delegates(id, parent, compile_when(spec["when"], site.at("when")), beside)


def _compile_beside(spec: Any, site: Site) -> _Beside:
    if not isinstance(spec, dict) or set(spec) != set(_BESIDE):
        raise site.error('{"when": which events are agents, "begins": "@.started_at", "ends": "@.ended_at"}.')
    begins, ends = (compile_value(spec[name], site.at(name)) for name in ("begins", "ends"))
    return _Beside(compile_when(spec["when"], site.at("when")), begins, ends)


def apart(events: Sequence[Any], places: Sequence[Place | str | None]) -> Iterator[tuple[str | None, list[Any]]]:
    """The events of every agent: of the caller first, under None, then of every delegate, under what it is called: the
    id of the event that began it. An event is of the nearest delegate above it; one whose parents go round in a circle,
    or are not there, of what is known of them. A place that is a name, or None, is the delegate itself."""
    of_id = {place.id: place for place in places if isinstance(place, Place) and place.id is not None}
    for agent in _side_by_side(of_id.values()):
        of_id[agent.id or ""] = replace(agent, begins=True)
    known: dict[str | None, str | None] = {None: None}  # id of an event -> the delegate that events below it are of
    runs: dict[str | None, list[Any]] = {None: []}
    for event, place in zip(events, places, strict=True):
        own = _above(place.parent, of_id, known) if isinstance(place, Place) else place
        runs.setdefault(own, []).append(event)
    return iter(runs.items())


def _side_by_side(places: Iterable[Place]) -> list[Place]:
    """Agents below the same event that last while another one lasts."""
    agents = sorted(((one.parent or "", one.lasts, one) for one in places if one.lasts), key=lambda found: found[:2])
    found: list[Place] = []
    together: list[Place] = []
    until: tuple[str, Key] | None = None
    for parent, (begins, ends), place in agents:
        if until is None or until <= (parent, begins):
            found += together if len(together) > 1 else ()
            together, until = [], (parent, ends)
        together.append(place)
        until = max(until, (parent, ends))
    return found + together if len(together) > 1 else found


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
