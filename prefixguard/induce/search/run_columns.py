"""Columns of what runs hold: their places, the documents around them, their keys and files, what one of their events or
all of them say, and what their agents were told first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prefixguard.errors import AdapterError, TraceError
from prefixguard.induce.search.places import first, place_of
from prefixguard.induce.search.raw_places import (
    DEEPEST,
    LONGEST,
    MOST_NAMES,
    Place,
    event_places,
    leaves,
    name_of,
    spelled,
    value_at,
)  # fmt: skip
from prefixguard.induce.search.seen_runs import FEWEST_WORDS, HEAD, Keys, SeenRun, Values, read_value
from prefixguard.induce.search.told_text import general
from prefixguard.stepview import MISSING, Adapter, Parser, contained
from prefixguard.stepview.reorder import sort_key

#: Places of a run that are looked at.
MOST_PLACES = 1500
#: Events of a run in which the task may be told, and elements of each of its lists.
FIRST, FIRST_EVENTS = 12, 4
#: Events of a run that are looked at for fields which are said once: so many at its beginning and at its end.
ENDS = 40
#: What numbers the repetitions of a task in a name: task__3fa9c1, task-2, task.1-of-3.
REPETITION = (
    r"^(.+?)(?:__[0-9A-Za-z]+|[._-](?:run|try|trial|attempt|rep|seed|r|s|t)?[._-]?(?:[0-9a-f]{6,}|[0-9]{1,3}))$"
)

_UUID = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"


def columns_of(runs: Sequence[SeenRun], spec: Mapping[str, Any]) -> list[Values]:
    """Columns of the places of the runs, of the documents that hold them, of their keys and files, and of events."""
    skip = event_places(spec)
    table: dict[tuple[str, Place], list[Any]] = {}
    seen: dict[int, list[tuple[Place, Any]]] = {}
    for i, run in enumerate(runs):
        told: list[tuple[str, list[tuple[Place, Any]]]] = []
        if () not in skip:
            told.append(("$", list(leaves(run.scope.run, (*skip, ("text",), ("body",)) if run.text else skip))))
        document = run.scope.document
        if isinstance(document, dict) and document is not run.scope.run:
            if id(document) not in seen:
                seen[id(document)] = [(at, value) for at, value in leaves(document) if not _is_of_objects(value)]
            told.append(("%", seen[id(document)]))
        for root, pairs in told:
            for place, value in pairs:
                if (root, place) in table or len(table) < MOST_PLACES:
                    table.setdefault((root, place), [MISSING] * len(runs))[i] = value
    found = [
        Values(value_at(root, place), name_of(root, place), tuple(values), _near(root, place), place)
        for (root, place), values in table.items()
    ]
    if any(isinstance(run.scope.key, str) for run in runs):
        found.append(Values("$key", "key", tuple(run.scope.key for run in runs), "run"))
    return [*found, *_file_columns(runs), *_event_columns(runs, skip, spec["events"])]


def _near(root: str, place: Place) -> str:
    return "document" if root == "%" else "tail" if -1 in place[:-1] else "run"


def _is_of_objects(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(item, dict | list) for item in value[:3])


def _file_columns(runs: Sequence[SeenRun]) -> Iterator[Values]:
    """What the path of the file says: its name up to a dot, folders, these without a number at the end, and pieces."""
    specs = [{"file": "stem"}, {"file": "parent"}, {"file": "name", "re": "^([^.]+)\\."}]
    specs += [{"file": "path", "re": f"([^/]+){above}/[^/]+$"} for above in ("/[^/]+", "/[^/]+/[^/]+")]
    specs += [{"file": "stem", "re": REPETITION}, {"file": "parent", "re": REPETITION}]
    pieces = [{"file": "stem", "re": pattern} for pattern in ("[_.-]([^_.-]+)$", "^([^_.-]+)[_.-]", _UUID)]
    for spec in (*specs, *pieces):
        column = Values(spec, "", read_value(spec, runs), "piece" if spec in pieces else "file")
        if len(set(column.there)) > 1 and (spec not in pieces or column.coverage >= 0.8):
            yield column


def _event_columns(runs: Sequence[SeenRun], skip: Sequence[Place], events: Any) -> Iterator[Values]:
    """Fields that one event of a run has, and fields that all of its events have alike."""
    is_plain = isinstance(events, str) or "path" in events or "at" in _order(events) or _is_unfolded(events)
    if not is_plain or len(skip) != 1 or None in skip[0]:
        return
    base = spelled("$", skip[0])
    listed = [_listed(run, skip[0]) for run in runs]  # as the paths of `run` find them: in no other order, not decoded
    ranks = [_ranks(raw, _order(events)) for raw in listed]
    table: dict[Place, dict[int, list[tuple[int, Any]]]] = {}
    for i, raw in enumerate(listed):
        last = len(raw) - 1
        for k in [*range(min(ENDS, last + 1)), *range(max(ENDS, last + 1 - ENDS), last + 1)]:
            for place, value in leaves(raw[k]):
                if not isinstance(value, list) and (place in table or len(table) < MOST_PLACES):
                    table.setdefault(place, {}).setdefault(i, []).append((k, value))
    for place, by_run in table.items():
        if len(by_run) < 0.3 * len(runs):
            continue
        ends = {i: len(listed[i]) - 1 for i in by_run}
        values = tuple(by_run[i][-1][1] if i in by_run else MISSING for i in range(len(runs)))
        name = name_of("@", place)
        if sum(len(said) == 1 for said in by_run.values()) < 0.95 * len(by_run):
            first_one = all(said[0][0] == 0 for said in by_run.values())
            if first_one and all(len({repr(value) for _, value in said}) == 1 for said in by_run.values()):
                yield Values(value_at(f"{base}[0]", place), name, values, "every", place)
            for end in (0, -1):
                at_end = {i: said[end][1] for i, said in by_run.items() if said[end][0] == (ends[i] if end else 0)}
                ids = {value for value in at_end.values() if isinstance(value, str) and len(value) <= 120}
                if len(ids) == len(runs) > 1:  # of the run: a table may go by it
                    mine = tuple(at_end[i] for i in range(len(runs)))
                    yield Values(value_at(f"{base}[{end}]", place), name, mine, "end", place)
        elif max(ends.values()) == 0:
            continue
        else:
            at = [(i, said[-1][0]) for i, said in by_run.items()]
            step = "0" if all(k == 0 for _, k in at) else "-1" if all(k == ends[i] for i, k in at) else "*"
            spec = value_at(f"{base}[{step}]", place)
            left = [(ranks[i][k], ends[i] - ranks[i][k]) for i, k in at]  # events before it, and behind it
            near = "first" if not any(n for n, _ in left) else "last" if all(n < 3 for _, n in left) else "once"
            spec = {"text": spec} if step == "*" and isinstance(spec, str) else spec
            yield Values(spec, name, values, near, place)


def _is_unfolded(events: Any) -> bool:
    """Do events stand in lists that the elements hold as the JSON of a text?"""
    last = events.get("flatten", [""])[-1] if isinstance(events, dict) else ""
    return isinstance(last, dict) and "json" in last


def _order(events: Any) -> Mapping[str, str]:
    """at: the path of what the elements of the list that the spec names are ordered by; empty where they are not."""
    at = events.get("order_by") if isinstance(events, dict) else None
    if at == "^.at":
        at = next((one["object"]["at"] for one in events["flatten"][1].get("list", ())), None)
    elif _is_unfolded(events) and isinstance(at, str):
        at = "@" + at[1:]
    return {"at": at} if isinstance(at, str) and at.startswith("@.") else {}


def _ranks(raw: Sequence[Any], order: Mapping[str, str]) -> list[int]:
    """The place of every element in the order of events."""
    ranks = list(range(len(raw)))
    if order:
        place = place_of(order["at"])[1]
        values = (first(one, place) for one in raw)
        keys = list(accumulate(values, lambda last, value: sort_key(value, last), initial=(0, 0)))[1:]
        for rank, k in enumerate(sorted(ranks, key=keys.__getitem__)):
            ranks[k] = rank
    return ranks


def _listed(run: SeenRun, place: Place) -> Sequence[Any]:
    value = run.scope.run
    for step in place:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, list) else run.events


def heard_first(runs: Sequence[SeenRun], spec: Mapping[str, Any]) -> Keys:
    """What the rules of the spec show of each run before its agent does anything; None where that is nothing."""
    try:
        program = Adapter({**spec, **HEAD, "run": {}}).program
    except AdapterError:
        return (None,) * len(runs)
    found: list[str | None] = []
    for run in runs:
        listed = program.events.listing(run.scope)
        events = [listed[: 20 * LONGEST]] if isinstance(listed, str) else list(listed)[:FIRST]
        records: list[Any] = []
        try:
            with contained(run.file):
                parser = Parser(program, run.scope, live=False)
                for event in events:
                    records = records or parser.observe(event)
                records = records or parser.end()
        except TraceError:
            records = []
        found.append(records[0].observation.strip() or None if records else None)
    return tuple(found)


def heard_columns(runs: Sequence[SeenRun], heard: Keys) -> list[Values]:
    """Where that text stands in most runs: a place in one of the first events, or behind what begins a line of text."""
    counts: Counter[tuple[str, str]] = Counter()
    furthest: dict[tuple[str, str], int] = {}
    for run, text in zip(runs, heard, strict=True):
        if text is None:
            continue
        if run.text:
            lines = dict(_befores(run.text, text))
            furthest |= {before: max(k, furthest.get(before, 0)) for before, k in lines.items()}
        else:
            lines = dict.fromkeys(((spelled("$", at), "place") for at in _said_at(run.scope.run, text)), 0)
        counts.update(list(lines))
    found = []
    said = set(heard) - {None}
    likely = sorted(counts.items(), key=lambda item: (-item[1], item[0][1] == "line"))
    for (path, kind), n in likely[:4]:
        line = f"\\A(?:[^\\n]*\\n){{0,{furthest.get((path, kind), 0)}}}{path}(?P<told>\\S[^\\n]*)"
        spec = path if kind == "place" else {"re": line, "of": "$.text"}
        if n >= 0.6 * sum(text is not None for text in heard):
            column = Values(spec, "", read_value(spec, runs), "heard")
            found += [column] if kind == "place" or column.distinct == len(said) else []
    return found


#: What names a line at its beginning: `task: `.
_LABEL = re.compile(r"\W{0,4}[\w -]{1,24}[:>=][ \t]+")


def _befores(whole: str, text: str) -> Iterator[tuple[tuple[str, str], int]]:
    """Patterns for what stands before the end of a line that is one of those that were heard: with its "label", and for
    the whole "line"; before a line of its own, the line above. With each the number of lines above the pattern."""
    above = ""
    for k, line in enumerate(whole[: 20 * LONGEST].splitlines()[:FIRST]):
        at = next((m.start() for m in re.finditer(r"(?<!\S)\S", line) if line[m.start() :].strip() in text), len(line))
        label = _LABEL.match(line, at)
        starts = [("label", label.end())] if label is not None else []
        for kind, start in [*starts, ("line", at)]:
            if len(line[start:].split()) >= FEWEST_WORDS:
                yield (general(line[:start] or above), kind), k if line[:start] else max(0, k - 1)
        above = f"{line}\n"


def _said_at(value: Any, text: str, place: Place = ()) -> Iterator[Place]:
    """Places of the run, in the first elements of its lists, whose text is one of those that were heard."""
    if isinstance(value, str):
        if len(value.split()) >= 4 and value.strip()[:200] in text:
            yield place
    elif len(place) < DEEPEST:
        inner = list(enumerate(value[:FIRST_EVENTS])) if isinstance(value, list) else []
        if isinstance(value, dict) and len(value) <= MOST_NAMES:
            inner = [(name, one) for name, one in value.items() if name and not ("'" in name and '"' in name)]
        for step, one in inner:
            yield from _said_at(one, text, (*place, step))
