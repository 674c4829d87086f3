"""What is said of runs besides their task and outcome: the text before the first event, labels of mistakes, what is
hidden, and which files hold no run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.proposal import Asker, Choice, Mapped
from prefixguard.induce.search.raw_places import JSON, Place, event_places, spelled
from prefixguard.induce.search.run_fields import Keys, Weighed, is_prose
from prefixguard.induce.search.run_tasks import begun_alike
from prefixguard.induce.search.seen_runs import HEAD, Seen, SeenRun, Values
from prefixguard.induce.search.speakers import Part, part_of
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING, Adapter, canonical

#: Hidden places of one spec.
MOST_HIDDEN = 200


@dataclass(slots=True)
class OpenPart:
    """A run part in the making. known: what a person said of the spec's `run`, which nothing overrules."""

    spec: Mapping[str, Any]
    seen: Seen
    columns: list[Values]
    known: dict[str, Any]
    success: str | None
    has_labels: bool
    names: bool
    ask: Asker
    heard: Keys = ()
    run: dict[str, Any] = field(default_factory=dict)
    mapped: list[Mapped] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def runs(self) -> Sequence[SeenRun]:
        return self.seen.runs


def shown(spec: Any) -> str:
    """A value of the spec, for a person."""
    return spec if isinstance(spec, str) else canonical(spec)


def preamble_of(part: OpenPart, outcome: Weighed | None) -> None:
    """The text of the task, where it stands beside the events and no event says it. Only what is called so: a wrong
    one would show the future to the first record."""
    late = (Meaning.AFTER_END, Meaning.HARNESS, Meaning.OUTCOME, Meaning.MISTAKE)
    best: tuple[float, Values] | None = None
    for column in part.columns if not _asked(part) else ():
        if column.near != "run" or column.coverage < 0.8 or not is_prose(column) or not part.names:
            continue
        named = affinity(column.name, Meaning.TASK_TEXT) - 0.05 * len(column.place)
        if named < 0.45 or max(affinity(column.name, meaning) for meaning in late) >= 0.6 or _said(part.runs, column):
            continue
        if best is None or named > best[0]:
            best = named, column
    told = [one for one in part.columns if one.spec == "$.title" and one.coverage >= 0.8 and is_prose(one)]
    if best is None and told and part.names and any(run.text for run in part.runs):
        pairs = zip(told[0].texts, part.heard, strict=True)
        heard = [text is not None and text[:80] in (said or "") for text, said in pairs]
        if sum(heard) < 0.5 * len(heard):
            best = 1.0, begun_alike(told[0])  # the line that begins the run, which no event holds
    if best is not None:
        spec = best[1].spec
        part.run["preamble"] = spec
        part.mapped.append(Mapped(shown(spec), "preamble", best[1].coverage, round(min(1.0, 0.5 + best[0] / 2), 3),
                                  "the task's text; no event says it"))  # fmt: skip


def _asked(part: OpenPart) -> bool:
    """Does a user speak to the agent in the events, before it does anything, in most runs?"""
    tests = [test for rule in part.spec["rules"] if rule["emit"] == "observe" for test in rule.get("when", {}).values()]
    users = [found for test in tests if isinstance(test, str) and (found := part_of(test)) is not None]
    heard = sum(text is not None for text in part.heard)
    return any(of is Part.USER for of, _ in users) and heard >= 0.5 * len(part.heard)


def _said(runs: Sequence[SeenRun], column: Values) -> bool:
    """Do the first events hold the text already, in half of the runs?"""
    here = [(run, text[:80]) for run, text in zip(runs, column.texts, strict=True) if text]
    said = sum(
        any(probe in part for event in run.events[:4] for part in _strings(event)) or probe in run.text[:4000]
        for run, probe in here
    )
    return bool(here) and said >= 0.5 * len(here)


def _strings(value: Any, depth: int = 0) -> list[str]:
    if isinstance(value, str):
        return [value]
    if depth > 6 or not isinstance(value, dict | list):
        return []
    inner = value.values() if isinstance(value, dict) else value[:50]
    return [text for one in inner for text in _strings(one, depth + 1)]


def labels_of(part: OpenPart) -> None:
    """Which step was the mistake, and whose, as attribution sets say it."""
    labels: dict[str, Any] = {}
    for column in part.columns if part.names else ():
        here = [value for value in column.values if value is not MISSING and value is not None]
        if column.near != "run" or not here or affinity(column.name, Meaning.MISTAKE) < 0.9:
            continue
        spoken = set(column.name.lower().replace(".", "_").split("_"))
        if "step" in spoken and all(str(value).lstrip("-").isdigit() for value in here):
            at = [(int(str(v)), len(run.events)) for v, run in zip(column.values, part.runs, strict=True) if v in here]
            if all(-1 <= step <= n for step, n in at):
                labels |= {"mistake_step": column.spec, "step_base": 1 if any(step == n for step, n in at) else 0}
        elif "agent" in spoken and all(isinstance(value, str) for value in here):
            labels["mistake_agent"] = column.spec
    if "mistake_step" in labels:
        part.run["labels"] = labels
        part.mapped.append(Mapped(str(labels["mistake_step"]), "labels", 1.0, 0.8, "named after the decisive mistake"))


def hidden_of(part: OpenPart, spec: Mapping[str, Any]) -> list[str]:
    """Every place of the run, and of the document around it, that no record reads and that names no task, id or group:
    so that no later change of the spec shows to a step what was known only afterwards."""
    base = {**spec, "run": {key: part.run[key] for key in ("preamble",) if key in part.run}, **HEAD}
    try:
        read = [one.place for one in Adapter(base).program.readings.record]
    except AdapterError:
        read = []
    keep: list[tuple[str, Place]] = [("$", place) for place in event_places(spec)]
    names = {"run": "$", "document": "%"}
    runs_at = (
        next((one.steps for one in [Adapter(base).program.container.run.place] if one is not None), ()) if read else ()
    )
    for one in read:
        if one.root == "document" and one.steps[: len(runs_at)] == runs_at:
            keep.append(("$", _plain(one.steps[len(runs_at) :])))
        if one.root in names:
            keep.append((names[one.root], _plain(one.steps)))
    named = {canonical(part.run.get(key)) for key in ("id", "task")} | set(
        map(canonical, part.run.get("groups", {}).values())
    )
    shown = [c for c in part.columns if c.near == "run" and c.place]
    kept = [("$", c.place) for c in shown if canonical(c.spec) in named] + keep
    found: dict[str, None] = {}
    for column in shown:
        for depth in range(1, len(column.place) + 1):
            place = column.place[:depth]
            if place[-1] == JSON or isinstance(place[-1], tuple | int):
                break  # inside a text or a list: that is hidden whole, or not at all
            if not any(root == "$" and _meets(place, other) for root, other in kept):
                found[spelled("$", place)] = None
                break
    return list(found)[:MOST_HIDDEN]


def _plain(steps: Sequence[Any]) -> Place:
    place: list[Any] = [step[1] if step[0] == "name" else None for step in steps]
    return tuple(place)


def _meets(place: Place, other: Place) -> bool:
    """Is one of the places the other, or in it? None stands for any step."""
    return all(a is None or b is None or a == b for a, b in zip(place, other, strict=False))


def strangers_of(part: OpenPart) -> None:
    """Files among the samples that hold no run of this format."""
    found = part.seen.strangers
    if found:
        files = len({run.file for run in part.runs}) + len(found)
        shown = "; ".join(f"{path} ({why.rpartition(': ')[2][:80]})" for path, why in found[:3])
        part.notes.append(f"{len(found)} of {files} files hold no run of this format and are left out: {shown}")
