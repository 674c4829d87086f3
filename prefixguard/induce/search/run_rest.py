"""What is said of runs besides their task and outcome: ids and groups, the text before the first event, labels of
mistakes, and what is hidden."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefixguard.induce.proposal import Asker, Choice, LeftOut, Mapped
from prefixguard.induce.search.raw_places import JSON, Place, event_places, spelled
from prefixguard.induce.search.run_fields import Weighed, shown
from prefixguard.induce.search.run_tasks import begun_alike
from prefixguard.induce.search.seen_runs import HEAD, Keys, SeenRun, Values
from prefixguard.lexicon import Meaning, affinity, words
from prefixguard.stepview import Adapter, canonical

#: Hidden places of one spec.
MOST_HIDDEN = 200


@dataclass(slots=True)
class RunPart:
    """Fragments for the spec, and what they are made from.

    spec, runs: of the candidate. columns: what the runs hold. heard: what each run's agent was told before it did
    anything. run, hidden, waived: parts of the spec. rules_before: rules that go before the others (events that tell
    the outcome or come after the end are skipped). extra: other parts of the spec that take the place of those it has,
    such as events of text with what tells the outcome cut out. The others: what a person should know.
    """

    spec: Mapping[str, Any]
    runs: Sequence[SeenRun]
    ask: Asker
    columns: list[Values] = field(default_factory=list)
    heard: Keys = ()
    run: dict[str, Any] = field(default_factory=dict)
    hidden: list[str] = field(default_factory=list)
    waived: list[Mapping[str, str]] = field(default_factory=list)
    rules_before: list[Mapping[str, Any]] = field(default_factory=list)
    mapped: list[Mapped] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)


def names_of(part: RunPart, task: Weighed | None) -> None:
    """The id of a run, where a field names it; groups: domain, model, agent, where several runs share one."""
    n = len(part.runs)
    best: tuple[float, Values | None] = 0.0, None
    for column in part.columns:
        if column.near not in ("run", "every", "first") or len(column.place) > 3 or column.coverage < 1:
            continue
        if column.is_prose or column.spec == "$key" or not isinstance(column.spec, str):
            continue
        if column.distinct == n > 1 and column.length <= 120 and all(isinstance(v, str) for v in column.values):
            named = affinity(column.name, Meaning.RUN_ID) - 0.05 * len(column.place)
            if len(column.place) == 1 and column.name.lower().endswith("id"):
                named = max(named, 0.4)  # uid, sid, trialId: one value a run
            best = max(best, (named, column), key=lambda one: one[0])
        few = 1 < column.distinct <= max(2, 0.3 * n) and column.length <= 60
        if few and affinity(column.name, Meaning.OUTCOME) < 0.5 and (task is None or column.spec != task.spec):
            for meaning in (Meaning.GROUP, Meaning.MODEL, Meaning.AGENT):
                if affinity(column.name, meaning) >= 0.9:
                    part.run.setdefault("groups", {}).setdefault(meaning.value, column.spec)
                    break
    named, found = best
    if found is not None and named >= 0.4:
        part.run["id"] = found.spec
        part.mapped.append(Mapped(shown(found.spec), "id", 1.0, round(min(1.0, named), 3), "one value a run"))


def preamble_of(part: RunPart) -> None:
    """The text of the task, where it stands beside the events, which do not say it, and nobody speaks to the agent
    first. Only what is called so, or the title of a text: a wrong one would show the future to the first record."""
    late = (Meaning.AFTER_END, Meaning.HARNESS, Meaning.OUTCOME, Meaning.MISTAKE)
    best: tuple[float, Values | None] = 0.0, None
    is_asked = sum(text is not None for text in part.heard) >= 0.5 * len(part.heard)
    first = [canonical([*run.events[:4], heard]) for run, heard in zip(part.runs, part.heard, strict=True)]
    for column in part.columns:
        is_title = column.spec == "$.title" and any(run.text for run in part.runs)
        if column.near != "run" or column.coverage < 0.8 or column.distinct < 2 or not column.is_prose:
            continue
        if (is_asked and not is_title) or max(affinity(column.name, meaning) for meaning in late) >= 0.6:
            continue
        said = [canonical(text[:80])[1:-1] in begun for text, begun in zip(column.texts, first, strict=True) if text]
        named = 0.45 if is_title else affinity(column.name, Meaning.TASK_TEXT) - 0.05 * len(column.place)
        if sum(said) < 0.5 * len(said):
            best = max(best, (named, begun_alike(column) if is_title else column), key=lambda one: one[0])
    named, found = best
    if found is not None and named >= 0.45:
        part.run["preamble"] = found.spec
        why = "the task's text; no event says it"
        part.mapped.append(Mapped(shown(found.spec), "preamble", found.coverage, round(0.5 + named / 2, 3), why))


def labels_of(part: RunPart) -> None:
    """Which step was the mistake, and whose, as attribution sets say it."""
    labels: dict[str, Any] = {}
    for column in part.columns:
        if column.near != "run" or affinity(column.name, Meaning.MISTAKE) < 0.9:
            continue
        spoken = words(column.name)
        if "step" in spoken and column.there and all(str(v).lstrip("-").isdigit() for v in column.there):
            at = [(int(str(v)), len(run.events)) for v, run in zip(column.values, part.runs, strict=True)
                  if v in column.there]  # fmt: skip
            if all(-1 <= step <= n for step, n in at):
                labels |= {"mistake_step": column.spec, "step_base": int(any(step == n for step, n in at))}
        elif "agent" in spoken and column.there and all(isinstance(v, str) for v in column.there):
            labels["mistake_agent"] = column.spec
    if "mistake_step" in labels:
        part.run["labels"] = labels
        part.mapped.append(Mapped(str(labels["mistake_step"]), "labels", 1.0, 0.8, "named after the decisive mistake"))


def hidden_of(part: RunPart) -> list[str]:
    """Every place of the run that no record reads and that names no task, id or group: so that no later change of the
    spec shows to a step what was known only afterwards."""
    run = {key: part.run[key] for key in ("preamble",) if key in part.run}
    program = Adapter({**part.spec, "run": run, **HEAD}).program
    above = program.container.run.place.steps if program.container.run.place is not None else ()
    kept = [*event_places(part.spec)]
    for one in (reading.place for reading in program.readings.record):
        if one.root == "run":
            kept.append(_names(one.steps))
        elif one.root == "document" and one.steps[: len(above)] == above:
            kept.append(_names(one.steps[len(above) :]))
    ids = (part.run.get("id"), part.run.get("task"), *part.run.get("groups", {}).values())
    named = set(map(canonical, ids))
    columns = [column for column in part.columns if column.near == "run" and column.place]
    kept += [column.place for column in columns if canonical(column.spec) in named]
    found: dict[str, None] = {}
    for column in columns:
        for depth in range(1, len(column.place) + 1):
            place = column.place[:depth]
            if place[-1] == JSON or isinstance(place[-1], tuple | int):
                break  # inside a text or a list: that is hidden whole, or not at all
            if not any(_meets(place, other) for other in kept):
                found[spelled("$", place)] = None
                break
    return list(found)[:MOST_HIDDEN]


def _names(steps: Sequence[Any]) -> Place:
    return tuple(step[1] if step[0] == "name" else None for step in steps)


def _meets(place: Place, other: Place) -> bool:
    """Is one of the places the other, or in it? None stands for any step."""
    return all(a is None or b is None or a == b for a, b in zip(place, other, strict=False))
