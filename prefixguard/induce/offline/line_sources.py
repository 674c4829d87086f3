"""Sources in which a line is an event, or holds some: a run is a file, or the lines that share an id."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

from prefixguard.induce.names import Meaning, affinity
from prefixguard.induce.offline.arrays import INSIDE, survey
from prefixguard.induce.offline.globs import narrow
from prefixguard.induce.offline.places import Place, find, spell, text_size
from prefixguard.induce.offline.run_places import RunView
from prefixguard.induce.offline.source import MOST_RUNS, Source, spread
from prefixguard.induce.samples import SampleFile


def line_sources(files: Sequence[SampleFile], everything: Sequence[SampleFile]) -> list[Source]:
    """Sources in which a line is an event (or holds some): a run is a file, or the lines that share an id."""
    lines = [line for file in spread(files, 40) for line in file.value[:400]]
    total = sum(map(text_size, lines)) or 1
    out = []
    for elements in [(), *[array.place for array in survey(lines) if array.size > 0.3 * total and not array.columns]]:
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
    shown = spread(files, 40)
    for file in shown:
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
            if alike >= 0.5 or len(values) >= max(4, 0.9 * len(shown)):
                found.append((-(longest >= 8) - alike, len(values), key))
    whole = [item for item in found if sum(counts[item[2]].values()) >= 0.98 * n]
    found = whole or found  # what the first line of a run lacks is the id of something inside it
    one = [key for _, n_values, key in found if max(in_file[key]) == 1 and n_values >= max(2, 0.9 * len(shown))]
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
