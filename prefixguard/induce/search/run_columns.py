"""Columns of what runs hold: their places, the documents around them, their keys and files, what one of their events or
all of them say, and what their agents were told first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from prefixguard.errors import AdapterError, TraceError
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
from prefixguard.induce.search.run_fields import FEWEST_WORDS
from prefixguard.induce.search.seen_runs import HEAD, SeenRun, Values, read_value
from prefixguard.induce.search.told_text import general
from prefixguard.stepview import MISSING, Adapter, Parser, contained

#: Places of a run that are looked at.
MOST_PLACES = 1500
#: Events, or lines, of a run in which the task may be told, and elements of each of its lists.
FIRST, FIRST_EVENTS = 12, 4
#: Events of a run that are looked at for fields which are said once: so many at its beginning and at its end.
ENDS = 40


def columns_of(runs: Sequence[SeenRun], spec: Mapping[str, Any]) -> list[Values]:
    """Columns of the places of the runs, of the documents that hold them, of their keys and files, and of events."""
    skip = event_places(spec)
    n = len(runs)
    table: dict[tuple[str, Place], list[Any]] = {}

    def put(key: tuple[str, Place], i: int, value: Any) -> None:
        if key in table or len(table) < MOST_PLACES:
            table.setdefault(key, [MISSING] * n)[i] = value

    seen: dict[int, list[tuple[Place, Any]]] = {}
    for i, run in enumerate(runs):
        if () not in skip:
            for place, value in leaves(run.scope.run, (*skip, ("text",), ("body",)) if run.text else skip):
                put(("$", place), i, value)
        document = run.scope.document
        if isinstance(document, dict) and document is not run.scope.run:
            for place, value in seen.setdefault(id(document), list(leaves(document))):
                put(("%", place), i, value)
    found = [
        Values(value_at(root, place), name_of(root, place), tuple(values), _near(root, place), place)
        for (root, place), values in table.items()
        if not (root == "%" and _holds_runs(values))
    ]
    if any(isinstance(run.scope.key, str) for run in runs):
        found.append(Values("$key", "key", tuple(run.scope.key for run in runs), "run"))
    return [*found, *_file_columns(runs), *event_columns(runs, skip, spec)]


def _near(root: str, place: Place) -> str:
    return "document" if root == "%" else "tail" if -1 in place[:-1] else "run"


def _holds_runs(values: Sequence[Any]) -> bool:
    return any(isinstance(value, list) and any(isinstance(item, dict | list) for item in value[:3]) for value in values)


#: What numbers the repetitions of a task in a name: task__3fa9c1, task-2, task.1-of-3.
REPETITION = (
    r"^(.+?)(?:__[0-9A-Za-z]+|[._-](?:run|try|trial|attempt|rep|seed|r|s|t)?[._-]?(?:[0-9a-f]{6,}|[0-9]{1,3}))$"
)


def _file_columns(runs: Sequence[SeenRun]) -> Iterator[Values]:
    """What the path of the file says: its name without the suffix, folders, and these without a number at the end."""
    specs: list[Any] = [{"file": "stem"}, {"file": "parent"}]
    specs += [{"file": "path", "re": "([^/]+)/[^/]+/[^/]+$"}, {"file": "path", "re": "([^/]+)/[^/]+/[^/]+/[^/]+$"}]
    names = {run.file.rpartition("/")[2].partition(".")[2] for run in runs}
    if len(names) == 1 and "." in (suffix := min(names)):
        specs.append({"file": "name", "re": "^([^.]+)\\." + suffix.replace(".", "\\.") + "$"})
    specs += [{"file": "stem", "re": REPETITION}, {"file": "parent", "re": REPETITION}]
    for spec in specs:
        values = read_value(spec, runs)
        if len({value for value in values if value is not MISSING}) > 1:
            yield Values(spec, "", values, "file")
    for pattern in ("[_.-]([^_.-]+)$", "^([^_.-]+)[_.-]"):
        values = read_value({"file": "stem", "re": pattern}, runs)
        if values.count(MISSING) <= 0.2 * len(values) and len(set(values)) > 1:
            yield Values({"file": "stem", "re": pattern}, "", values, "piece")


def event_columns(runs: Sequence[SeenRun], skip: Sequence[Place], spec: Mapping[str, Any]) -> list[Values]:
    """Fields that one event of a run has, and fields that all of its events have alike."""
    events = spec["events"]
    plain = isinstance(events, str) or (isinstance(events, dict) and "path" in events)
    if not plain or len(skip) != 1 or None in skip[0]:
        return []
    listed = [_listed(run, skip[0]) for run in runs]  # as the paths of `run` find them: in no other order, not decoded
    base = spelled("$", skip[0])
    n = len(runs)
    table: dict[Place, dict[int, list[tuple[int, Any]]]] = {}
    for i, raw in enumerate(listed):
        last = len(raw) - 1
        at = [*range(min(ENDS, last + 1)), *range(max(ENDS, last + 1 - ENDS), last + 1)]
        for k in at:
            for place, value in leaves(raw[k]):
                if isinstance(value, list) or (place not in table and len(table) >= MOST_PLACES):
                    continue
                table.setdefault(place, {}).setdefault(i, []).append((k, value))
    found = []
    for place, by_run in table.items():
        if len(by_run) < 0.3 * n:
            continue
        ends = {i: len(listed[i]) - 1 for i in by_run}
        once = sum(len(said) == 1 for said in by_run.values()) >= 0.95 * len(by_run)
        alike = all(
            len({repr(value) for _, value in said}) == 1 and len(said) >= min(2 * ENDS, ends[i] + 1)
            for i, said in by_run.items()
        )
        if not once and not alike:
            found += _end_ids(base, place, by_run, ends, n)
            continue
        values = tuple(by_run[i][-1][1] if i in by_run else MISSING for i in range(n))
        where = {0 if said[-1][0] == 0 else -1 if said[-1][0] == ends[i] else None for i, said in by_run.items()}
        name = name_of("@", place)
        if alike and not once:
            found.append(Values(value_at(f"{base}[0]", place), name, values, "every", place))
        elif where <= {0, -1} and len(where) == 1 and max(ends.values()) > 0:
            (at_end,) = where
            near = "first" if at_end == 0 else "last"
            found.append(Values(value_at(f"{base}[{at_end}]", place), name, values, near, place))
        elif max(ends.values()) > 0:
            near = "last" if all(ends[i] - said[-1][0] < 3 for i, said in by_run.items()) else "once"
            spec = value_at(f"{base}[*]", place)
            found.append(Values({"text": spec} if isinstance(spec, str) else spec, name, values, near, place))
    return found


def _end_ids(
    base: str, place: Place, by_run: Mapping[int, Sequence[tuple[int, Any]]], ends: Mapping[int, int], n: int
) -> Iterator[Values]:
    """What the first and the last event of every run have there, if it is an id of that run: a table may go by it."""
    for end in (0, -1):
        at = {i: said[end] for i, said in by_run.items() if said[end][0] == (0 if end == 0 else ends[i])}
        values = tuple(at[i][1] if i in at else MISSING for i in range(n))
        if len({v for v in values if isinstance(v, str)}) == n > 1 and max(map(len, values)) <= 120:
            yield Values(value_at(f"{base}[{end}]", place), name_of("@", place), values, "end", place)


def _listed(run: SeenRun, place: Place) -> Sequence[Any]:
    value = run.scope.run
    for step in place:
        value = value.get(step) if isinstance(value, dict) else None
    return value if isinstance(value, list) else run.events


def heard_first(runs: Sequence[SeenRun], spec: Mapping[str, Any]) -> tuple[str | None, ...]:
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
                    records += parser.observe(event)
                    if records:
                        break
                records = records or parser.end()
        except TraceError:
            records = []
        found.append(records[0].observation.strip() or None if records else None)
    return tuple(found)


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


#: Where words begin in a line.
_BEGINS = re.compile(r"(?<!\S)\S")
_LABEL = re.compile(r"\W{0,4}[\w -]{1,24}[:>=][ \t]+")


def heard_columns(runs: Sequence[SeenRun], heard: Sequence[str | None]) -> list[Values]:
    """Where that text stands in most runs: a place in one of the first events, or the first line of its kind."""
    counts: dict[tuple[str, Any], int] = {}
    furthest: dict[str, int] = {}
    labels: set[str] = set()  # those that end with a label: `task:`
    for run, text in zip(runs, heard, strict=True):
        if text is None:
            continue
        for place in {} if run.text else dict.fromkeys(_said_at(run.scope.run, text)):
            path = spelled("$", place)
            counts[path, None] = counts.get((path, None), 0) + 1
        lines = run.text[: 20 * LONGEST].splitlines()[:FIRST] if run.text else []
        paths: dict[str, int] = {}
        for k, line in enumerate(lines):
            begins = [m.start() for m in _BEGINS.finditer(line) if line[m.start() :].strip() in text]
            labelled = _LABEL.match(line, begins[0]) if begins else None
            for at in ([labelled.end()] if labelled else []) + begins[:1]:
                if len(line[at:].split()) >= FEWEST_WORDS:
                    before = line[:at] or (f"{lines[k - 1]}\n" if k else "")
                    paths[general(before)] = k - before.count("\n")
                    labels |= {general(before)} if labelled and at == labelled.end() else set()
        for path, k in paths.items():
            counts[path, "$.text"] = counts.get((path, "$.text"), 0) + 1
            furthest[path] = max(k, furthest.get(path, 0))
    found = []
    for (path, of), n in sorted(counts.items(), key=lambda item: (-item[1], item[0][0] not in labels))[:4]:
        if n >= 0.6 * sum(text is not None for text in heard):
            skipped = f"\\A(?:[^\\n]*\\n){{0,{furthest.get(path, 0)}}}"
            value = path if of is None else {"re": f"{skipped}{path}(?P<told>\\S[^\\n]*)", "of": of}
            column = Values(value, "", read_value(value, runs), "heard")
            if of is None or column.distinct == len({text for text in heard if text is not None}):
                found.append(column)
    return found
