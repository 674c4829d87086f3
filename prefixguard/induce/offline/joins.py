"""Which unit makes calls and which brings their results: by who repeats whose ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from prefixguard.induce.offline.shapes import call_shape
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.units import Column, Unit
from prefixguard.lexicon import Meaning, affinity

#: Least weight of a pair of columns that counts as a join.
_LEAST = 0.75


@dataclass(frozen=True, slots=True)
class Join:
    """call, result: positions of units. call_id, result_id: columns whose values are the same. matched: share of the
    results whose id a call before them has. weight: how much speaks for it."""

    call: int
    result: int
    call_id: Column
    result_id: Column
    matched: float
    weight: float


def find_joins(units: Sequence[Unit], parts: Sequence[tuple[Part, float] | None]) -> list[Join]:
    """Joins that do not contradict each other, the weightiest first. parts: what the names of each unit say."""
    ids = [[_Ids(unit, column) for column in _ids(unit)] for unit in units]
    shapes = [call_shape(unit) for unit in units]
    shaped = [shape.weight for shape in shapes]
    found: list[Join] = []
    for u, calls in enumerate(units):
        for v, results in enumerate(units):
            if u == v or (calls.each is None and results.each is None and calls.kind is results.kind):
                continue
            if calls.kind is results.kind and (shaped[v] >= 0.5 or calls.holder == results.holder):
                continue  # one list of calls twice in an event
            same = calls.kind is results.kind
            for p in ids[u]:
                for q in ids[v]:
                    join = _join(units, u, v, p.within(same), q.within(same))
                    if join is None:
                        continue
                    weight = join.weight + 0.35 * shaped[u] - 0.25 * shaped[v]
                    if shapes[u].tool is None and shapes[u].arguments is None:
                        weight -= 0.5  # nothing in it is called
                    weight += _said(parts[u], Part.CALL) - _said(parts[u], Part.RESULT)
                    weight += _said(parts[v], Part.RESULT) - _said(parts[v], Part.CALL)
                    found.append(Join(u, v, p.column, q.column, join.matched, weight))
    found.sort(key=lambda join: (-join.weight, units[join.call].label, units[join.result].label, join.call_id.name))
    sides: dict[int, tuple[str, str]] = {}
    kept = []
    for join in found:
        if join.weight < _LEAST:
            break
        call, result = ("call", join.call_id.name), ("result", join.result_id.name)
        if sides.get(join.call, call) == call and sides.get(join.result, result) == result:
            sides[join.call], sides[join.result] = call, result
            kept.append(join)
    return kept


def _said(part: tuple[Part, float] | None, which: Part) -> float:
    return 0.3 * part[1] if part is not None and part[0] is which else 0.0


def _ids(unit: Unit) -> list[Column]:
    out = []
    for column in unit.columns.values():
        if column.whole or column.json or column.present < 0.3 or not column.is_id:
            continue
        there = [value for value in column.values if value not in (None, "")]
        if any(isinstance(value, float | bool) for value in there[:50]):
            continue
        if column.distinct < 2 and len(there) > 2:
            continue
        if max(affinity(column.name, meaning) for meaning in (Meaning.TIME, Meaning.RUN_ID)) >= 0.9:
            continue
        out.append(column)
    return out


def _numbers(column: Column) -> bool:
    return any(isinstance(value, int) for value in column.values[:200])


class _Ids:
    """Values of a column by run, with the events that have them."""

    __slots__ = ("_event", "by_run", "column", "n", "some", "unit")

    def __init__(self, unit: Unit, column: Column, scopes: Sequence[int] | None = None) -> None:
        self.column, self.unit = column, unit
        self._event: _Ids | None = None
        self.by_run: dict[tuple[int, str], list[int]] = defaultdict(list)
        for run, event, text in zip(scopes or unit.runs, unit.events, column.texts, strict=True):
            if text:
                self.by_run[run, text].append(event)
        self.n = sum(map(len, self.by_run.values()))
        self.some = list(self.by_run)[:: max(1, len(self.by_run) // 40)]

    def within(self, event: bool) -> _Ids:
        """The same by event, for calls and results that stand in one: their ids may repeat from event to event."""
        if not event:
            return self
        if self._event is None:
            self._event = _Ids(self.unit, self.column, self.unit.events)
        return self._event


def _join(units: Sequence[Unit], u: int, v: int, made_ids: _Ids, brought_ids: _Ids) -> Join | None:
    calls, results = units[u], units[v]
    p, q = made_ids.column, brought_ids.column
    made, brought, n_made, n_brought = made_ids.by_run, brought_ids.by_run, made_ids.n, brought_ids.n
    if not n_made or not n_brought or len(made) < 0.7 * n_made:
        return None
    if sum(key in made for key in brought_ids.some) < 0.3 * len(brought_ids.some):
        return None
    if calls.each is None and results.each is None and p.place != q.place:
        other_p, other_q = results.columns.get(p.place), calls.columns.get(q.place)
        if other_p is not None and other_q is not None and other_p.present > 0.5 and other_q.present > 0.3:
            return None  # a chain (id and parent id): every event has both
    hits = sum(len(events) for key, events in brought.items() if key in made and min(made[key]) <= max(events))
    met = sum(len(events) for key, events in made.items() if key in brought)
    backwards = sum(1 for key, events in brought.items() if key in made and max(events) < min(made[key]))
    matched = hits / n_brought
    if matched < 0.5 or met < 0.25 * n_made or backwards > 0.2 * len(brought):
        return None
    if len(brought) < 0.5 * n_brought:
        return None  # many results of one call: a group, not a call
    weight = 0.5 * matched + 0.2 * met / n_made
    weight += 0.15 * (affinity(p.name, Meaning.CALL_ID) + affinity(q.name, Meaning.CALL_ID))
    if _numbers(p) or _numbers(q):
        if matched < 0.8 or p.place != q.place:
            return None  # numbers meet by chance
        weight -= 0.1
    return Join(u, v, p, q, matched, weight)
