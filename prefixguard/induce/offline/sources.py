"""Where runs and events can be in JSON samples: every list that could be the events, at every level that could be a
run.

A place that could hold events is a list of objects, parallel lists of texts, a list of short lists, or one of these as
JSON inside a string. Which of them it is nobody says; each becomes a `Source`, and what is read through it decides
(see `choose`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from prefixguard.induce.names import Meaning, affinity
from prefixguard.induce.offline.places import DEEPEST, Place, find, leaves, spell, text_size
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.samples import Kind, SampleFile, Samples
from prefixguard.stepview import decode, decode_text
from prefixguard.trace import glob_pattern

#: Documents that are walked, spread over the samples, and nodes in each.
MOST_DOCUMENTS = 80
MOST_NODES = 400_000
#: Runs that a source keeps for inference.
MOST_RUNS = 300
#: Stands in a place for "the JSON that this string holds".
INSIDE = "\x00json"


@dataclass(slots=True)
class Source:
    """A way to find runs and events. container, events: parts of the spec. runs: path of the runs in the document,
    None where the document is the run. prior: the higher, the sooner it is tried."""

    container: dict[str, Any]
    runs: str | None
    events: Any
    event_places: tuple[str, ...]
    views: list[RunView]
    prior: float
    why: str
    files: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    group_by: Any = None
    root: str = ""
    novelty: float = 1.0
    inner: float = 0.0
    share: float = 1.0
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Array:
    """A list at one place over all documents: instances by document, and the names of parallel columns."""

    place: Place
    columns: tuple[str, ...] = ()
    pads: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    size: int = 0
    lengths: list[int] = field(default_factory=list)
    documents: set[int] = field(default_factory=set)
    wide: int = 0


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
            found += _of_lines(files, everything)
        found += _of_documents(kind, files, everything)
    found = [source for source in found if source.views]
    for source in found:
        source.root = samples.source
        source.novelty = _novelty(source)
        source.inner = _inner(source)
    if "events" in hints:
        found = [source for source in found if hints["events"] in source.event_places] or found
    if "runs" in hints:
        found = [source for source in found if source.runs == hints["runs"]] or found
    return sorted(found, key=lambda source: (-source.prior, str(source.events)))


def _novelty(source: Source) -> float:
    """Share of the events' text that is not said before, in this run or another: low where every event, or every run,
    repeats the history."""
    seen: set[int] = set()
    new = total = 0
    for view in source.views[:60]:
        for event in view.events[:200]:
            for _, value in leaves(event):
                if isinstance(value, str) and len(value) >= 16:
                    total += len(value)
                    if hash(value) not in seen:
                        seen.add(hash(value))
                        new += len(value)
    return new / total if total else 1.0


def _inner(source: Source) -> float:
    """Share of what the events say anew that stands in lists of four and more objects inside an event: high where the
    events are runs."""
    seen: set[int] = set()
    inside = total = 0

    def size(value: Any, deep: bool) -> None:
        nonlocal inside, total
        if isinstance(value, dict):
            for item in value.values():
                size(item, deep)
        elif isinstance(value, list):
            long = deep or (len(value) >= 4 and sum(isinstance(item, dict) for item in value) >= 4)
            for item in value:
                size(item, long and not (isinstance(item, dict) and set(item) == {"key", "value"}))
        elif isinstance(value, str) and len(value) >= 16 and hash(value) not in seen:
            seen.add(hash(value))
            total += len(value)
            inside += len(value) * deep

    for view in source.views[:40]:
        for event in view.events[:100]:
            size(event, False)
    return inside / total if total else 0.0


def _spread(files: Sequence[SampleFile], n: int) -> list[SampleFile]:
    step = max(1, -(-len(files) // n))
    return list(files[::step])


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
    chosen = list(_documents(kind, _spread(files, MOST_DOCUMENTS)))
    if kind is Kind.JSONL:
        chosen = chosen[: 20 * MOST_DOCUMENTS]
    arrays = _survey([value for _, value in chosen])
    total = sum(text_size(value) for _, value in chosen) or 1
    ours = sum(file.size for file in files) / max(1, sum(file.size for file in everything))
    out = []
    for array in arrays:
        share = array.size / total * min(1.0, 3 * ours)
        if share < 0.02 or not array.lengths:
            continue
        for runs_place in _levels(array.place, [value for _, value in chosen]):
            source = _source(kind, files, everything, array, runs_place, share)
            if source is not None:
                out.append(source)
    return out


def _survey(values: Sequence[Any]) -> list[_Array]:
    arrays: dict[tuple[Place, tuple[str, ...]], _Array] = {}
    zips: dict[Place, list[tuple[int, dict[str, int], int]]] = defaultdict(list)
    for number, value in enumerate(values):
        _walk(value, (), number, arrays, zips, [MOST_NODES])
    for place, instances in sorted(zips.items(), key=lambda kv: str(kv[0])):
        array = _zip_of(place, instances)
        if array is not None:
            arrays[place, array.columns] = array
    return sorted(arrays.values(), key=lambda array: (-array.size, str(array.place)))


def is_map(value: dict[str, Any]) -> bool:
    """Is the object a list in disguise: keys are ids, values alike?

    >>> is_map({"0": {"a": 1}, "1": {"a": 2}, "2": {"a": 3}})
    True
    """
    if not value or not all(isinstance(item, dict) for item in value.values()):
        return False
    if all(key.isdecimal() for key in value):
        return True
    if len(value) < 3:
        return False
    shapes = [frozenset(item) for item in list(value.values())[:50]]
    common = frozenset.intersection(*shapes)
    union = frozenset.union(*shapes)
    if not common or len(common) < 0.5 * len(union):
        return False
    numbered = all(re.search(r"\d", key) for key in list(value)[:50])
    return numbered or len(value) >= 8


def _walk(
    value: Any,
    place: Place,
    number: int,
    arrays: dict[tuple[Place, tuple[str, ...]], _Array],
    zips: dict[Place, list[tuple[int, dict[str, int], int]]],
    left: list[int],
) -> None:
    left[0] -= 1
    if left[0] < 0 or len(place) > DEEPEST:
        return
    if isinstance(value, dict):
        if is_map(value):
            _list(list(value.values()), place, number, arrays, zips, left)
            return
        lists = {}
        for key, item in value.items():
            if isinstance(item, list) and item and not any(isinstance(one, dict | list) for one in item[:50]):
                lists[str(key)] = item
            else:
                _walk(item, (*place, str(key)), number, arrays, zips, left)
        if lists:
            sizes = {key: len(item) for key, item in lists.items()}
            zips[place].append((number, sizes, sum(text_size(item) for item in lists.values())))
    elif isinstance(value, list):
        _list(value, place, number, arrays, zips, left)
    elif isinstance(value, str) and len(value) > 40 and value.lstrip()[:1] in ("[", "{"):
        inner = parse_inside(value)
        if inner is not None:
            _walk(inner, (*place, INSIDE), number, arrays, zips, left)


def parse_inside(value: str) -> Any:
    """The list or object that a string holds as JSON; None where it holds none."""
    try:
        try:
            inner = decode(value.encode("utf-8"))
        except UnicodeEncodeError:
            inner = decode_text(value)
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, dict | list) else None


def _list(
    items: list[Any],
    place: Place,
    number: int,
    arrays: dict[tuple[Place, tuple[str, ...]], _Array],
    zips: dict[Place, list[tuple[int, dict[str, int], int]]],
    left: list[int],
) -> None:
    inside = (*place, None)
    if items and all(isinstance(item, dict) and set(item) == {"key", "value"} for item in items):
        return  # typed attributes: one object, not a list
    objects = sum(isinstance(item, dict) for item in items)
    pairs = sum(isinstance(item, list) and 2 <= len(item) <= 4 for item in items)
    if items and (objects >= 0.8 * len(items) or pairs >= 0.9 * len(items)):
        array = arrays.setdefault((inside, ()), _Array(inside))
        array.size += text_size(items)
        array.lengths.append(len(items))
        array.documents.add(number)
    for item in items:
        _walk(item, inside, number, arrays, zips, left)


def _zip_of(place: Place, instances: list[tuple[int, dict[str, int], int]]) -> _Array | None:
    """Parallel lists: those that are as long as the longest, or nearly, in most of the objects that hold them."""
    together: Counter[str] = Counter()
    there: Counter[str] = Counter()
    for _, sizes, _ in instances:
        longest = max(sizes.values())
        for name, n in sizes.items():
            there[name] += 1
            together[name] += longest - 1 <= n <= longest
    names = sorted(
        name for name, n in together.items() if n >= 0.8 * there[name] and there[name] >= 0.05 * len(instances)
    )
    if len(names) < 2:
        return None
    pads = [
        name
        for name in names
        if any(name in sizes and sizes[name] < max(sizes.get(other, 0) for other in names) for _, sizes, _ in instances)
    ]
    if len(pads) == len(names):
        return None
    holders = [sizes for _, sizes, _ in instances if any(name in sizes for name in names)]
    optional = [name for name in names if there[name] < len(holders)]
    if len(optional) == len(names):
        return None
    array = _Array(place, tuple(names), tuple(pads), tuple(optional))
    for number, sizes, size in instances:
        if any(name in sizes for name in names):
            array.size += size
            array.lengths.append(max(sizes.get(name, 0) for name in names))
            array.documents.add(number)
    return array


def _levels(place: Place, values: Sequence[Any]) -> list[Place]:
    """Places that can be the run for events at `place`: the document, and elements of outer lists whose own fields
    differ from one to the next."""
    out: list[Place] = [()]
    stars = [i for i, step in enumerate(place) if step is None]
    for i in stars[:-1] if place and place[-1] is None else stars:
        level = place[: i + 1]
        if INSIDE not in level and _independent(level, values):
            out.append(level)
    return out


def _independent(level: Place, values: Sequence[Any]) -> bool:
    """Have the elements fields of their own that differ, other than counters?"""
    seen: dict[str, set[Any]] = defaultdict(set)
    counters: set[str] = set()
    n = 0
    for value in values:
        for i, element in enumerate(find(value, level)[:200]):
            n += 1
            if not isinstance(element, dict):
                return False
            for key, item in element.items():
                if isinstance(item, str | int | float | bool) and len(str(item)) < 400:
                    seen[key].add(item)
                    if item not in (i, i + 1) or isinstance(item, str | bool):
                        counters.add(key)
                elif isinstance(item, dict):
                    for inner, scalar in list(item.items())[:20]:
                        if isinstance(scalar, str | int | float | bool) and len(str(scalar)) < 400:
                            seen[f"{key}.{inner}"].add(scalar)
                            counters.add(f"{key}.{inner}")
        if n > 2000:
            break
    return n >= 2 and any(len(items) > 1 and key in counters for key, items in seen.items())


def _source(
    kind: Kind,
    files: Sequence[SampleFile],
    everything: Sequence[SampleFile],
    array: _Array,
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
    pattern = narrow(holding, others)
    if pattern:
        container["files"] = pattern
    runs = spell("$", level) if level else None
    if runs is not None:
        container["runs"] = runs
    events, places = _events_spec(below, array)
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


def _events_spec(below: Place, array: _Array) -> tuple[Any, tuple[str, ...]]:
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
    return path, (path,)


def _of_lines(files: Sequence[SampleFile], everything: Sequence[SampleFile]) -> list[Source]:
    """Sources in which a line is an event (or holds some): a run is a file, or the lines that share an id."""
    lines = [line for file in _spread(files, 40) for line in file.value[:400]]
    total = sum(map(text_size, lines)) or 1
    out = []
    for elements in [(), *[array.place for array in _survey(lines) if array.size > 0.3 * total and not array.columns]]:
        if INSIDE in elements:
            continue
        below = [one for line in lines for one in find(line, elements)] if elements else lines
        if sum(isinstance(one, dict) for one in below) < 0.8 * len(below):
            continue
        for group in [*_groups(files, elements), {"file": "path"}]:
            source = _lines_source(files, everything, elements, group)
            if source is not None:
                out.append(source)
    return out


def _groups(files: Sequence[SampleFile], elements: Place) -> list[str]:
    """Fields that gather lines into runs: ids that several lines share, and that differ. Where one of them has a value
    a file, a run is a file and finer fields are something else."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    in_file: dict[str, list[int]] = defaultdict(list)
    n = 0
    spread = _spread(files, 40)
    for file in spread:
        here: dict[str, set[str]] = defaultdict(set)
        for line in file.value[:2000]:
            for element in find(line, elements) if elements else [line]:
                n += 1
                for key, value in element.items() if isinstance(element, dict) else ():
                    if isinstance(value, str) and 0 < len(value) <= 80 and " " not in value:
                        counts[key][value] += 1
                        here[key].add(value)
        for key, there_values in here.items():
            in_file[key].append(len(there_values))
    found = []
    for key, values in sorted(counts.items()):
        there = sum(values.values())
        if there >= 0.7 * n and len(values) >= 2 and there / len(values) >= 3:
            longest = median(len(value) for value in values)
            alike = sum(any(c.isdigit() for c in value) for value in values) / len(values)
            if alike >= 0.5 or len(values) >= max(4, 0.9 * len(spread)):
                found.append((-(longest >= 8) - alike, len(values), key))
    one = [key for _, n_values, key in found if max(in_file[key]) == 1 and n_values >= max(2, 0.9 * len(spread))]
    if one:
        found = [item for item in found if item[2] in one]
    return [spell("@", (key,)) for _, _, key in sorted(found)[:2]]


