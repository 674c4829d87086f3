"""Rules of an adapter: which events become which parts of records."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, cast

from prefixguard.stepview.compiling import Site, known_keys
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.identity import short_id
from prefixguard.stepview.machine import Machine, OpenStep
from prefixguard.stepview.paths import MISSING, Getter, Scope
from prefixguard.stepview.record import Status
from prefixguard.stepview.text import cutter, repair
from prefixguard.stepview.values import compile_arguments, compile_text, compile_value

Act = Callable[[Machine, Scope], None]
Text = Callable[[Scope], str]
Judge = Callable[[Scope, OpenStep], Status]

#: Elements of one event that `each` looks at: calls, or results.
MOST_ELEMENTS = 1024

EMITS = ("skip", "observe", "say", "call", "update", "result", "step", "agent")
ACTORS = ("agent", "user", "environment", "system")
STATUSES = ("ok", "error", "unknown")
_ALLOWED: dict[str, tuple[str, ...]] = {
    "skip": (),
    "observe": ("observation",),
    "say": ("actor", "agent", "tool", "arguments", "observation", "action", "status"),
    "call": ("actor", "agent", "call_id", "tool", "arguments", "observation", "action"),
    "update": ("call_id", "tool", "arguments", "action"),
    "result": ("call_id", "result", "status"),
    "step": ("actor", "agent", "tool", "arguments", "observation", "action", "result", "status"),
    "agent": ("agent",),
}
_REQUIRED: dict[str, tuple[str, ...]] = {"observe": ("observation",), "result": ("result",), "agent": ("agent",)}
_JUDGED = ("actor", "agent", "tool", "arguments", "observation", "action", "result")


@dataclass(frozen=True, slots=True)
class EventRule:
    """One rule: when it fires, what it does, and whether later rules see the event too."""

    when: Condition
    act: Act
    goes_on: bool


@dataclass(frozen=True, slots=True)
class RuleSite:
    """What all rules of a spec share."""

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
        known_keys(rule, ("when", "is", "comment"), here)
        rules.append((compile_when(rule["when"], here.at("when")) if "when" in rule else None, rule["is"]))
    if not rules:
        return lambda scope, draft: "unknown"
    if rules[0][0] is None:
        always = rules[0][1]
        return lambda scope, draft: always

    def judge(scope: Scope, draft: OpenStep) -> Status:
        scope.fields = {
            "result": draft.result,
            "tool": draft.tool,
            "action": draft.action,
            "arguments": draft.arguments,
            "observation": draft.observation,
            "actor": draft.actor,
            "agent": draft.agent,
        }
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
    if emit not in EMITS:
        raise site.error(f"emit {emit!r}; it is one of {', '.join(EMITS)}.")
    common = ("when", "emit", "each", "then", "comment", *(("hold",) if emit == "say" else ()))
    known_keys(spec, common + _ALLOWED[emit], site)
    for name in _REQUIRED.get(emit, ()):
        if name not in spec:
            raise site.error(f"a rule that emits {emit!r} needs {name!r}.")
    if spec.get("then", "stop") not in ("stop", "continue"):
        raise site.at("then").error('"then" is "stop" (the default) or "continue": later rules see the event too.')
    if not isinstance(spec.get("hold", False), bool):
        raise site.at("hold").error("true or false: does the speech wait for the call that follows?")
    when = compile_when(spec.get("when", "else"), site.at("when"))
    each: Getter | None = None
    inner = site
    if "each" in spec:
        each = compile_value(spec["each"], site.at("each").listing())
        inner = site.with_roots(
            {
                "@": site.base_of(spec["each"]),
                "^": site.roots["@"],
                **({"^^": site.roots["^"]} if "^" in site.roots else {}),
            }
        )
    act = _ACTS[emit](_Fields(spec, inner, shared))
    if each is not None:
        act = _for_each(each, act)
    return EventRule(when, act, spec.get("then") == "continue")


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
    """The fields of one rule as closures from a scope to text within the budget."""

    def __init__(self, spec: dict[str, Any], site: Site, shared: RuleSite) -> None:
        self.site = site
        self.shared = shared
        self.spec = spec
        self.observation = self._bounded("observation")
        self.result = self._bounded("result")
        self.arguments = self._arguments()
        self.tool = self._name("tool", {"say": "respond"}.get(spec["emit"], ""))
        self.agent = self._name("agent", "")
        self.has_agent = "agent" in spec
        self.actor = self._actor()
        self.action = self._action()
        self.call_id = compile_value(spec["call_id"], site.at("call_id")) if "call_id" in spec else None
        self.judge = compile_status(spec["status"], site.at("status")) if "status" in spec else shared.judge

    def _bounded(self, name: str) -> Text | None:
        if name not in self.spec:
            return None
        get = compile_text(self.spec[name], self.site.at(name))
        bound = cutter(self.shared.budgets[name])
        return lambda scope: bound(get(scope))

    def _action(self) -> Text | None:
        """The agent's own text; where it is the same for all elements of `each`, the first alone has it."""
        get = self._bounded("action")
        if get is None or "each" not in self.spec or '"@' in json.dumps(self.spec["action"]):
            return get
        return lambda scope: "" if scope.element else get(scope)

    def _arguments(self) -> Text | None:
        if "arguments" not in self.spec:
            return None
        get = compile_arguments(self.spec["arguments"], self.site.at("arguments"))
        bound = cutter(self.shared.budgets["arguments"])
        return lambda scope: bound(get(scope))

    def _name(self, name: str, default: str) -> Text:
        if name not in self.spec:
            return lambda scope: default
        get = compile_text(self.spec[name], self.site.at(name))

        def text(scope: Scope) -> str:
            found = get(scope)
            return (
                (repair(found[:200]) if found else default)
                if len(found) > 200 or not found.isascii()
                else found or default
            )

        return text

    def _actor(self) -> Text:
        if "actor" not in self.spec:
            return lambda scope: "agent"
        spec = self.spec["actor"]
        if isinstance(spec, str) and spec in ACTORS:
            return lambda scope: spec
        if isinstance(spec, str) and spec[:1] not in "%$@^":
            raise self.site.at("actor").error(f"{spec!r} is no actor; actors are {', '.join(ACTORS)}.")
        get = compile_value(spec, self.site.at("actor"))

        def actor(scope: Scope) -> str:
            found = get(scope)
            return found if isinstance(found, str) and found in ACTORS else "environment"

        return actor

    def draft(self, machine: Machine, scope: Scope) -> OpenStep:
        """A record that takes with it what arrived since the last."""
        if self.observation is not None:
            text = self.observation(scope)
            if text:
                machine.observe(text)
        return OpenStep(
            self.actor(scope),
            (self.agent(scope) if self.has_agent else "") or machine.agent,
            self.tool(scope),
            "" if self.arguments is None else self.arguments(scope),
            machine.take_observation(),
            "" if self.action is None else self.action(scope),
            scope.index,
        )


