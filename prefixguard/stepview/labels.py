"""Labels of attribution sets: which step was the decisive mistake and whose, and which agents failed in which mode.

RunLabels are for evaluation only. What they are read from counts as hidden, so no record can read it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from prefixguard.stepview.compiling import Base, Site
from prefixguard.stepview.conditions import Condition, compile_when
from prefixguard.stepview.events import EventSource
from prefixguard.stepview.paths import MISSING, Getter, Scope
from prefixguard.stepview.record import StepRecord
from prefixguard.stepview.values import as_id, compile_value
from prefixguard.trace import Fault, Mistake

KEYS = ("mistake_step", "mistake_agent", "step_base", "step_field", "faults")
_FAULT_KEYS = ("each", "when", "agent", "mode")
#: Digits of the largest step number that a label can name.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class _Faults:
    """each: a list, or an object whose entries are taken as {"name", "value"}. when: which are faults; None: all."""

    each: Getter
    when: Condition | None
    agent: Getter | None
    mode: Getter | None


@dataclass(frozen=True, slots=True)
class RunLabels:
    """The compiled `run.labels` of a spec.

    step_base: number of the first event in the set, 0 or 1. step_field: number that an event gives itself; then the
    label means the event with that number, at whatever position it is (numbers may have gaps), and step_base is not
    used.
    """

    events: EventSource
    step: Getter | None = None
    agent: Getter | None = None
    step_base: int = 0
    step_field: Getter | None = None
    fault: _Faults | None = None

    def mistake(self, scope: Scope, records: Sequence[StepRecord]) -> Mistake | None:
        """The decisive mistake of a run. None where the set names neither step nor agent, or a step below 0, which
        says that there is none. A step that hits no record is None in the mistake."""
        if self.step is None and self.agent is None:
            return None
        scope.event = scope.parent = MISSING
        agent = None if self.agent is None else _name(self.agent(scope))
        value = MISSING if self.step is None else self.step(scope)
        number = _number(value)
        is_blank = as_id(value) is None or value != value  # a missing number may be NaN
        if (number is not None and number < 0) or (is_blank and agent is None):
            return None
        event = None if number is None else self._event(scope, number)
        return Mistake(next((record.index for record in records if record.event == event), None), agent)

    def _event(self, scope: Scope, number: int) -> int | None:
        """Position of the event that a label means, from 0."""
        if self.step_field is None:
            return number - self.step_base
        events = self.events.listing(scope)
        scope.parent = scope.run
        for position, scope.event in enumerate(events if isinstance(events, list) else ()):
            if _number(self.step_field(scope)) == number:
                return position
        return None

    def faults(self, scope: Scope) -> tuple[Fault, ...]:
        """Who failed and how, each pair once, in the order in which the set names them."""
        if self.fault is None:
            return ()
        scope.event = scope.parent = MISSING
        named = self.fault.each(scope)
        if isinstance(named, dict):
            named = [{"name": name, "value": value} for name, value in named.items()]
        found: dict[Fault, None] = {}
        scope.parent = scope.run
        for scope.event in named if isinstance(named, list) else ():
            if self.fault.when is not None and not self.fault.when(scope):
                continue
            agent = None if self.fault.agent is None else _name(self.fault.agent(scope))
            mode = None if self.fault.mode is None else _name(self.fault.mode(scope))
            if agent is not None or mode is not None:
                found[Fault(agent, mode)] = None
        return tuple(found)


def compile_labels(spec: Any, site: Site, events: EventSource) -> RunLabels:
    """The `run.labels` of a spec; what they read goes to the site's sink. AdapterError says what is wrong."""
    site.keys(spec, KEYS, f"an object with {', '.join(KEYS)}.")
    base = spec.get("step_base", 0)
    if base not in (0, 1) or isinstance(base, bool):
        raise site.error("step_base is 0 or 1: what the set calls the first event.")
    return RunLabels(
        events,
        site.optional(spec, "mistake_step", compile_value),
        site.optional(spec, "mistake_agent", compile_value),
        int(base),
        _step_field(spec, site.at("step_field"), events) if "step_field" in spec else None,
        site.optional(spec, "faults", _faults),
    )


def _step_field(spec: dict[str, Any], site: Site, events: EventSource) -> Getter:
    if "mistake_step" not in spec or "step_base" in spec:
        raise site.error("it goes with mistake_step and without step_base: events say their own numbers.")
    if events.split is not None or events.levels or events.base.columns is not None:
        raise site.error(
            "it needs events that are a path; rows of zip, split and flatten have no numbers of their own."
        )
    seen = replace(site.with_roots({"@": events.base, "^": events.parent}), sink=[])  # events are no secret
    return compile_value(spec["step_field"], seen)


def _faults(spec: Any, site: Site) -> _Faults:
    example = '{"each": "$.faulty_agents", "agent": "@.agent_name", "mode": "@.error_type"}.'
    if not isinstance(spec, dict) or not {"agent", "mode"} & spec.keys():
        raise site.error(example)
    site.keys(spec, _FAULT_KEYS, example, needs=("each",))
    inner = site.with_roots({"@": Base(None), "^": site.roots["$"]})  # inside `each`, which is hidden as a whole
    return _Faults(
        compile_value(spec["each"], site.at("each")),
        inner.optional(spec, "when", compile_when),
        inner.optional(spec, "agent", compile_value),
        inner.optional(spec, "mode", compile_value),
    )


def _name(value: Any) -> str | None:
    """A name; None for a value that is no name, such as the NaN that tables hold in empty cells."""
    return None if isinstance(value, float | bool) else as_id(value)


def _number(value: Any) -> int | None:
    """A step number as sets spell it: 3, "3", 3.0, -1. None for anything else.

    >>> _number("12"), _number(3.0), _number(-1), _number("x"), _number(True), _number(float("nan"))
    (12, 3, -1, None, None, None)
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 10**_DIGITS else None
    if isinstance(value, int):
        return int(value) if abs(value) < 10**_DIGITS else None
    if not isinstance(value, str):
        return None
    digits = value.removeprefix("-")
    return int(value) if digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS else None
