"""Requests to a model of which each holds all of the talk so far: their messages, each once, and the reply to the last.

No name is looked for: the list is known by how it grows, and the reply by standing in the list of the next request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from prefixguard.induce.search.places import Place, first, spell
from prefixguard.induce.search.raw_places import leaves
from prefixguard.stepview import canonical

#: Share of neighbouring requests that go on where the one before ended; and of these that add to it.
LEAST_ON, LEAST_MORE = 0.8, 0.4
#: Share of the requests of a run that are of the talk, where others are left aside.
LEAST_WITHIN = 0.6
#: Share of the replies that must stand in the next request as they are.
LEAST_SAID = 0.7
#: Requests of a run that are looked at, names at one place, and names above each other.
_MOST_REQUESTS, _MOST_NAMES, _DEEPEST = 60, 60, 5


@dataclass(frozen=True, slots=True)
class Histories:
    """The `events` of a spec that reads every message once, the messages of each run, and what holds for those of
    requests beside the talk, such as for a title; None where there are none, or nothing tells them."""

    events: dict[str, Any]
    messages: list[list[Any]]
    aside: dict[str, Any] | None


def history_events(runs: Sequence[Sequence[Any]], events: Any) -> Histories | None:
    """How requests are read of which each holds all of the talk so far; None where the events are no such requests.
    events: as the spec has them, a path or with the order by a time."""
    order = events.get("order_by") if isinstance(events, dict) else None
    path = events if isinstance(events, str) else events.get("path")
    place = _growing(runs)
    if place is None or not isinstance(path, str):
        return None
    aside = _aside(runs, place)
    if aside is not None:
        at, other = aside
        runs = [[request for request in run if first(request, at) != other] for run in runs]
    names = _names(message for run in runs for request in run for message in _list(request, place))
    reply = _reply(runs, place)
    when = {} if order is None else {"at": order}
    talk = [{"object": {"items": spell("@", place), **when}}]
    if reply is not None:
        said = {name: spell("@", (*reply, name)) for name in names}
        talk.append({"object": {"items": {"list": [{"object": said}]}, **when}})
    found: dict[str, Any] = {"flatten": [path, {"list": talk}, "@.items[*]"]}
    if order is not None:
        found["order_by"] = "^.at"
    found["drop_repeats"] = {"list": [spell("@", (name,)) for name in names]}
    beside = None if aside is None else {spell("^^", aside[0]): aside[1]}
    return Histories(found, [_messages(run, place, reply, names) for run in runs], beside)


def _aside(runs: Sequence[Sequence[Any]], place: Place) -> tuple[Place, Any] | None:
    """The place and the value that all requests beside the talk have, and none of it: those of which no other request
    holds a message."""
    beside: list[dict[Place, Any]] = []
    within: list[dict[Place, Any]] = []
    for run in runs:
        known = [{canonical(message) for message in _list(request, place)} for request in run]
        for i, mine in enumerate(known):
            others = set[str]().union(*(one for k, one in enumerate(known) if k != i))
            said = ((tuple(s for s in at if isinstance(s, str)), len(at), v) for at, v in leaves(run[i]))
            values: dict[Place, Any] = {at: v for at, n, v in said if len(at) == n and type(v) in (str, int)}
            (within if mine & others or len(known) == 1 else beside).append(values)
    if not 1 < len(beside) < LEAST_MORE * len(within):
        return None
    same = [(at, value) for at, value in beside[0].items() if all(one.get(at) == value for one in beside)]
    telling = [(at, value) for at, value in same if not any(one.get(at) == value for one in within)]
    return min(telling, key=lambda one: (not isinstance(one[1], str), len(one[0]), one[0]), default=None)


def _growing(runs: Sequence[Sequence[Any]]) -> Place | None:
    """The list that grows from request to request, with the most in it. Requests that share no message with another one
    of the run are left aside."""
    on: Counter[Place] = Counter()
    more: Counter[Place] = Counter()
    both: Counter[Place] = Counter()
    size: Counter[Place] = Counter()
    for run in runs:
        lists = [{at: list(map(canonical, said)) for at, said in _lists(request)} for request in run[:_MOST_REQUESTS]]
        for place in dict.fromkeys(at for one in lists for at in one):
            known = [one.get(place) for one in lists]
            times = Counter(message for said in known if said for message in set(said))
            talk = [said for said in known if not said or any(times[message] > 1 for message in said)]
            for a, b in pairwise(talk if len(talk) >= LEAST_WITHIN * len(known) else known):
                if a is None or b is None:
                    continue
                goes_on = b[: len(a)] == a
                both[place] += 1
                on[place] += goes_on
                more[place] += goes_on and len(a) < len(b)
                size[place] += len(b)
    found = [p for p, n in both.items() if on[p] >= LEAST_ON * n and more[p] >= max(2, LEAST_MORE * n)]
    return max(found, key=lambda place: (size[place], place), default=None)


def _lists(value: Any, place: Place = ()) -> Iterator[tuple[Place, list[Any]]]:
    """Lists of objects in an object, by names alone."""
    if isinstance(value, dict) and len(place) < _DEEPEST:
        for name, inner in islice(value.items(), _MOST_NAMES):
            if isinstance(inner, list) and inner and all(isinstance(one, dict) for one in inner[:20]):
                yield (*place, name), inner
            else:
                yield from _lists(inner, (*place, name))


def _list(request: Any, place: Place) -> list[Any]:
    found = first(request, place)
    return found if isinstance(found, list) else []


def _names(messages: Iterator[Any]) -> list[str]:
    seen = Counter(name for message in islice(messages, 4000) if isinstance(message, dict) for name in message)
    return list(islice(seen, 12))


def _reply(runs: Sequence[Sequence[Any]], place: Place) -> Place | None:
    """The place in a request's record of what the next request has behind the messages of this one."""
    hits: Counter[Place] = Counter()
    n = 0
    for run in runs:
        for one, two in pairwise(run[:_MOST_REQUESTS]):
            before, after = _list(one, place), _list(two, place)
            if before and len(after) > len(before) and isinstance(after[len(before)], dict):
                n += 1
                hits.update(at for at, value in _objects(one) if _same(after[len(before)], value))
    best = min(hits, key=lambda at: (-hits[at], len(at), at), default=None)
    return best if best is not None and hits[best] >= LEAST_SAID * n else None


