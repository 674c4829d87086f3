"""What stands beside a call in its event: its result, what was said or thought before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prefixguard.induce.offline.places import Place
from prefixguard.induce.offline.plan_types import CallPlan, KindPlan, ResultPlan
from prefixguard.induce.offline.shapes import CallShape
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said, complete, said_in
from prefixguard.induce.offline.units import Column, Unit
from prefixguard.lexicon import Meaning, affinity, words


def same_place(plans: Sequence[KindPlan]) -> None:
    """Kinds in which no place was found that says something: where the other kinds say it, or a thought."""
    places = Counter(made.said.covered[0] for made in plans if made.said is not None and made.said.covered)
    common = min(places, key=lambda place: (-places[place], str(place)), default=None)
    for made in plans:
        if made.said is not None or (made.part in (Part.NOISE, Part.RESULT) and made.sure > 0):
            continue
        taken = [call.unit for call in made.calls] + [result.unit for result in made.results]
        nested = [
            unit for unit in made.units[1:] if unit not in taken and not any(is_inside(unit, one) for one in taken)
        ]
        lists = tuple(unit.holder for unit in taken if unit.each is not None)
        without = tuple(
            column.place
            for call in made.calls
            if call.unit is made.own
            for column in (call.shape.tool, call.shape.arguments, call.call_id, call.inline)
            if column is not None
        )
        if common is not None and common in made.own.columns:
            made.said = said_in(made.own, nested, Meaning.TEXT, without=without, lists=lists, prefer=common)
            if made.said is not None and made.said.covered[0] != common:
                made.said = None
        if made.said is None and made.calls:
            made.said = _thought(made, nested, without)


def _thought(made: KindPlan, nested: Sequence[Unit], without: Sequence[Place]) -> Said | None:
    """What the agent says before a call, where it is called a thought. Reasoning that is not shown has other names."""
    for place, column in sorted(made.own.columns.items(), key=lambda kv: str(kv[0])):
        if place and {"thought", "thoughts"} & set(words(place[-1] or "")) and len(place) <= 3 and place not in without:
            if any(isinstance(value, str) and value for value in column.values):
                return Said({"text": column.name}, column.name, column.texts, (place,), 0.6)
            inside = [unit for unit in nested if unit.holder == place]
            return said_in(made.own, inside, Meaning.TEXT, prefer=place) if inside else None
    return None


def is_inside(unit: Unit, outer: Unit) -> bool:
    """Is the unit a part of the other's elements?"""
    return outer.each is not None and unit.depth > outer.depth and unit.holder[: len(outer.holder)] == outer.holder


def _nests(a: Place, b: Place) -> bool:
    return a[: len(b)] == b or b[: len(a)] == a


def _own_result(own: Unit, made: KindPlan) -> ResultPlan | None:
    """What came back, where it stands beside the calls in the event of the agent."""
    if any(call.unit is own or call.call_id is not None for call in made.calls):
        return None
    best: tuple[float, int, Column] | None = None
    for column in own.columns.values():
        if any(_nests(column.place, call.unit.holder) for call in made.calls):
            continue
        named = affinity(column.name, Meaning.RESULT)
        if named < 0.9 or column.present < 0.2 or len(column.place) > 3 or not column.size:
            continue
        if affinity(column.name, Meaning.MODEL) >= 0.5 or affinity(column.name, Meaning.TEXT) > named:
            continue
        if best is None or (named, column.size) > best[:2]:
            best = named, column.size, column
    if best is None:
        best = _unnamed(own, made)
    if best is None:
        return None
    column = best[2]
    said = Said({"text": column.name}, column.name, column.texts, (column.place,), best[0])
    complete(own, said)
    return ResultPlan(own, said, None, 0.7)


def _unnamed_inside(made: KindPlan, call: CallPlan) -> Column | None:
    """The longest text of a call's event that nothing else reads and whose name says nothing: what came back, where no
    event of its own brings it."""
    taken = [column.place for column in (call.shape.tool, call.shape.arguments) if column is not None]
    taken += made.said.covered if made.said is not None else ()
    keys = list(made.own.elements[0]) if made.own.elements and isinstance(made.own.elements[0], dict) else []
    at = max((keys.index(place[0]) for place in taken if place and place[0] in keys), default=-1)
    found = [  # what stands after the arguments rather than before
        (bool(keys) and column.place[0] in keys and keys.index(column.place[0]) > at, column.size, column.name, column)
        for column in made.own.columns.values()
        if _speaks_freely(column) and column.present >= 0.3 and not any(_nests(column.place, place) for place in taken)
    ]
    return max(found, key=lambda one: one[:3], default=(False, 0, "", None))[3]


def _speaks_freely(column: Column) -> bool:
    """Texts that vary, are no names and no ids, under a name that no vocabulary knows."""
    return (
        not column.whole
        and bool(column.place)
        and max(affinity(column.name, meaning) for meaning in Meaning) < 0.3
        and column.distinct >= 3
        and not column.is_name
        and not column.is_id
        and any(isinstance(value, str) for value in column.values)
    )


def _unnamed(own: Unit, made: KindPlan) -> tuple[float, int, Column] | None:
    """The longest text beside the calls whose name says nothing: what came back is longer than what was said."""
    found = [
        (0.5, column.size, column)
        for column in own.columns.values()
        if _speaks_freely(column) and not any(_nests(column.place, call.unit.holder) for call in made.calls)
    ]
    return max(found, key=lambda one: (one[1], one[2].name), default=None)


def inline_result(unit: Unit, shape: CallShape) -> Column | None:
    """The column of the result inside a call, where there is one."""
    taken = [column.place for column in (shape.tool, shape.arguments) if column is not None]
    best: tuple[float, int, Column] | None = None
    for column in unit.columns.values():
        if any(column.place[: len(p)] == p or p[: len(column.place)] == column.place for p in taken):
            continue
        named = affinity(column.name, Meaning.RESULT)
        if named < 0.6 or column.present < 0.3 or column.size == 0:
            continue
        if best is None or (named, column.size) > best[:2]:
            best = named, column.size, column
    return _leaf(unit, best[2]) if best is not None else None


def _leaf(unit: Unit, column: Column) -> Column:
    """The text inside an object that holds little else."""
    if not column.whole:
        return column
    for place, inner in sorted(unit.columns.items(), key=lambda kv: str(kv[0])):
        if place[: len(column.place)] == column.place and not inner.whole and inner.size >= 0.6 * column.size:
            return inner
    return column


def results_beside(plans: Sequence[KindPlan]) -> None:
    """Results that stand beside the calls, in the event of the agent; where no other event brings them."""
    if any(made.results or (made.part is Part.RESULT and made.sure >= 0.7) for made in plans):
        return
    for made in plans:
        for call in made.calls:
            if call.unit is made.own and call.call_id is None and call.inline is None:
                call.inline = _unnamed_inside(made, call)
        if made.calls and not made.results and all(call.inline is None for call in made.calls):
            back = _own_result(made.own, made)
            if back is not None:
                made.results.append(back)
                if made.said is not None and made.said.covered == back.text.covered:
                    made.said = None
