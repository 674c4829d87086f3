"""Places of raw runs: what lies in an object, how the spec spells where, and what it is called."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.lexicon import words
from prefixguard.stepview import parse_path
from prefixguard.stepview.values import read_json

#: How deep places lie, characters of a value that are kept, and elements of a list that are looked at by their names.
DEEPEST, LONGEST, MOST_LISTED = 7, 4000, 40
#: Names of one object beyond which it is a map from ids to things, and no record.
MOST_NAMES = 120
Step = str | int | None | tuple[str | None, str]
Place = tuple[Step, ...]


def spelled(root: str, place: Place) -> str:
    """A place as a path of the spec.

    >>> spelled("$", ("info", "a b", 0, None))
    '$.info["a b"][0][*]'
    """
    parts = [root]
    for step in place:
        if step is None:
            parts.append("[*]")
        elif isinstance(step, int):
            parts.append(f"[{step}]")
        elif isinstance(step, tuple):
            parts.append(f"[{step[0]}={step[1]}]" if step[0] is not None else f".{step[1]}")
        elif step and step.replace("_", "a").replace("-", "a").isalnum() and step.isascii() and not step[0].isdigit():
            parts.append(f".{step}")
        else:
            parts.append(f"['{step}']" if '"' in step else f'["{step}"]')
    return "".join(parts)


#: Stands in a place for "the JSON that this text holds"; and characters of such a text.
JSON, MOST_JSON = "\x00json", 200_000
#: Names under which elements of a list are told apart, and what of a value can stand in the filter of a path.
_MARKS = ("key", "name", "type", "kind", "id", "metric", "label", "op_name")
_NAMED = (("name",), ("key",), ("label",))
_PLAIN_VALUE = re.compile(r"[\w .:/@-]{1,60}\Z")
_TAG = re.compile(r"([A-Za-z_][\w.-]{0,40})[:=](\S.{0,80})\Z", re.DOTALL)


def leaves(value: Any, skip: Sequence[Place] = (), place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Values of objects inside objects, past the places of `skip`. Of a list of named objects what each name has, under
    a step ("key", "score"); of a list of "name:value" texts what each name has, under a step (None, name); of a list of
    numbers or objects the last, too. Lists are yielded whole besides. What a text that is a JSON object has is under a
    step JSON.
    """
    if place in skip:
        return
    if isinstance(value, dict):
        if len(place) < DEEPEST and len(value) <= MOST_NAMES:
            for name, inner in value.items():
                if isinstance(name, str) and name and not ("'" in name and '"' in name):
                    yield from leaves(inner, skip, (*place, name))
    elif place:
        yield place, value[:LONGEST] if isinstance(value, str) else value
        if isinstance(value, str) and value[:1] == "{" and len(value) <= MOST_JSON and JSON not in place:
            inside = read_json(value)
            if isinstance(inside, dict):
                yield from leaves(inside, (), (*place, JSON))
        if isinstance(value, list) and 0 < len(value) <= MOST_LISTED and len(place) < DEEPEST:
            if all(isinstance(one, int | float) for one in value):
                yield (*place, -1), value[-1]
            elif all(isinstance(one, str) for one in value):
                for tag in filter(None, map(_TAG.match, value)):
                    yield (*place, (None, tag[1])), tag[2]
            elif mark := _mark(value):
                for one in value:
                    for inner, found in leaves({name: v for name, v in one.items() if name != mark}):
                        if not isinstance(found, list):
                            yield (*place, (mark, one[mark]), *inner), found
            elif all(isinstance(one, dict) for one in value):
                yield from (((*place, -1, *inner), v) for inner, v in leaves(value[-1]) if not isinstance(v, list))


def _mark(listed: Sequence[Any]) -> str | None:
    """The name under which every element has a text of its own that a filter can spell; None where there is none."""
    if not all(isinstance(one, dict) for one in listed):
        return None
    others = [name for name in listed[0] if name not in _MARKS and words(name)[-1:] in _NAMED]
    for mark in map(str, (*_MARKS, *others)):
        values = [one.get(mark) for one in listed]
        if len(set(map(str, values))) == len(values) and all(
            isinstance(v, str) and _PLAIN_VALUE.match(v) for v in values
        ):
            return mark
    return None


def value_at(root: str, place: Place) -> Any:
    """How the spec reads a place: a path; the text of one where a filter finds a list; a pattern for a tag."""
    if JSON in place:
        at = place.index(JSON)
        return {"json": value_at(root, place[:at]), "path": spelled("$", place[at + 1 :])}
    last = place[-1] if place else None
    if isinstance(last, tuple) and last[0] is None:
        return {"re": f"(?m)^{re.escape(last[1])}[:=](.+)$", "of": {"text": spelled(root, place[:-1])}}
    path = spelled(root, place)
    return {"text": path} if any(isinstance(step, tuple) for step in place) else path


def event_places(spec: Mapping[str, Any]) -> tuple[Place, ...]:
    """Where the events are in the run, without the step over all of them; () is the run itself."""
    events = spec["events"]
    paths = [events] if isinstance(events, str) else []
    if isinstance(events, dict):
        inner = events.get("path", events.get("zip", events.get("flatten")))
        paths = list(inner.values()) if isinstance(inner, dict) else inner if isinstance(inner, list) else [str(inner)]
        if isinstance(events.get("split"), dict):
            paths = [events["split"].get("of", "$.text")]
    found = []
    paths = [one for path in paths for one in (path.get("list", [path]) if isinstance(path, dict) else [path])]
    for path in paths[:1] if isinstance(events, dict) and "flatten" in events else paths:
        path = path.get("path") if isinstance(path, dict) else path
        try:
            root, steps = parse_path(path, "events")
        except AdapterError:
            continue
        if root == "$":
            place = tuple(step[1] if step[0] == "name" else None for step in steps)
            while place and place[-1] is None:
                place = place[:-1]
            found.append(place)
    return tuple(found)


#: What the value of a named element is called.
_VALUES = {"value", "score", "result", "data", "stringValue", "intValue", "boolValue", "doubleValue"}


def name_of(root: str, place: Place) -> str:
    """The place as a path of names, for the vocabulary; elements of lists go by what they are called, and so does the
    one value that such an element has beside its name."""
    if any(isinstance(step, tuple) for step in place) and place[-1] in _VALUES:
        while not isinstance(place[-1], tuple):
            place = place[:-1]
    return spelled(root, tuple(step[1] if isinstance(step, tuple) else step for step in place if step != JSON))
