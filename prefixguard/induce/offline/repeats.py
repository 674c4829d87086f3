"""What the samples say more than once: histories that every request repeats, copies of a list of calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from prefixguard.induce.offline.plan_types import CallPlan, KindPlan
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said
from prefixguard.induce.offline.units import Unit


def says_arguments(said: Said, call: CallPlan) -> bool:
    """Does the text only say the arguments again?"""
    arguments = call.shape.arguments
    if arguments is None or len(arguments.texts) != len(said.texts):
        return False
    pairs = [(a, b) for a, b in zip(said.texts, arguments.texts, strict=True) if a and b]
    return bool(pairs) and sum(a == b for a, b in pairs) >= 0.6 * len(pairs)


def once(made: KindPlan) -> None:
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


def within_repeat(unit: Unit, repeat: tuple[Any, Any]) -> bool:
    kind, holder = repeat
    return unit.kind is kind and unit.holder[: len(holder)] == holder


def is_history(unit: Unit) -> bool:
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


def drop_repeated(plans: Sequence[KindPlan]) -> None:
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
            made.called = repeated > 0.7 * len(keys)
            continue
        seen |= set(keys)


def drop_echoes(plans: Sequence[KindPlan]) -> None:
    """Speech that only says what other kinds said (the answer again, in the span of the whole run) is left out."""
    says = [made for made in plans if made.part is Part.SAY and made.said is not None and not made.calls]
    for made in says:
        mine = [text for text in made.said.texts if text] if made.said is not None else []
        others = {
            text
            for one in plans
            if one is not made and one.part is Part.SAY and one.said is not None
            for text in one.said.texts
            if text
        }
        if mine and len(mine) < len(others) and sum(text in others for text in mine) >= 0.8 * len(mine):
            made.part, made.said, made.why = Part.NOISE, None, "it says again what was said"
