"""Rules for events of one kind, by the part that they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from prefixguard.induce.search.columns import Node, written
from prefixguard.induce.search.families.event_kinds import EventKind, apart, below
from prefixguard.induce.search.forms import (
    CallForm,
    TextForm,
    complement,
    objects_of,
    texts_of,
    together,
)
from prefixguard.induce.search.places import spell
from prefixguard.lexicon import Meaning, affinity

#: Names beside those of the texts of what came back, such as a status.
_MORE = 2
Rule = dict[str, Any]


def readings_of(kind: EventKind, part: str, more: Sequence[str]) -> tuple[tuple[Rule, ...], ...]:
    """Ways to read a kind: as this part first, then as others, and with another of its texts."""
    found: dict[str, list[Rule]] = {}
    for each in (part, *(other for other in kind.ranked if other != part), *more):
        if each == "thought" and not more:
            continue  # nothing that speech could wait for
        for text in (None, *kind.texts[:4]):
            rules = written(_rules(kind, each, text))
            found.setdefault(repr(rules), rules)
    for form in kind.calls[:3] if len(kind.calls) > 1 else ():
        for each in ("agent", "call"):
            rules = written(_rules(replace(kind, calls=[form]), each))
            found.setdefault(repr(rules), rules)
    return tuple(tuple(rules) for rules in found.values())


def _rules(kind: EventKind, part: str, text: TextForm | None = None) -> list[Rule]:
    """The rules of a kind, with who speaks where that is one of a team. text: as in `_bare_rules`."""
    rules = _bare_rules(kind, part, text)
    for rule in rules:
        if kind.node.speaker and rule["emit"] in ("say", "call", "step"):
            rule["agent"] = ("^" if "each" in rule else "@") + kind.node.speaker[1:]
    return rules


def _bare_rules(kind: EventKind, part: str, text: TextForm | None) -> list[Rule]:
    """The rules of a kind. text: what it says, if that is not the text with the most in it."""
    when: dict[str, Any] = dict(kind.node.when)
    if part == "skip":
        return [_if(when, {"emit": "skip"})]
    rules: list[Rule] = [
        _if(when, {"then": "continue", "emit": "observe", "observation": value}) for value in kind.heard[:1]
    ]
    behind: list[Rule] = []
    for node, found in kind.results:
        here = found[3].node in tuple(below(kind.node))  # the calls stand in the same events
        (behind if here else rules).append(_result_list(kind, node, found, when))
    own = next((form for form in kind.calls if form.node is kind.node), None)
    inner = next((form for form in kind.calls if form.node is not kind.node), None)
    without = [place for form in (own,) if form is not None for place in form.places]
    texts = [t for t in kind.texts if not _is_result(t, kind)] if text is None else [text]
    if part == "result":
        if kind.results and not texts:
            return [*rules, _if(when, {"emit": "skip"})] if rules else rules
        rule: Rule = {"emit": "result", "result": _result_text(kind.node, texts)}
        if kind.answers is not None:
            rule["call_id"] = kind.answers[1].name
        elif own is not None and own.test is None:
            rule |= {"tool": own.tool} | ({"arguments": own.arguments} if own.arguments is not None else {})
        return [*rules, _if(when, rule)]
    if inner is not None and inner.made is None and part in ("agent", "thought") and text is None:
        back = _back(kind)
        texts = [t for t in texts if t not in back]
    spoken = _speech(texts)
    if part == "call" and own is not None and own.rest is None and not any(_of_thought(t) for t in spoken):
        return [*rules, _step(own, when, texts)]
    if part in ("call", "agent", "thought") and (own is not None or inner is not None):
        first = own is not None and inner is not None and kind.calls.index(own) < kind.calls.index(inner)
        form = own if own is not None and (part == "call" or inner is None or first) else inner
        other = inner if form is own else own
        if form is not None:
            rules.append(_call(kind, form, when, spoken, without))
            if other is not None and apart(form, other):
                rules.append(_call(kind, other, when, spoken, without))
            elif behind and form is inner:
                rules[-1]["then"] = "continue"
                rules += behind
                when[form.node.each] = {"present": False}
    if not spoken:
        return rules
    value = together(spoken)
    test = _test(spoken)
    if part == "user":
        rules.append(_if(_both(when, test), {"emit": "observe", "observation": value}))
    else:
        rule = {"emit": "say", "action": value}
        if part in ("thought", "thinks"):
            rule["hold"] = True
        rules.append(_if(_both(when, test), rule))
    return rules


def _of_thought(text: TextForm) -> bool:
    return affinity(text.name, Meaning.THOUGHT) >= 0.6


def _step(form: CallForm, when: Mapping[str, Any], texts: Sequence[TextForm]) -> Rule:
    """A call with what came back beside it; a call alone where nothing did."""
    rule: Rule = {"emit": "call", "tool": form.tool}
    if form.arguments is not None:
        rule["arguments"] = form.arguments
    objects = [text for text in objects_of(form.node) if not any(text.place[: len(p)] == p for p in form.places)]
    back = complement([*texts, *(text for text in objects if affinity(text.name, Meaning.RESULT) >= 0.5)])[:4]
    if form.made is not None:
        rule["call_id"] = form.made.name
    elif back:
        rule |= {"emit": "step", "result": _as_one(form.node, back)}
    return _if(when, rule)


def _if(when: Mapping[str, Any], rule: Rule) -> Rule:
    return {"when": dict(when), **rule} if when else rule


def _both(when: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    """Both conditions; of a path that both test, both tests, and its value where the first names one."""
    out = dict(when)
    for path, other in test.items():
        mine = out.get(path)
        out[path] = {**mine, **other} if isinstance(mine, dict) and isinstance(other, dict) else out.get(path, other)
    return out


def _test(texts: Sequence[TextForm]) -> dict[str, Any]:
    if len(texts) == 1 and isinstance(texts[0].value, str):
        return {texts[0].value: {"present": True}}
    return {"value": {"first": [t.value for t in texts]}, "is": {"present": True}}


def _is_result(text: TextForm, kind: EventKind) -> bool:
    """Does the text stand in a list of results or calls, and so is none of the event's own?"""
    if text.inner is None:
        return False
    lists = [node for node, _ in kind.results] + [form.node for form in kind.calls]
    return any(text.inner is node or text.inner.each.startswith(node.each + ".") or text.inner.each.startswith(
        node.each + "[") for node in lists if node.each)  # fmt: skip


