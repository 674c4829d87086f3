"""Which run belongs to which task: an id that repeats, ids that collide and what tells them apart, equal task texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.places import Place, first, leaves, spell
from prefixguard.induce.offline.run_places import Column, Places, RunView
from prefixguard.induce.offline.run_task_evidence import LEAST_TEXT, Key, constant_within, evidence_of, opening_text
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import canonical

#: Share of runs that must agree before two columns count as saying the same.
AGREES = 0.97
#: More values a run than this are no repetition: two runs that began in the same second, say.
MOST_VALUES = 0.8
#: Below this, what looks like a task is not taken.
LEAST_CONFIDENCE = 0.25


@dataclass(frozen=True)
class TaskCandidate:
    """One way to tell tasks apart. spec: a value of the spec. keys: the task of each run."""

    spec: Any
    keys: Key
    confidence: float
    why: str
    example: str

    @property
    def coverage(self) -> float:
        return sum(1 for key in self.keys if key is not None) / max(1, len(self.keys))


def find_task(
    views: Sequence[RunView], places: Places, refused: Sequence[Any], more: Sequence[Column] = ()
) -> list[TaskCandidate]:
    """Candidates, likeliest first. refused: specs that something else reads (the outcome). more: columns that are not
    of the runs, such as fields of companion files."""
    n = len(views)
    evidence = evidence_of(views, places)
    documents = tuple(view.file for view in views)
    found: list[tuple[float, int, TaskCandidate]] = []
    for column in [*places.columns, *more]:
        if column.near == "document" or column.spec in refused or column.coverage < 0.8:
            continue
        candidate = _judged(column, evidence, documents, n)
        if candidate is not None:
            found.append((candidate.confidence, -column.order, candidate))
    found.sort(key=lambda item: (-item[0], -item[1]))
    if not found and (asked := _opening(views, places)) is not None:
        return [asked]
    best = [candidate for _, _, candidate in found[:6]]
    return [_apart(best[0], views, places, evidence), *best[1:]] if best else []


def _judged(column: Column, evidence: Sequence[Key], documents: Sequence[str], n: int) -> TaskCandidate | None:
    texts = column.texts
    d = column.distinct
    if (d <= 1 and n > 1) or any(isinstance(value, float) for value in column.values):
        return None
    if any(value is not None for value in texts) and any(isinstance(value, bool) for value in column.values):
        return None
    if column.name and affinity(column.name, Meaning.MISTAKE) >= 0.6:
        return None
    named = affinity(column.name, Meaning.TASK_ID) if column.name else 0.0
    worded = 0.6 * affinity(column.name, Meaning.TASK_TEXT) if column.name else 0.0
    late = max(affinity(column.name, Meaning.AFTER_END), affinity(column.name, Meaning.OUTCOME)) if column.name else 0.0
    is_long = column.length > 2 * LEAST_TEXT
    confidence = 0.5 * max(named if not is_long else 0.6 * named, worded) - 0.3 * late
    why = []
    if max(named, worded) >= 0.4:
        why.append("the name speaks for a task")
    repeats = 1 < d <= MOST_VALUES * n
    alone = constant_within(texts, documents)
    if repeats:
        confidence += 0.1 + 0.1 * d / n
        why.append(f"{d} values over {n} runs")
        if d <= max(3, 0.02 * n):
            confidence -= 0.1  # so few: a trial number, an agent, a model
    elif d == n and column.name and affinity(column.name, Meaning.RUN_ID) > named:
        confidence -= 0.15
    if repeats and column.near == "run" and not is_long and _once_a_document(texts, documents):
        confidence += 0.15
        why.append("every file has each value once")
    if alone and len(set(documents)) < n and not is_long:
        confidence -= 0.3
    agreement = max((_agreement(texts, key, documents) for key in evidence), default=0.0)
    if repeats and evidence and agreement < 0.75 and not named:
        confidence -= 0.2
    elif repeats and agreement >= 0.7:
        confidence += 0.3 * agreement
        why.append(f"runs with the same value have the same task text ({agreement:.0%})")
    if (named < 0.7 and column.near == "companion") or (column.near in ("event", "events") and not (repeats and named)):
        return None
    folder = column.spec == {"file": "parent"} or (isinstance(column.spec, dict) and column.spec.get("file") == "path")
    if not column.name and folder and agreement < 0.5 and _names_apart(documents):
        return None  # files of names of their own: the folder is as likely an agent as a task
    if not column.name:  # of the file's name
        counted = sum(1 for text in texts if text is not None and text.isdigit()) > 0.5 * n
        if repeats:
            confidence += 0.25 if not alone else 0.15 if _crosses(texts, documents) else 0.0
            confidence -= 0.15 if counted else 0.0  # 1.json, 2.json ... count files, not tasks
        if column.spec == {"file": "parent"} and not agreement:
            confidence -= 0.12
        if repeats:
            why.append("the same file name stands in several folders")
    if is_long:
        confidence -= 0.1  # an id that says the same is the better name
    if confidence < LEAST_CONFIDENCE and not (d == n and named >= 0.7):
        return None
    spec = column.spec
    return TaskCandidate(
        spec, texts, min(0.97, max(confidence, LEAST_CONFIDENCE)), "; ".join(why) or "an id", column.example()
    )


def _once_a_document(texts: Sequence[str | None], documents: Sequence[str]) -> bool:
    """Is every value there once in a file, and again in other files: the same tasks, done by several?"""
    n = len(texts)
    if len(set(documents)) < 2 or len(set(documents)) > 0.5 * n:
        return False
    return len(set(zip(texts, documents, strict=True))) == n and len(set(texts)) <= 0.7 * n


def _names_apart(documents: Sequence[str]) -> bool:
    """Has nearly every file a name of its own that is more than a number?"""
    names = {document.rpartition("/")[2].partition(".")[0] for document in documents}
    return len(names) > 0.8 * len(set(documents)) and sum(name.isdigit() for name in names) < 0.5 * len(names)


def _crosses(texts: Sequence[str | None], documents: Sequence[str]) -> bool:
    """Do values repeat over folders?"""
    folders: dict[str | None, set[str]] = {}
    for text, document in zip(texts, documents, strict=True):
        folders.setdefault(text, set()).add(document.rpartition("/")[0])
    return sum(1 for found in folders.values() if len(found) > 1) >= 0.3 * len(folders)


def _opening(views: Sequence[RunView], places: Places) -> TaskCandidate | None:
    """Equal first words of the user as the task, where runs share them and they stand at the same place in all."""
    base = next((place for place in places.events if place and None not in place), None)
    where: Counter[tuple[int, Place]] = Counter()
    for view in views:
        for i, event in enumerate(view.events[:4]):
            text = opening_text([event])
            spots = [place for place, value in leaves(event) if value == text and None not in place]
            if text is not None and spots:
                where[i, spots[0]] += 1
                break
    if base is None or not where:
        return None
    (i, place), n = min(where.items(), key=lambda item: (-item[1], item[0][0], str(item[0][1])))
    keys = tuple(_at(view, i, place) for view in views)
    if n < 0.95 * len(views) or not 1 < len(set(keys)) <= MOST_VALUES * len(views):
        return None
    spec = f"{spell('$', base)}[{i}]{spell('', place)}"
    example = next((key for key in keys if key), "")[:60]
    return TaskCandidate(spec, keys, 0.3, "no id; runs that begin with the same words are of one task", example)


def _at(view: RunView, i: int, place: Place) -> str | None:
    value = first(view.events[i], place) if i < len(view.events) else None
    return value if isinstance(value, str) and value else None


def _one_way(key: Key, other: Key) -> float:
    """Share of runs whose `other` is the usual one among the runs with the same `key`."""
    groups: dict[str, Counter[str]] = {}
    for a, b in zip(key, other, strict=True):
        if a is not None and b is not None:
            groups.setdefault(a, Counter())[b] += 1
    total = sum(sum(counts.values()) for counts in groups.values())
    return sum(counts.most_common(1)[0][1] for counts in groups.values()) / total if total else 0.0


def _agreement(key: Key, text: Key, documents: Sequence[str]) -> float:
    """Do both split the runs alike, at least within a document (ids may be counted anew in each)? In [0, 1]."""
    back = _one_way(text, key)
    several = len(set(documents)) <= 0.5 * len(documents)
    within = _one_way(_pair(tuple(documents), key), text) if several else 0.0
    return min(back, max(_one_way(key, text), 0.9 * within))


def _apart(best: TaskCandidate, views: Sequence[RunView], places: Places, evidence: Sequence[Key]) -> TaskCandidate:
    """The candidate, joined with what its ids need to mean one task each."""
    here = [key for key in best.keys if key is not None]
    if sum(1 for key in here if key.isdigit() or len(key) <= 3) < 0.5 * len(here):
        return best  # ids that say more than a number do not collide
    for text in evidence:
        alone, back = _one_way(best.keys, text), _one_way(text, best.keys)
        if alone >= AGREES or back < 0.8:
            continue
        joined = _joined(best, text, alone, places)
        if joined is not None:
            return joined
    collided = _shared_over_domains(best, places)
    return collided if collided is not None else best


def _joined(best: TaskCandidate, text: Key, alone: float, places: Places) -> TaskCandidate | None:
    options: list[tuple[float, int, Column, Key]] = []
    for column in places.columns:
        if column.spec == best.spec or column.distinct < 2 or column.length > 80 or column.coverage < 0.9:
            continue
        keys = _pair(column.texts, best.keys)
        if len(set(keys)) > max(0.6 * len(keys), len(set(best.keys))) and column.distinct > max(3, 0.05 * len(keys)):
            continue  # so fine that nothing repeats
        split, back = _one_way(keys, text), _one_way(text, keys)
        if split - alone < 0.5 * (1 - alone) or back < 0.9:
            continue
        # the fewest values that tell the ids apart: a domain rather than a user or a seed
        worth = (
            (2.0 if split >= AGREES else split)
            + 0.5 * affinity(column.name, Meaning.GROUP)
            - 0.3 * column.distinct / len(text)
        )
        options.append((worth, column.order, column, keys))
    if not options:
        return None
    _, _, column, keys = min(options, key=lambda item: (-item[0], item[1]))
    why = f"{best.why}; the same id stands for different tasks, told apart by {_shown(column.spec)}"
    return TaskCandidate(_join(column.spec, best.spec), keys, best.confidence, why, best.example)


def _shared_over_domains(best: TaskCandidate, places: Places) -> TaskCandidate | None:
    """Plain numbers that several domains (by name) count from the start: joined with the domain."""
    here = [key for key in best.keys if key is not None]
    if sum(key.isdigit() for key in here) < 0.8 * len(here):
        return None
    for column in places.columns:
        named = affinity(column.name, Meaning.GROUP)
        if named < 0.9 or not 1 < column.distinct <= 50 or column.coverage < 0.95 or column.length > 80:
            continue
        domains: dict[str | None, set[str | None]] = {}
        for key, domain in zip(best.keys, column.texts, strict=True):
            domains.setdefault(key, set()).add(domain)
        short = all(len(key) <= 4 for key in here if key.isdigit())
        if short or any(len(found) > 1 for found in domains.values()):
            why = f"{best.why}; ids are numbers that every {_shown(column.spec)} counts for itself"
            spec, keys = _join(column.spec, best.spec), _pair(column.texts, best.keys)
            return TaskCandidate(spec, keys, best.confidence, why, best.example)
    return None


def _pair(a: Key, b: Key) -> Key:
    return tuple(None if x is None or y is None else f"{x}:{y}" for x, y in zip(a, b, strict=True))


def _join(first_part: Any, second: Any) -> dict[str, Any]:
    return {"join": [first_part, second], "sep": ":"}


def _shown(spec: Any) -> str:
    return spec if isinstance(spec, str) else canonical(spec)
