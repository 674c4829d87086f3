"""What lies in a run outside its events: every place with the value that each run has there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from prefixguard.induce.offline.places import Place, spell
from prefixguard.stepview import MISSING, parse_path

#: Runs beyond this many are left out of the inference, evenly.
MAX_VIEWS = 5000
#: Names that one object may have before it is taken for a map from ids to things.
MAX_NAMES = 200
#: Places looked at in a run.
MAX_PLACES = 2000
_DEEPEST = 7
_LONGEST = 20_000


@dataclass(frozen=True)
class RunView:
    """One run as its container finds it.

    file: path inside the samples. document: the whole document (None where the container has none). run: what `$`
    is. key: its name in an object of runs. position: in the document, from 1. events: as the adapter will see them.
    n_in_document: how many runs the document has.
    """

    file: str
    document: Any
    run: Any
    key: str | int | None
    position: int
    events: tuple[Any, ...]
    n_in_document: int


@dataclass(frozen=True)
class Column:
    """A place and what every run has there, MISSING where nothing.

    spec: how the spec reads it (a path, or {"file": "stem"}). name: for the vocabulary. order: where it stands among
    the places of a run. near: "run", "document", "file".
    """

    spec: Any
    name: str
    values: tuple[Any, ...]
    order: int
    near: str
    place: Place = ()

    @cached_property
    def coverage(self) -> float:
        """Share of runs that have something there, in [0, 1]."""
        n = sum(1 for value in self.values if value is not MISSING and value is not None and value != "")
        return n / max(1, len(self.values))

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """The values as texts to compare; None where absent, or neither text nor number."""
        return tuple(_text(value) for value in self.values)

    @cached_property
    def distinct(self) -> int:
        return len({text for text in self.texts if text is not None})

    @cached_property
    def length(self) -> float:
        """Mean length of the texts, in code points."""
        found = [len(text) for text in self.texts if text is not None]
        return sum(found) / len(found) if found else 0.0

    @property
    def is_text(self) -> bool:
        """Does it hold texts (not numbers or booleans)?"""
        return all(isinstance(value, str) for value in self.values if value is not MISSING and value is not None)

    def example(self) -> str:
        """The first value there, cut short."""
        value = next((text for text in self.texts if text), "")
        return value if len(value) <= 60 else value[:57] + "..."


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or value is MISSING or value is None:
        return None
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int | float) else None


@dataclass(slots=True)
class Node:
    """An object or leaf among the places; inner: by name. is_list: a list of objects stood there. big: its names are
    ids."""

    inner: dict[str, Node] = field(default_factory=dict)
    is_list: bool = False
    big: bool = False


@dataclass(frozen=True)
class Places:
    """All places outside the events. run, document: their trees. columns: in the order of the places."""

    columns: tuple[Column, ...]
    run: Node
    document: Node
    events: tuple[Place, ...]
    runs: Place | None

    def by_spec(self, spec: Any) -> Column | None:
        return next((column for column in self.columns if column.spec == spec), None)


def sampled(views: Sequence[RunView]) -> list[RunView]:
    """At most MAX_VIEWS of the runs, evenly spread."""
    if len(views) <= MAX_VIEWS:
        return list(views)
    step = len(views) / MAX_VIEWS
    return [views[int(i * step)] for i in range(MAX_VIEWS)]


def steps_of(path: str) -> Place:
    """Names of a path; None for all elements, for a position and for a filter.

    >>> steps_of("$.simulations[*].messages[0]")
    ('simulations', None, 'messages', None)
    """
    _, steps = parse_path(path, "path")
    return tuple(step[1] if step[0] == "name" else None for step in steps)


def collect(views: Sequence[RunView], runs_path: str | None, events_paths: Sequence[str]) -> Places:
    """Columns and trees of the runs, and of the documents around them."""
    events = tuple(_bare(steps_of(path)) for path in events_paths if path.startswith("$"))
    table: dict[tuple[str, Place], list[Any]] = {}
    run_tree, document_tree = Node(), Node()
    n = len(views)
    for i, view in enumerate(views):
        for place, value in _walk(view.run, run_tree, events, ()):
            _put(table, ("$", place), i, n, value)
    runs = None if runs_path is None else _bare(steps_of(runs_path))
    if runs:  # with an empty path the document is nothing but runs
        seen: dict[int, list[tuple[Place, Any]]] = {}
        for i, view in enumerate(views):
            if view.document is None or view.document is MISSING or view.document is view.run:
                continue
            known = id(view.document)
            if known not in seen:
                seen[known] = list(_walk(view.document, document_tree, (runs,), ()))
            for place, value in seen[known]:
                _put(table, ("%", place), i, n, value)
    columns = []
    for order, ((root, place), values) in enumerate(table.items()):
        spec = spell(root, place)
        near = "run" if root == "$" else "document"
        columns.append(Column(spec, spec, tuple(values), order, near, place))
    columns.extend(file_columns(views, len(columns)))
    return Places(tuple(columns), run_tree, document_tree, events, runs)


def inner_places(value: Any, tree: Node) -> Iterator[tuple[Place, Any]]:
    """Scalars and lists of any document, with their places."""
    return _walk(value, tree, (), ())


def file_columns(views: Sequence[RunView], order: int) -> Iterator[Column]:
    """What the name of the file and the key of the run say."""
    if any(isinstance(view.key, str) for view in views):
        keys = tuple(view.key if isinstance(view.key, str) else MISSING for view in views)
        yield Column("$key", "key", keys, order, "run")
    for part in ("stem", "parent"):
        values = tuple(part_of(view.file, part) or MISSING for view in views)
        yield Column({"file": part}, "", values, order + 1, "file")
    bases = tuple(base_of(view.file) or MISSING for view in views)
    yield from _folder_columns(views, order + 3)
    suffixes = sorted({view.file.rpartition("/")[2][len(str(b)) :] for view, b in zip(views, bases, strict=True)})
    if len(suffixes) == 1 and suffixes[0].count(".") > 1:
        pattern = "^(.+)" + suffixes[0].replace(".", "\\.") + "$"
        yield Column({"file": "name", "re": pattern}, "", bases, order + 2, "file")


#: What numbers the repetitions of a task in a name: task__3fa9c1, task-2, task.1-of-3.2026-01-01.
REPETITION = r"^(.+?)(?:__[0-9A-Za-z]+|[._-](?:[0-9a-f]{6,}|[0-9]{1,3}|[0-9]+-of-[0-9]+.*))$"
_REPETITION = re.compile(REPETITION)


def _folder_columns(views: Sequence[RunView], order: int) -> Iterator[Column]:
    """Folders further out than the parent; names without what numbers the repetitions of a task."""
    for level, pattern in ((2, "([^/]+)/[^/]+/[^/]+$"), (3, "([^/]+)/[^/]+/[^/]+/[^/]+$")):
        values = tuple(_outer(view.file, level) for view in views)
        if len(set(values)) > 1 and MISSING not in values:
            yield Column({"file": "path", "re": pattern}, "", values, order, "file")
        kept = tuple(_kept(value) for value in values)
        if MISSING not in kept and 1 < len(set(kept)) < len(set(values)):
            spec = {"file": "path", "re": f"([^/]+?){REPETITION[6:-1]}{pattern.removeprefix('([^/]+)')}"}
            yield Column(spec, "", kept, order, "file")
    for part in ("stem", "parent"):
        kept = tuple(_kept(part_of(view.file, part)) for view in views)
        if MISSING not in kept and 1 < len(set(kept)) < len(views):
            yield Column({"file": part, "re": REPETITION}, "", kept, order, "file")


def _outer(path: str, level: int) -> Any:
    parts = path.split("/")
    return parts[-1 - level] if len(parts) > level else MISSING


def _kept(name: Any) -> Any:
    found = _REPETITION.match(name) if isinstance(name, str) else None
    return found[1] if found is not None else MISSING


def part_of(path: str, part: str) -> str:
    """`stem` of the file's name, or the name of its folder, as the spec has them."""
    folder, _, name = path.rpartition("/")
    if part == "parent":
        return folder.rpartition("/")[2]
    stem, dot, _ = name.rpartition(".")
    return stem if dot and stem else name


