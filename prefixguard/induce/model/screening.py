"""What a model may not decide: looked at before its spec is compiled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.checks import waiving
from prefixguard.induce.samples import Samples
from prefixguard.stepview.schema import check_bounds

#: Waivers of one proposal that are kept, to be shown.
_WAIVERS = 20

SCHEMA = "prefixguard/adapter/v1"
#: Where a hint must be read; others anywhere in rules or status.
_HINTED = {
    "outcome": "run.outcome", "task": "run.task", "id": "run.id", "runs": "container", "events": "events",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Screened:
    """spec: as it will be tried, with what is ours filled in; None where it is refused as a whole. faults: sentences
    for the model. waivers: what it wanted waived, for the person to see: never part of the spec by itself."""

    spec: dict[str, Any] | None
    faults: tuple[str, ...] = ()
    waivers: tuple[Mapping[str, Any], ...] = ()


def screen(
    spec: Mapping[str, Any],
    samples: Samples,
    *,
    name: str,
    hints: Mapping[str, str] | None = None,
    waive: Mapping[str, str] | None = None,
) -> Screened:
    """The spec with name, version, schema and waivers set by us, budgets taken out.

    waive: what the person waives, by place. Refuses what is too big or too deep to be opened.
    """
    try:
        check_bounds(spec, "the spec")
    except AdapterError as exc:
        return Screened(None, (str(exc),))
    own = {key: value for key, value in spec.items() if key not in ("$schema", "budgets", "view", "waived")}
    own |= {"schema": SCHEMA, "name": name, "version": "1.0.0"}
    if not isinstance(own.get("description", ""), str):
        del own["description"]
    waived = spec.get("waived")
    waivers = [one for one in waived if isinstance(one, dict)] if isinstance(waived, list) else []
    faults = (*_outside(own, samples), *_unread_hints(own, hints or {}))
    return Screened(waiving(own, waive or {}), faults, tuple(waivers[:_WAIVERS]))


def _walk(value: Any) -> Iterator[tuple[str, str, Any]]:
    """Every value of a spec: where it is, its key, the value."""
    stack: list[tuple[str, str, Any]] = [("", "", value)]
    while stack:
        where, key, inner = stack.pop()
        yield where, key, inner
        if isinstance(inner, dict):
            below = [(f"{where}.{name}".lstrip("."), str(name), deep) for name, deep in inner.items()]
            stack.extend(reversed(below))
        elif isinstance(inner, list):
            stack.extend((f"{where}[{i}]", key, deep) for i, deep in reversed(list(enumerate(inner))))


def _outside(spec: dict[str, Any], samples: Samples) -> Iterator[str]:
    """Companion files that could only be outside the folder of samples. The reader would find nothing there; the model
    is told at once."""
    deepest = max((file.path.count("/") for file in samples.files), default=0)
    for where, key, value in _walk(spec):
        if key == "sibling" and isinstance(value, str):
            parts = value.replace("\\", "/").split("/")
            if value.startswith(("/", "~")) or ":" in parts[0] or parts.count("..") > deepest:
                yield f"{where}: {value[:120]!r} leaves the folder of runs. Companion files are inside it."


def _unread_hints(spec: dict[str, Any], hints: Mapping[str, str]) -> Iterator[str]:
    for name, path in sorted(hints.items()):
        if name == "success" or path.startswith("{"):
            continue  # no path: the model is told it, and a person looks
        part = _HINTED.get(name, "rules or status")
        place: Any = spec if name in _HINTED else [spec.get("rules"), spec.get("status")]
        for key in part.split(".") if name in _HINTED else ():
            place = place.get(key) if isinstance(place, dict) else None
        read = {text for _, key, value in _walk(place) for text in (key, value) if isinstance(text, str)}
        if path.removesuffix("[*]") not in {text.removesuffix("[*]") for text in read}:
            yield f"the user fixed {name} = {path}; {part} does not read it."
