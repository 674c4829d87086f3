"""What a model may not decide, and what a proposed spec may not cost: looked at before the spec is compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from prefixguard.induce.samples import Samples
from prefixguard.stepview import canonical

#: The largest shipped spec has a tenth of these.
MAX_DEPTH = 24
MAX_VALUES = 8_000
MAX_RULES = 80
MAX_BYTES = 96 * 1024
MAX_REGEX = 2_000
#: Instructions of a compiled expression; RE2 needs at most so many steps a byte, whatever the text.
MAX_PROGRAM = 20_000

SCHEMA = "prefixguard/adapter/v1"
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False
_REGEX_KEYS = ("re", "head", "section", "tail", "cut")


@dataclass(frozen=True, slots=True)
class Screened:
    """spec: as it will be tried, with what is ours filled in; None where it is refused as a whole. faults: sentences
    for the model. waivers: what it wanted waived, for the user to see; never part of the spec unless allowed."""

    spec: dict[str, Any] | None
    faults: tuple[str, ...] = ()
    waivers: tuple[Mapping[str, Any], ...] = ()


def screen(
    spec: Mapping[str, Any],
    samples: Samples,
    *,
    name: str,
    hints: Mapping[str, str] | None = None,
    allow_waivers: bool = False,
) -> Screened:
    """The spec with name, version and schema set by us, budgets and waivers taken out.

    Refuses what is too big or too deep to run. Work is bounded by the limits above.
    """
    rules = spec.get("rules")
    if isinstance(rules, list) and len(rules) > MAX_RULES:
        return Screened(None, (f"{len(rules):,} rules; at most {MAX_RULES}. Write rules for kinds of events.",))
    size = _size_fault(spec)
    if size is not None:
        return Screened(None, (size,))
    faults: list[str] = []
    own = {key: value for key, value in spec.items() if key not in ("$schema", "budgets", "view", "waived")}
    own |= {"schema": SCHEMA, "name": name, "version": "1.0.0"}
    waivers = tuple(one for one in _as_list(spec.get("waived")) if isinstance(one, dict))[:20]
    if waivers and allow_waivers:
        own["waived"] = list(waivers)
    elif waivers:
        faults.append(
            "`waived` was taken out: only the user may waive a refusal. Read a narrower path, cut out what gives the "
            "outcome away, or leave the field out."
        )
    if not isinstance(own.get("description", ""), str):
        del own["description"]
    faults += _regex_faults(own)
    faults += _sibling_faults(own, samples)
    faults += [*_hint_faults(own, hints or {})]
    return Screened(own, tuple(faults), waivers)


def _size_fault(spec: Mapping[str, Any]) -> str | None:
    stack: list[tuple[Any, int]] = [(spec, 0)]
    n = 0
    while stack:
        value, depth = stack.pop()
        n += 1
        if depth > MAX_DEPTH:
            return f"the spec is nested more than {MAX_DEPTH} deep. Write it flatter."
        if n > MAX_VALUES:
            return f"the spec has more than {MAX_VALUES:,} values. Write rules for kinds of events, not for events."
        if isinstance(value, Mapping):
            stack.extend((inner, depth + 1) for inner in value.values())
        elif isinstance(value, list):
            stack.extend((inner, depth + 1) for inner in value)
    size = len(canonical(dict(spec)).encode("utf-8", "replace"))
    if size > MAX_BYTES:
        return f"the spec has {size:,} bytes; at most {MAX_BYTES:,}. Write it shorter."
    return None


def _walk(value: Any, where: str = "") -> Any:
    """Every (where, key, value) of a spec."""
    stack: list[tuple[str, str, Any]] = [(where, "", value)]
    while stack:
        here, key, inner = stack.pop()
        yield here, key, inner
        if isinstance(inner, dict):
            stack.extend((f"{here}.{name}".lstrip("."), str(name), deep) for name, deep in reversed(inner.items()))
        elif isinstance(inner, list):
            stack.extend((f"{here}[{i}]", key, deep) for i, deep in reversed(list(enumerate(inner))))


def _regex_faults(spec: dict[str, Any]) -> list[str]:
    """Expressions that are too long, or that compile to too much; what RE2 refuses is the compiler's to say."""
    faults = []
    for where, key, value in _walk(spec):
        if key not in _REGEX_KEYS or not isinstance(value, str):
            continue
        if len(value) > MAX_REGEX:
            faults.append(f"{where}: a regular expression of {len(value):,} characters; at most {MAX_REGEX:,}.")
            continue
        try:
            size = re2.compile(value.encode("utf-8", "replace"), _OPTIONS).programsize
        except re2.error:
            continue
        if size > MAX_PROGRAM:
            faults.append(f"{where}: {value[:80]!r} is too costly ({size:,} instructions). Use fewer counted repeats.")
    return faults


def _sibling_faults(spec: dict[str, Any], samples: Samples) -> list[str]:
    """Companion files that could only be outside the folder of samples. The reader would find nothing there; the model
    is told at once."""
    deepest = max((file.path.count("/") for file in samples.files), default=0)
    faults = []
    for where, key, value in _walk(spec):
        if key != "sibling" or not isinstance(value, str):
            continue
        parts = value.replace("\\", "/").split("/")
        if value.startswith(("/", "~")) or ":" in parts[0] or parts.count("..") > deepest:
            faults.append(f"{where}: {value[:120]!r} leaves the folder of runs. Companion files are inside it.")
    return faults


#: Where a hint must be read; others anywhere in rules or status.
_HINTED: Mapping[str, tuple[str, ...]] = {
    "outcome": ("run.outcome",),
    "task": ("run.task",),
    "id": ("run.id",),
    "runs": ("container",),
    "events": ("events",),
}


def _hint_faults(spec: dict[str, Any], hints: Mapping[str, str]) -> list[str]:
    faults = []
    for name, path in sorted(hints.items()):
        if name == "success" or path.startswith("{"):
            continue  # no path: the model is told it, and a person looks
        places = _HINTED.get(name, ("rules", "status"))
        read = [text for place in places for text in _texts(_at(spec, place))]
        wanted = {path, path.removesuffix("[*]")}
        if not any(one in wanted or one.removesuffix("[*]") in wanted for one in read):
            faults.append(f"the user fixed {name} = {path}; {' or '.join(places)} does not read it.")
    return faults


def _at(spec: Any, place: str) -> Any:
    for name in place.split("."):
        spec = spec.get(name) if isinstance(spec, dict) else None
    return spec


def _texts(value: Any) -> Collection[str]:
    found = set()
    for _, key, inner in _walk(value):
        found.add(key)
        if isinstance(inner, str):
            found.add(inner)
    return found


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
