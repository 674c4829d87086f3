"""What a person said, in the search: layouts and rules of a fragment take the place of those that were found."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from prefixguard.errors import PrefixGuardError
from prefixguard.induce.fragments import overlaid
from prefixguard.induce.samples import Kind
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.statuses import read_by_rule
from prefixguard.stepview import canonical

if TYPE_CHECKING:
    from prefixguard.induce.search.layout import Layout

#: Hints of steps: the fields of rules that read the place, by what the rule emits. A role is what rules test.
_FIELDS: dict[str, dict[str, str]] = {
    "tool": {"call": "tool", "step": "tool"},
    "arguments": {"call": "arguments", "step": "arguments", "update": "arguments"},
    "call_id": {"call": "call_id", "result": "call_id"},
    "result": {"result": "result", "step": "result"},
    "action": {"say": "action", "call": "action", "step": "action"},
    "role": {},
    "status": {},
}


def given_of(hints: Mapping[str, Any]) -> dict[str, Any]:
    """The fragment of a spec that the hints make: the whole one, or where runs and events are."""
    if "fragment" in hints:
        whole: dict[str, Any] = json.loads(hints["fragment"])
        return whole
    found: dict[str, Any] = {"events": hints["events"]} if "events" in hints else {}
    if "runs" in hints:
        of_lines = str(hints["runs"]).startswith("@")  # lines that share an id are a run
        found["container"] = {"format": "jsonl", "group_by": hints["runs"]} if of_lines else {"runs": hints["runs"]}
    return found


def given_layouts(found: Iterable[Layout], evidence: Evidence) -> list[Layout]:
    """The layouts with the container and the events that a person gave, and the given ones in every container."""
    given = given_of(evidence.hints)
    container, events = given.get("container"), given.get("events")
    layouts = list(found)
    if not layouts or (container is None and events is None):
        return layouts
    if isinstance(container, str | list):
        bases: list[Any] = [container]
    else:
        said = container or {}
        kinds = {file.kind for file in evidence.files} & {Kind.JSON, Kind.JSONL}
        bases = [*(layout.container for layout in layouts), *({"format": kind.value} for kind in sorted(kinds))]
        bases = [base for base in bases if said.get("format", base.get("format")) == base.get("format")] or [{}]
        dropped = {"group_by"} if "runs" in said else set()
        bases = [{key: value for key, value in {**base, **said}.items() if key not in dropped} for base in bases]
    wanted = [layout.events for layout in layouts] if events is None else [events]
    out: dict[str, Layout] = {}
    for base in bases:
        for one in wanted:
            like = next((layout for layout in layouts if layout.events == one), layouts[0])
            layout = replace(like, container=base, events=one, why="as a person said")
            out.setdefault(canonical([base, one]), layout)
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
        candidate = obeying(replace(one, spec=overlaid(one.spec, given)), evidence)
        spec = candidate.spec
        out.setdefault(canonical([spec.get("container"), spec["events"], spec["rules"]]), candidate)
    followed = {key: len(places) - len(unfollowed(one.spec, evidence)) for key, one in out.items()}
    most = max(followed.values(), default=0)
    yield (one for key, one in out.items() if followed[key] == most)


_PARTS = ("container", "events", "rules", "join", "turn", "status", "kind", "signals")


def obeying(candidate: Candidate, evidence: Evidence) -> Candidate:
    """The candidate whose rules read the places of steps that a person named, where their events have them."""
    spec, rules = candidate.spec, []
    for i, rule in enumerate(spec["rules"]):
        changed = dict(rule)
        for name, fields in _FIELDS.items():
            field = fields.get(rule["emit"])
            if name not in evidence.hints or field is None:
                continue
            place = _inside(rule, str(evidence.hints[name]))
            value: Any = {"text": place} if name in ("result", "action") else place
            if canonical(rule.get(field)) != canonical(value) and _is_there(spec, i, place, evidence):
                changed[field] = value
        rules.append(changed)
    return candidate if rules == spec["rules"] else replace(candidate, spec={**spec, "rules": rules}, blocks=())


def _inside(rule: Mapping[str, Any], place: str) -> str:
    """The place as this rule says it: inside the element that it goes through."""
    each = rule.get("each")
    return f"@.{place[len(each) + 1 :]}" if each and place.startswith(f"{each}.") else place


def _is_there(spec: Mapping[str, Any], number: int, place: str, evidence: Evidence) -> bool:
    """Have the events of this rule something at the place?"""
    key = canonical([spec["container"], spec["events"], spec["rules"][: number + 1], place])
    if key not in evidence.cache:
        try:
            rows = read_by_rule(spec, number, {"text": place}, evidence)
            evidence.cache[key] = any(text for row in rows for text, _ in row)
        except PrefixGuardError:
            evidence.cache[key] = False
    return bool(evidence.cache[key])


def unfollowed(spec: Mapping[str, Any], evidence: Evidence) -> list[str]:
    """Names of the hints that say where steps have something, and that no rule follows."""
    found = []
    rules = spec["rules"]
    for name, fields in _FIELDS.items():
        read = [rule.get(fields.get(rule["emit"], "")) for rule in rules]
        if name == "role":
            read = [rule.get("when") for rule in rules]
        elif name == "status":
            read = [spec.get("status"), *(rule.get("status") for rule in rules)]
        place = str(evidence.hints.get(name, ""))
        places = {place, *(_inside(rule, place) for rule in rules)}
        if place and not any(f'"{one}"' in canonical(read) for one in places):
            found.append(name)
    return found
