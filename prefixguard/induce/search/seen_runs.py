"""The runs of the samples as the interpreter finds them under a container and events, and what each place of them
holds: columns of one value a run, from which the fields of runs are chosen."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from prefixguard.errors import AdapterError, PrefixGuardError, TraceError
from prefixguard.induce.samples import Samples
from prefixguard.stepview import MISSING, Adapter, Parser, Scope, contained, parse_path
from prefixguard.stepview.events import expand, opened
from prefixguard.stepview.found import Counts, Found
from prefixguard.stepview.reader import _Companions
from prefixguard.stepview.values import read_json
from prefixguard.trace import open_documents

#: Runs that are looked at; of files with many runs as many of each.
MOST_RUNS = 600
#: Places of a run that are looked at, how deep they lie, characters of a value that are kept, and
#: elements of a list that are looked at by their names.
MOST_PLACES, DEEPEST, LONGEST, MOST_LISTED = 1500, 7, 4000, 40
#: Names of one object beyond which it is a map from ids to things, and no record.
MOST_NAMES = 120
#: Events, or lines, of a run in which the task may be told.
FIRST, FIRST_EVENTS = 12, 4
#: Events of a run that are looked at for fields which are said once: so many at its beginning and at its end.
ENDS = 40

HEAD = {"schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0"}
Step = str | int | None | tuple[str | None, str]
Place = tuple[Step, ...]


@dataclass(frozen=True, eq=False)
class SeenRun:
    """One run. scope: its roots, as the interpreter has them. events: decoded events; none where the run is text.
    alone: the document holds no other run. text: of a run that is text, "" otherwise."""

    scope: Scope
    events: tuple[Any, ...]
    alone: bool
    text: str = ""

    @property
    def file(self) -> str:
        return self.scope.file or ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The runs, and the files in which the container found none of them, each with the reason."""

    runs: tuple[SeenRun, ...]
    strangers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Values:
    """A place, or another value of the spec, and what every run has there; MISSING where nothing.

    near: "run", "document", "file", "first", "last", "once" (in one event of the run), "every" (in all, the same),
    "beside" (in a companion file), "text" (in a line of its text). place: inside its root, for fields of JSON.
    """

    spec: Any
    name: str
    values: tuple[Any, ...]
    near: str
    place: Place = ()

    @cached_property
    def texts(self) -> tuple[str | None, ...]:
        """As texts to compare; None where absent, or neither text nor whole number."""
        return tuple(
            value.strip() or None
            if isinstance(value, str)
            else str(value)
            if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**30
            else None
            for value in self.values
        )

    @cached_property
    def distinct(self) -> int:
        return len({text for text in self.texts if text is not None})

    @cached_property
    def coverage(self) -> float:
        """Share of runs that have something there, in [0, 1]."""
        there = [value for value in self.values if value is not MISSING and value is not None and value != ""]
        return len(there) / max(1, len(self.values))

    @cached_property
    def length(self) -> float:
        """Mean length of the texts, in code points."""
        found = [len(text) for text in self.texts if text is not None]
        return sum(found) / len(found) if found else 0.0

    def example(self) -> str:
        value = next((str(v) for v in self.values if v is not MISSING and v is not None and v != ""), "")
        return value if len(value) <= 60 else value[:57] + "..."


