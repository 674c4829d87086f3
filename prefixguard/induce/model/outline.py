"""Every place of a group of JSON documents: its path, types, how often it is there, and a few values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from prefixguard.escalate import Masker

#: Elements of one list that are looked at: the first, the last, and others evenly between.
MAX_ELEMENTS = 400
#: Values looked at of one group of documents, in equal parts.
MAX_VALUES = 160_000
#: How deep values are looked into.
MAX_DEPTH = 24
#: Distinct short values kept of a place, and their length; one more or a longer one, and it is no list of kinds.
MAX_KINDS, _KIND_LENGTH = 16, 40
#: An object with at least so many keys, whose values are alike, is a table: its keys are data and are written `*`. Keys
#: that are numbers are data however few they are.
_TABLE = 6
#: Places below another from which on two that are alike are listed once.
_MIRRORED = 4

#: Steps of a path, as the spec spells them: ("$", ".messages", "[*]", ".role").
Place = tuple[str, ...]


@dataclass(slots=True)
class Met:
    """What was met at one place. kinds: short values and how often; None where there are too many. smallest, largest:
    of texts (characters) or lists. mass: characters of text."""

    key: str
    types: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] | None = field(default_factory=Counter)
    smallest: int = -1
    largest: int = 0
    json_text: int = 0
    python_text: int = 0
    mass: int = 0

    def add(self, value: Any) -> None:
        self.types[type_name(value)] += 1
        self.mass += len(value) if isinstance(value, str) else 4
        if isinstance(value, str | list):
            size = len(value)
            self.smallest = size if self.smallest < 0 else min(self.smallest, size)
            self.largest = max(self.largest, size)
        if isinstance(value, str) and value[:1] in ("{", "[") and value[-1:] in ("}", "]"):
            self.json_text += 1
            self.python_text += value[1:2] == "'"
        if self.kinds is not None and value is not None and not isinstance(value, dict | list):
            text = value if isinstance(value, str) else str(value)[:20].lower()
            self.kinds[text] += 1
            if len(text) > _KIND_LENGTH or len(self.kinds) > MAX_KINDS:
                self.kinds = None

    @property
    def discriminates(self) -> bool:
        """Do its values name kinds: few, short, each met again?"""
        return self.kinds is not None and len(self.kinds) > 1 and self.kinds.total() >= 2 * len(self.kinds)


class Outline:
    """Places in the order they were met."""

    def __init__(self, documents: int) -> None:
        """documents: how many will be added."""
        self.places: dict[Place, Met] = {}
        self._share = MAX_VALUES // documents

    def add(self, value: Any, root: str) -> set[tuple[Place, str]]:
        """Take in one document; what it has: its places, and the kinds at each."""
        has: set[tuple[Place, str]] = set()
        stack: list[tuple[Place, Any, str]] = [((root,), value, "")]
        for _ in range(self._share):
            if not stack:
                break
            path, inner, key = stack.pop()
            met = self.places.setdefault(path, Met(key))
            met.add(inner)
            has.add((path, inner if isinstance(inner, str) and inner in (met.kinds or ()) else ""))
            if len(path) <= MAX_DEPTH:
                stack.extend(reversed(list(_children(path, inner))))
        return has

    def main_lists(self) -> set[Place]:
        """The lists that hold most of the text, without a list inside that holds most of theirs: events."""
        mass: Counter[Place] = Counter()
        for path, met in self.places.items():
            for i, one in enumerate(path):
                if one == "[*]":
                    mass[path[:i]] += met.mass
        least = 0.08 * sum(met.mass for met in self.places.values())
        heavy = {path: n for path, n in mass.items() if n >= least}
        return {
            path
            for path, n in heavy.items()
            if not any(is_below(other, (*path, "[*]")) and m >= 0.5 * n for other, m in heavy.items())
        }

    def tree(self, masker: Masker, room: int) -> tuple[str, int]:
        """Places as an indented tree, in at most `room` characters; and how many are not in it.

        Places that are alike in all below them are listed once. Deep places are left out first, those with little text
        before those with much.
        """
        rows = {path: f"{' ' * (len(path) - 1)}{path[-1]}  {self._said(path, masker)}" for path in self._ordered()}
        mirrored = _mirrored(rows)
        rows |= {path: f"{rows[path]}; inside as {''.join(same)}" for path, same in mirrored.items()}
        rows = {path: row for path, row in rows.items() if not _is_inside(path, mirrored)}
        main = self.main_lists()

        def rank(path: Place) -> tuple[bool, int, int, Place]:
            near = any(is_below(one, path) or (is_below(path, one) and len(path) <= len(one) + 5) for one in main)
            return not near, len(path) // 2, -self.places[path].mass, path

        kept: set[Place] = set()
        left = room - 60
        for path in sorted(rows, key=rank):
            wanted = {path[:n] for n in range(1, len(path) + 1)} & rows.keys() - kept
            needed = sum(len(rows[one]) + 1 for one in wanted)
            if needed <= left:
                kept |= wanted
                left -= needed
        lines = [row for path, row in rows.items() if path in kept]
        missing = len(rows) - len(kept)
        return "\n".join([*lines, *[f"<{missing} deeper places are not listed>"] * bool(missing)]), missing

    def _ordered(self) -> list[Place]:
        """Parents before children, children together, in the order they were first met."""
        number = {path: i for i, path in enumerate(self.places)}
        return sorted(self.places, key=lambda path: [number[path[:n]] for n in range(1, len(path) + 1)])

    def _said(self, path: Place, masker: Masker) -> str:
        met, above = self.places[path], self.places.get(path[:-1])
        text = "|".join(sorted(met.types, key=lambda name: (-met.types[name], name)))
        seen, objects = met.types.total(), above.types["object"] if above is not None else 0
        if not path[-1].endswith(("*", "[*]")) and seen < objects:
            text += f", in {_share(seen / objects)}"
        size = f"{met.smallest:,}" if met.smallest == met.largest else f"{met.smallest:,}-{met.largest:,}"
        if met.types["array"]:
            text += f", {size} elements"
        if met.json_text and met.json_text >= 0.5 * met.types["string"]:
            spelled = f" ({_share(met.python_text / seen)} spelled as Python)" if met.python_text else ""
            text += f", text of JSON{spelled}"
        if met.kinds and (met.discriminates or len(met.kinds) <= 3):
            return f"{text}: {_kinds(met, met.kinds, masker)}"
        return f"{text}, {size} characters" if met.types["string"] else text


def _children(path: Place, value: Any) -> Iterator[tuple[Place, Any, str]]:
    if isinstance(value, dict) and is_table(value):
        yield from (((*path, ".*"), inner, "") for inner in spread(list(value.values()), MAX_ELEMENTS))
    elif isinstance(value, dict):
        yield from (((*path, step(str(key))), inner, str(key)) for key, inner in value.items())
    elif isinstance(value, list):
        yield from (((*path, "[*]"), inner, "") for inner in spread(value, MAX_ELEMENTS))


def _mirrored(rows: dict[Place, str]) -> dict[Place, Place]:
    """Places below which all is as below another, and that one; the outermost alone."""
    inside: dict[Place, list[tuple[Place, str]]] = defaultdict(list)
    for path, row in rows.items():
        for n in range(1, len(path)):
            inside[path[:n]].append((path[n:], row.strip()))
    first: dict[tuple[tuple[Place, str], ...], Place] = {}
    found: dict[Place, Place] = {}
    for path, below in inside.items():
        same = first.setdefault(tuple(below), path) if len(below) >= _MIRRORED else path
        if same != path and path in rows and not _is_inside(path, found):
            found[path] = same
    return found


def _kinds(met: Met, kinds: Counter[str], masker: Masker) -> str:
    common = sorted(kinds.items(), key=lambda pair: (-pair[1], pair[0]))
    total = kinds.total()
    quoted = "'" if met.types["string"] else ""
    shown = [f"{quoted}{masker.mask_field(met.key, kind)}{quoted}" for kind, _ in common[:10]]
    if len(common) == 1:
        return f"always {shown[0]}" if total > 1 else shown[0]
    more = [f"{len(common) - 10} more"] * (len(common) > 10)
    return ", ".join([f"{one} {_share(n / total)}" for one, (_, n) in zip(shown, common, strict=False)] + more)


def _is_inside(path: Place, those: Mapping[Place, Any]) -> bool:
    return any(path[:n] in those for n in range(1, len(path)))


def is_below(path: Place, above: Place) -> bool:
    """Does a path begin with another?"""
    return path[: len(above)] == above


def is_table(value: dict[str, Any]) -> bool:
    """An object whose keys are data: many of them, and all values objects (or lists) of the same make."""
    values = spread(list(value.values()), 50)
    objects = all(isinstance(inner, dict) for inner in values)
    digits = all(str(key).isdigit() for key in value)
    if len(value) < _TABLE or (objects and digits):
        return objects and digits and bool(values)
    if objects:
        keys = Counter(key for inner in values for key in inner)
        common = sum(n >= 0.8 * len(values) for n in keys.values())
        return common >= max(1, 0.5 * keys.total() / len(values))
    lists = all(isinstance(inner, list) for inner in values)
    return len(value) >= (4 if lists else 8) * _TABLE or (digits and not lists)


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many elements: the first, the last, and others evenly between, in order.

    >>> spread([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    n = len(items)
    if n <= most or most < 2:
        return list(items[:most])
    return [items[round(i * (n - 1) / (most - 1))] for i in range(most)]


@lru_cache(8192)
def step(key: str) -> str:
    """A key as a step of a path.

    >>> step("role"), step("gen_ai.tool")
    ('.role', '["gen_ai.tool"]')
    """
    plain = key[:1].isalpha() or key[:1] == "_"
    if plain and key.isascii() and key.replace("_", "a").replace("-", "a").isalnum():
        return f".{key}"
    return f'["{key[:120]}"]'


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    names = {"NoneType": "null", "bool": "boolean", "str": "string", "dict": "object", "list": "array"}
    return names.get(type(value).__name__, "number")


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"
