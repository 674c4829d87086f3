"""Rules of a spec from what each kind of event is."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prefixguard.induce.offline.places import spell
from prefixguard.induce.offline.plan_types import CallPlan, KindPlan, Plans, ResultPlan
from prefixguard.induce.offline.shapes import arguments_value
from prefixguard.induce.offline.speakers import Part
from prefixguard.induce.offline.texts import Said
from prefixguard.induce.offline.units import Table, Unit
from prefixguard.lexicon import Meaning, affinity, words


def chat_rules(table: Table, plans: Plans) -> list[dict[str, Any]]:
    """Rules for all kinds, those with the most conditions first."""
    by_form = any(made.form is not None for made in plans.kinds)
    answered = any(made.results or made.part is Part.RESULT for made in plans.kinds)
    calls = any(made.calls for made in plans.kinds) or by_form
    rules: list[dict[str, Any]] = []
    for made in sorted(plans.kinds, key=lambda one: (-len(one.own.when), one.own.label)):
        found = _of_kind(made, calls=calls, replies=by_form and not answered)
        # Its calls are read where they ran: what it said with them waits for them.
        rules += [{**rule, "hold": True} if rule["emit"] == "say" and made.called else rule for rule in found]
    merged = _merged(rules)
    return merged or [{"emit": "skip"}]


def _of_kind(made: KindPlan, *, calls: bool, replies: bool) -> list[dict[str, Any]]:
    when = made.own.when
    part = made.part
    if part in (Part.SYSTEM, Part.NOISE) and not made.calls and not made.results:
        return [_rule(when, {"emit": "skip"})]
    if part is Part.THOUGHT and not made.calls and not _said_aloud(made):
        return [_rule(when, {"emit": "skip", "comment": "reasoning, not said"})]
    if part is Part.USER or (part is Part.RESULT and not calls):
        return _results(made, when) + _observes(made, when, replies)
    if part is Part.RESULT:
        return _results(made, when) or _plain_result(made, when)
    return _agent(made, when)


def _said_aloud(made: KindPlan) -> bool:
    """Is it a thought that the trace shows as an event of the agent, not a model's hidden reasoning?"""
    found = {one for word in made.own.words for one in words(word)}
    return bool(found & {"thought", "thoughts"}) and made.said is not None


def _rule(when: dict[str, Any], body: dict[str, Any], more: dict[str, Any] | None = None) -> dict[str, Any]:
    test = {**when, **(more or {})}
    return {"when": test, **body} if test else body


def _outer(value: Any) -> Any:
    """The value read from inside `each`: the event is the parent there."""
    return json.loads(json.dumps(value).replace('"@', '"^')) if value is not None else None


def _present(unit: Unit) -> dict[str, Any]:
    """A condition: are there elements of the unit?"""
    if unit.each is None:
        return {}
    if isinstance(unit.each, str):
        return {unit.each: {"present": True}}
    return {"value": unit.each, "is": {"present": True}}


