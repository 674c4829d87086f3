"""The runs of the samples as the interpreter finds them under a container and events; columns of one value a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from prefixguard.errors import PrefixGuardError, TraceError
from prefixguard.induce.samples import Samples
from prefixguard.induce.search.raw_places import Place
from prefixguard.stepview import MISSING, Adapter, Scope, contained
from prefixguard.stepview.events import expand, opened
from prefixguard.stepview.found import Counts, Found
from prefixguard.stepview.reader import _Companions
from prefixguard.trace import open_documents

#: Runs that are looked at; of files with many runs as many of each.
MOST_RUNS = 600
HEAD = {"schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0"}


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
    "tail" (in the last element of another list), "end" (an id of the first or last event),
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


def read_value(spec: Any, runs: Sequence[SeenRun]) -> tuple[Any, ...]:
    """What the interpreter finds under a value of the spec in every run. AdapterError where it is none."""
    adapter = probe({"container": "json", "events": "$.none[*]"}, {"groups": {"value": spec}})
    ((_, get),) = adapter.program.groups
    return tuple(get(run.scope) for run in runs)
