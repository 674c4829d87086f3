"""What a person said, in the search: layouts and rules of a fragment take the place of those that were found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from prefixguard.induce.fragments import overlaid
from prefixguard.induce.samples import Kind
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.stepview import canonical

if TYPE_CHECKING:
    from prefixguard.induce.search.layouts import Layout

#: Hints of steps: the field of a rule that reads the place.
_FIELDS = {
    "tool": ("tool",), "arguments": ("arguments",), "call_id": ("call_id",), "result": ("result", "observation"),
    "action": ("action",), "role": ("when",), "status": ("is", "status"),
}  # fmt: skip


def given_of(hints: Mapping[str, Any]) -> dict[str, Any]:
    """The fragment of a spec that the hints make: the whole one, or where runs and events are."""
    if "fragment" in hints:
        whole: dict[str, Any] = json.loads(hints["fragment"])
        return whole
    found: dict[str, Any] = {"events": hints["events"]} if "events" in hints else {}
    return {**found, "container": {"runs": hints["runs"]}} if "runs" in hints else found


def given_layouts(found: Iterable[Layout], evidence: Evidence) -> list[Layout]:
    """The layouts with the container and the events that a person gave, and the given ones in every container."""
    given = given_of(evidence.hints)
    container, events = given.get("container"), given.get("events")
    layouts = list(found)
    if container is None and events is None:
        return layouts
    if isinstance(container, str | list):
        bases: list[Any] = [container]
    else:
        kinds = {file.kind for file in evidence.files} & {Kind.JSON, Kind.JSONL}
        bases = [*(layout.container for layout in layouts), *({"format": kind.value} for kind in sorted(kinds))]
        said = container or {}
        bases = [base for base in bases if said.get("format", base.get("format")) == base.get("format")] or [{}]
        bases = [{**base, **said} for base in bases]
        if "runs" in said:
            bases = [{key: value for key, value in base.items() if key != "group_by"} for base in bases]
    out: dict[str, Layout] = {}
    wanted = (
        [events]
        if events is not None
        else list({canonical(layout.events): layout.events for layout in layouts}.values())
    )
    for base in bases:
        for one in wanted:
            like = next((layout for layout in layouts if layout.events == one), layouts[0] if layouts else None)
            if like is not None:
                out.setdefault(
                    canonical([base, one]), replace(like, container=base, events=one, why="as a person said")
                )
    return list(out.values())


def given_sources(sources: Iterator[Iterator[Candidate]], evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Sources of candidates with the parts of the spec that a person gave, once each; where hints name places of steps,
    one source of those that read most of these."""
    given = {key: value for key, value in given_of(evidence.hints).items() if key in _PARTS}
    places = {name: str(evidence.hints[name]) for name in _FIELDS if name in evidence.hints}
    if not given and not places:
        yield from sources
        return
    out: dict[str, Candidate] = {}
    for one in chain.from_iterable(sources):
        spec = overlaid(one.spec, given)
        out.setdefault(canonical([spec.get("container"), spec["events"], spec["rules"]]), replace(one, spec=spec))
    followed = {key: sum(_reads(one.spec, name, place) for name, place in places.items()) for key, one in out.items()}
    most = max(followed.values(), default=0)
    yield (one for key, one in out.items() if followed[key] == most)


_PARTS = ("container", "events", "rules", "join", "turn", "status", "kind", "signals")


def _reads(spec: Mapping[str, Any], name: str, place: str) -> bool:
    """Does a rule read the place under one of the fields that the hint means?"""
    if name == "status":
        return f'"{place}"' in canonical(spec.get("status"))
    wanted = f'"{place}"'
    bare = f'"@{place[place.rindex(".") :]}"' if "." in place else wanted
    for rule in spec["rules"]:
        for field in _FIELDS[name]:
            if field in rule:
                text = canonical(rule[field])
                if wanted in text or ("each" in rule and bare in text):
                    return True
    return False
