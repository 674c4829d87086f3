"""What a path of an adapter can see (`$.messages[*].content`), and paths compiled to closures.

A path starts at a root (`%` document, `$` run, `@` event or element, `^` its parent, `^^` the parent of that) and goes
by `.name`, `["any name"]`, `[n]`, `[-1]`, `[*]` or `.*` (all elements or values) and `[key=value]` (elements whose key
has that value). After one of the last two a path yields a list. No recursion, no scripts.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from prefixguard.errors import AdapterError


class _Missing:
    """The value of a path that leads nowhere. Not null: null is a value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = _Missing()


def is_present(value: Any) -> bool:
    """Is there something: not absent, not null, not an empty text, list or object?"""
    return not (value is MISSING or value is None or value == "" or value == [] or value == {})


def describe(value: Any) -> str:
    """What kind of thing a value is, for messages."""
    if value is MISSING:
        return "absent"
    if value is None:
        return "null"
    kinds = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), type(value).__name__)


class Companions(Protocol):
    """Companion files of the document that is being read, found inside the folder of runs and never outside it."""

    def read(self, beside: str, relative: str, as_text: bool) -> Any:
        """The decoded file at `relative` to the file `beside`; MISSING where there is none."""

    def raw(self, beside: str, relative: str) -> bytes | None:
        """Its bytes; None where there is none."""


@dataclass(slots=True, eq=False)
class Scope:
    """The roots of paths: `%` document, `$` run, `@` event or element, `^` its parent and `^^` the parent of that.

    One object a parser, changed in place: a path is a closure over nothing but its own steps.
    """

    document: Any = MISSING
    run: Any = MISSING
    event: Any = MISSING
    parent: Any = MISSING
    grandparent: Any = MISSING
    element: int = 0  # position of the element that `each` has reached
    index: int = -1  # position of the event in its run, from 0
    key: Any = MISSING  # name of the run in an object of runs
    position: int = 0  # position of the run in its document, from 1
    file: str | None = None  # path of the document inside the folder of runs, with forward slashes
    companions: Companions | None = None
    companion_missing: bool = False  # a companion file was asked for and is not there
    values: dict[str, str] | None = None  # id, task: run values that a companion's name may hold
    fields: Any = None  # the record in the making that a status rule judges
    turn: Any = None  # what distinguishes the agent's turns, where the spec names it
    open_calls: int = 0  # calls that wait for a result


Getter = Callable[[Scope], Any]
#: A step: ("name", str), ("index", int), ("all",), ("filter", key, value).
Step = tuple[Any, ...]

ROOTS = {"%": "document", "$": "run", "@": "event", "^": "parent", "^^": "grandparent"}
_INDEX = re.compile("-?[0-9]{1,9}")
_SPECIAL = {"$key": "key", "$index": "position", "@index": "index"}


def is_path(spec: Any) -> bool:
    """Does it look like a path?"""
    return isinstance(spec, str) and spec[:1] in ("%", "$", "@", "^")


#: Names and brackets of one path; the longest of a shipped adapter has fewer than ten.
MOST_STEPS = 64


_STEP = re.compile(
    r"""\.(?P<name>[^.\[]*)|\[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\]|\[(?!['"])(?P<inside>[^\]]*)\]""", re.DOTALL
)


def parse_path(text: Any, where: str) -> tuple[str, tuple[Step, ...]]:
    """Root and steps of a path. AdapterError where it is none.

    >>> parse_path('$.a["b.c"][0].d[*]', "here")
    ('$', (('name', 'a'), ('name', 'b.c'), ('index', 0), ('name', 'd'), ('all',)))
    """
    if not is_path(text):
        raise AdapterError(
            f"{where}: {text!r} is not a path. A path starts with % (document), $ (run), @ (event) or ^ (parent); "
            'a fixed text is written {"const": "..."}.'
        )
    if text in _SPECIAL:
        return text, ()
    root = "^^" if text.startswith("^^") else text[0]
    at = len(root)
    steps: list[Step] = []
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or found["name"] == "":
            wrong = f"cannot be read at character {at + 1}; after {text[:at]!r} comes .name or [...]."
            if text[at] in ".[":
                wrong = f"has an {'empty name' if found else 'open bracket'} at character {at + 1}."
            raise AdapterError(f"{where}: path {text!r} {wrong}")
        steps.append(_step(found, text, where))
        at = found.end()
    if len(steps) > MOST_STEPS:
        raise AdapterError(
            f"{where}: path {text[:60]!r}... has {len(steps):,} steps; at most {MOST_STEPS} are read. Name a place "
            "that is less deep."
        )
    return root, tuple(steps)


