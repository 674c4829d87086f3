"""Where runs and events can be in JSON samples: every list that could be the events, at every level that could be a
run.

A place that could hold events is a list of objects, parallel lists of texts, a list of short lists, or one of these as
JSON inside a string. Which of them it is nobody says; each becomes a `Source`, and what is read through it decides
(see `inference`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from prefixguard.errors import AdapterError, ConfigError, TraceError
from prefixguard.induce.offline.arrays import INSIDE, EventArray, levels, parse_inside, survey
from prefixguard.induce.offline.globs import narrow
from prefixguard.induce.offline.line_sources import line_sources
from prefixguard.induce.offline.places import Place, find, place_of, spell, text_size
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.offline.source import MOST_DOCUMENTS, MOST_RUNS, Source, inner_share, novelty_of, spread
from prefixguard.induce.samples import Kind, SampleFile, Samples


def sources(samples: Samples, hints: Mapping[str, str]) -> list[Source]:
    """All ways to read the samples' JSON, most likely first."""
    found: list[Source] = []
    families = {
        Kind.JSON: [file for file in samples.files if file.kind is Kind.JSON],
        Kind.JSONL: [file for file in samples.files if file.kind is Kind.JSONL],
        Kind.ZIP: [file for file in samples.files if file.kind is Kind.ZIP],
    }
    everything = samples.files
    for kind, files in families.items():
        if not files:
            continue
        if kind is Kind.JSONL:
            named = hints.get("runs", "")
            found += line_sources(files, everything, named if named.startswith("@") else None)
        found += _of_documents(kind, files, everything)
    found = [source for source in found if source.views]
    found = _hinted(found, families, everything, hints)
    for source in found:
        source.root = samples.source
        source.novelty = novelty_of(source)
        source.inner = inner_share(source)
    return sorted(found, key=lambda source: (-source.prior, str(source.events)))


def _hinted(
    found: list[Source],
    families: Mapping[Kind, Sequence[SampleFile]],
    everything: Sequence[SampleFile],
    hints: Mapping[str, str],
) -> list[Source]:
    """The sources that hints about runs and events leave; where none was found, what stands where the hints say.
    TraceError where nothing does."""
    asked = {key: _elements(hints[key], key) for key in ("runs", "events") if key in hints}
    if not asked or not any(families.values()):
        return found
    fits = [source for source in found if _fits(source, asked)]
    if fits:
        return fits
    level, below = asked.get("runs", ("$", ())), asked.get("events")
    if below is not None and level[0] == "$":
        for kind, files in families.items():
            total = sum(text_size(value) for _, value in _documents(kind, files))
            for outer in [level[1]] if "runs" in asked else [(), (None,)]:
                array = EventArray((*outer, *below[1]))
                source = _source(kind, files, everything, array, outer, 1.0) if total else None
                if source is not None:
                    size = sum(text_size(list(view.events)) for view in source.views)
                    source.share = min(1.0, size / total)
                    fits.append(source)
    if not fits:
        said = " ".join(f"--hint {key}={hints[key]}" for key in asked)
        raise TraceError(f"{said}: no document of the samples has a list there. Look at a file, and give its path.")
    return fits


def _elements(path: str, key: str) -> tuple[str, Place]:
    """Root and place of a hint about a list: its elements, also where the path stops at the list."""
    try:
        root, place = place_of(path)
    except AdapterError as exc:
        raise ConfigError(f"hint {key}: {exc}") from exc
    return root, place if root == "@" or None in place[-1:] else (*place, None)


def _fits(source: Source, asked: Mapping[str, tuple[str, Place]]) -> bool:
    if "runs" in asked:
        own = source.group_by if isinstance(source.group_by, str) else source.runs
        if own is None or place_of(own) != asked["runs"]:
            return False
    return "events" not in asked or any(place_of(one) == asked["events"] for one in source.event_places)


def _documents(kind: Kind, files: Sequence[SampleFile]) -> Iterator[tuple[SampleFile, Any]]:
    for file in files:
        if kind is Kind.ZIP:
            yield from ((file, value) for _, value in sorted(file.value.items()))
        elif kind is Kind.JSONL:
            yield from ((file, value) for value in file.value)
        else:
            yield file, file.value


def _of_documents(kind: Kind, files: Sequence[SampleFile], everything: Sequence[SampleFile]) -> list[Source]:
    """Sources in which a run is a document (a line) or stands inside one."""
    chosen = list(_documents(kind, spread(files, MOST_DOCUMENTS)))
    if kind is Kind.JSONL:
        chosen = chosen[: 20 * MOST_DOCUMENTS]
    arrays, walked = survey([value for _, value in chosen])
    ours = sum(file.size for file in files) / max(1, sum(file.size for file in everything))
    out = []
    for array in arrays:
        share = array.size / max(1, walked) * min(1.0, 3 * ours)
        if share < 0.02 or not array.lengths:
            continue
        for runs_place in levels(array.place, [value for _, value in chosen]):
            source = _source(kind, files, everything, array, runs_place, share)
            if source is not None:
                out.append(source)
    return out