def _said_rules(said: Said, when: dict[str, Any], field: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    """One rule, or two where a place holds a text in some events and blocks in others."""
    if said.mixed is None:
        return [_rule(when, {**body, field: said.value})]
    return [
        _rule(when, {**body, field: {"text": said.mixed}}, {said.mixed: {"type": "string"}}),
        _rule(when, {**body, field: said.blocks} if said.blocks is not None else {"emit": "skip"}),
    ]


def _observes(made: KindPlan, when: dict[str, Any], replies: bool) -> list[dict[str, Any]]:
    if made.said is None:
        return [] if made.results else [_rule(when, {"emit": "skip"})]
    rules = []
    if replies:
        rules += _said_rules(made.said, {**when, "open_call": True}, "result", {"emit": "result"})
    return rules + _said_rules(made.said, when, "observation", {"emit": "observe"})


def _results(made: KindPlan, when: dict[str, Any]) -> list[dict[str, Any]]:
    rules = []
    for result in made.results:
        rule: dict[str, Any] = {"emit": "result"}
        if result.unit.each is not None:
            rule["each"] = result.unit.each
        if result.call_id is not None:
            rule["call_id"] = result.call_id.name
        rule["result"] = _result_text(result)
        more = made.said is not None or len(made.results) > 1
        if result.unit.each is not None and more:
            rule["then"] = "continue"
        rules.append(_rule(when, rule, _present(result.unit) or _there(result)))
    if rules and all(result.unit.each is None for result in made.results) and "when" in rules[-1]:
        rules.append(_rule(when, {"emit": "skip"}))
    return rules


def _there(result: ResultPlan) -> dict[str, Any]:
    """A condition: does the event bring a result at all? Empty where all of its kind do."""
    filled = sum(bool(text) for text in result.text.texts) / max(1, len(result.text.texts))
    if filled >= 0.9:
        return {}
    path = result.text.path
    there = {path: {"present": True}} if path is not None else {"value": _either(result.text), "is": {"present": True}}
    if path is None:
        return there
    return {"any": [there, {result.text.other: {"present": True}}]} if result.text.other is not None else there


def _result_text(result: ResultPlan) -> Any:
    return _either(result.text)


def _either(said: Said) -> Any:
    """The text of a place that holds blocks in some events and a text in others, or that something else stands for."""
    if said.other is not None:
        return {"first": [said.value, {"text": said.other}]}
    if said.mixed is None:
        return said.value
    return {"first": [said.blocks, {"text": said.mixed}]} if said.blocks is not None else {"text": said.mixed}


def _plain_result(made: KindPlan, when: dict[str, Any]) -> list[dict[str, Any]]:
    if made.said is None:
        return [_rule(when, {"emit": "skip"})]
    return [_rule(when, {"emit": "result", "result": _either(made.said)})]


def _call(call: CallPlan, made: KindPlan, first: bool) -> dict[str, Any]:
    inside = call.unit.each is not None
    rule: dict[str, Any] = {"emit": "step" if call.inline is not None else "call"}
    if inside:
        rule["each"] = call.unit.each
    if call.call_id is not None and call.inline is None:
        rule["call_id"] = call.call_id.name
    if call.shape.tool is not None:
        rule["tool"] = call.shape.tool.name
    if call.shape.arguments is not None:
        column = call.shape.arguments
        rule["arguments"] = arguments_value(column)
    if call.inline is not None:
        rule["result"] = {"text": call.inline.name}
    if made.said is not None and first and (action := _beside_call(made.said, call)) is not None:
        rule["action"] = action
    if made.agent is not None:
        rule["agent"] = _outer(made.agent.name) if inside else made.agent.name
    return rule


def _beside_call(said: Said, call: CallPlan) -> Any:
    """What is said in the event of the call; None where nothing can be."""
    inside = call.unit.each is not None
    place = said.covered[0] if said.covered else ()
    among = inside and call.unit.holder[: len(place)] == place  # calls stand in the list of blocks: it is never a text
    value = said.value if said.mixed is None else said.blocks if among else _either(said)
    return _outer(value) if inside else value


def _agent(made: KindPlan, when: dict[str, Any]) -> list[dict[str, Any]]:
    rules: list[dict[str, Any]] = []
    none_of: dict[str, Any] = {}
    own = [call for call in made.calls if call.unit.each is None]
    nested = [call for call in made.calls if call.unit.each is not None]
    more = len(nested) + len(made.results) > 1
    for n, call in enumerate(nested):
        rule = _call(call, made, n == 0)
        if more:
            rule["then"] = "continue"
        rules.append(_rule(when, rule, _present(call.unit)))
        if isinstance(call.unit.each, str):
            none_of[call.unit.each] = {"present": False}
        else:
            none_of["not"] = {"value": call.unit.each, "is": {"present": True}}
    for n, result in enumerate(made.results):
        rule = {"emit": "result"}
        if result.unit.each is not None:
            rule["each"] = result.unit.each
        if result.call_id is not None:
            rule["call_id"] = result.call_id.name
        rule["result"] = _result_text(result)
        if n + 1 < len(made.results) or made.said is not None:
            rule["then"] = "continue"
        rules.append(_rule(when, rule, _present(result.unit) or _there(result)))
    for call in own:
        tool = call.shape.tool
        if tool is not None and tool.present < 0.97 and not nested:
            rules.append(_rule(when, _call(call, made, True), {tool.name: {"present": True}}))
            none_of[tool.name] = {"present": False}
            if made.said is None:
                rules.append(_rule(when, {"emit": "skip"}))
        else:
            rules.append(_rule(when, _call(call, made, True)))
            return rules
    if made.said is None:
        return rules or [_rule(when, {"emit": "skip"})]
    body: dict[str, Any] = {}
    if made.agent is not None:
        body["agent"] = made.agent.name
    elif made.speaker is not None:
        body["agent"] = made.speaker
    if made.form is not None and made.said.path is not None:
        at = made.said.path
        for variant in made.form.variants():
            rule = {"emit": variant.emits, **body}
            if variant.emits == "call" or variant.tool is not None:
                for name in ("tool", "arguments"):
                    if getattr(variant, name) is not None:
                        rule[name] = getattr(variant, name)
            if variant.action is not None:
                rule["action"] = variant.action
            elif variant.emits == "say":
                rule["action"] = {"text": at}
            test = {at: variant.when} if variant.when is not None else None
            rules.append(_rule(when, rule, {**none_of, **(test or {})}))
            if variant.when is None:
                return rules
        rules.append(_rule(when, {"emit": "say", **body, "action": {"text": at}}, none_of))
        return rules
    test = {**when, **none_of} if more else when
    filled = sum(bool(text) for text in made.said.texts) / max(1, len(made.said.texts))
    silent = made.said.mixed is None and not made.calls and filled < 0.97
    if silent:  # what it called stands elsewhere
        test = {**test, "value": made.said.value, "is": {"present": True}}
    said = _said_rules(made.said, test, "action", {"emit": "say", **body})
    return rules + said + ([_rule(when, {"emit": "skip"})] if silent else [])


def _merged(rules: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rules that differ in the value of one test alone become one rule with `in`."""
    out: list[dict[str, Any]] = []
    groups: dict[str, int] = {}
    for rule in rules:
        when = rule.get("when", {})
        plain = [key for key, test in when.items() if isinstance(test, str | bool)]
        if len(plain) != 1 or "then" in rule:
            out.append(rule)
            continue
        key = plain[0]
        others = {name: test for name, test in when.items() if name != key}
        print_ = json.dumps([key, others, {k: v for k, v in rule.items() if k != "when"}], sort_keys=True)
        between = out[groups[print_] + 1 :] if print_ in groups else []
        if print_ in groups and not any(other.get("when", {}).get(key) == when[key] for other in between):
            at = groups[print_]
            test = out[at]["when"][key]
            values = test["in"] if isinstance(test, dict) else [test]
            out[at] = {**out[at], "when": {**out[at]["when"], key: {"in": [*values, when[key]]}}}
        else:
            groups[print_] = len(out)
            out.append(rule)
    return out


def turn_of(table: Table, plans: Plans) -> str | None:
    """The place whose value ties events to one turn of the agent: an id that several of its events in a row share."""
    agents = [made for made in plans.kinds if made.part in (Part.SAY, Part.CALL, Part.THOUGHT) or made.calls]
    if not agents:
        return None
    places = set.intersection(*(set(made.own.columns) for made in agents))
    at = {event: (made, i) for made in agents for i, event in enumerate(made.own.events)}
    for place in sorted(places, key=str):
        columns = [made.own.columns[place] for made in agents]
        if any(c.whole or c.present < 0.9 or not c.is_id for c in columns) or len(place) > 3:
            continue
        if any(affinity(c.name, meaning) >= 0.95 for c in columns for meaning in (Meaning.RUN_ID, Meaning.TIME)):
            continue
        groups: Counter[tuple[int, str]] = Counter()
        runs_of: list[tuple[int, str]] = []
        for event in sorted(at):
            made, i = at[event]
            key = table.runs[event], made.own.columns[place].texts[i]
            groups[key] += 1
            if not runs_of or runs_of[-1] != key:
                runs_of.append(key)
        mean = sum(groups.values()) / max(1, len(groups))
        if (
            1.15 <= mean <= 6
            and len(runs_of) <= 1.1 * len(groups)
            and len(groups) >= 2.5 * table.n_runs
            and len({text for _, text in groups}) >= 0.5 * len(groups)
        ):
            return spell("@", place)
    return None


def join_spec(table: Table, plans: Plans) -> dict[str, Any]:
    """How calls and results meet."""
    if not plans.joins:
        return {"by": "order"}
    call_events = {
        event for made in plans.kinds for call in made.calls if call.unit.each is None for event in call.unit.events
    }
    apart = sum(1 for event in call_events if event - 1 in call_events and table.runs[event - 1] == table.runs[event])
    spec: dict[str, Any] = {"by": "id", "scope": "run" if apart else "message", "else": "next"}
    if plans.matched < 0.98:
        spec["mismatch"] = "else"
    return spec
