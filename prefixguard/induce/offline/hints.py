"""What a person says of the events: paths that are taken as they are, whatever names, shapes and ids speak for.

A path starts at the event (`@.tool_calls[*].function.name`), or at the element of a list in it, as rules with `each`
do (`@.function.name`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.offline.beside import is_inside
from prefixguard.induce.offline.joins import Join
from prefixguard.induce.offline.places import Place, place_of
from prefixguard.induce.offline.plan_types import CallPlan, KindPlan, ResultPlan
from prefixguard.induce.offline.shapes import call_shape
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said
from prefixguard.induce.offline.units import Column, Unit
from prefixguard.lexicon import polarity

#: Hints about what is in an event.
OF_EVENTS = ("role", "tool", "arguments", "call_id", "result", "action", "status")


def column_at(unit: Unit, path: str | None) -> Column | None:
    """The column of the unit that a path means, from the event or from the unit's element; None where it has none."""
    if path is None:
        return None
    try:
        root, place = place_of(path)
    except AdapterError:
        return None
    names = _names(place)
    if root != "@" or not names:
        return None
    for column in unit.columns.values():
        if names in (_names(column.place), _names((*unit.holder, *column.place))) and column.present:
            return column
    return None


def _names(place: Place) -> tuple[str, ...]:
    return tuple(step for step in place if step is not None)


def named_calls(unit: Unit, hints: Mapping[str, str]) -> dict[str, str | None]:
    """The hints `tool` and `arguments` as names of the unit's columns, for `call_shape`."""
    found = {key: column_at(unit, hints.get(key)) for key in ("tool", "arguments")}
    return {key: column.name if column is not None else None for key, column in found.items()}


def joins_by(units: Sequence[Unit], joins: Sequence[Join], path: str | None) -> list[Join]:
    """Joins by the id that a person named, on either side; the other side is the place that repeats most of its ids.
    The given joins where it names no place, or one whose ids nothing repeats."""
    named = [(u, column) for u, unit in enumerate(units) if (column := column_at(unit, path)) is not None]
    found: list[Join] = []
    for u, column in named:
        best: tuple[float, int, Join] | None = None
        mine = _first_seen(units[u], column)
        for v, other in enumerate(units):
            if v == u or is_inside(other, units[u]) or is_inside(units[u], other):
                continue
            for place in other.columns.values():
                theirs = _first_seen(other, place) if not place.whole and place.is_id else {}
                both = mine.keys() & theirs.keys()
                if len(both) < 0.5 * min(len(mine), len(theirs)) or not both:
                    continue
                share = len(both) / len(mine)
                later = sum(theirs[key] >= mine[key] for key in both) >= 0.5 * len(both)
                call, result = ((u, column), (v, place)) if later else ((v, place), (u, column))
                if best is None or (share, -v) > best[:2]:
                    best = share, -v, Join(call[0], result[0], call[1], result[1], share, 2.0)
        if best is not None and best[2] not in found:
            found.append(best[2])
    return found or list(joins)


def _first_seen(unit: Unit, column: Column) -> dict[tuple[int, str], int]:
    seen: dict[tuple[int, str], int] = {}
    for run, event, text in zip(unit.runs, unit.events, column.texts, strict=True):
        if text:
            seen.setdefault((run, text), event)
    return seen


def obey(plans: Sequence[KindPlan], joins: Sequence[Join], units: Sequence[Unit], hints: Mapping[str, str]) -> None:
    """Make the plans of kinds what the hints say."""
    ids = {id(units[join.call]): join.call_id for join in joins}
    back = {id(units[join.result]): join.result_id for join in joins}
    if any(column_at(unit, hints.get("tool")) for unit in units):
        _calls(plans, ids, hints)
    for made in plans:
        _result(made, back, hints.get("result"))
        said = column_at(made.own, hints.get("action"))
        if said is not None and made.part not in (Part.USER, Part.RESULT):
            made.said = _as_said(said)
            made.part = Part.SAY


def _calls(plans: Sequence[KindPlan], ids: Mapping[int, Column], hints: Mapping[str, str]) -> None:
    """Units that have the tool are calls, and no others."""
    for made in plans:
        planned = {id(call.unit): call for call in made.calls}
        made.calls = []
        for unit in made.units:
            if column_at(unit, hints["tool"]) is None:
                continue
            shape = call_shape(unit, **named_calls(unit, hints))
            kept = planned.get(id(unit))
            made.calls.append(CallPlan(unit, shape, ids.get(id(unit)), kept.inline if kept is not None else None, 1.0))
            made.results = [result for result in made.results if result.unit is not unit]
        if made.calls and made.part is not Part.SAY:
            made.part, made.sure, made.why = Part.SAY, 1.0, "a hint says where its tools are"


def _result(made: KindPlan, back: Mapping[int, Column], path: str | None) -> None:
    for unit in made.units:
        column = column_at(unit, path)
        if column is None:
            continue
        call = next((call for call in made.calls if call.unit is unit), None)
        if call is not None:
            call.inline, call.call_id = column, None
            continue
        kept = [result for result in made.results if result.unit is not unit]
        made.results = [*kept, ResultPlan(unit, _as_said(column), back.get(id(unit)), 1.0)]
        if unit is made.own and not made.calls:
            made.part, made.sure, made.why = Part.RESULT, 1.0, "a hint says where its results are"
        if made.said is not None and unit is made.own and column.place in made.said.covered:
            made.said = None


def _as_said(column: Column) -> Said:
    return Said({"text": column.name}, column.name, column.texts, (column.place,), 1.0)


def status_by(column: Column) -> list[dict[str, Any]]:
    """Status rules from a flag that a person named, where its values do not say which of them is an error: by its name,
    else the rarer of two values is; anything there where mostly nothing is. Empty where it says nothing."""
    values = [value for value in column.values if value not in (None, "", [], {})]
    counts = Counter(values) if all(isinstance(value, str | int | float | bool) for value in values) else Counter()
    if len(counts) == 2:
        good = max(sorted(counts, key=str), key=lambda value: counts[value])
        if set(counts) == {True, False} and polarity(column.name) != 0:
            good = polarity(column.name) > 0
        bad = next(value for value in counts if value != good)
        return [{"when": {column.name: bad}, "is": "error"}, {"when": {column.name: good}, "is": "ok"}, {"is": "ok"}]
    if column.present < 0.5:
        return [{"when": {column.name: {"present": True}}, "is": "error"}, {"is": "ok"}]
    return []


def not_followed(units: Sequence[Unit], hints: Mapping[str, str]) -> list[str]:
    """A sentence for each hint about events that names no place in them."""
    return [
        f"The hint {key}={hints[key]} was not followed: no event that is read has anything there."
        for key in OF_EVENTS
        if key in hints and not any(column_at(unit, hints[key]) for unit in units)
    ]
