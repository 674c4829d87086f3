"""Tests of an adapter (`when`, `until`, `success`, `failure`), compiled to closures; and elements that pass them."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from prefixguard.stepview.compiling import Site
from prefixguard.stepview.paths import MISSING, Getter, Scope, is_path, is_present
from prefixguard.stepview.schema import Pattern
from prefixguard.stepview.text import searchable, to_text
from prefixguard.stepview.values import BUILDERS, compile_value, inside_of

Condition = Callable[[Scope], bool]
Test = Callable[[Any, Scope], bool]
T = TypeVar("T")


def compile_when(spec: Any, site: Site) -> Condition:
    """A condition over the scope: all of its keys must hold.

    Keys: a path, a field of the record (status rules), `open_call`, `not` (a condition), `any` (conditions of which one
    must hold), `value` with `is` (a test of any value). The text "else" always holds.
    """
    if spec == "else":
        return lambda scope: True
    if not isinstance(spec, dict) or not spec:
        raise site.error('a condition is an object of tests ({"@.role": "user"}), or "else".')
    site = replace(site, in_test=True)
    parts = [part for key in spec if (part := _condition(spec, key, site)) is not None]
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        one, two = parts
        return lambda scope: one(scope) and two(scope)
    every = tuple(parts)
    return lambda scope: all(part(scope) for part in every)


def _condition(spec: dict[str, Any], key: str, site: Site) -> Condition | None:
    """The condition under one key; None for `is`, which belongs to `value`."""
    here, test = site.at(key), spec[key]
    if key == "open_call":
        if not isinstance(test, bool):
            raise here.error("open_call is true or false.")
        return lambda scope: (scope.open_calls > 0) is test
    if key == "not":
        inner = compile_when(test, here)
        return lambda scope: not inner(scope)
    if key == "any":
        if not isinstance(test, list) or not test:
            raise here.error("any holds a list of conditions.")
        parts = tuple(compile_when(one, here.at(f"[{i}]")) for i, one in enumerate(test))
        return lambda scope: any(part(scope) for part in parts)
    if key == "value":
        if "is" not in spec:
            raise here.error('a tested value is {"value": value, "is": test}.')
        return _tested(test, spec["is"], here, site.at("is"))
    if key == "is":
        if "value" not in spec:
            raise here.error('"is" goes with "value".')
        return None
    if key in site.fields:
        holds = compile_test(test, here)
        return lambda scope: holds(getattr(scope.fields, key, MISSING), scope)
    if is_path(key):
        return _tested(key, test, here, here)
    fields = f", a field ({', '.join(site.fields)})" if site.fields else ""
    raise here.error(f"{key!r} cannot be tested; a key is a path{fields}, open_call, not, any, or value with is.")


def _tested(value: Any, test: Any, here: Site, of_test: Site) -> Condition:
    """The test of a value. Tests of presence and of type learn nothing of what is inside."""
    if isinstance(test, dict) and set(test) <= {"present", "type"}:
        here = replace(here, looks_inside=False)
    get, holds = compile_value(value, here), compile_test(test, of_test)
    return lambda scope: holds(get(scope), scope)


def compile_cases(
    spec: list[Any], site: Site, root: str, path: str, compiled: Callable[[Any, Site], T]
) -> list[tuple[Condition, T]]:
    """A list of cases, `{"when": condition over the root, "path": ...}`, of which the first whose `when` holds counts.

    path: an example, for the message. compiled: what becomes of a path.
    """
    cases = []
    for i, case in enumerate(spec):
        here = site.at(f"[{i}]")
        if not isinstance(case, dict) or not is_path(case.get("path")):
            raise here.error(f'a case is {{"when": condition over {root}, "path": "{path}"}}.')
        here.keys(case, ("when", "path", "comment"))
        when = compile_when(case.get("when", "else"), here.at("when"))
        cases.append((when, compiled(case["path"], here.at("path"))))
    if not cases:
        raise site.error("an empty list of cases.")
    return cases


def compile_test(spec: Any, site: Site) -> Test:
    """A test of one value: a plain value (equality), or an object of which every test must hold."""
    if not isinstance(spec, dict):
        if isinstance(spec, list):
            raise site.error('a list is not a test; "one of these" is {"in": [...]}.')
        return _eq(spec, site)
    if not spec:
        raise site.error(f"an empty test; it can have: {', '.join(_TESTS)}.")
    tests = tuple(_TESTS[name](wanted, site.at(name)) for name, wanted in site.keys(spec, tuple(_TESTS)).items())
    if len(tests) == 1:
        return tests[0]
    return lambda value, scope: all(test(value, scope) for test in tests)


def same(value: Any, wanted: Any) -> bool:
    """Equality as JSON has it: 1 is 1.0, but true is not 1."""
    if isinstance(wanted, bool) or isinstance(value, bool):
        return value is wanted
    return bool(value == wanted) and value is not MISSING


def _eq(wanted: Any, site: Site) -> Test:
    if wanted is None or isinstance(wanted, bool):
        return lambda value, scope: value is wanted
    if isinstance(wanted, str):
        return lambda value, scope: bool(value == wanted)
    return lambda value, scope: same(value, wanted)


def _equal(wanted: Any, site: Site) -> Test:
    """Equal to a plain value, or to the value at a path."""
    if not is_path(wanted):
        return _eq(wanted, site)
    get = compile_value(wanted, site)
    return lambda value, scope: same(value, get(scope))


def _present(wanted: Any, site: Site) -> Test:
    if not isinstance(wanted, bool):
        raise site.error("present is true or false.")
    return lambda value, scope: is_present(value) is wanted


def _in(wanted: Any, site: Site) -> Test:
    if isinstance(wanted, list) and all(isinstance(item, str) for item in wanted):
        texts = frozenset(wanted)
        return lambda value, scope: isinstance(value, str) and value in texts
    get: Getter = (lambda scope: wanted) if isinstance(wanted, list) else compile_value(wanted, site)

    def test(value: Any, scope: Scope) -> bool:
        found = get(scope)
        return isinstance(found, list) and value is not MISSING and any(same(value, item) for item in found)

    return test


def _re(source: Any, site: Site) -> Test:
    found = Pattern(source, site.where).found
    if site.in_record:
        return lambda value, scope: value is not MISSING and value is not None and found(searchable(to_text(value)))
    return lambda value, scope: value is not MISSING and value is not None and found(to_text(value))


def is_number(value: Any) -> bool:
    """A number that can be compared: not a boolean, not NaN, not a text that looks like one."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value


