"""What each kind of event is in a run: who speaks, what is called, what comes back. Decided by joins, by the shape of
calls, by names, and where these are silent by who follows whom."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.names import Meaning, affinity, words
from prefixguard.induce.offline.call_forms import CallForm, infer_call_form
from prefixguard.induce.offline.joins import Join, find_joins
from prefixguard.induce.offline.places import Place, spell
from prefixguard.induce.offline.shapes import CallShape, call_shape, speaks_for_itself
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said, complete, said_in
from prefixguard.induce.offline.units import Column, Table, Unit, part_of_unit


@dataclass(slots=True)
class CallPlan:
    """A unit that is a call. inline: column of the result where the call carries it."""

    unit: Unit
    shape: CallShape
    call_id: Column | None
    inline: Column | None
    weight: float


@dataclass(slots=True)
class ResultPlan:
    """A unit that is a result. text: where it is."""

    unit: Unit
    text: Said
    call_id: Column | None
    weight: float


@dataclass(slots=True)
class KindPlan:
    """How one kind of event is read.

    part: what it is. said: its text. form: how calls stand in that text. agent: column of the speaker's name. speaker:
    path whose value is the speaker, where it is what tells kinds apart. sure: in [0, 1]. why: a sentence.
    """

    own: Unit
    units: list[Unit]
    part: Part = Part.NOISE
    said: Said | None = None
    form: CallForm | None = None
    calls: list[CallPlan] = field(default_factory=list)
    results: list[ResultPlan] = field(default_factory=list)
    agent: Column | None = None
    sure: float = 0.5
    why: str = ""
    speaker: str | None = None


@dataclass(slots=True)
class Plans:
    """All kinds, the joins that hold, and how often calls of separate events stand open together."""

    kinds: list[KindPlan]
    joins: list[Join]
    matched: float


def plan(table: Table, units: Sequence[Unit], hints: Mapping[str, str]) -> Plans:
    """Decide what every kind is."""
    repeats = [(unit.kind, unit.holder) for unit in units if unit.each is not None and _history(unit)]
    units = [unit for unit in units if unit.each is None or not any(_within(unit, one) for one in repeats)]
    parts = [part_of_unit(unit) for unit in units]
    joins = find_joins(units, parts)
    by_kind: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(units):
        by_kind[id(unit.kind)].append(i)
    call_side = {join.call: join.call_id for join in reversed(joins)}
    result_side = {join.result: join.result_id for join in reversed(joins)}
    plans = []
    for indexes in by_kind.values():
        plans.append(_kind(indexes, units, parts, call_side, result_side, hints))
    _same_place(plans)
    _drop_repeated(plans)
    _users_calls(plans)
    _beside(plans)
    _by_order(table, plans)
    _by_form(table, plans)
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
        shape = call_shape(unit, tool=hints.get("tool"), arguments=hints.get("arguments"))
        if i in result_side:
            text = said_in(unit, [], Meaning.RESULT, without=(result_side[i].place,))
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
            inline = None if i in call_side else _inline(unit, shape)
            made.calls.append(CallPlan(unit, shape, call_side.get(i), inline, shape.weight))
        elif unit.each is not None and named is Part.RESULT and part is not None and part[1] >= 0.8:
            text = said_in(unit, [], Meaning.RESULT)
            if text is not None:
                made.results.append(ResultPlan(unit, text, None, part[1]))
    if any(call.call_id is not None for call in made.calls) or any(call.unit is not own for call in made.calls):
        made.calls = [call for call in made.calls if call.unit is not own or call.call_id is not None]
    if any(call.call_id is not None for call in made.calls):
        made.calls = [call for call in made.calls if call.call_id is not None or call.inline is not None]
    _one_way(made)
    taken = [call.unit for call in made.calls] + [result.unit for result in made.results]
    nested = [unit for unit in made.units[1:] if unit not in taken and not any(_inside(unit, one) for one in taken)]
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
    if made.said is not None and any(_same_text(made.said, call) for call in made.calls):
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


def _same_place(plans: Sequence[KindPlan]) -> None:
    """Kinds in which no place was found that says something: where the other kinds say it, or a thought."""
    places = Counter(made.said.covered[0] for made in plans if made.said is not None and made.said.covered)
    common = min(places, key=lambda place: (-places[place], str(place)), default=None)
    for made in plans:
        if made.said is not None or (made.part in (Part.NOISE, Part.RESULT) and made.sure > 0):
            continue
        taken = [call.unit for call in made.calls] + [result.unit for result in made.results]
        nested = [unit for unit in made.units[1:] if unit not in taken and not any(_inside(unit, one) for one in taken)]
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


def _same_text(said: Said, call: CallPlan) -> bool:
    """Does the text only say the arguments again?"""
    arguments = call.shape.arguments
    if arguments is None or len(arguments.texts) != len(said.texts):
        return False
    pairs = [(a, b) for a, b in zip(said.texts, arguments.texts, strict=True) if a and b]
    return bool(pairs) and sum(a == b for a, b in pairs) >= 0.6 * len(pairs)


def _inside(unit: Unit, outer: Unit) -> bool:
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
        return None
    column = best[2]
    said = Said({"text": column.name}, column.name, column.texts, (column.place,), best[0])
    complete(own, said)
    return ResultPlan(own, said, None, 0.7)


def _one_way(made: KindPlan) -> None:
    """A list of calls that stands twice in an event (a message and the provider's copy of it) is read once: the
    shallower, with ids."""
    kept: list[CallPlan] = []
    for call in sorted(made.calls, key=lambda c: (c.call_id is None, c.unit.depth, len(c.unit.holder), c.unit.label)):
        twin = next((other for other in kept if _same_calls(call, other)), None)
        if twin is None:
            kept.append(call)
    made.calls = [call for call in made.calls if call in kept]


def _same_calls(a: CallPlan, b: CallPlan) -> bool:
    if a.unit is b.unit or a.shape.tool is None or b.shape.tool is None:
        return a.unit is b.unit
    mine = Counter(zip(a.unit.events, a.shape.tool.texts, strict=True))
    theirs = Counter(zip(b.unit.events, b.shape.tool.texts, strict=True))
    return (mine & theirs).total() >= 0.8 * mine.total()


def _inline(unit: Unit, shape: CallShape) -> Column | None:
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


def _agent_name(own: Unit) -> Column | None:
    """The column of the speaker's name; never what a call is called."""
    best: tuple[float, str, Column] | None = None
    tool = call_shape(own).tool
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


def _pieces(texts: Sequence[str]) -> set[int]:
    return {hash(text.strip()[:400]) for text in texts if len(text.strip()) >= 12}


def _within(unit: Unit, repeat: tuple[Any, Any]) -> bool:
    kind, holder = repeat
    return unit.kind is kind and unit.holder[: len(holder)] == holder


def _history(unit: Unit) -> bool:
    """Do the elements say again and again what they said before: the history that every request repeats?"""
    seen: set[tuple[int, int]] = set()
    new = total = 0
    for i, run in enumerate(unit.runs):
        total += 1
        key = run, hash(repr(unit.elements[i])[:4000])
        if key not in seen:
            seen.add(key)
            new += 1
    return total >= 6 and new < 0.5 * total


def _drop_repeated(plans: Sequence[KindPlan]) -> None:
    """Calls and results that another kind already says (a history repeated in every request) are read once."""
    claims: list[tuple[KindPlan, CallPlan]] = [(made, call) for made in plans for call in made.calls]
    claims.sort(
        key=lambda one: (one[1].call_id is None and one[1].inline is None, one[1].unit.depth, one[1].unit.label)
    )
    seen: set[tuple[int, str, str]] = set()
    for made, call in claims:
        if call.shape.tool is None:
            continue
        arguments = call.shape.arguments
        keys = [
            (run, tool, arguments.texts[i][:300] if arguments is not None else "")
            for i, (run, tool) in enumerate(zip(call.unit.runs, call.shape.tool.texts, strict=True))
        ]
        repeated = sum(key in seen for key in keys)
        itself = len(keys) - len(set(keys))
        if keys and (repeated > 0.7 * len(keys) or itself > 0.6 * len(keys)) and len(claims) > 1:
            made.calls.remove(call)
            continue
        seen |= set(keys)


def _beside(plans: Sequence[KindPlan]) -> None:
    """Results that stand beside the calls, in the event of the agent."""
    for made in plans:
        if made.calls and not made.results and all(call.inline is None for call in made.calls):
            back = _own_result(made.own, made)
            if back is not None:
                made.results.append(back)
                if made.said is not None and made.said.covered == back.text.covered:
                    made.said = None


def _users_calls(plans: Sequence[KindPlan]) -> None:
    """Calls that a user makes, and their results, are no steps of the agent."""
    others = any(made.calls for made in plans if made.part is not Part.USER)
    for made in plans:
        if made.part is Part.USER and made.calls:
            if others:
                made.calls.clear()
            else:
                made.part, made.why = Part.SAY, "only this side makes calls"


def _by_order(table: Table, plans: Sequence[KindPlan]) -> None:
    """Kinds that nothing named: by what they follow, where runs begin, and whose text is always the same."""
    unknown = [made for made in plans if made.sure == 0.0 and made.said is not None]
    if not unknown:
        return
    kind_at = {event: number for number, made in enumerate(plans) for event in made.own.events}
    following: dict[int, Counter[int]] = defaultdict(Counter)
    starts: Counter[int] = Counter()
    last: dict[int, int] = {}
    for event, run in enumerate(table.runs):
        kind = kind_at.get(event)
        if kind is None:
            continue
        if run not in last:
            starts[kind] += 1
        else:
            following[last[run]][kind] += 1
        last[run] = kind
    agents = [n for n, made in enumerate(plans) if made.calls or (made.part is Part.SAY and made.sure > 0)]
    answered = any(made.results or made.part is Part.RESULT for made in plans if made.sure > 0)
    for number, made in enumerate(plans):
        if made not in unknown or made.said is None:
            continue
        n = len(made.own.elements)
        texts = [text for text in made.said.texts if text]
        once = n <= 1.2 * table.n_runs and starts[number] >= 0.7 * n
        if once and table.n_runs >= 3 and len(set(texts)) <= max(1, 0.34 * len(texts)):
            made.part, made.sure, made.why = Part.SYSTEM, 0.6, "every run begins with the same text of this kind"
            continue
        if once:
            made.part, made.sure, made.why = Part.USER, 0.6, "runs begin with it and it comes once"
            continue
        after_agent = sum(following[a][number] for a in agents)
        if agents and after_agent >= 0.6 * n and not answered:
            made.part, made.sure, made.why = Part.RESULT, 0.6, "it follows what the agent does"
    _two_sides(plans, [made for made in unknown if made.sure == 0.0], following, starts)


def _two_sides(
    plans: Sequence[KindPlan],
    unknown: Sequence[KindPlan],
    following: Mapping[int, Counter[int]],
    starts: Counter[int],
) -> None:
    """Who is left speaks in turn: the side whose text has the form of calls is the agent; else who does not begin."""
    if not unknown:
        return
    known_agent = any(made.part is Part.SAY and made.sure > 0 for made in plans)
    known = sum(made.said.size for made in plans if made.part is Part.SAY and made.sure > 0 and made.said is not None)
    if known_agent and sum(made.said.size for made in unknown if made.said is not None) > known:
        for made in unknown:
            made.part, made.sure, made.why = (
                Part.SAY,
                0.5,
                "one of several who speak, and more than the agent that is named",
            )
            made.speaker = spell("@", made.own.kind.when[0][0]) if made.own.kind.when else None
        return
    if known_agent:
        for made in unknown:
            made.part, made.sure, made.why = Part.USER, 0.3, "the agent is another kind"
        return
    known_other = any(made.part in (Part.USER, Part.RESULT) and made.sure >= 0.7 for made in plans)
    forms = {}
    for made in unknown:
        form = infer_call_form([text for text in made.said.texts if text], "@") if made.said is not None else None
        forms[id(made)] = form.share * form.confidence if form is not None else 0.0
    numbers = {id(made): number for number, made in enumerate(plans)}
    ranked = sorted(unknown, key=lambda made: (-round(forms[id(made)], 2), starts[numbers[id(made)]], made.own.label))
    for rank, made in enumerate(ranked):
        if rank == 0 or known_other or len(unknown) > 4 or (rank > 0 and forms[id(made)] > 0.5):
            made.part, made.sure, made.why = Part.SAY, 0.45, "it speaks in turn with the other kinds"
            if len(unknown) > 4 and made.own.kind.when:
                made.speaker = spell("@", made.own.kind.when[0][0])
        else:
            made.part, made.sure, made.why = Part.USER, 0.4, "it speaks in turn with the agent"


def _by_form(table: Table, plans: Sequence[KindPlan]) -> None:
    """Calls that stand in the agent's text: where no unit is a call."""
    if any(made.calls for made in plans):
        return
    says = [made for made in plans if made.part is Part.SAY and made.said is not None]
    together = [text for made in says if made.said is not None for text in made.said.texts if text]
    if len(says) > 1 and (form := infer_call_form(together, "@")) is not None and form.share * form.confidence < 0.25:
        return
    if len(says) > 1 and form is None:
        return
    for made in says:
        if made.said is None:
            continue
        texts = [text for text in made.said.texts if text]
        form = infer_call_form(texts, made.said.path) if made.said.path is not None else None
        if form is not None and form.share * form.confidence >= 0.25:
            made.form = form
