"""Where runs and events can be: every list of the documents that could be events, at every level that could be a run,
and lines that share an id; the likeliest of them, and these seen otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Any

from prefixguard.induce.samples import Kind
from prefixguard.induce.search.columns import INSIDE
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.given import given_layouts
from prefixguard.induce.search.globs import narrow
from prefixguard.induce.search.groupings import grouped
from prefixguard.induce.search.layout import Layout, open_layout
from prefixguard.induce.search.places import Place, spell
from prefixguard.induce.search.surveys import ListPlace, documents_of, surveyed
from prefixguard.induce.search.wider import between, decoded, ordered, talks, unfolded, wider

#: Layouts that families are asked about, and those that are tried with what stands beside their events.
MOST_LAYOUTS, _MOST_WIDER = 14, 6
#: Entries that a numbered object may have in a spec; numbers that names which count have in one at least.
_MOST_NUMBERED, MOST_STEMS = 120, 30


def layouts(evidence: Evidence) -> list[Layout]:
    """The likeliest layouts of the samples' JSON, best first."""
    if "layouts" not in evidence.cache:
        found = given_layouts([*_listed(evidence), *grouped(evidence)], evidence)
        out: dict[str, Layout] = {}
        for layout in sorted(found, key=lambda one: -one.prior):
            if len(out) >= MOST_LAYOUTS:
                break
            if open_layout(layout, evidence):
                out.setdefault(layout.sight, layout)
        for layout in list(out.values())[:_MOST_WIDER]:
            in_order = list(ordered(layout))
            inner = [one for by in in_order or [layout] for one in unfolded(by)]
            for wide in (*wider(layout, evidence), *decoded(layout), *in_order, *inner):
                if wide.events_of or open_layout(wide, evidence):
                    out.setdefault(wide.sight, wide)
        for wide in [one for layout in list(out.values()) for one in between(layout, evidence)]:
            if open_layout(wide, evidence):
                out.setdefault(wide.sight, wide)
        for layout in list(out.values()):
            for talk in talks(layout):
                out.setdefault(talk.sight, talk)
        evidence.cache["layouts"] = sorted(out.values(), key=lambda one: -one.prior)
    ready: list[Layout] = evidence.cache["layouts"]
    return ready


def _listed(evidence: Evidence) -> Iterator[Layout]:
    """A run is a document or a line, or stands in a list of it."""
    for kind in (Kind.JSON, Kind.JSONL, Kind.ZIP):
        documents = documents_of(evidence, kind)
        if not documents:
            continue
        places, total = surveyed(kind, documents, evidence)
        ranked = sorted(places.items(), key=lambda kv: -kv[1].mass)[:14]
        for place, one in ranked:
            share = one.mass / max(1, total)
            if share < 0.04 or one.largest < 2:
                continue
            others = [file.path for file in evidence.samples.files if file.path not in one.files]
            container: dict[str, Any] = {"format": kind.value, "files": narrow(one.files, others)}
            levels = [place[:i] for i, step in enumerate(place) if step is None and INSIDE not in place[:i]]
            for level in [None, *levels]:
                runs = () if level is None else (*level, None)
                mine = dict(container) if level is None else {**container, "runs": spell("$", runs)}
                base = share - 0.15 * sum(step is None for step in place[len(runs) :]) + 0.3 * (level is not None)
                base -= 0.3 * (median(one.lengths) > 400)
                for events in _events(place[len(runs) :], one):
                    yield Layout(mine, events, 2 * base, f"{share:.0%} of the text", share=share)


def _events(below: Place, one: ListPlace) -> Iterator[Any]:
    """Ways in which a spec spells the list at a place of the run."""
    if one.form == "stems":
        most = max(MOST_STEMS, 2 * one.largest)
        listed = {
            stem: {"list": [spell("$", (*below[:-1], f"{stem}{i}")) for i in range(most)]} for stem in one.columns
        }
        yield {"zip": {stem.rstrip("_-. ") or "text": paths for stem, paths in listed.items()}}
        return
    if one.form == "columns":
        inner = below[:-1]
        names = [k for k, n in one.columns.items() if n >= min(2, len(one.lengths))]
        rare = [k for k in names if one.columns[k] < len(one.lengths)]
        found = {"zip": {k: spell("$", (*inner, k, None)) for k in names}, "pad": names}
        yield {**found, "optional": rare} if rare else found
        return
    if INSIDE in below:
        at = below.index(INSIDE)
        outer, inner = below[:at], below[at + 1 :]
        if None in outer or None in inner:
            return
        path = spell("$", outer)
        yield {"path": {"json": path} if not inner else {"json": path, "path": spell("$", inner)}}
        return
    path = spell("$", (*below, None))
    if one.form == "numbered" and None not in below:
        yield {"path": {"list": [f'{spell("$", below)}["{i}"]' for i in range(_MOST_NUMBERED)]}}
        return
    yield path
    if None in below:
        at = max(i for i, step in enumerate(below) if step is None)
        yield {"flatten": [spell("$", below[: at + 1]), spell("@", (*below[at + 1 :], None))]}
