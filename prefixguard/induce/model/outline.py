"""Every place of a group of JSON documents: its path, types, how often it is there, and a few values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from prefixguard.escalate import Masker

#: Elements of one list that are looked at: the first, the last, and others evenly between.
MAX_ELEMENTS = 400
#: Values looked at of one group of documents, in equal parts.
MAX_VALUES = 160_000
#: Distinct short values kept of a place; one more and it is no list of kinds.
MAX_KINDS = 16
_KIND_LENGTH = 40
#: An object with at least so many keys, whose values are alike, is a table: its keys are data and are written `*`. Keys
#: that are numbers are data however few they are.
_TABLE = 6


@dataclass(slots=True)
class Place:
    """What is known of one path. parents: objects that could have it. sizes: of texts (characters) or lists.
    mass: characters of text met there."""

    types: Counter[str] = field(default_factory=Counter)
    parents: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    too_many: bool = False
    shortest: int = -1
    longest: int = 0
    json_text: int = 0
    python_text: int = 0
    mass: int = 0
    key: str = ""

    @property
    def seen(self) -> int:
        return self.types.total()

    @property
    def discriminates(self) -> bool:
        """Do its values name kinds: few, short, each met again?"""
        n = len(self.kinds)
        return not self.too_many and 1 < n <= MAX_KINDS and self.kinds.total() >= 2 * n


class Outline:
    """Places in the order they were met. Add documents, then read `lines`."""

    def __init__(self, documents: int = 1) -> None:
        """documents: how many will be added."""
        self.places: dict[str, Place] = {}
        self._share = MAX_VALUES // max(documents, 1)

    def add(self, value: Any, path: str = "$") -> set[str]:
        """Takes in one document; returns the paths (and kinds, as `path=value`) that it has."""
        met: set[str] = set()
        stack: list[tuple[str, Any, str, int]] = [(path, value, "", 0)]
        left = self._share
        while stack and left > 0:
            here, inner, key, depth = stack.pop()
            left -= 1
            place = self._note(here, inner, key)
            met.add(here)
            if isinstance(inner, str):
                if not place.too_many and inner in place.kinds:
                    met.add(f"{here}={inner}")
            elif depth < 24:
                stack.extend(reversed(list(self._children(here, inner, depth))))
        return met

    def _children(self, here: str, value: Any, depth: int) -> Iterator[tuple[str, Any, str, int]]:
        if isinstance(value, dict):
            if is_table(value):
                for inner in spread(list(value.values()), MAX_ELEMENTS):
                    yield f"{here}.*", inner, "", depth + 1
                return
            for key, inner in value.items():
                yield here + step(str(key)), inner, str(key), depth + 1
        elif isinstance(value, list):
            for inner in spread(value, MAX_ELEMENTS):
                yield f"{here}[*]", inner, "", depth + 1

    def _note(self, path: str, value: Any, key: str) -> Place:
        place = self.places.get(path)
        if place is None:
            place = self.places[path] = Place(key=key)
        kind = type_name(value)
        place.types[kind] += 1
        if isinstance(value, str | list):
            size = len(value)
            place.shortest = size if place.shortest < 0 else min(place.shortest, size)
            place.longest = max(place.longest, size)
        place.mass += len(value) if isinstance(value, str) else 4
        if isinstance(value, str) and value[:1] in ("{", "[") and value[-1:] in ("}", "]"):
            place.json_text += 1
            place.python_text += value[1:2] == "'"
        if not place.too_many and not isinstance(value, dict | list) and value is not None:
            text = value if isinstance(value, str) else ("true" if value else "false") if value in (True, False) else ""
            if isinstance(value, bool) or (isinstance(value, str) and len(text) <= _KIND_LENGTH):
                place.kinds[text] += 1
            elif isinstance(value, str):
                place.too_many = True
            else:
                place.kinds[str(value)[:20]] += 1
            if len(place.kinds) > MAX_KINDS:
                place.too_many = True
                place.kinds = Counter(dict(sorted(place.kinds.items())[:3]))
        return place

    def main_lists(self) -> set[str]:
        """Paths of the lists that hold most of the text, without a list inside that holds most of theirs: events."""
        mass: dict[str, int] = {}
        for path, place in self.places.items():
            above = path
            while above:
                if above.endswith("[*]"):
                    mass[above[:-3]] = mass.get(above[:-3], 0) + place.mass
                above = _parent(above)
        total = max(sum(place.mass for place in self.places.values()), 1)
        heavy = {path: n for path, n in mass.items() if n >= 0.08 * total}
        return {
            path
            for path, n in heavy.items()
            if not any(other.startswith(f"{path}[*]") and m >= 0.5 * n for other, m in heavy.items())
        }

    def tree(self, masker: Masker, room: int) -> tuple[str, int]:
        """Places as an indented tree, in at most `room` characters; and how many are not in it.

        Deep places are left out first, those with little text before those with much.
        """
        lines: dict[str, str] = {}
        merged: dict[tuple[str, str], list[str]] = {}
        for path, place in self._ordered():
            line = self._line(path, place, masker)
            if line.startswith("null") and not place.mass > 4 * place.seen:
                merged.setdefault((_parent(path), line), []).append(path)
            lines[path] = line
        for (_, line), paths in merged.items():
            if len(paths) > 1:
                names = " ".join(_last(path) for path in paths)
                lines[paths[0]] = f"{line}  (each of: {names})"
                for path in paths[1:]:
                    del lines[path]
        main = self.main_lists()
        depth = {path: _depth(path) for path in lines}
        size = {path: depth[path] + len(_last(path)) + len(line) + 4 for path, line in lines.items()}
        near = {path: self._near(path, main) for path in lines}
        rank = sorted(lines, key=lambda path: (not near[path], depth[path] // 2, -self._weight(path), path))
        kept: set[str] = set()
        left = room - 60
        for path in rank:
            wanted = []
            above = path
            while above and above not in kept:
                wanted += [above] if above in lines else []
                above = _parent(above)
            needed = sum(size[one] for one in wanted)
            if needed <= left:
                kept.update(wanted)
                left -= needed
        rows = [" " * depth[path] + f"{_last(path)}  {line}" for path, line in lines.items() if path in kept]
        missing = len(lines) - len(kept)
        if missing:
            rows.append(f"<{missing} deeper places are not listed>")
        return "\n".join(rows), missing

    def _near(self, path: str, main: set[str]) -> bool:
        """Is it an event, a field of one, a field of a field, or what holds the events?"""
        return any(
            one.startswith(path) or (path.startswith(f"{one}[*]") and _depth(path) <= _depth(one) + 4) for one in main
        )

    def _weight(self, path: str) -> int:
        return self.places[path].mass + self.places[path].seen

    def _ordered(self) -> Iterable[tuple[str, Place]]:
        """Parents before children, children together, in the order they were first met."""
        children: dict[str, list[str]] = {}
        for path in self.places:
            children.setdefault(_parent(path), []).append(path)
        stack = [path for path in self.places if _parent(path) not in self.places][::-1]
        while stack:
            path = stack.pop()
            yield path, self.places[path]
            stack.extend(reversed(children.get(path, [])))

    def _line(self, path: str, place: Place, masker: Masker) -> str:
        parent = self.places.get(_parent(path))
        objects = parent.types["object"] if parent is not None else 0
        text = "|".join(sorted(place.types, key=lambda name: (-place.types[name], name)))
        if not path.endswith("*") and not path.endswith("[*]") and objects and place.seen < objects:
            share = place.seen / objects
            text += f", in {share:.0%}" if share >= 0.005 else ", in <1%"
        if place.types["array"]:
            text += f", {_range(place)} elements"
        if place.json_text and place.json_text >= 0.5 * place.types["string"]:
            text += ", text of JSON"
            if place.python_text:
                text += f" ({_share(place.python_text / place.seen)} spelled as Python)"
        if place.kinds and not place.too_many and (place.discriminates or len(place.kinds) <= 3):
            text += self._kinds(place, masker)
        elif place.types["string"] and place.longest:
            text += f", {_range(place)} characters"
        return text

    def _kinds(self, place: Place, masker: Masker) -> str:
        common = sorted(place.kinds.items(), key=lambda pair: (-pair[1], pair[0]))
        total = place.kinds.total()
        quoted = "'" if place.types["string"] else ""
        shown = [f"{quoted}{masker.mask_field(place.key, kind)}{quoted}" for kind, _ in common[:10]]
        if len(common) == 1:
            return f": always {shown[0]}" if total > 1 else f": {shown[0]}"
        shares = [f"{one} {_share(n / total)}" for one, (_, n) in zip(shown, common, strict=False)]
        return f": {', '.join(shares)}" + (f", {len(common) - 10} more" if len(common) > 10 else "")


def is_table(value: dict[str, Any]) -> bool:
    """An object whose keys are data: many of them, and all values objects (or lists) of the same make."""
    values = spread(list(value.values()), 50)
    if values and all(str(key).isdigit() for key in value) and all(isinstance(inner, dict) for inner in values):
        return True
    if len(value) < _TABLE:
        return False
    if all(isinstance(inner, dict) for inner in values):
        keys = Counter(key for inner in values for key in inner)
        common = sum(n >= 0.8 * len(values) for n in keys.values())
        return common >= 1 and common >= 0.5 * (sum(keys.values()) / len(values))
    if all(isinstance(inner, list) for inner in values):
        return len(value) >= 4 * _TABLE
    digits = sum(str(key).isdigit() for key in value)
    return len(value) >= 8 * _TABLE or digits == len(value)


def spread(items: Sequence[Any], most: int) -> list[Any]:
    """At most so many elements: the first, the last, and others evenly between, in order.

    >>> spread([0, 1, 2, 3, 4, 5, 6], 3)
    [0, 3, 6]
    """
    n = len(items)
    if n <= most:
        return list(items)
    if most <= 1:
        return [items[0]] if most == 1 else []
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
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "<1%"


def _last(path: str) -> str:
    parent = _parent(path)
    return path[len(parent) :]


def _depth(path: str) -> int:
    n = 0
    while path := _parent(path):
        n += 1
    return n


def _parent(path: str) -> str:
    if path.endswith("[*]"):
        return path[:-3]
    if path.endswith('"]'):
        return path[: path.rindex('["')]
    return path.rpartition(".")[0]


def _range(place: Place) -> str:
    low = max(place.shortest, 0)
    return f"{low:,}" if low == place.longest else f"{low:,}-{place.longest:,}"