def base_of(path: str) -> str:
    """The file's name without any of its suffixes, as far as they are words: run-1.traj.json is run-1."""
    name = path.rpartition("/")[2]
    for _ in range(3):
        stem, dot, suffix = name.rpartition(".")
        if not (dot and stem and suffix.isascii() and suffix.isalpha() and len(suffix) <= 6):
            break
        name = stem
    return name


def _bare(place: Place) -> Place:
    """Without the steps over all elements at its end."""
    while place and place[-1] is None:
        place = place[:-1]
    return place


def _put(table: dict[tuple[str, Place], list[Any]], key: tuple[str, Place], i: int, n: int, value: Any) -> None:
    values = table.get(key)
    if values is None:
        if len(table) >= MAX_PLACES:
            return
        values = table[key] = [MISSING] * n
    values[i] = value


def _walk(value: Any, node: Node, skip: Sequence[Place], place: Place) -> Iterator[tuple[Place, Any]]:
    """Scalars and lists of a run with their places, past what lies in the places of `skip`."""
    if place in skip:
        return
    if isinstance(value, Mapping):
        if len(place) >= _DEEPEST:
            return
        for key, inner in value.items():
            name = str(key)
            if not name or ("'" in name and '"' in name):
                continue
            child = node.inner.get(name)
            if child is None:
                if len(node.inner) >= MAX_NAMES:
                    node.big = True
                    continue
                child = node.inner[name] = Node()
            yield from _walk(inner, child, skip, (*place, name))
        return
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value[:5]):
        node.is_list = True
    if not place:
        return
    yield place, value[:_LONGEST] if isinstance(value, str) else value


def sides_by(groups: Sequence[str | None], sides: Sequence[int]) -> dict[str, set[int]]:
    """The known sides (1, -1) that the runs of each group have."""
    found: dict[str, set[int]] = {}
    for group, side in zip(groups, sides, strict=True):
        if group is not None and side:
            found.setdefault(group, set()).add(side)
    return found