def _step(found: re.Match[str], text: str, where: str) -> Step:
    if found["quote"]:
        return ("name", found["quoted"])
    if found["name"]:
        return ("all",) if found["name"] == "*" else ("name", found["name"])
    inside = found["inside"]
    if inside == "*":
        return ("all",)
    if _INDEX.fullmatch(inside):
        return ("index", int(inside))
    key, _, value = inside.partition("=")
    if key and value:
        return ("filter", key, value.strip("'\""))
    raise AdapterError(
        f'{where}: path {text!r} has [{inside}]; brackets hold a number, * , "a name" in quotes, or key=value.'
    )


def is_multiple(steps: tuple[Step, ...]) -> bool:
    """Does the path yield a list of what it finds?"""
    return any(step[0] in ("all", "filter") for step in steps)


def walk(steps: tuple[Step, ...]) -> Callable[[Any], Any]:
    """A closure from a value to what the steps find in it, MISSING where they lead nowhere."""
    if not steps:
        return lambda value: value
    if is_multiple(steps):
        return _walk_many(steps)
    if len(steps) == 1 and steps[0][0] == "name":
        only = steps[0][1]
        return lambda value: value.get(only, MISSING) if type(value) is dict or isinstance(value, dict) else MISSING
    return _walk_names(steps) if all(step[0] == "name" for step in steps) else _walk_one(steps)


def _walk_names(steps: tuple[Step, ...]) -> Callable[[Any], Any]:
    names = tuple(step[1] for step in steps)

    def get(value: Any) -> Any:
        for name in names:
            if not isinstance(value, dict):
                return MISSING
            value = value.get(name, MISSING)
        return value

    return get


def _walk_one(steps: tuple[Step, ...]) -> Callable[[Any], Any]:
    keys = tuple((step[0] == "name", step[1]) for step in steps)

    def get(value: Any) -> Any:
        for named, key in keys:
            if named:
                if not isinstance(value, dict):
                    return MISSING
                value = value.get(key, MISSING)
            elif isinstance(value, list) and -len(value) <= key < len(value):
                value = value[key]
            else:
                return MISSING
        return value

    return get


def _walk_many(steps: tuple[Step, ...]) -> Callable[[Any], Any]:
    first = next(i for i, step in enumerate(steps) if step[0] in ("all", "filter"))
    before = walk(steps[:first])
    spread = _spreader(steps[first])
    rest = steps[first + 1 :]
    if not rest:
        return lambda value: spread(before(value))
    after, nested = walk(rest), is_multiple(rest)

    def get(value: Any) -> Any:
        items = spread(before(value))
        if items is MISSING:
            return MISSING
        found = [got for item in items if (got := after(item)) is not MISSING]
        return [one for inner in found for one in inner] if nested else found

    return get


def _spreader(step: Step) -> Callable[[Any], Any]:
    """From a value to the list of its elements that the step chooses; MISSING where there can be none."""
    if step[0] == "all":
        return lambda value: (
            value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else MISSING
        )
    _, key, wanted = step

    def chosen(item: Any) -> bool:
        return isinstance(item, dict) and _spelled(item.get(key, MISSING)) == wanted

    return lambda value: list(filter(chosen, value)) if isinstance(value, list) else MISSING


def _spelled(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def getter(root: str, steps: tuple[Step, ...]) -> Getter:
    """The closure from a scope to what the path finds."""
    attribute = _SPECIAL.get(root) or ROOTS[root]
    if not steps:
        return operator.attrgetter(attribute)
    if attribute == "event" and len(steps) == 1 and steps[0][0] == "name":
        name = steps[0][1]

        def field(scope: Scope) -> Any:
            event = scope.event
            return event.get(name, MISSING) if type(event) is dict or isinstance(event, dict) else MISSING

        return field
    inside = walk(steps)
    if attribute == "event":
        return lambda scope: inside(scope.event)
    if attribute == "parent":
        return lambda scope: inside(scope.parent)
    return lambda scope: inside(getattr(scope, attribute))