def _lines_source(
    files: Sequence[SampleFile], everything: Sequence[SampleFile], elements: Place, group: Any
) -> Source | None:
    views: list[RunView] = []
    size = 0
    for file in files:
        gathered: dict[str, list[Any]] = {}
        for line in file.value:
            for element in find(line, elements) if elements else [line]:
                if isinstance(group, str):
                    key = element.get(group[2:]) if isinstance(element, dict) else None
                    if not isinstance(key, str):
                        continue
                else:
                    key = file.path
                gathered.setdefault(key, []).append(element)
        for position, (key, events) in enumerate(gathered.items(), 1):
            run = {"events": events, "group": key}
            size += text_size(events)
            views.append(RunView(file.path, None, run, key, position, tuple(events), len(gathered)))
    if not views:
        return None
    lengths = [len(view.events) for view in views]
    container: dict[str, Any] = {"format": "jsonl", "group_by": group}
    if elements:
        container["elements"] = spell("@", elements)
    holding = [file.path for file in files]
    pattern = narrow(holding, [file.path for file in everything if file.path not in set(holding)])
    if pattern:
        container["files"] = pattern
    total = sum(text_size(file.value) for file in files) or 1
    middle = median(lengths)
    prior = 3 * min(1.0, size / total) + (0.0 if middle < 2 else 1.0 if middle < 3 else 1.5)
    prior += 0.3 * isinstance(group, str) * (len(views) > len(files)) + 0.1 * min(len(views), 5)
    if isinstance(group, str):
        prior += 0.1 * affinity(group, Meaning.RUN_ID) - 0.02 * min(10.0, len(views) / max(1, len(files)))
    prior -= 0.8 * (middle > 400)
    step = max(1, -(-len(views) // MOST_RUNS))
    why = f"{len(views)} runs of {middle:g} lines each"
    return Source(
        container,
        None,
        "$.events[*]",
        ("$.events[*]",),
        views[::step],
        prior,
        why,
        tuple(holding),
        group_by=group,
        share=min(1.0, size / total),
    )


def narrow(holding: Iterable[str], others: Iterable[str]) -> str | None:
    """The glob that takes the files that hold runs and leaves the others; None where the format's default does.

    >>> narrow(["a/trajs/x.traj", "b/trajs/y.traj"], ["a/results/results.json"])
    '**/*.traj'
    >>> narrow(["r1/result.json", "r2/result.json"], [])
    '**/result.json'
    """
    mine, rest = sorted(set(holding)), sorted(set(others))
    names = {path.rpartition("/")[2] for path in mine}
    candidates = []
    if len(names) == 1 and len(mine) > 1:
        candidates.append(f"**/{next(iter(names))}")
    suffix = _suffix(names)
    parents = {path.rpartition("/")[0].rpartition("/")[2] for path in mine}
    candidates.append(f"**/*{suffix}")
    if len(parents) == 1 and next(iter(parents)):
        candidates.append(f"**/{next(iter(parents))}/*{suffix}")
    if len(names) <= 4:
        candidates.append("**/" + (next(iter(names)) if len(names) == 1 else "{" + ",".join(sorted(names)) + "}"))
    candidates += _by_stem(names, suffix)
    for pattern in candidates:
        matches = glob_pattern([pattern])
        if all(map(matches, mine)) and not any(map(matches, rest)):
            return pattern
    return candidates[0]


def _by_stem(names: set[str], suffix: str) -> list[str]:
    prefix = (
        names
        and min(names)[
            : next((i for i, pair in enumerate(zip(min(names), max(names), strict=False)) if pair[0] != pair[1]), 0)
        ]
    )
    return [f"**/{prefix}*{suffix}"] if prefix and not any(c in prefix for c in "*?{[") else []


def _suffix(names: set[str]) -> str:
    """The longest run of suffixes that all names share."""
    ends = [name.split(".")[1:] for name in names]
    common: list[str] = []
    for parts in zip(*(reversed(end) for end in ends), strict=False):
        if len(set(parts)) > 1 or re.search(r"\d", parts[0]):
            break
        common.append(parts[0])
    return "".join(f".{part}" for part in reversed(common))
