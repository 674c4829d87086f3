"""What each kind of event is in a run: who speaks, what is called, what comes back. Decided by joins, by the shape of
calls, by names, and where these are silent by who follows whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from prefixguard.induce.offline.beside import inline_result, is_inside, results_beside, same_place
from prefixguard.induce.offline.hints import joins_by, named_calls, obey
from prefixguard.induce.offline.joins import find_joins
from prefixguard.induce.offline.plan_types import CallPlan, KindPlan, Plans, ResultPlan
from prefixguard.induce.offline.repeats import (
    drop_echoes,
    drop_repeated,
    is_history,
    once,
    says_arguments,
    within_repeat,
)
from prefixguard.induce.offline.shapes import call_shape, speaks_for_itself
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import said_in
from prefixguard.induce.offline.turn_order import by_form, by_order
from prefixguard.induce.offline.units import Column, Table, Unit, part_of_unit
from prefixguard.lexicon import Meaning, affinity, words


def plan(table: Table, units: Sequence[Unit], hints: Mapping[str, str]) -> Plans:
    """Decide what every kind is."""
    repeats = [(unit.kind, unit.holder) for unit in units if unit.each is not None and is_history(unit)]
    units = [unit for unit in units if unit.each is None or not any(within_repeat(unit, one) for one in repeats)]
    parts = [part_of_unit(unit) for unit in units]
    joins = joins_by(units, find_joins(units, parts), hints.get("call_id"))
    by_kind: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        by_kind[id(unit.kind)].append(i)
    call_side = {join.call: join.call_id for join in reversed(joins)}
    result_side = {join.result: join.result_id for join in reversed(joins)}
    plans = []
    for indexes in by_kind.values():
        plans.append(_kind(indexes, units, parts, call_side, result_side, hints))
    obey(plans, joins, units, hints)
    same_place(plans)
    drop_repeated(plans)
    _users_calls(plans)
    results_beside(plans)
    drop_echoes(plans)
    by_order(table, plans)
    by_form(table, plans)
    n_brought = sum(len(units[join.result].elements) for join in joins)
    matched = sum(join.matched * len(units[join.result].elements) for join in joins) / n_brought if n_brought else 0.0
    return Plans(plans, joins, matched)


def _kind(
    indexes: Sequence[int],
    units: Sequence[Unit],
    parts: Sequence[tuple[Part, float] | None],
    call_side: Mapping[int, Column],
    result_side: Mapping[int, Column],
    hints: Mapping[str, str],
) -> KindPlan:
    own = units[indexes[0]]
    made = KindPlan(own, [units[i] for i in indexes])
    made.agent = _agent_name(own)
    for i in indexes:
        unit, part = units[i], parts[i]
        shape = call_shape(unit, **named_calls(unit, hints))
        if i in result_side:
            text = said_in(unit, _parts_of(unit, units), Meaning.RESULT, without=(result_side[i].place,))
            if text is not None:
                made.results.append(ResultPlan(unit, text, result_side[i], 1.0))
            continue
        named = part[0] if part is not None else None
        looks = shape.tool is not None and shape.arguments is not None and shape.weight >= 0.4
        allowed = named in (None, Part.CALL, Part.SAY, Part.STEP, Part.NOISE) or (
            named is Part.RESULT and shape.weight > 0.6
        )
        if looks and i not in call_side and named is not Part.CALL and not speaks_for_itself(unit, shape):
            looks = False
        if i in call_side or (looks and allowed) or (named is Part.CALL and shape.tool is not None):
            if unit.depth == 2 and any(call.unit.holder == unit.holder[: len(call.unit.holder)] for call in made.calls):
                continue  # inside a call already
            inline = None if i in call_side else inline_result(unit, shape)
            made.calls.append(CallPlan(unit, shape, call_side.get(i), inline, shape.weight))
        elif unit.each is not None and named is Part.RESULT and part is not None and part[1] >= 0.8:
            text = said_in(unit, _parts_of(unit, units), Meaning.RESULT)
            if text is not None:
                made.results.append(ResultPlan(unit, text, None, part[1]))
    if any(call.call_id is not None for call in made.calls) or any(call.unit is not own for call in made.calls):
        made.calls = [call for call in made.calls if call.unit is not own or call.call_id is not None]
    if any(call.call_id is not None for call in made.calls):
        made.calls = [call for call in made.calls if call.call_id is not None or call.inline is not None]
    once(made)
    taken = [call.unit for call in made.calls] + [result.unit for result in made.results]
    nested = [unit for unit in made.units[1:] if unit not in taken and not any(is_inside(unit, one) for one in taken)]
    part = parts[indexes[0]]
    part_name = part[0] if part is not None else None
    meaning = Meaning.RESULT if part_name is Part.RESULT else Meaning.TEXT
    own_call = next((call for call in made.calls if call.unit is own), None)
    own_result = next((result for result in made.results if result.unit is own), None)
    without: list[Any] = []
    if own_call is not None:
        without = [
            c.place for c in (own_call.shape.tool, own_call.shape.arguments, own_call.call_id, own_call.inline) if c
        ]
    if own_result is not None:
        made.part, made.sure, made.why = Part.RESULT, 0.95, "its ids are those of calls"
        return made
    lists = tuple(unit.holder for unit in taken if unit.each is not None)
    made.said = said_in(own, nested, meaning, without=tuple(without), beside_call=bool(made.calls), lists=lists)
    if made.said is not None and any(says_arguments(made.said, call) for call in made.calls):
        made.said = None
    if part is not None:
        made.part, made.sure, made.why = part[0], part[1], f"named {own.words[-1]!r}" if own.words else ""
    elif made.calls:
        made.part, made.sure, made.why = Part.SAY, 0.8, "it makes calls"
    elif made.results:
        made.part, made.sure, made.why = Part.USER, 0.8, "it brings results"
    else:
        made.part, made.sure, made.why = Part.NOISE, 0.0, "nothing says what it is"
    if made.part is Part.USER and made.agent is not None and made.agent.distinct >= 3 and not made.results:
        made.part, made.sure, made.why = (
            Part.SAY,
            0.6,
            f"several speak under this role, each with a name in {made.agent.name}",
        )
    if made.calls and made.part in (Part.RESULT, Part.NOISE, Part.SYSTEM, Part.THOUGHT):
        made.part = Part.SAY
    if made.results and made.part is Part.NOISE:
        made.part = Part.USER
    return made


def _agent_name(own: Unit) -> Column | None:
    """The column of the speaker's name; never what a call is called."""
    best: tuple[float, str, Column] | None = None
    shape = call_shape(own)
    tool = shape.tool if shape.arguments is not None else None  # a name alone may be the speaker's
    for column in own.columns.values():
        if tool is not None and (column.place == tool.place or column.texts == tool.texts):
            continue
        if any(set(words(step or "")) & _CALLED for step in column.place):
            continue
        if column.whole or not column.present > 0.5 or len(column.place) > 3:
            continue
        if not 2 <= column.distinct <= 40 or column.distinct > 0.5 * len(own.elements) or not column.is_name:
            continue
        named = affinity(column.name, Meaning.AGENT)
        if named >= 0.5 and (best is None or (-named, column.name) < (-best[0], best[1])):
            best = named, column.name, column
    return best[2] if best is not None else None


_CALLED = frozenset({"tool", "function", "call", "args", "arguments", "params", "parameters", "input"})


def _users_calls(plans: Sequence[KindPlan]) -> None:
    """Calls that a user makes, and their results, are no steps of the agent."""
    others = any(made.calls for made in plans if made.part is not Part.USER)
    for made in plans:
        if made.part is Part.USER and made.calls:
            if others:
                made.calls.clear()
            else:
                made.part, made.why = Part.SAY, "only this side makes calls"


def _parts_of(unit: Unit, units: Sequence[Unit]) -> list[Unit]:
    """Units in the lists that the unit's elements hold."""
    return [
        one
        for one in units
        if one.kind is unit.kind and one.depth > unit.depth and (unit.each is None or is_inside(one, unit))
    ]
