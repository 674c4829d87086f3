"""The family of rows: an element is a step. It holds a call, or what the agent did as a text, and around it what was
thought and seen before and what came back, told apart by names and by the order of keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from prefixguard.induce.search.columns import Node
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.forms import CallForm, TextForm, calls_of, complement, objects_of, texts_of, together
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.layouts import layouts
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.induce.search.spoken_names import LEAST_OWN, own_share
from prefixguard.lexicon import Meaning, affinity

#: Ways to read the call that are tried for a layout.
_MOST_FORMS = 3


def propose(evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Of every layout the candidates, likeliest first."""
    for layout in layouts(evidence):
        objects = all(isinstance(e, dict | list) for run in layout.events_of for e in run[:50])
        if objects and not (evidence.names and _are_turns(layout.node())):
            yield _of_layout(layout, evidence)


def _are_turns(node: Node) -> bool:
    """Does a field of nearly all elements name sides that speak in turns, the agent and who asks it? No element is a
    step of both then."""
    for one in node.fields.values():
        if one.kind == "word" and one.share >= 0.9 and len(one.place) <= 2:
            sides = {
                said[0] for value in set(map(str, one.values.values())) if (said := part_of(value)) and said[1] >= 0.9
            }
            if {Part.SAY, Part.USER} <= sides:
                return True
    return False


def _of_layout(layout: Layout, evidence: Evidence) -> Iterator[Candidate]:
    node = layout.node()
    forms = calls_of(node, evidence.names)
    spread = [form for form in forms if len(form.covers) >= 0.3 * len(node.elements)]
    for form in _unlike(spread)[:_MOST_FORMS]:
        for spec in _specs(layout, node, form, evidence):
            yield Candidate(spec, "rows", layout.likely, f"rows at {layout.place}, {layout.why}")


def _unlike(forms: Sequence[CallForm]) -> list[CallForm]:
    return list({repr((form.tool, form.arguments)): form for form in forms[::-1]}.values())[::-1]


def _specs(layout: Layout, node: Node, form: CallForm, evidence: Evidence) -> Iterator[dict[str, Any]]:
    order = {place: i for i, place in enumerate(node.fields)}
    at = min(order.get(place, 0) for place in form.places)
    texts = texts_of(node, form.places, names=evidence.names)
    parts: dict[str, list[TextForm]] = {"action": [], "observation": [], "result": []}
    for text in texts:
        parts[_part(text, order.get(text.place, at + 1), at, evidence.names, _beside(text, texts, form))].append(text)
    yield _spec(layout, node, form, parts)
    if parts["observation"]:
        moved = {**parts, "result": [*parts["result"], *parts["observation"]], "observation": []}
        yield _spec(layout, node, form, moved)
    elif parts["result"]:
        yield _spec(layout, node, form, {**parts, "observation": parts["result"], "result": []})


def _beside(text: TextForm, texts: Sequence[TextForm], form: CallForm) -> bool:
    """Does the text stand in the object of the call, and others outside it?"""
    base = form.places[0][:-1]
    inside = [t for t in texts if base and t.place[: len(base)] == base]
    return text in inside and len(inside) < len(texts)


def _part(text: TextForm, i: int, at: int, names: bool, beside: bool) -> str:
    """What the text is: by its name, or by where it stands beside the call."""
    if names:
        thought, result = affinity(text.name, Meaning.THOUGHT), affinity(text.name, Meaning.RESULT)
        if max(thought, result) >= 0.6:
            if thought >= result:
                return "action"
            return "result" if i > at else "observation"
    speaks = own_share([value for value in text.values if isinstance(value, str)]) >= LEAST_OWN
    return "action" if i < at or beside or speaks else "result"


def _spec(layout: Layout, node: Node, form: CallForm, parts: dict[str, list[TextForm]]) -> dict[str, Any]:
    step: dict[str, Any] = {"emit": "step", "tool": form.tool}
    if form.arguments is not None:
        step["arguments"] = form.arguments
    called = form.covers
    for name, texts in parts.items():
        here = [text for text in texts if text.covers & called]
        chosen = complement(sorted(here, key=lambda text: -text.mass))[:3]
        if name == "result":
            chosen = complement([*chosen, *(o for o in objects_of(node) if o.place not in form.places)])[:3]
        if chosen:
            step[name] = together(chosen)
    when: dict[str, Any] = {}
    if len(called) < len(node.elements):
        test = form.tool if form.test is None else form.test
        when = {test: {"present": True}} if isinstance(test, str) else {"value": test, "is": {"present": True}}
    rules: list[dict[str, Any]] = [{"when": when, **step} if when else step]
    rest = frozenset(range(len(node.elements))) - called
    spoken = [text for texts in parts.values() for text in texts if text.covers & rest]
    if rest and spoken:
        chosen = complement(sorted(spoken, key=lambda text: -len(text.covers & rest)))[:3]
        said = together(chosen)
        rules.append({"when": {"value": said, "is": {"present": True}}, "emit": "say", "action": said})
    rules.append({"emit": "skip"})
    return layout.spec(rules, join={"by": "order"})
