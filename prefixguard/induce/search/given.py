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
    from prefixguard.induce.search.layouts import Layout

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
    return [name for name in _FIELDS if name in evidence.hints and not _reads(spec, name, str(evidence.hints[name]))]


def _reads(spec: Mapping[str, Any], name: str, place: str) -> bool:
    """Does a rule read the place under one of the fields that the hint means?"""
    wanted = f'"{place}"'
    if name in ("role", "status"):
        part = [rule.get("when") for rule in spec["rules"]] if name == "role" else _statuses(spec)
        return wanted in canonical(part)
    for rule in spec["rules"]:
        field = _FIELDS[name].get(rule["emit"])
        inner = f'"{_inside(rule, place)}"'
        if field in rule and (wanted in canonical(rule[field]) or inner in canonical(rule[field])):
            return True
    return False


def _statuses(spec: Mapping[str, Any]) -> list[Any]:
    return [spec.get("status"), *(rule.get("status") for rule in spec["rules"])]