def _speech(texts: Sequence[TextForm]) -> list[TextForm]:
    """The texts that are what the event says: the one with the most in it, or those of which an event has one."""
    named = sorted(texts, key=lambda t: -(t.mass * (1 + 3 * max(_of_text(t), 0))))
    return complement(named)[:3]


def _of_text(text: TextForm) -> float:
    return max(affinity(text.name, Meaning.TEXT), affinity(text.name, Meaning.THOUGHT))


def _call(
    kind: EventKind, form: CallForm, when: Mapping[str, Any], spoken: Sequence[TextForm], without: Sequence[Any]
) -> Rule:
    """The rule of a call, or of a whole step where the result stands beside it."""
    own = form.node is kind.node
    rule: Rule = {"emit": "call", "tool": form.tool}
    if form.arguments is not None:
        rule["arguments"] = form.arguments
    if form.made is not None:
        rule["call_id"] = form.made.name
    said = {repr(t.value) for t in spoken} if own else ()
    beside = [t for t in texts_of(form.node, form.places) if repr(t.value) not in said]
    results = [t for t in beside if affinity(t.name, Meaning.RESULT) >= 0.5 or t.inner is not None]
    if results and not kind.results and form.test is None:
        rule["emit"] = "step"
        rule.pop("call_id", None)
        rule["result"] = _as_one(form.node, complement(sorted(results, key=lambda t: -t.mass))[:3])
    if own:
        if form.back is not None:
            rule |= {"emit": "step", "result": form.back}
        test = form.tool if isinstance(form.tool, str) else form.tool.get("of", form.tool.get("json"))
        present = {test: {"present": True}} if isinstance(test, str) else {"value": form.tool, "is": {"present": True}}
        if form.test is not None:
            present = {"value": form.test, "is": {"present": True}}
        if form.rest is not None:
            rule["action"] = form.rest
        elif spoken:
            rule["action"] = together(spoken)
        return _if(_both(when, present), rule)
    rule = {"each": form.node.each, **rule}
    back = _back(kind)
    if back and form.made is None and rule["emit"] == "call":  # what came back stands beside the list of calls
        rule |= {"emit": "step", "result": together([_up(t) for t in back])}
        spoken = [t for t in spoken if t not in back and t.inner is None][:1]
    if spoken:
        rule["action"] = together([_up(t) for t in spoken])
    del without
    return _if(_both(when, {form.node.each: {"present": True}}), rule)


def _back(kind: EventKind) -> list[TextForm]:
    """Texts of an event that came back for the calls in it: results, and what went wrong instead."""
    own = [text for text in kind.texts if text.inner is None]
    results = [text for text in own if affinity(text.name, Meaning.RESULT) >= 0.6]
    errors = [t for t in own if t not in results and affinity(t.name, Meaning.ERROR) >= 0.5]
    return complement([*results, *errors])[:3] if results else []


def _up(text: TextForm) -> TextForm:
    value = "^" + text.value[1:] if isinstance(text.value, str) else text.value
    return TextForm(value, text.covers, text.mass, text.name)


def _result_list(kind: EventKind, node: Node, found: Any, when: Mapping[str, Any]) -> Rule:
    rule: Rule = {"then": "continue", "emit": "result", "each": node.each}
    if found[0] is not None:
        rule["call_id"] = found[1].name
    rule["result"] = _result_text(node, texts_of(node, (found[1].place,)))
    return _if(_both(when, {node.each: {"present": True}}), rule)


def _result_text(node: Node, texts: Sequence[TextForm]) -> Any:
    """What came back: texts, and objects of elements that have none."""
    texts = [t for t in texts if t.inner is None or not t.inner.is_part]
    forms = complement(sorted(texts, key=lambda t: -t.mass * (1 + 3 * affinity(t.name, Meaning.RESULT))))
    forms = complement([*forms, *objects_of(node)])[:4]
    if not forms:
        return {"text": "@"}
    return _as_one(node, forms)


def _as_one(node: Node, forms: Sequence[TextForm]) -> Any:
    """One value of what came back, of which an element has one. An object that holds these texts and a word beside
    them, or has them inside others, is read as it is: under which of its names a text stands tells something."""
    places = [t.place for t in forms if t.inner is None]
    same = [len(set(steps)) == 1 for steps in zip(*places, strict=False)]
    home = places[0][: [*same, False].index(False)] if 1 < len(places) == len(forms) else ()
    inside = {place[len(home)] for place in node.fields if place[: len(home)] == home and len(place) > len(home)}
    apart = len(inside) > len(forms) or any(len(place) > len(home) + 1 for place in places)
    if home and apart and len(inside) <= len(forms) + _MORE:
        return {"text": spell("@", home)}
    return together(forms)
