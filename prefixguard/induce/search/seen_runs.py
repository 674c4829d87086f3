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
#: Texts from so many words on are what a task says; an id, a name or a path has fewer.
FEWEST_WORDS = 4
HEAD = {"schema": "prefixguard/adapter/v1", "name": "probe", "version": "1.0.0"}

Keys = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class SeenRun:
    """One run. scope: its roots, as the interpreter has them. events: decoded events; none where the run is text.
    text: of a run that is text, "" otherwise."""

    scope: Scope
    events: tuple[Any, ...]
    text: str = ""

    @property
    def file(self) -> str:
        return self.scope.file or ""

    @property
    def size(self) -> int:
        return len(self.events) or len(self.text)


@dataclass(frozen=True)
class Values:
    """A place, or another value of the spec, and what every run has there; MISSING where nothing.

    near: "run", "document", "file", "piece" (of a file's name), "first", "last", "once" (in one event of the run),
    "tail" (in the last element of another list), "end" (an id of the first or last event), "every" (in all, the same),
    "heard" (by the agent, first), "beside" (in a companion file), "list" (of ids, in one),
    "shared" (one for all), "text" (in a line of its text). place: inside its root, for fields of JSON.
    """

    spec: Any
    name: str
    values: tuple[Any, ...]
    near: str
    place: Place = ()

    @cached_property
    def texts(self) -> Keys:
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
    def there(self) -> list[Any]:
        """The values of runs that have something there."""
        return [value for value in self.values if value is not MISSING and value is not None and value != ""]

    @cached_property
    def distinct(self) -> int:
        return len(set(self.texts) - {None})

    @cached_property
    def coverage(self) -> float:
        """Share of runs that have something there, in [0, 1]."""
        return len(self.there) / max(1, len(self.values))

    @cached_property
    def length(self) -> float:
        """Mean length of the texts, in code points."""
        found = [len(text) for text in self.texts if text is not None]
        return sum(found) / len(found) if found else 0.0

    @cached_property
    def is_prose(self) -> bool:
        """Are the values texts of several words, rather than ids, names, times or paths?"""
        here = [text for text in self.texts if text]
        return bool(here) and sum(len(text.split()) >= FEWEST_WORDS for text in here) >= 0.8 * len(here)

    def example(self) -> str:
        value = str(self.there[0]) if self.there else ""
        return value if len(value) <= 60 else value[:57] + "..."


def probe(spec: Mapping[str, Any], run: Mapping[str, Any] | None = None) -> Adapter:
    """Container and events of a spec with another `run`, and no rules. AdapterError where it is none."""
    kept = {key: spec[key] for key in ("container", "events") if key in spec}
    return Adapter({**HEAD, **kept, "run": dict(run or {}), "rules": [{"when": "else", "emit": "skip"}]})


def see_runs(spec: Mapping[str, Any], samples: Samples) -> tuple[list[SeenRun], list[tuple[str, str]]]:
    """The runs that container and events of the spec find in the samples, and the files in which they find none, each
    with the reason. AdapterError where the spec is wrong."""
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
            why = "no run in it"
            try:
                with contained(document.where):
                    for one in program.container.runs(document, companions, counts):
                        if not isinstance(one, Found):
                            why = one.reason
                            continue
                        scope = Scope(one.document, one.run, key=one.key, position=one.position, file=document.path)
                        here += _seen(program, scope)
                        if len(here) >= MOST_RUNS:
                            break
            except PrefixGuardError as exc:
                why = str(exc)
            if here:
                found.append(here)
            else:
                strangers.append((document.path, why))
    each = max(2, MOST_RUNS // max(1, len(found)))
    if sum(map(len, found)) > MOST_RUNS:
        found = [here[:: max(1, len(here) // each)][:each] for here in found]
    return [run for here in found for run in here][: 2 * MOST_RUNS], strangers


def _seen(program: Any, scope: Scope) -> list[SeenRun]:
    """The run with its events; none where it has no events, or they cannot be read."""
    try:
        listed = program.events.listing(scope)
        if isinstance(listed, str):
            whole = scope.run.get("text", listed) if isinstance(scope.run, dict) else listed
            return [SeenRun(scope, (), whole if isinstance(whole, str) else listed)]
        if not isinstance(listed, list):
            return []
        source = program.events
        events = [opened(event, source) for outer in listed for event, _, _ in expand(source, scope, outer)]
    except TraceError:
        return []
    return [SeenRun(scope, tuple(events))] if events else []


def read_value(spec: Any, runs: Sequence[SeenRun]) -> tuple[Any, ...]:
    """What the interpreter finds under a value of the spec in every run. AdapterError where it is none."""
    adapter = probe({"container": "json", "events": "$.none[*]"}, {"groups": {"value": spec}})
    ((_, get),) = adapter.program.groups
    return tuple(get(run.scope) for run in runs)