def _compared(holds: Callable[[Any, Any], bool]) -> Callable[[Any, Site], Test]:
    def build(bound: Any, site: Site) -> Test:
        if is_path(bound):  # a mark that stands beside the value; where it is missing, no comparison holds
            get = compile_value(bound, site)
            return lambda value, scope: is_number(value) and is_number(mark := get(scope)) and holds(value, mark)
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise site.error('it is compared with a number, or with the number at a path: "$.required".')
        return lambda value, scope: is_number(value) and holds(value, bound)

    return build


TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}


def _type(name: Any, site: Site) -> Test:
    if name not in tuple(TYPES):
        raise site.error(f"type {name!r}; it is one of {', '.join(TYPES)}.")
    check = TYPES[name]
    return lambda value, scope: check(value)


def _not(spec: Any, site: Site) -> Test:
    inner = compile_test(spec, site)
    return lambda value, scope: not inner(value, scope)


def _any(spec: Any, site: Site) -> Test:
    if not isinstance(spec, list) or not spec:
        raise site.error("any holds a list of tests.")
    tests = tuple(compile_test(one, site.at(f"[{i}]")) for i, one in enumerate(spec))
    return lambda value, scope: any(test(value, scope) for test in tests)


#: By name: what compiles the test.
_TESTS: dict[str, Callable[[Any, Site], Test]] = {
    "eq": _equal,
    "present": _present,
    "in": _in,
    "re": _re,
    "ge": _compared(operator.ge),
    "gt": _compared(operator.gt),
    "le": _compared(operator.le),
    "lt": _compared(operator.lt),
    "type": _type,
    "not": _not,
    "any": _any,
}


def _elements(spec: dict[str, Any], site: Site) -> Getter:
    """Elements of a list: those behind the last for which `behind` holds, and of them those for which `when` holds."""
    inner, inside = compile_value(spec["elements"], site.at("elements")), site.optional(spec, "path", inside_of)
    above = {"^": site.roots["@"]} if "@" in site.roots else {}
    each = site.with_roots({"@": site.base_of(spec["elements"]), **above})
    behind, when = each.optional(spec, "behind", compile_when), each.optional(spec, "when", compile_when)

    def chosen(scope: Scope, elements: list[Any]) -> list[Any]:
        event, parent = scope.event, scope.parent
        scope.parent = event
        found = []
        try:
            for scope.event in reversed(elements):
                if behind is not None and behind(scope):
                    break
                if when is None or when(scope):
                    found.append(scope.event)
        finally:
            scope.event, scope.parent = event, parent
        return found[::-1]

    def get(scope: Scope) -> Any:
        elements = inner(scope)
        if isinstance(elements, dict):
            elements = [{"name": name, "value": value} for name, value in elements.items()]
        if not isinstance(elements, list):
            return MISSING
        found = chosen(scope, elements)
        return found if inside is None else inside(found)

    return get


BUILDERS["elements"] = (_elements, ("behind", "when", "path"))
