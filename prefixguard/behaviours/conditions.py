"""Conditions over one step, as a file of behaviours declares them.

A condition is an object whose tests must all hold: a field of the step (`tool`, `arguments`, `action`, `observation`,
`result`, `status`) or its `consequence`, `any` (a list of conditions), `not` (a condition). A test of a field is a
text that it must be, or an object: `is` (a text, or a list of texts), `re` (RE2, found anywhere), `longer`, `shorter`
(than so many characters).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from prefixguard.behaviours.catalogue import CONSEQUENCES
from prefixguard.errors import AdapterError, ConfigError
from prefixguard.stepview import Pattern, Status, StepRecord, searchable

#: Whether it holds at a step, of which the consequence is known.
StepCondition = Callable[[StepRecord, str], bool]
TextTest = Callable[[str], bool]

_TEXTS: Final = ("tool", "arguments", "action", "observation", "result")
_VALUES: Final[Mapping[str, tuple[str, ...]]] = {"status": get_args(Status), "consequence": CONSEQUENCES}
FIELDS_TESTED: Final = (*_TEXTS, *_VALUES)
_TESTS: Final = ("is", "re", "longer", "shorter")
MOST_PATTERN: Final = 1000
_DEEPEST: Final = 8


def keys_of(spec: Any, allowed: tuple[str, ...], where: str) -> dict[str, Any]:
    """The object itself; ConfigError if it is none, or has other keys."""
    if not isinstance(spec, dict) or not spec:
        raise ConfigError(f"{where}: an object with some of these keys is needed: {', '.join(allowed)}.")
    for key in spec:
        if key not in allowed:
            raise ConfigError(f"{where}: {key!r} is no key here; the keys are {', '.join(allowed)}.")
    return spec


def compile_condition(spec: Any, where: str, depth: int = 0) -> StepCondition:
    """The condition as a function. where: its place, for messages. Raises ConfigError for one that is wrong, or that no
    step can fulfil."""
    if depth > _DEEPEST:
        raise ConfigError(f"{where}: conditions inside one another more than {_DEEPEST} deep. Flatten them.")
    parts: list[StepCondition] = []
    for key, test in keys_of(spec, (*FIELDS_TESTED, "any", "not"), where).items():
        here = f"{where}.{key}"
        if key == "any":
            if not isinstance(test, list) or not test:
                raise ConfigError(f"{here}: a list of conditions is needed, of which one must hold.")
            parts.append(_any([compile_condition(one, f"{here}[{i}]", depth + 1) for i, one in enumerate(test)]))
        elif key == "not":
            parts.append(_not(compile_condition(test, here, depth + 1)))
        else:
            parts.append(_of_field(key, compile_test(test, here, _VALUES.get(key))))
    return parts[0] if len(parts) == 1 else _all(parts)


def compile_test(spec: Any, where: str, values: tuple[str, ...] | None) -> TextTest:
    """The test of a field. values: what the field can be; None: any text."""
    if isinstance(spec, str):
        spec = {"is": spec}
    tests = keys_of(spec, _TESTS, where)
    wanted = tests.get("is")
    texts = [wanted] if isinstance(wanted, str) else wanted
    if "is" in tests and not (isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts)):
        raise ConfigError(f"{where}.is: a text or a list of texts is needed.")
    odd = next((text for text in texts or () if values is not None and text not in values), None)
    if odd is not None and values is not None:
        raise ConfigError(f"{where}: {odd!r} can never be; it is one of {', '.join(values)}.")
    parts: list[TextTest] = []
    if "re" in tests:
        parts.append(_found(tests["re"], f"{where}.re"))
    longer, shorter = (_length(tests[name], f"{where}.{name}") if name in tests else None for name in _TESTS[2:])
    if longer is not None and shorter is not None and longer + 1 >= shorter:
        raise ConfigError(f"{where}: no text is longer than {longer} and shorter than {shorter} characters.")
    if longer is not None or shorter is not None:
        parts.append(_sized(-1 if longer is None else longer, shorter))
    if texts is not None:
        if not any(all(part(text) for part in parts) for text in texts):
            raise ConfigError(f"{where}: its tests contradict one another: no text that it may be passes the others.")
        parts.append(frozenset(texts).__contains__)
    return parts[0] if len(parts) == 1 else lambda text: all(part(text) for part in parts)


def _length(value: Any, where: str) -> int:
    if type(value) is not int or not 0 <= value <= 1 << 20:
        raise ConfigError(f"{where}: a number of characters from 0 to 1,048,576 is needed.")
    return value


def _found(source: Any, where: str) -> TextTest:
    if isinstance(source, str) and len(source) > MOST_PATTERN:
        raise ConfigError(f"{where}: a regular expression of more than {MOST_PATTERN:,} characters. Shorten it.")
    try:
        pattern = Pattern(source, where)
    except AdapterError as exc:
        raise ConfigError(str(exc)) from exc
    if pattern.found(""):
        raise ConfigError(f"{where}: {source!r} is found in every text, so it tests nothing. Leave it out or mend it.")
    return lambda text: pattern.found(searchable(text))


def _sized(longer: int, shorter: int | None) -> TextTest:
    most = 1 << 62 if shorter is None else shorter
    return lambda text: longer < len(text) < most


def _of_field(field: str, holds: TextTest) -> StepCondition:
    if field == "consequence":
        return lambda record, consequence: holds(consequence)
    return lambda record, consequence: holds(getattr(record, field))


def _any(parts: list[StepCondition]) -> StepCondition:
    return lambda record, consequence: any(part(record, consequence) for part in parts)


def _all(parts: list[StepCondition]) -> StepCondition:
    return lambda record, consequence: all(part(record, consequence) for part in parts)


def _not(part: StepCondition) -> StepCondition:
    return lambda record, consequence: not part(record, consequence)
