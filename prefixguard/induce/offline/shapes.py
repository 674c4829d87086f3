"""What a call looks like, whatever its keys are called: a short name from a small vocabulary beside an object whose
keys depend on it."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.arrays import parse_inside
from prefixguard.induce.offline.units import Column, Unit
from prefixguard.lexicon import Meaning, affinity

#: More names than this are no vocabulary of tools.
MOST_TOOLS = 64


_NO_TOOL = (Meaning.MODEL, Meaning.TIME, Meaning.RUN_ID, Meaning.STATUS, Meaning.AFTER_END, Meaning.ROLE)


@dataclass(frozen=True, slots=True)
class CallShape:
    """tool, arguments: columns, None where there is none. weight: how much the unit looks like a call, in [0, 1]."""

    tool: Column | None
    arguments: Column | None
    weight: float


def call_shape(unit: Unit, *, tool: str | None = None, arguments: str | None = None) -> CallShape:
    """The columns of a unit that are its tool and its arguments. tool, arguments: paths that a person gave."""
    used = {place for place, _ in (*unit.inner, *(unit.kind.when if unit.each is None else ()))}
    named = _given(unit, tool) or _best_tool(unit, used)
    given = _given(unit, arguments)
    if given is not None:
        return CallShape(named[0] if named else None, given[0], 1.0)
    best: tuple[float, str, Column] | None = None
    for column in unit.columns.values():
        weight = _arguments(unit, column, named[0] if named else None)
        if weight > 0.3 and (best is None or (-weight, column.name) < (-best[0], best[1])):
            best = weight, column.name, column
    if best is not None and named is not None and (pair := _inner_pair(unit, named[0], best[2])) is not None:
        return CallShape(pair[0], pair[1], min(1.0, 0.5 * named[1] + 0.5))
    tool_weight = named[1] if named else 0.0
    if best is None:
        return CallShape(named[0] if named else None, None, 0.4 * tool_weight)
    return CallShape(named[0] if named else None, best[2], 0.5 * tool_weight + 0.5 * min(1.0, best[0]))


def speaks_for_itself(unit: Unit, shape: CallShape) -> bool:
    """Is it a call without an id that is repeated: by both names, or because the tool decides the keys?"""
    if shape.tool is None or shape.arguments is None:
        return False
    named = min(affinity(shape.tool.name, Meaning.TOOL), affinity(shape.arguments.name, Meaning.ARGUMENTS))
    return named >= 0.5 or _keys_depend(unit, shape.tool) >= 0.8


def _inner_pair(unit: Unit, tool: Column, outer: Column) -> tuple[Column, Column] | None:
    """A name and its arguments inside what looked like the arguments: {"method", "params": {"name", "arguments"}}. By
    their names, or because the outer name is nearly always the same and the inner one decides the keys beside it."""
    inside = [c for c in unit.columns.values() if len(c.place) == len(outer.place) + 1 and c.place[:-1] == outer.place]
    names = [c for c in inside if not c.whole and c.is_name and c.present > 0.4]
    objects = [c for c in inside if c.whole or c.json]
    said = [c for c in names if affinity(c.name, Meaning.TOOL) >= 0.5]
    given = [c for c in objects if affinity(c.name, Meaning.ARGUMENTS) >= 0.9]
    if len(said) == 1 and len(given) == 1:
        return said[0], given[0]
    usual = Counter(tool.texts).most_common(1)[0][1] / max(1, len(tool.texts))
    deciding = [(c, o) for c in names for o in objects if c.distinct >= 3 and _decides(c, o) >= 0.9]
    return deciding[0] if usual >= 0.6 and len(deciding) == 1 else None


def _given(unit: Unit, path: str | None) -> tuple[Column, float] | None:
    column = next((one for one in unit.columns.values() if one.name == path), None) if path else None
    return (column, 1.0) if column is not None else None


def _best_tool(unit: Unit, used: set[tuple[str | None, ...]]) -> tuple[Column, float] | None:
    n = len(unit.elements)
    best: tuple[float, str, Column] | None = None
    for place, column in unit.columns.items():
        if column.whole or column.json or column.present < 0.5 or place in used or not column.is_name:
            continue
        distinct = column.distinct
        if distinct > MOST_TOOLS or (n >= 8 and distinct > 0.6 * n):
            continue
        if any(isinstance(value, bool | int | float) for value in column.values[:50]):
            continue
        score = 0.6 * affinity(column.name, Meaning.TOOL) + 0.3 * (distinct >= 2)
        score -= 0.35 * max(
            0.0,
            max(affinity(column.name, m) for m in _NO_TOOL) - 0.4,
        )
        score -= 0.2 * (distinct == 1) + 0.02 * len(place)
        score += 0.25 * _keys_depend(unit, column)
        score += 0.3 * (distinct == 1 and _beside_arguments(unit, column))
        if best is None or (-score, column.name) < (-best[0], best[1]):
            best = score, column.name, column
    return (best[2], min(1.0, best[0])) if best is not None and best[0] >= 0.3 else None


def _beside_arguments(unit: Unit, column: Column) -> bool:
    """Is it a name beside something that is called arguments? Then it may be an agent's only tool."""
    return affinity(column.name, Meaning.TOOL) >= 0.5 and any(
        other.place[:-1] == column.place[:-1] and affinity(other.name, Meaning.ARGUMENTS) >= 0.9
        for other in unit.columns.values()
        if other is not column
    )