def _same(message: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Does the object say all that the message does, and is that more than who speaks?"""
    told = {name: inner for name, inner in message.items() if inner not in (None, "", [])}
    return len(told) > 1 and all(canonical(value.get(name)) == canonical(inner) for name, inner in told.items())


def _objects(value: Any, place: Place = ()) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Objects in an object; of lists the first element."""
    if isinstance(value, dict) and len(place) < _DEEPEST:
        if place:
            yield place, value
        for name, inner in islice(value.items(), _MOST_NAMES):
            if isinstance(inner, list):
                yield from _objects(inner[0] if inner else None, (*place, name, "[0]"))
            else:
                yield from _objects(inner, (*place, name))


def _at(value: Any, place: Place) -> Any:
    for step in place:
        if step == "[0]":
            value = value[0] if isinstance(value, list) and value else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _messages(run: Sequence[Any], place: Place, reply: Place | None, names: Sequence[str]) -> list[Any]:
    """What the spec makes of a run: every message when it is first there."""
    seen: dict[tuple[str, int], Any] = {}
    for request in run:
        times: Counter[str] = Counter()
        said = _at(request, reply) if reply is not None else None
        replied = [{name: said[name] for name in names if name in said}] if isinstance(said, dict) else []
        for message in (*_list(request, place), *replied):
            if isinstance(message, dict):
                key = canonical([message.get(name) for name in names])
                times[key] += 1
                seen.setdefault((key, times[key]), message)
    return list(seen.values())