def probe(spec: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> Adapter:
    """Container and events of a spec with another `run`, and no rules. AdapterError where it is none."""
    kept = {key: spec[key] for key in ("container", "events") if key in spec}
    return Adapter({**HEAD, **kept, "run": dict(run or {}), "rules": [{"when": "else", "emit": "skip"}]})


def see_runs(spec: Mapping[str, Any], samples: Samples, most: int = MOST_RUNS) -> Seen:
    """The runs that container and events of the spec find in the samples. AdapterError where they are wrong."""
    program = probe(spec).program
    found: list[list[SeenRun]] = []
    strangers: list[tuple[str, str]] = []
    known = {file.path for file in samples.files}
    counts = Counts()
    with open_documents(samples.source) as documents:
        companions = _Companions(documents, counts)
        for document in documents.matching(program.container.files):
            if document.path not in known and program.container.format != "folder":
                continue
            here: list[SeenRun] = []
            why, total = "no run in it", 0
            try:
                with contained(document.where):
                    for one in program.container.runs(document, companions, counts):
                        total += 1
                        if not isinstance(one, Found):
                            why = one.reason
                        elif len(here) < most:
                            scope = Scope(one.document, one.run, key=one.key, position=one.position, file=document.path)
                            try:
                                run = _seen(program, scope)
                            except TraceError as exc:
                                why = str(exc)
                            else:
                                here += [run] if run is not None else []
            except PrefixGuardError as exc:
                why = str(exc)
            if not here:
                strangers.append((document.path, why))
            elif total == 1:
                here = [SeenRun(run.scope, run.events, True, run.text) for run in here]
            found.append(here)
    each = max(2, most // max(1, sum(map(bool, found))))
    runs = [run for here in found for run in (here if sum(map(len, found)) <= most else _spread(here, each))]
    return Seen(tuple(runs[: 2 * most]), tuple(strangers))


def _spread(runs: Sequence[SeenRun], most: int) -> list[SeenRun]:
    step = max(1.0, len(runs) / most)
    return [runs[int(i * step)] for i in range(min(len(runs), most))]


def _seen(program: Any, scope: Scope) -> SeenRun | None:
    """The run with its events; None where it has none."""
    listed = program.events.listing(scope)
    if isinstance(listed, str):
        whole = scope.run.get("text", listed) if isinstance(scope.run, dict) else listed
        return SeenRun(scope, (), False, whole if isinstance(whole, str) else listed)
    if not isinstance(listed, list) or not listed:
        return None
    source = program.events
    events = [opened(event, source) for outer in listed for event, _, _ in expand(source, scope, outer)]
    return SeenRun(scope, tuple(events), False) if events else None


def spelled(root: str, place: Place) -> str:
    """A place as a path of the spec.

    >>> spelled("$", ("info", "a b", 0, None))
    '$.info["a b"][0][*]'
    """
    parts = [root]
    for step in place:
        if step is None:
            parts.append("[*]")
        elif isinstance(step, int):
            parts.append(f"[{step}]")
        elif isinstance(step, tuple):
            parts.append(f"[{step[0]}={step[1]}]" if step[0] is not None else f".{step[1]}")
        elif step and step.replace("_", "a").replace("-", "a").isalnum() and step.isascii() and not step[0].isdigit():
            parts.append(f".{step}")
        else:
            parts.append(f"['{step}']" if '"' in step else f'["{step}"]')
    return "".join(parts)


#: Stands in a place for "the JSON that this text holds"; and characters of such a text.
JSON, MOST_JSON = "\x00json", 200_000
#: Names under which elements of a list are told apart, and what of a value can stand in the filter of a path.
_MARKS = ("key", "name", "type", "kind", "id", "metric", "label", "op_name")
_PLAIN_VALUE = re.compile(r"[\w .:/@-]{1,60}\Z")
_TAG = re.compile(r"([A-Za-z_][\w.-]{0,40})[:=](\S.{0,80})\Z", re.DOTALL)


def leaves(value: Any, skip: Sequence[Place] = (), place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Values of objects inside objects, past the places of `skip`. Of a list of named objects what each name has, under
    a step ("key", "score"); of a list of "name:value" texts what each name has, under a step (None, name); of a list of
    numbers the last, too. Lists are yielded whole besides. What a text that is a JSON object has is under a step JSON.
    """
    if place in skip:
        return
    if isinstance(value, dict):
        if len(place) < DEEPEST and len(value) <= MOST_NAMES:
            for name, inner in value.items():
                if isinstance(name, str) and name and not ("'" in name and '"' in name):
                    yield from leaves(inner, skip, (*place, name))
    elif place:
        yield place, value[:LONGEST] if isinstance(value, str) else value
        if isinstance(value, str) and value[:1] == "{" and len(value) <= MOST_JSON and JSON not in place:
            inside = read_json(value)
            if isinstance(inside, dict):
                yield from leaves(inside, (), (*place, JSON))
        if isinstance(value, list) and 0 < len(value) <= MOST_LISTED and len(place) < DEEPEST:
            if all(isinstance(one, int | float) for one in value):
                yield (*place, -1), value[-1]
            elif all(isinstance(one, str) for one in value):
                for tag in filter(None, map(_TAG.match, value)):
                    yield (*place, (None, tag[1])), tag[2]
            elif mark := _mark(value):
                for one in value:
                    for inner, found in leaves({name: v for name, v in one.items() if name != mark}):
                        if not isinstance(found, list):
                            yield (*place, (mark, one[mark]), *inner), found


def _mark(listed: Sequence[Any]) -> str | None:
    """The name under which every element has a text of its own that a filter can spell; None where there is none."""
    if not all(isinstance(one, dict) for one in listed):
        return None
    for mark in _MARKS:
        values = [one.get(mark) for one in listed]
        if len(set(map(str, values))) == len(values) and all(
            isinstance(v, str) and _PLAIN_VALUE.match(v) for v in values
        ):
            return mark
    return None


def value_at(root: str, place: Place) -> Any:
    """How the spec reads a place: a path; the text of one where a filter finds a list; a pattern for a tag."""
    if JSON in place:
        at = place.index(JSON)
        return {"json": value_at(root, place[:at]), "path": spelled("$", place[at + 1 :])}
    last = place[-1] if place else None
    if isinstance(last, tuple) and last[0] is None:
        return {"re": f"(?m)^{re.escape(last[1])}[:=](.+)$", "of": {"text": spelled(root, place[:-1])}}
    path = spelled(root, place)
    return {"text": path} if any(isinstance(step, tuple) for step in place) else path


def event_places(spec: Mapping[str, Any]) -> tuple[Place, ...]:
    """Where the events are in the run, without the step over all of them; () is the run itself."""
    events = spec["events"]
    paths = [events] if isinstance(events, str) else []
    if isinstance(events, dict):
        inner = events.get("path", events.get("zip", events.get("flatten")))
        paths = list(inner.values()) if isinstance(inner, dict) else inner if isinstance(inner, list) else [str(inner)]
        if isinstance(events.get("split"), dict):
            paths = [events["split"].get("of", "$.text")]
    found = []
    for path in paths[:1] if isinstance(events, dict) and "flatten" in events else paths:
        path = path.get("path") if isinstance(path, dict) else path
        try:
            root, steps = parse_path(path, "events")
        except AdapterError:
            continue
        if root == "$":
            place = tuple(step[1] if step[0] == "name" else None for step in steps)
            while place and place[-1] is None:
                place = place[:-1]
            found.append(place)
    return tuple(found)


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
        Values(value_at(root, place), name_of(root, place), tuple(values), "run" if root == "$" else "document", place)
        for (root, place), values in table.items()
        if not (root == "%" and _holds_runs(values))
    ]
    if any(isinstance(run.scope.key, str) for run in runs):
        found.append(Values("$key", "key", tuple(run.scope.key for run in runs), "run"))
    return [*found, *_file_columns(runs), *event_columns(runs, skip, spec)]


#: What the value of a named element is called.
_VALUES = {"value", "score", "result", "data", "stringValue", "intValue", "boolValue", "doubleValue"}


def name_of(root: str, place: Place) -> str:
    """The place as a path of names, for the vocabulary; elements of lists go by what they are called, and so does the
    one value that such an element has beside its name."""
    if any(isinstance(step, tuple) for step in place):
        while place[-1] in _VALUES:
            place = place[:-1]
    return spelled(root, tuple(step[1] if isinstance(step, tuple) else step for step in place if step != JSON))


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


def read_value(spec: Any, runs: Sequence[SeenRun]) -> tuple[Any, ...]:
    """What the interpreter finds under a value of the spec in every run. AdapterError where it is none."""
    adapter = probe({"container": "json", "events": "$.none[*]"}, {"groups": {"value": spec}})
    ((_, get),) = adapter.program.groups
    return tuple(get(run.scope) for run in runs)


def event_columns(runs: Sequence[SeenRun], skip: Sequence[Place], spec: Mapping[str, Any]) -> list[Values]:
    """Fields that one event of a run has, and fields that all of its events have alike."""
    events = spec["events"]
    plain = isinstance(events, str) or (isinstance(events, dict) and "path" in events and "decode" not in events)
    if not plain or len(skip) != 1 or None in skip[0]:
        return []
    base = spelled("$", skip[0])
    n = len(runs)
    table: dict[Place, dict[int, list[tuple[int, Any]]]] = {}
    for i, run in enumerate(runs):
        last = len(run.events) - 1
        at = [*range(min(ENDS, last + 1)), *range(max(ENDS, last + 1 - ENDS), last + 1)]
        for k in at:
            for place, value in leaves(run.events[k]):
                if isinstance(value, list) or (place not in table and len(table) >= MOST_PLACES):
                    continue
                table.setdefault(place, {}).setdefault(i, []).append((k, value))
    found = []
    for place, by_run in table.items():
        if len(by_run) < 0.3 * n:
            continue
        ends = {i: len(runs[i].events) - 1 for i in by_run}
        once = sum(len(said) == 1 for said in by_run.values()) >= 0.95 * len(by_run)
        alike = all(
            len({repr(value) for _, value in said}) == 1 and len(said) >= min(2 * ENDS, ends[i] + 1)
            for i, said in by_run.items()
        )
        if not once and not alike:
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


def heard_columns(runs: Sequence[SeenRun], heard: Sequence[str | None]) -> list[Values]:
    """Where that text stands in most runs: a place in one of the first events, or the first line of its kind."""
    counts: dict[tuple[str, Any], int] = {}
    furthest: dict[str, int] = {}
    for run, text in zip(runs, heard, strict=True):
        if text is None:
            continue
        for place in {} if run.text else dict.fromkeys(_said_at(run.scope.run, text)):
            path = spelled("$", place)
            counts[path, None] = counts.get((path, None), 0) + 1
        for k, line in enumerate(run.text.splitlines()[:FIRST] if run.text else ()):
            begun = re.match(r"(\W{1,6}\s*|[\w -]{1,24}[:>]\s*)(\S.*)$", line)
            if begun is not None and begun[2].strip() and begun[2].strip() in text:
                counts[begun[1].rstrip(), "$.text"] = counts.get((begun[1].rstrip(), "$.text"), 0) + 1
                furthest[begun[1].rstrip()] = max(k, furthest.get(begun[1].rstrip(), 0))
    found = []
    for (path, of), n in sorted(counts.items(), key=lambda item: -item[1])[:4]:
        if n >= 0.6 * sum(text is not None for text in heard):
            lines = f"\\A(?:[^\\n]*\\n){{0,{furthest.get(path, 0)}}}"
            value = path if of is None else {"re": f"{lines}{re.escape(path)}[ \\t]*(?P<told>\\S[^\\n]*)", "of": of}
            found.append(Values(value, "", read_value(value, runs), "heard"))
    return found
