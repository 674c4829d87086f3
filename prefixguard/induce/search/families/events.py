"""The family of events of several kinds: messages with roles, typed events, spans. Each kind gets a part (the agent's,
a user's, a result, a call, nothing), and the rules follow from the parts and from what stands in its elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from prefixguard.induce.search.columns import MOST_KINDS, PARTS, KindSplit, Node, by_type, kinds_of
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.families.event_kinds import LEAST_WORTH, EventKind, hear, kind_of, meet, score
from prefixguard.induce.search.families.event_rules import Rule, readings_of
from prefixguard.induce.search.forms import (
    calls_of,
)
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.layouts import layouts
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.stepview import canonical

#: Ways to tell kinds apart that are tried; second guesses of a split.
_MOST_SPLITS, _MOST_GUESSES = 3, 4
#: Speakers that kinds of kinds of kinds may have.
_MOST_SPEAKERS = 4
#: Kinds with names that say nothing, from which on they are a team.
_LEAST_TEAM = 3


def propose(evidence: Evidence) -> Iterator[Iterator[Candidate]]:
    """Of every layout the candidates by every way to tell the kinds of its events apart, likeliest first."""
    for layout in layouts(evidence):
        if all(isinstance(e, dict | list) for run in layout.events_of for e in run[:50]):
            yield _of_layout(layout, evidence)


def _of_layout(layout: Layout, evidence: Evidence) -> Iterator[Candidate]:
    node = layout.node()
    known = kinds_of(node)
    inside = [split for split in known if split.by == PARTS]
    splits: list[KindSplit | None] = [*inside, *[split for split in known if split.by != PARTS][:_MOST_SPLITS]]
    deeper = [deep for split in splits if split is not None and (deep := _finer(split, evidence.names)) is not None]
    mixed = {deep.of for deep in deeper if deep.sides}  # the user and the agent are not of one kind
    splits = [split for split in splits if split is None or split.by not in mixed or _sides(split)]
    splits += [*deeper, *(most for split in deeper if (most := _finer(split, evidence.names, False)) is not None)]
    pooled = [one for split in splits if split is not None for one in (_pooled(split), split) if one is not None]
    for split in [*pooled, None]:
        nodes = [part for one in (split.nodes if split is not None else [node]) for part in by_type(one)]
        by = split.by if split is not None else "nothing"
        why = f"events at {layout.place}, {layout.why}, kinds by {by}"
        for spec, blocks in islice(_specs(layout, nodes, evidence), 1 + _MOST_GUESSES):
            yield Candidate(spec, "events", layout.likely, why, blocks)


def _sides(split: KindSplit) -> bool:
    """Do the names of kinds tell the user and the agent apart?"""
    return {Part.USER, Part.SAY} <= {part[0] for node in split.nodes if (part := part_of(node.label))}


def _finer(split: KindSplit, names: bool, keys: bool = True) -> KindSplit | None:
    """The split with those of its kinds divided once more that have two speakers, or with `keys` two sets of keys; None
    where none has. Without, few speakers count. What names the tool of calls tells no kinds."""
    nodes: list[Node] = []
    by, sides = split.by, False
    for node in split.nodes:
        tools = {form.tool for form in calls_of(node, names) if form.worth >= LEAST_WORTH
                 and isinstance(form.tool, str)}  # fmt: skip
        inner = [one for one in kinds_of(node) if one.by not in tools][:1] if len(node.elements) >= 4 else []
        inner = [k for k in inner if keys or len(k.nodes) <= _MOST_SPEAKERS]
        told = {p[0] for k in inner for one in k.nodes if names and (p := part_of(one.label))}
        speakers = len(told) >= 2
        if inner and (speakers or (keys and inner[0].gain >= 0.6)) and not inner[0].by.startswith("keys"):
            nodes += inner[0].nodes
            by = f"{split.by} and {inner[0].by}"
            sides |= {Part.USER, Part.SAY} <= told
        else:
            nodes.append(node)
    found = KindSplit(nodes, split.gain, by, split.by, sides)
    return found if by != split.by and len(nodes) <= MOST_KINDS else None


def _pooled(split: KindSplit) -> KindSplit | None:
    """The split with the kinds whose names say nothing as one kind, that of others in a team: their names go on beyond
    the samples. None where fewer than three are such."""
    groups: dict[str, list[Node]] = {}
    for node in split.nodes:
        (*rest, (path, value)) = node.when.items() or [("", None)]
        if isinstance(value, str):
            groups.setdefault(canonical([rest, path]), []).append(node)
    nodes = list(split.nodes)
    for group in groups.values():
        unknown = [node for node in group if part_of(node.label) is None]
        if len(unknown) >= _LEAST_TEAM:
            first = unknown[0]
            *rest, (path, _) = first.when.items()
            known = sorted(node.label for node in group if node not in unknown)
            test: dict[str, Any] = {"present": True} | ({"not": {"in": known}} if known else {})
            rows = [row for one in unknown for row in zip(one.owner, one.elements, one.runs, strict=True)]
            rows.sort(key=lambda row: row[0])
            together = Node(first.each, [r[1] for r in rows], [r[0] for r in rows], [r[2] for r in rows])
            together.when, together.whole, together.speaker = {**dict(rest), path: test}, first.whole, path
            nodes = [together, *(node for node in nodes if node not in unknown)]
    return KindSplit(nodes, split.gain, f"{split.by}, a team") if len(nodes) < len(split.nodes) else None


Blocks = tuple[tuple[tuple[Rule, ...], ...], ...]


def _specs(layout: Layout, nodes: Sequence[Node], evidence: Evidence) -> Iterator[tuple[dict[str, Any], Blocks]]:
    kinds = [kind_of(node, evidence) for node in nodes]
    meet(kinds, evidence.names)
    hear(kinds)
    score(kinds, layout, evidence)
    if not any(kind.texts or kind.calls for kind in kinds):
        return
    parts = [kind.ranked[0] for kind in kinds]
    if "agent" not in parts and "call" not in parts:
        best = max(range(len(kinds)), key=lambda i: kinds[i].parts.get("agent", 0))
        parts[best] = "agent"
    if "call" in parts and any(k.calls for k, p in zip(kinds, parts, strict=True) if p == "agent"):  # told twice
        quiet = ["thinks" if p == "agent" and k.calls else p for k, p in zip(kinds, parts, strict=True)]
        yield _spec(layout, kinds, quiet)
    yield _spec(layout, kinds, parts)
    doubts = sorted(
        (kind.parts[kind.ranked[0]] - kind.parts[kind.ranked[1]], i)
        for i, kind in enumerate(kinds)
        if len(kind.ranked) > 1 and kind.node.elements
    )
    for gap, i in doubts:
        if gap < 0.8:
            other = list(parts)
            other[i] = kinds[i].ranked[1]
            yield _spec(layout, kinds, other)


def _spec(layout: Layout, kinds: Sequence[EventKind], parts: Sequence[str]) -> tuple[dict[str, Any], Blocks]:
    more_parts = ("says", "thinks") if any(kind.calls for kind in kinds) else ()
    blocks = tuple(readings_of(kind, part, more_parts) for kind, part in zip(kinds, parts, strict=True))
    if layout.aside is not None:
        blocks = ((({"when": dict(layout.aside), "emit": "skip"},),), *blocks)
    rules = [*(dict(rule) for block in blocks for rule in block[0]), {"emit": "skip"}]
    more: dict[str, Any] = {}
    joined = any(kind.answers or any(found[0] is not None for _, found in kind.results) for kind in kinds)
    apart = any(part == "call" for part in parts)
    more["join"] = {"by": "id" if joined else "order", "scope": "run" if apart and joined else "message"}
    return layout.spec(rules, **more), blocks
