"""Lines, rows of tables and elements of lists as events: a run is those that share an id, or a file."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any

from prefixguard.induce.samples import Kind, SampleFile
from prefixguard.induce.search.columns import INSIDE
from prefixguard.induce.search.evidence import Evidence
from prefixguard.induce.search.globs import narrow
from prefixguard.induce.search.layout import Layout
from prefixguard.induce.search.places import Place, find, first, spell
from prefixguard.induce.search.surveys import documents_of, surveyed
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview.values import TABLES

#: Share of the elements that have the id which gathers them into runs; the others are of no run, such as heartbeats.
LEAST_GROUPED = 0.85
#: Share of all elements that the files with that id must hold.
LEAST_SHARED = 0.5
#: Characters of an id; elements of a run on the average: of an id that is called so, and of others, such as of calls.
_LONGEST_ID, _FEW_TURNS, _FEW = 200, 1.7, 2.5


def grouped(evidence: Evidence) -> Iterator[Layout]:
    """Lines, or elements of lines and documents, are events; a run is those that share an id, or a file."""
    for kind in (Kind.JSONL, Kind.JSON, Kind.TEXT):
        documents = documents_of(evidence, kind) if kind is not Kind.TEXT else _csv_tables(evidence)
        if not documents:
            continue
        places, total = surveyed(kind, documents, evidence)
        elements: list[Place] = [()] if kind is not Kind.JSON else []
        lists = sorted(places.items(), key=lambda kv: -kv[1].mass)
        elements += [
            (*p, None) for p, one in lists if one.mass > 0.5 * total and INSIDE not in p and one.form != "columns"
        ][: 3 if kind is not Kind.TEXT else 0]
        for place in elements:
            held = [
                (f.path, one) for f, value in documents for one in (find(value, place[:-1]) if place else [[value]])
            ]
            below = [
                ((path, i if place else 0), e) for i, (path, one) in enumerate(held)
                for e in find(one, (None,)) if isinstance(e, dict)
            ]  # fmt: skip
            if len(below) < 4:
                continue
            holding = dict.fromkeys(path for (path, _), _ in below)
            others = [file.path for file in evidence.samples.files if file.path not in holding]
            form = "csv" if kind is Kind.TEXT else kind.value
            container: dict[str, Any] = {"format": form, "files": narrow(holding, others)}
            if place:
                container["elements"] = spell("@", place)
            for group, worth, share, paths in _groups(below, evidence):
                prior = 1.4 + worth - 0.1 * len(place) - 0.5 * (kind is Kind.JSON)
                rest = [file.path for file in evidence.samples.files if file.path not in paths]
                mine = {**container, "files": narrow(paths, rest), "group_by": group}
                yield Layout(mine, "$.events[*]", prior, f"grouped by {group}", share=share)
            if kind is not Kind.JSON:
                more = 1.3 + 0.2 * (len(holding) > 1)
                yield Layout({**container, "group_by": {"file": "path"}}, "$.events[*]", more, "a file", share=1.0)


def _csv_tables(evidence: Evidence) -> list[tuple[SampleFile, Any]]:
    """Rows of the tables with one head, each with its file; of several heads the one with most rows."""
    files = [file for file in evidence.files if file.kind is Kind.TEXT and file.path.lower().endswith(".csv")]
    found: dict[tuple[str, ...], list[tuple[SampleFile, Any]]] = {}
    for file in files:
        rows = TABLES["csv"](file.text)
        if rows and len(rows[0]) > 1:
            found.setdefault(tuple(rows[0]), []).extend((file, row) for row in rows)
    return max(found.values(), key=len, default=[])


#: Where a thing stands: the file, and which list of it.
_Holder = tuple[str, int]


def _groups(
    elements: Sequence[tuple[_Holder, dict[str, Any]]], evidence: Evidence
) -> list[tuple[Any, float, float, Mapping[str, None]]]:
    """Fields that gather elements into runs: ids that several share, in every element, and that differ. What most of
    the lists have, such as names of speakers, gathers parts of different runs. With the
    worth of each, the share of the elements that have it, and the files that hold it."""
    values: dict[Place, list[tuple[_Holder, Any]]] = defaultdict(list)
    holders = len({holder for holder, _ in elements})
    for holder, element in elements:
        for place in _id_places(element):
            value = first(element, place)
            if isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) <= _LONGEST_ID:
                values[place].append((holder, value))
    out: list[tuple[Any, float, float, Mapping[str, None]]] = []
    sizes = Counter(path for (path, _), _ in elements)
    for place, found in values.items():
        counts = Counter(str(value) for _, value in found)
        paths = dict.fromkeys(path for (path, _), _ in found)
        n = sum(sizes[path] for path in paths)
        if n < LEAST_SHARED * len(elements):
            continue
        path = spell("@", place)
        named = affinity(path, Meaning.RUN_ID) if evidence.names else 0.5
        if len(found) < 0.7 * n or len(counts) < 2 or n / len(counts) < (_FEW_TURNS if named > 0.5 else _FEW):
            continue
        mine = [one for one in elements if one[0][0] in paths]
        other = _completing(place, counts, mine) if len(found) < 0.97 * n else None
        if len(found) < LEAST_GROUPED * n and other is None:
            continue
        digits = sum(any(c.isdigit() for c in value) for value in counts) / len(counts)
        long = median(len(value) for value in counts) >= 6
        texts = all(isinstance(value, str) for _, value in found)
        held_by: dict[str, set[_Holder]] = defaultdict(set)
        for holder, value in found:
            held_by[str(value)].add(holder)
        if holders >= 3 and sum(map(len, held_by.values())) > 0.5 * holders * len(held_by):
            continue
        files = [{path for path, _ in holding} for holding in held_by.values()]
        alone = sum(len(paths) == 1 for paths in files) / len(files)  # an id of a run stays in its file
        worth = 0.4 * (digits > 0.7) + 0.3 * long + 0.2 * texts + 0.6 * alone + 0.6 * named - 0.1 * len(place)
        if (texts and digits > 0.5) or alone > 0.9 or named >= 0.8:  # a number that comes again elsewhere is a count
            group = path if other is None else {"first": [path, spell("@", other)]}
            share = 1.0 if other is not None else len(found) / n
            out.append((group, worth - 0.6 * (alone < 0.7), share, paths))
    return sorted(out, key=lambda item: -item[1])[:3]


def _completing(
    place: Place, known: Mapping[str, int], elements: Sequence[tuple[_Holder, dict[str, Any]]]
) -> Place | None:
    """The place of the id in elements that have it elsewhere: the first line of a run calls it otherwise."""
    without = [element for _, element in elements if first(element, place) is None]
    hits = Counter(p for element in without for p in _id_places(element) if str(first(element, p)) in known)
    return next((p for p, n in hits.most_common(1) if n >= 0.9 * len(without)), None)


def _id_places(element: dict[str, Any]) -> Iterator[Place]:
    for key, value in islice(element.items(), 60):
        if isinstance(value, dict):
            yield from ((str(key), str(inner)) for inner in islice(value, 30))
        else:
            yield (str(key),)
