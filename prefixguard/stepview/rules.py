"""Rules of an adapter: which events become which parts of records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.identity import short_id
from prefixguard.stepview.machine import Machine, OpenStep
from prefixguard.stepview.paths import MISSING, Getter, Scope, is_path
from prefixguard.stepview.record import Status
from prefixguard.stepview.text import cutter, repair
from prefixguard.stepview.values import compile_arguments, compile_text, compile_value

Act = Callable[[Machine, Scope], None]
Text = Callable[[Scope], str]
Judge = Callable[[Scope, OpenStep], Status]

#: Elements of one event that `each` looks at: calls, or results.
MOST_ELEMENTS = 1024

ACTORS = ("agent", "user", "environment", "system")
STATUSES = ("ok", "error", "unknown")
_JUDGED = ("actor", "agent", "tool", "arguments", "observation", "action", "result")
#: By what a rule emits: the fields that it may have, and the one that it needs.
EMITS: dict[str, tuple[tuple[str, ...], str]] = {
    "skip": ((), ""),
    "observe": (("observation",), "observation"),
    "say": (("hold", "actor", "agent", "tool", "arguments", "observation", "action", "status"), ""),
    "call": (("actor", "agent", "call_id", "tool", "arguments", "observation", "action"), ""),
    "update": (("call_id", "tool", "arguments", "action"), ""),
    "result": (("call_id", "tool", "arguments", "again", "result", "status"), "result"),
    "step": ((*_JUDGED, "status"), ""),
    "agent": (("agent",), "agent"),
    "score": (("score", "step"), "score"),
}


@dataclass(frozen=True, slots=True)
class EventRule:
    """One rule: when it fires, what it does, and whether later rules see the event too."""

    when: Condition
    act: Act
    goes_on: bool


@dataclass(frozen=True, slots=True)
class RuleSite:
    """What all rules of a spec share. parallel: calls may wait for results side by side."""

    site: Site
    budgets: dict[str, tuple[int, int]]
    judge: Judge
    parallel: bool


def compile_status(spec: Any, site: Site) -> Judge:
    """Status rules: the first that fits says what a step's status is; unknown where none does."""
    if isinstance(spec, str):
        spec = [{"is": spec}]
    if not isinstance(spec, list):
        raise site.error('status is a list of {"when": condition, "is": "ok" | "error" | "unknown"}.')
    rules: list[tuple[Condition | None, Status]] = []
    for i, rule in enumerate(spec):
        here = replace(site.at(f"[{i}]"), fields=_JUDGED)
        if not isinstance(rule, dict) or rule.get("is") not in STATUSES:
            raise here.error('a status rule is {"when": condition, "is": "ok" | "error" | "unknown"}.')
        here.keys(rule, ("when", "is", "comment"))
        rules.append((here.optional(rule, "when", compile_when), rule["is"]))
    if not rules or rules[0][0] is None:
        always = rules[0][1] if rules else "unknown"
        return lambda scope, draft: always

    def judge(scope: Scope, draft: OpenStep) -> Status:
        scope.fields = draft
        try:
            for condition, status in rules:
                if condition is None or condition(scope):
                    return status
            return "unknown"
        finally:
            scope.fields = None  # a live parser keeps no text of a step that is over

    return judge


def compile_rule(spec: Any, number: int, shared: RuleSite) -> EventRule:
    """One rule of the spec, checked and compiled. AdapterError names the rule by its number, from 0."""
    site = shared.site.at(f"rules[{number}]")
    if not isinstance(spec, dict):
        raise site.error('a rule is an object: {"when": ..., "emit": ..., fields}.')
    emit = spec.get("emit")
    if emit not in tuple(EMITS):
        raise site.error(f"emit {emit!r}; it is one of {', '.join(EMITS)}.")
    fields, needed = EMITS[emit]
    site.keys(spec, ("when", "emit", "each", "then", "comment", *fields))
    if needed and needed not in spec:
        raise site.error(f"a rule that emits {emit!r} needs {needed!r}.")
    said = '"then" is "stop" (the default) or "continue": later rules see the event too.'
    goes_on = site.choice(spec, "then", ("stop", "continue"), said) == "continue"
    when = compile_when(spec.get("when", "else"), site.at("when"))
    each = compile_value(spec["each"], site.at("each").listing()) if "each" in spec else None
    inner = site
    if each is not None:
        above = {"^^": site.roots["^"]} if "^" in site.roots else {}
        inner = site.with_roots({"@": site.base_of(spec["each"]), "^": site.roots["@"], **above})
    act: Act = getattr(_Fields(spec, inner, shared), emit)
    return EventRule(when, act if each is None else _for_each(each, act), goes_on)


def _for_each(each: Getter, act: Act) -> Act:
    def acts(machine: Machine, scope: Scope) -> None:
        elements = each(scope)
        if elements is MISSING or elements is None:
            machine.count("skipped: nothing in each")
            return
        if not isinstance(elements, list):
            elements = [elements]
        if len(elements) > MOST_ELEMENTS:
            machine.count("calls_left_out", n=len(elements) - MOST_ELEMENTS)
            elements = elements[:MOST_ELEMENTS]
        event, parent, grandparent = scope.event, scope.parent, scope.grandparent
        scope.parent, scope.grandparent = event, parent
        scope.element = 0
        try:
            for element in elements:
                scope.event = element
                act(machine, scope)
                scope.element += 1
        finally:
            scope.event, scope.parent, scope.grandparent = event, parent, grandparent
            scope.element = 0

    return acts