def _skip(fields: _Fields) -> Act:
    return lambda machine, scope: None


def _observe(fields: _Fields) -> Act:
    text = cast(Text, fields.observation)
    return lambda machine, scope: machine.observe(text(scope))


def _say(fields: _Fields) -> Act:
    result = fields.result
    waits = fields.spec.get("hold", False)
    is_step = fields.spec["emit"] == "step"

    def act(machine: Machine, scope: Scope) -> None:
        turn = scope.turn
        if not scope.element or turn is None:
            machine.acts(turn, is_step or waits)
        draft = fields.draft(machine, scope)
        if result is not None:
            draft.result = result(scope)
        draft.done = True
        draft.status = fields.judge(scope, draft)
        if waits:
            machine.hold(draft)
            return
        if is_step and machine.held is not None and machine.held.waits:
            machine.take(draft)
        machine.say(draft, turn)

    return act


def _call(fields: _Fields) -> Act:
    parallel = fields.shared.parallel

    def act(machine: Machine, scope: Scope) -> None:
        turn = scope.turn
        call_id = short_id(fields.call_id(scope)) if fields.call_id is not None else None
        if not scope.element and not (
            parallel and call_id is not None and machine.open and machine.results == 0 and machine.held is None
        ):
            machine.acts(turn, True)
        draft = fields.draft(machine, scope)
        draft.call_id = call_id
        machine.call(draft, turn)

    return act


def _update(fields: _Fields) -> Act:
    def act(machine: Machine, scope: Scope) -> None:
        draft = machine.waiting(short_id(fields.call_id(scope)) if fields.call_id is not None else None)
        if draft is None:
            machine.count("updates_without_call")
            return
        draft.tool = (fields.tool(scope) if "tool" in fields.spec else "") or draft.tool
        draft.arguments = ("" if fields.arguments is None else fields.arguments(scope)) or draft.arguments
        draft.action = ("" if fields.action is None else fields.action(scope)) or draft.action

    return act


def _result(fields: _Fields) -> Act:
    text = cast(Text, fields.result)
    judge = fields.judge

    def act(machine: Machine, scope: Scope) -> None:
        call_id = short_id(fields.call_id(scope)) if fields.call_id is not None else None
        machine.result(call_id, text(scope), lambda draft: judge(scope, draft))

    return act


def _agent(fields: _Fields) -> Act:
    def act(machine: Machine, scope: Scope) -> None:
        machine.agent = fields.agent(scope)

    return act


_ACTS: dict[str, Callable[[_Fields], Act]] = {
    "skip": _skip,
    "observe": _observe,
    "say": _say,
    "call": _call,
    "update": _update,
    "result": _result,
    "step": _say,
    "agent": _agent,
}
