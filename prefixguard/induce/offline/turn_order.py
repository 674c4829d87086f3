"""Kinds that no name and no join tells: by what they follow, where runs begin, whose text is always the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from prefixguard.induce.offline.call_forms import infer_call_form
from prefixguard.induce.offline.places import spell
from prefixguard.induce.offline.plan_types import KindPlan
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.units import Table

#: Share of the texts that have the form of a call, times how sure the form is, from which on it is read as calls.
LEAST_FORM = 0.25


def by_order(table: Table, plans: Sequence[KindPlan]) -> None:
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


def by_form(table: Table, plans: Sequence[KindPlan]) -> None:
    """Calls that stand in the agent's text: where no unit is a call."""
    if any(made.calls for made in plans):
        return
    says = [made for made in plans if made.part is Part.SAY and made.said is not None]
    together = [text for made in says if made.said is not None for text in made.said.texts if text]
    if (
        len(says) > 1
        and (form := infer_call_form(together, "@")) is not None
        and form.share * form.confidence < LEAST_FORM
    ):
        return
    if len(says) > 1 and form is None:
        return
    for made in says:
        if made.said is None:
            continue
        texts = [text for text in made.said.texts if text]
        form = infer_call_form(texts, made.said.path) if made.said.path is not None else None
        if form is not None and form.share * form.confidence >= LEAST_FORM and not form.by_chance:
            made.form = form