def arguments_value(column: Column) -> Any:
    """How the spec reads arguments: as they are, or as the object that a string spells, in JSON or as Python does."""
    return {"json": column.name, "python": True} if column.json else column.name


def objects_of(column: Column) -> list[dict[str, object] | None]:
    """The objects that the column holds, also as JSON in strings."""
    out: list[dict[str, object] | None] = []
    for value in column.values:
        if isinstance(value, str) and column.json:
            value = parse_inside(value)
        out.append(value if isinstance(value, dict) else None)
    return out


def _keys_depend(unit: Unit, tool: Column) -> float:
    """1 where some object beside the name has keys that the name decides, less where they vary otherwise."""
    return max(
        (
            _decides(tool, column)
            for place, column in unit.columns.items()
            if (column.whole or column.json) and place != tool.place[: len(place)]
        ),
        default=0.0,
    )


def _decides(name: Column, column: Column) -> float:
    """Share of the objects whose keys are the usual ones of their name; 0 where keys or names do not vary."""
    by: dict[str, Counter[frozenset[str]]] = defaultdict(Counter)
    for text, value in zip(name.texts, objects_of(column), strict=True):
        if value is not None and text:
            by[text][frozenset(value)] += 1
    if len(by) < 2 or len({keys for counts in by.values() for keys in counts}) < 2:
        return 0.0
    return sum(counts.most_common(1)[0][1] for counts in by.values()) / sum(counts.total() for counts in by.values())


def _arguments(unit: Unit, column: Column, tool: Column | None) -> float:
    place = column.place
    if tool is not None and (place == tool.place or place == tool.place[: len(place)]):
        return 0.0
    named = affinity(column.name, Meaning.ARGUMENTS)
    if column.present < 0.2:
        return 0.0
    if column.whole or column.json:
        objects = [value for value in objects_of(column) if value is not None]
        if len(objects) < 0.5 * sum(value not in (None, "") for value in column.values) or not objects:
            return 0.0
        shapes = Counter(frozenset(value) for value in objects)
        varied = len(shapes) >= 2 or (len(objects) <= 3 and bool(shapes))
        near = tool is not None and place[:-1] == tool.place[:-1]
        decided = _decides(tool, column) if tool is not None else 0.0
        back = max(0.0, affinity(column.name, Meaning.RESULT) - 0.2)
        return (
            0.7 * named
            - 0.4 * back
            + 0.45 * varied
            + 0.1 * column.json
            + 0.2 * near
            + 0.2 * (decided >= 0.9)
            - 0.03 * len(place)
        )
    if named >= 0.4 and column.present > 0.3 and any(isinstance(value, str) for value in column.values):
        return 0.6 * named - 0.03 * len(place)
    return 0.0
