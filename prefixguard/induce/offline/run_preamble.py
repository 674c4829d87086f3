"""Task text that is known at the start, ids of runs, and what runs are grouped by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefixguard.induce.offline.places import Place
from prefixguard.induce.offline.run_outcome import OutcomeCandidate
from prefixguard.induce.offline.run_places import Column, Node, Places, RunView
from prefixguard.induce.offline.run_task_evidence import longest_text
from prefixguard.lexicon import Meaning, affinity, words
from prefixguard.stepview import MISSING

_LATE = (Meaning.AFTER_END, Meaning.HARNESS, Meaning.OUTCOME, Meaning.MISTAKE)


@dataclass(frozen=True)
class Preamble:
    """Text that stands before the first event. spec: a path."""

    spec: Any
    coverage: float
    confidence: float
    why: str


def find_preamble(views: Sequence[RunView], places: Places, outcome: OutcomeCandidate | None) -> Preamble | None:
    """The task's text among the fields of the run; None where the events say it themselves, or nothing is sure.

    A wrong preamble would show the future to the first record, so what only looks like a task text is not taken: it
    must be named like one, or be the same in all runs of a task and differ between tasks; and nothing that stands
    beside answers and expected actions is taken while a user speaks in the events.
    """
    spoken = _user_speaks(views)
    best: tuple[float, Column] | None = None
    for column in places.columns:
        if column.near != "run" or not isinstance(column.spec, str) or column.spec == "$key":
            continue
        if not column.is_text or column.coverage < 0.8 or column.length < 12 or column.distinct < min(2, len(views)):
            continue
        if outcome is not None and column.spec == outcome.outcome["of"]:
            continue
        named = affinity(column.name, Meaning.TASK_TEXT)
        late = max(affinity(column.name, meaning) for meaning in _LATE)
        other = max(affinity(column.name, meaning) for meaning in (Meaning.MODEL, Meaning.RUN_ID, Meaning.TASK_ID))
        if late >= 0.6 or named < 0.5 or (other > named and column.length < 40):
            continue
        if " " not in next((text for text in column.texts if text), "") and column.length < 60:
            continue
        if spoken >= 0.5 or _beside_answers(places, column.place) or _said(views, column):
            continue
        confidence = 0.5 + 0.4 * named - 0.03 * len(column.place)
        if best is None or confidence > best[0]:
            best = (confidence, column)
    if best is None:
        return None
    confidence, column = best
    return Preamble(column.spec, column.coverage, confidence, "the task's text; no event says it")


def _user_speaks(views: Sequence[RunView]) -> float:
    """Share of runs in whose first events a user has the word."""
    n = 0
    for view in views:
        for event in view.events[:3]:
            values = event.values() if isinstance(event, Mapping) else ()
            if any(
                isinstance(value, str) and len(value) <= 24 and affinity(value, Meaning.ROLE_USER) >= 0.9
                for value in values
            ):
                n += 1
                break
    return n / max(1, len(views))


def _said(views: Sequence[RunView], column: Column) -> bool:
    """Do the first events hold the text already, in most runs?"""
    n = 0
    seen = 0
    for view, text in zip(views, column.texts, strict=True):
        if not text:
            continue
        seen += 1
        probe = text.strip()[:80]
        n += any(probe in longest_text(event) for event in view.events[:3])
    return seen > 0 and n >= 0.5 * seen


def _beside_answers(places: Places, place: Place) -> bool:
    """Does the object that holds the place hold what only the harness knows (and is it not the run itself)?"""
    if len(place) < 2:
        return False
    node: Node = places.run
    for name in place[:-1]:
        if name is None or name not in node.inner:
            return False
        node = node.inner[name]
    return any(name in _EXPECTED or affinity(name, Meaning.HARNESS) >= 0.9 for name in node.inner)


_EXPECTED = frozenset(("actions", "outputs", "evaluation", "eval"))


def find_id(places: Places) -> Any:
    """A field that names the run, one value each; None: the file and the position do."""
    best: tuple[float, Column] | None = None
    for column in places.columns:
        if column.near != "run" or len(column.place) > 2 or column.coverage < 1 or column.length > 120:
            continue
        if column.distinct != len(column.values) or column.distinct < 2 or isinstance(column.spec, dict):
            continue
        named = affinity(column.name, Meaning.RUN_ID) - 0.05 * len(column.place)
        if named < 0.4 or affinity(column.name, Meaning.TASK_ID) > named + 0.1 or column.spec == "$key":
            continue
        if any(isinstance(value, float | bool) for value in column.values) or all(
            isinstance(value, int) or str(value).isdigit() for value in column.values
        ):
            continue
        if best is None or named > best[0]:
            best = (named, column)
    return None if best is None else best[1].spec


def find_groups(views: Sequence[RunView], places: Places, task: Any) -> dict[str, Any]:
    """What runs may be grouped by: agent, model, domain, environment; the folder and the file, where they vary."""
    groups: dict[str, Any] = {}
    n = len(views)
    for column in places.columns:
        if column.near == "file" or column.spec == task or column.coverage < 0.5 or column.length > 80:
            continue
        if not 1 < column.distinct <= max(2, min(200, n // 2)) or len(column.place) > 4:
            continue
        for meaning in (Meaning.GROUP, Meaning.MODEL, Meaning.AGENT):
            if affinity(column.name, meaning) >= 0.9 and _plain(column):
                name = "_".join(words(str(column.place[-1]) if column.place else column.name)) or str(meaning)
                groups.setdefault(name, column.spec)
                break
        if len(groups) == 6:
            break
    folders = {view.file.rpartition("/")[0].rpartition("/")[2] for view in views}
    if 1 < len(folders) <= max(2, n // 2):
        groups.setdefault("folder", {"file": "parent"})
    files = {view.file for view in views}
    if 1 < len(files) <= max(1, n // 2):
        groups.setdefault("file", {"file": "stem"})
    return groups


def _plain(column: Column) -> bool:
    return all(isinstance(value, str) for value in column.values if value is not MISSING and value is not None)