class _Fields:
    """The fields of one rule as closures from a scope to text within the budget, and, by what a rule emits, what they
    do. A field that the rule does not have is empty text."""

    def __init__(self, spec: dict[str, Any], site: Site, shared: RuleSite) -> None:
        self.site, self.shared, self.spec = site, shared, spec
        self.observation = self._text("observation")
        self.has_observation, self.has_result, self.has_agent = (x in spec for x in ("observation", "result", "agent"))
        self.result_text = self._text("result")
        self.arguments = self._text("arguments", compile_arguments)
        self.tool = self._name("tool", {"say": "respond"}.get(spec["emit"], ""))
        self.agent_name = self._name("agent", "")
        self.actor = self._actor()
        self.action = self._text("action")
        if "each" in spec and "action" in spec and '"@' not in json.dumps(spec["action"]):
            self.action = _of_first(self.action)
        self.call_id = site.optional(spec, "call_id", compile_value) or (lambda scope: MISSING)
        self.judge = site.optional(spec, "status", compile_status) or shared.judge
        said = "true or false: does the speech wait for the call that follows?"
        self.waits: bool = site.choice(spec, "hold", (False, True), said)
        self.is_step = spec["emit"] == "step"
        self.score_value, self.step_number = (site.optional(spec, name, compile_value) for name in ("score", "step"))
        said = '"late" (the default) or "skip": a result that no open call waits for was told before.'
        self.told_again: bool = site.choice(spec, "again", ("late", "skip"), said) == "skip"

    def _text(self, name: str, compiled: Callable[[Any, Site], Text] = compile_text) -> Text:
        if name not in self.spec:
            return lambda scope: ""
        get, bound = compiled(self.spec[name], self.site.at(name)), cutter(self.shared.budgets[name])
        return lambda scope: bound(get(scope))

    def _name(self, name: str, default: str) -> Text:
        get = self.site.optional(self.spec, name, compile_text)
        if get is None:
            return lambda scope: default

        def text(scope: Scope) -> str:
            found = get(scope)
            if len(found) > 200 or not found.isascii():
                return repair(found[:200])
            return found or default

        return text

    def _actor(self) -> Text:
        spec = self.spec.get("actor", "agent")
        if isinstance(spec, str) and not is_path(spec):
            if spec not in ACTORS:
                raise self.site.at("actor").error(f"{spec!r} is no actor; actors are {', '.join(ACTORS)}.")
            return lambda scope: spec
        get = compile_value(spec, self.site.at("actor"))

        def actor(scope: Scope) -> str:
            found = get(scope)
            return found if isinstance(found, str) and found in ACTORS else "environment"

        return actor

    def draft(self, machine: Machine, scope: Scope) -> OpenStep:
        """A record that takes with it what arrived since the last."""
        if self.has_observation and (text := self.observation(scope)):
            machine.observe(text)
        return OpenStep(
            self.actor(scope),
            (self.has_agent and self.agent_name(scope)) or machine.agent,
            self.tool(scope),
            self.arguments(scope),
            machine.take_observation(),
            self.action(scope),
            scope.index,
            signals=machine.take_signals(),
        )

    def skip(self, machine: Machine, scope: Scope) -> None:
        """The event says nothing."""

    def observe(self, machine: Machine, scope: Scope) -> None:
        """Something arrived that answers no call."""
        machine.observe(self.observation(scope))
        machine.told = True

    def say(self, machine: Machine, scope: Scope) -> None:
        """The agent speaks, or took a whole step."""
        turn = scope.turn
        if not scope.element or turn is None:
            machine.acts(turn, self.is_step or self.waits)
        draft = self.draft(machine, scope)
        if self.has_result:
            draft.result = self.result_text(scope)
        draft.done = True
        draft.status = self.judge(scope, draft)
        if self.waits:
            machine.hold(draft)
            return
        if self.is_step and machine.held is not None and machine.held.waits:
            machine.take(draft)
        machine.say(draft, turn)

    step = say

    def call(self, machine: Machine, scope: Scope) -> None:
        """The agent calls a tool."""
        call_id = short_id(self.call_id(scope))
        told = call_id is not None or not machine.join.by_id
        joins = self.shared.parallel and told and machine.open and not machine.results
        if not scope.element and not (joins and machine.held is None):
            machine.acts(scope.turn, True)
        draft = self.draft(machine, scope)
        draft.call_id = call_id
        machine.call(draft)

    def update(self, machine: Machine, scope: Scope) -> None:
        """More is known of an open call."""
        draft = machine.waiting(short_id(self.call_id(scope)))
        if draft is None:
            machine.count("updates_without_call")
            return
        draft.tool = self.tool(scope) or draft.tool
        draft.arguments = self.arguments(scope) or draft.arguments
        draft.action = self.action(scope) or draft.action

    def result(self, machine: Machine, scope: Scope) -> None:
        """The answer to a call arrived."""
        call_id = short_id(self.call_id(scope))
        same = (self.tool(scope), self.arguments(scope))
        if self.told_again and machine.waiting(call_id, same) is None:
            return
        machine.result(call_id, self.result_text(scope), lambda draft: self.judge(scope, draft), same)

    def agent(self, machine: Machine, scope: Scope) -> None:
        """It is said who speaks in what follows."""
        machine.agent = self.agent_name(scope)

    def score(self, machine: Machine, scope: Scope) -> None:
        """A verifier says how the run does so far; a step of its own. TraceError for what is no score, or is not of the
        next step."""
        number = None if self.step_number is None else self.step_number(scope)
        given = MISSING if self.score_value is None else self.score_value(scope)
        machine.score(None if given is MISSING else given, None if number is MISSING else number, scope.index)


def _of_first(get: Text) -> Text:
    """Text that is the same for all elements of `each`: the first alone has it."""
    return lambda scope: "" if scope.element else get(scope)