def _source(
    kind: Kind,
    files: Sequence[SampleFile],
    everything: Sequence[SampleFile],
    array: EventArray,
    level: Place,
    share: float,
) -> Source | None:
    below = array.place[len(level) :]
    if INSIDE in below and below.index(INSIDE) != len(below) - (2 if not array.columns else 1):
        return None  # JSON in a string may be the events, not something around them
    if level and array.columns and not below and None not in level:
        return None
    reads = reader(below, array.columns)
    views: list[RunView] = []
    holding: list[str] = []
    for file, value in _documents(kind, files):
        found = keyed(value, level)
        held = False
        for position, (key, run) in enumerate(found, 1):
            events = reads(run)
            if events is None:
                continue
            held = True
            views.append(RunView(file.path, value, run, key, position, tuple(map(_named, events)), len(found)))
        if held:
            holding.append(file.path)
    full = [view for view in views if view.events]
    if not full:
        return None
    lengths = [len(view.events) for view in full]
    middle = median(lengths)
    container: dict[str, Any] = {"format": {Kind.JSON: "json", Kind.JSONL: "jsonl", Kind.ZIP: "zip"}[kind]}
    others = [file.path for file in everything if file.path not in set(holding)]
    container["files"] = narrow(holding, others)
    runs = spell("$", level) if level else None
    if runs is not None:
        container["runs"] = runs
    is_object = not array.columns and INSIDE not in below and isinstance(_holder(full[0].run, below), dict)
    events, places = _events_spec(below, array, is_object)
    prior = 3 * share + (0.0 if middle < 2 else 1.0 if middle < 3 else 1.5)
    prior -= 0.5 * (len(full) < 0.5 * len(views))
    prior += 0.4 * bool(level) + 0.1 * min(len(full), 5)
    prior -= 0.8 * (middle > 400) + 0.3 * sum(step is None for step in below[:-1])
    step = max(1, -(-len(views) // MOST_RUNS))
    return Source(
        container,
        runs,
        events,
        places,
        views[::step],
        prior,
        f"{len(full)} runs, {middle:g} events each, {share:.0%} of the text",
        tuple(holding),
        array.columns,
        share=share,
    )


def _holder(run: Any, below: Place) -> Any:
    """What holds the events: a list, or an object whose keys count them."""
    return next(iter(find(run, below[:-1])), None) if below else run


def _named(event: Any) -> Any:
    """An event that is a short list, as an object from position to element."""
    if isinstance(event, list) and len(event) <= 4:
        return {f"[{i}]": item for i, item in enumerate(event)}
    return event


def keyed(value: Any, level: Place) -> list[tuple[str | int | None, Any]]:
    """Runs at the level with their key in the object (or list) that holds them."""
    if not level:
        return [(None, value)]
    out: list[tuple[str | int | None, Any]] = []
    for holder in find(value, level[:-1]) if level[-1] is None else []:
        if isinstance(holder, dict):
            out += holder.items()
        elif isinstance(holder, list):
            out += enumerate(holder)
    return out


def reader(below: Place, columns: tuple[str, ...]) -> Any:
    """A function from a run to its events; None where their place is not there."""
    inside = INSIDE in below
    outer = below[: below.index(INSIDE)] if inside else below

    def read(run: Any) -> list[Any] | None:
        if columns:
            holders = find(run, below)
            if len(holders) != 1 or not isinstance(holders[0], dict):
                return None
            lists = {name: holders[0][name] for name in columns if isinstance(holders[0].get(name), list)}
            n = max(map(len, lists.values()), default=0)
            if not lists:
                return None
            return [{name: items[i] for name, items in lists.items() if i < len(items)} for i in range(n)]
        if inside:
            texts = find(run, outer)
            value = parse_inside(texts[0]) if len(texts) == 1 and isinstance(texts[0], str) else None
            return value if isinstance(value, list) else None
        holders = find(run, below[:-1]) if below else []
        if not holders or not any(isinstance(one, list | dict) for one in holders):
            return None
        return find(run, below)

    return read


def _events_spec(below: Place, array: EventArray, is_object: bool) -> tuple[Any, tuple[str, ...]]:
    if array.columns:
        columns = {name: spell("$", (*below, name, None)) for name in array.columns}
        spec: dict[str, Any] = {"zip": columns}
        if array.pads:
            spec["pad"] = list(array.pads)
        if array.optional:
            spec["optional"] = list(array.optional)
        return spec, tuple(columns.values())
    if INSIDE in below:
        path = spell("$", below[: below.index(INSIDE)])
        return {"path": {"json": path}}, (path,)
    path = spell("$", below)
    if is_object:
        path = path.removesuffix("[*]") + ".*"
    return path, (path,)
