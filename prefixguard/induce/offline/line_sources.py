"""Sources in which a line is an event, or holds some: a run is a file, or the lines that share an id."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from statistics import median
from typing import Any

from prefixguard.induce.offline.arrays import INSIDE, survey
from prefixguard.induce.offline.globs import narrow
from prefixguard.induce.offline.places import Place, find, first, place_of, spell, text_size
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.offline.source import MOST_RUNS, Source, spread
from prefixguard.induce.samples import SampleFile
from prefixguard.lexicon import Meaning, affinity


def line_sources(
    files: Sequence[SampleFile], everything: Sequence[SampleFile], group_by: str | None = None
) -> list[Source]:
    """Sources in which a line is an event (or holds some): a run is a file, or the lines that share an id.
    group_by: path of that id, where a person named it."""
    lines = [line for file in spread(files, 40) for line in file.value[:400]]
    arrays, walked = survey(lines)
    sizes: dict[int, int] = {}  # characters of an element, by its identity: each is met once a way to group them
    out = []
    for elements in [(), *[array.place for array in arrays if array.size > 0.3 * walked and not array.columns]]:
        if INSIDE in elements:
            continue
        below = [one for line in lines for one in find(line, elements)] if elements else lines
        if sum(isinstance(one, dict) for one in below) < 0.8 * len(below):
            continue
        groups: list[str | dict[str, str]] = [*_groups(files, elements), {"file": "path"}]
        if group_by is not None:
            groups = [group_by]
        for group in groups:
            source = _lines_source(files, everything, elements, group, sizes)
            if source is not None:
                out.append(source)
    return out


def _groups(files: Sequence[SampleFile], elements: Place) -> list[str]:
    """Fields that gather lines into runs: ids that several lines share, and that differ. Where one of them has a value
    a file, a run is a file and finer fields are something else."""
    counts: dict[Place, Counter[str]] = defaultdict(Counter)
    in_file: dict[Place, list[int]] = defaultdict(list)
    turns: Counter[Place] = Counter()  # how often the value differs from that of the line before
    numbers: set[Place] = set()
    n = 0
    shown = spread(files, 40)
    for file in shown:
        here: dict[Place, set[str]] = defaultdict(set)
        before: dict[Place, str] = {}
        for line in file.value[:2000]:
            for element in find(line, elements) if elements else [line]:
                n += 1
                for place, value in _scalars(element):
                    text = str(value)
                    counts[place][text] += 1
                    here[place].add(text)
                    turns[place] += before.get(place) != text
                    before[place] = text
                    if not isinstance(value, str):
                        numbers.add(place)
        for place, there_values in here.items():
            in_file[place].append(len(there_values))
    found = []
    for place, values in sorted(counts.items(), key=lambda kv: (len(kv[0]), str(kv[0]))):
        there = sum(values.values())
        digits = sum(any(c.isdigit() for c in value) for value in values) / len(values)
        comes_and_goes = turns[place] > 1.1 * sum(in_file[place])
        named = affinity(spell("@", place), Meaning.RUN_ID) >= 0.5
        if comes_and_goes and not named and (place in numbers or digits < 0.5):
            continue  # a number or a word that comes and goes: a level, a counter of steps, a role, a tool
        if there >= 0.7 * n and len(values) >= 2 and there / len(values) >= 3:
            longest = median(len(value) for value in values)
            if digits >= 0.5 or len(values) >= max(4, 0.9 * len(shown)):
                found.append((-(longest >= 8) - digits, len(values), len(place), spell("@", place), place))
    whole = [item for item in found if sum(counts[item[-1]].values()) >= 0.98 * n]
    found = whole or found  # what the first line of a run lacks is the id of something inside it
    one = [item for item in found if max(in_file[item[-1]]) == 1 and item[1] >= max(2, 0.9 * len(shown))]
    return [path for *_, path, _ in sorted(one or found, key=lambda item: item[:4])[:2]]


def _scalars(element: Any) -> Iterator[tuple[Place, str | int]]:
    """Short texts without blanks and whole numbers of an element and of the objects in it."""
    for key, value in element.items() if isinstance(element, dict) else ():
        if isinstance(value, dict):
            yield from (((key, inner), one) for inner, one in islice(value.items(), 40) if _may_be_id(one))
        elif _may_be_id(value):
            yield (key,), value


def _may_be_id(value: Any) -> bool:
    if isinstance(value, str):
        return 0 < len(value) <= 80 and " " not in value
    return isinstance(value, int) and not isinstance(value, bool)


def _lines_source(
    files: Sequence[SampleFile],
    everything: Sequence[SampleFile],
    elements: Place,
    group: str | dict[str, str],
    sizes: dict[int, int],
) -> Source | None:
    """group: path of the id that lines of a run share, or that of the file. sizes: known so far, by identity."""
    views: list[RunView] = []
    size = total = 0
    place = place_of(group)[1] if isinstance(group, str) else ()
    for file in files:
        gathered: dict[str, list[Any]] = {}
        for line in file.value:
            total += sizes[id(line)] if id(line) in sizes else sizes.setdefault(id(line), text_size(line))
            for element in find(line, elements) if elements else [line]:
                key = file.path
                if place:
                    value = first(element, place)
                    if not _may_be_id(value):
                        continue
                    key = str(value)
                gathered.setdefault(key, []).append(element)
                if elements and id(element) not in sizes:
                    sizes[id(element)] = text_size(element)
                size += sizes[id(element)]
        for position, (key, events) in enumerate(gathered.items(), 1):
            run = {"events": events, "group": key}
            views.append(RunView(file.path, None, run, key, position, tuple(events), len(gathered)))
    if not views:
        return None
    lengths = [len(view.events) for view in views]
    container: dict[str, Any] = {"format": "jsonl", "group_by": group}
    if elements:
        container["elements"] = spell("@", elements)
    holding = [file.path for file in files]
    container["files"] = narrow(holding, {file.path for file in everything} - set(holding))
    total = total or 1
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
