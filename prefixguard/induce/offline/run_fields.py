"""The `run` section of a spec, and `hidden`, inferred from runs: outcome, task, id, groups, preamble, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.induce.offline.companions import (
    companion_candidates,
    companion_columns,
    find_companions,
)
from prefixguard.induce.offline.outcome import judge_values
from prefixguard.induce.offline.run_beside import Beside
from prefixguard.induce.offline.run_event_places import event_columns, event_field_candidates
from prefixguard.induce.offline.run_events import closing_events, event_candidates, events_after_end
from prefixguard.induce.offline.run_hidden import hidden_places
from prefixguard.induce.offline.run_hints import as_spec, getter_of
from prefixguard.induce.offline.run_labels import find_labels
from prefixguard.induce.offline.run_outcome import (
    LEAST_CONFIDENCE,
    OutcomeCandidate,
    column_candidates,
    folder_question,
    from_folder,
    rivals,
    weigh,
)
from prefixguard.induce.offline.run_places import Column, Places, RunView, collect, sampled
from prefixguard.induce.offline.run_preamble import find_groups, find_id, find_preamble
from prefixguard.induce.offline.run_tables import table_notes
from prefixguard.induce.offline.run_task import TaskCandidate, find_task
from prefixguard.induce.proposal import Asker, Choice, LeftOut, Mapped, Option
from prefixguard.induce.samples import Samples
from prefixguard.stepview import MISSING, Scope, canonical, parse_path, walk

#: Task candidates this near to the best, with another partition of the runs, are a choice for a person.
NEAR = 0.08
#: An outcome below this is a guess: it is asked about, and said so.
SURE = 0.5
NOTHING_TELLS = (
    "No outcome was found in the runs, their events or the files beside them, so every run is of unknown outcome. "
    "Bring outcomes with --labels, or name the place with --hint outcome=PATH."
)


@dataclass(frozen=True)
class RunFields:
    """What the runs say outside their steps.

    run: the spec's `run` section. hidden: the spec's `hidden`. skip_events: conditions (`when`) of events that carry
    the outcome or come after the end: a rule before all others must skip them. cut: regular expressions of what tells
    the outcome inside texts that records read. waived: for the spec's `waived`, where a rule reads a field of other
    events under the name that the outcome has in those of `skip_events`. mapped, left_out, choices, notes: for the
    report. outcomes: of the views handed in, 1, -1 or 0 (unknown), None where there is no outcome. tasks: likewise.
    """

    run: dict[str, Any]
    hidden: list[Any]
    skip_events: list[dict[str, Any]] = field(default_factory=list)
    cut: tuple[str, ...] = ()
    waived: list[dict[str, str]] = field(default_factory=list)
    mapped: tuple[Mapped, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()
    outcomes: tuple[int, ...] | None = None
    tasks: tuple[str | None, ...] | None = None


def infer_run_fields(
    views: Sequence[RunView],
    samples: Samples,
    *,
    runs_path: str | None,
    events_paths: Sequence[str],
    hints: Mapping[str, str],
    ask: Asker,
) -> RunFields:
    """Everything that a spec says of whole runs.

    runs_path: the container's `runs` (None: the document is the run). events_paths: where the events are; what lies
    there is not run-level. hints: "outcome", "task", "id": paths that a person named, or values of the spec language as
    JSON; "success": the value of the outcome that is one; "labels": a file of labels that is there, so that nobody is
    asked about a guess. ask: is shown what the samples
    do not decide; the most confident option stands first.
    """
    views = sampled(views)
    if not views:
        return RunFields({}, [], notes=("No run was found, so nothing is known of outcomes or tasks.",))
    places = collect(views, runs_path, events_paths)
    choices: list[Choice] = []
    notes: list[str] = []
    mapped: list[Mapped] = []
    run: dict[str, Any] = {}

    said = event_columns(views, places)
    more = [*companion_columns(find_companions(views, samples, places), len(places.columns)), *said]
    task = _task(views, places, more, hints, ask, choices)
    besides = find_companions(views, samples, places, task.spec if task is not None else None)
    outcome, others = _outcome(views, besides, said, places, task, hints, ask, choices, notes)
    if task is not None and outcome is not None and task.spec == outcome.outcome["of"] and "task" not in hints:
        again = find_task(views, places, [task.spec], more)
        if not outcome.label.startswith("the list") and again:
            task = again[0]

    of_file = task is None or (isinstance(task.spec, dict) and "file" in task.spec)
    if of_file and "task" not in hints and outcome is not None and outcome.outcome["of"] == {"file": "stem"}:
        column = next((one for one in places.columns if one.spec == {"file": "stem"}), None)
        if column is not None:
            why = "the outcome is listed under the file's name"
            task = TaskCandidate(column.spec, column.texts, 0.5, why, column.example())

    run_id = _id(places, hints, outcome)
    if run_id is not None:
        run["id"] = run_id
        mapped.append(Mapped(_shown(run_id), "id", 1.0, 0.9, "one value a run"))
    if task is not None:
        run["task"] = task.spec
        mapped.append(Mapped(_shown(task.spec), "task", task.coverage, task.confidence, task.why))
    else:
        notes.append("No task id was found: runs are split as if each had a task of its own. Use --hint task=PATH.")
    groups = find_groups(views, places, task.spec if task is not None else None)
    if groups:
        run["groups"] = groups
        mapped.extend(Mapped(_shown(spec), f"groups.{name}", 1.0, 0.7, "for splits") for name, spec in groups.items())
    preamble = find_preamble(views, places, outcome)
    if preamble is not None:
        run["preamble"] = preamble.spec
        mapped.append(Mapped(_shown(preamble.spec), "preamble", preamble.coverage, preamble.confidence, preamble.why))
    if outcome is not None:
        run["outcome"] = outcome.outcome
        told = sum(1 for side in outcome.sides if side) / len(views)
        mapped.append(Mapped(outcome.label, "outcome", told, outcome.confidence, outcome.why))
        run.update({name: spec for name, spec in outcome.needs if name not in run})
    labels = find_labels(views, places)
    if labels is not None:
        run["labels"] = labels.spec
        mapped.append(Mapped(labels.label, "labels", labels.coverage, labels.confidence, labels.why))

    keep = [preamble.spec] if preamble is not None else []
    hidden = hidden_places(places, keep, [run_id, *([task.spec] if task is not None else [])])
    skip = list(outcome.skip) if outcome is not None else []
    skip.extend(one for one in events_after_end(views) if one not in skip)
    notes.extend(_remarks(outcome, others, views, hints))
    if (outcome is None or outcome.confidence < SURE) and not {"labels", "outcome"} & hints.keys():
        tables = table_notes(views, samples, places, run_id, hints.get("success"))
        if tables:
            notes = [note for note in notes if note is not NOTHING_TELLS]
        notes.extend(tables)
    return RunFields(
        run,
        [path for path, _ in hidden],
        skip,
        outcome.cut if outcome is not None else (),
        _waivers(outcome),
        tuple(mapped),
        tuple(LeftOut(path, why) for path, why in hidden),
        tuple(choices),
        tuple(notes),
        outcome.sides if outcome is not None else None,
        task.keys if task is not None else None,
    )


def _waivers(outcome: OutcomeCandidate | None) -> list[dict[str, str]]:
    if outcome is None or not outcome.skip:
        return []
    of = outcome.outcome["of"]
    path = of["text"] if isinstance(of, dict) and "text" in of else of
    return [{"path": path, "reason": "the events that the outcome is read from are skipped by the first rule"}]


def _values(views: Sequence[RunView], path: str) -> tuple[Any, ...]:
    """What a path finds in every run."""
    if path == "$key":
        return tuple(MISSING if view.key is None else view.key for view in views)
    root, steps = parse_path(path, "hint")
    inside = walk(steps)
    return tuple(inside(view.document if root == "%" else view.run) for view in views)


def _task(
    views: Sequence[RunView],
    places: Places,
    more: Sequence[Column],
    hints: Mapping[str, str],
    ask: Asker,
    choices: list[Choice],
) -> TaskCandidate | None:
    if "task" in hints:
        spec = as_spec(hints["task"], "task")
        column = Column(spec, hints["task"], _read(views, places, more, spec), 0, "run")
        return TaskCandidate(spec, column.texts, 1.0, "named by a hint", column.example())
    found = find_task(views, places, [], more)
    if not found:
        return None
    near = [found[0]]
    for other in found[1:4]:
        if found[0].confidence - other.confidence <= NEAR and not _same_partition(found[0].keys, other.keys):
            near.append(other)
    if len(near) == 1:
        return found[0]
    options = tuple(Option(_shown(one.spec), one.spec, one.confidence, one.why, one.example) for one in near)
    return near[_asked(ask, Choice("task", options, 0, "the name first, then how it repeats over runs"), choices)]


def _same_partition(a: Sequence[str | None], b: Sequence[str | None]) -> bool:
    pairs = set(zip(a, b, strict=True))
    return len(pairs) == len(set(a)) == len(set(b))


def _asked(ask: Asker, choice: Choice, choices: list[Choice]) -> int:
    taken = ask(choice)
    taken = taken if 0 <= taken < len(choice.options) else choice.taken
    choices.append(replace(choice, taken=taken))
    return taken


def _outcome(
    views: Sequence[RunView],
    besides: Sequence[Beside],
    said: Sequence[Column],
    places: Places,
    task: TaskCandidate | None,
    hints: Mapping[str, str],
    ask: Asker,
    choices: list[Choice],
    notes: list[str],
) -> tuple[OutcomeCandidate | None, list[OutcomeCandidate]]:
    success = hints.get("success")
    if "outcome" in hints:
        columns = [*companion_columns(besides, len(places.columns)), *said]
        return _hinted(views, places, columns, hints, ask, choices, notes), []
    keys = [
        str(name) for view in views[:5] for event in view.events[:5] if isinstance(event, Mapping) for name in event
    ]
    candidates = column_candidates(places, success, keys)
    candidates.extend(companion_candidates(besides, places, success))
    candidates.extend(event_candidates(views, places, success))
    candidates.extend(event_field_candidates(said, success))
    if success is not None:
        # a list of solved runs has no values of its own: it cannot be what the person means
        candidates = [one for one in candidates if one.is_two_sided or 1 in one.sides]
    ranked = weigh(candidates, views, task.keys if task is not None else None)
    able = [one for one in ranked if one.confidence >= LEAST_CONFIDENCE]
    if "labels" in hints and able and (able[0].confidence < SURE or able[0].assumed):
        return None, ranked
    if not able:
        return _folders(places, task, hints, ask, choices, notes), ranked
    near = rivals(able)
    near += [one for one in ranked if one.assumed and one.label == able[0].label and one not in near]
    unsure = able[0].confidence < SURE or able[0].assumed
    if len(near) == 1 and not unsure:
        return able[0], ranked
    options = tuple(
        Option(
            f"{one.label} ({one.outcome['success']!r} is success)", one.outcome, one.confidence, one.why, one.example
        )
        for one in near
    )
    if unsure:
        why = "every run is then of unknown outcome, until labels are brought"
        options += (Option("none of these", None, 0.0, why),)
    rule = "the name, the shape of the values, both sides occur, outside the events; then the order of the places"
    taken = _asked(ask, Choice("outcome", options, 0, rule), choices)
    if taken == len(near):
        return None, []
    return near[taken], [near[taken], *(one for one in ranked if one is not near[taken])]


def _folders(
    places: Places,
    task: TaskCandidate | None,
    hints: Mapping[str, str],
    ask: Asker,
    choices: list[Choice],
    notes: list[str],
) -> OutcomeCandidate | None:
    """Two folders with words that nobody knows: asked about, and taken for nothing where nobody answers."""
    found = folder_question(places, [task.spec] if task is not None else [])
    if found is None or "labels" in hints:
        return None
    column, forms = found
    one, other = sorted(set(filter(None, column.texts)))
    n, m = column.texts.count(one), column.texts.count(other)
    options = (
        Option("none of these", None, 0.2, "folders may divide the runs by anything"),
        *(
            Option(f"the folder ({form.success!r} is success)", form.spec(column.spec), 0.15, form.why, one)
            for form in forms
        ),
    )
    rule = "two folders without a known word are no outcome unless a person says so"
    taken = _asked(ask, Choice("outcome", options, 0, rule), choices)
    if taken:
        return from_folder(column, forms[taken - 1])
    notes.append(
        f"All runs lie in one of two folders, {one!r} ({n}) and {other!r} ({m}). If that is how they ended, say so: "
        f"--hint 'outcome={{\"file\":\"parent\"}}' --hint 'success={one}' (or {other!r})."
    )
    return None


def _read(views: Sequence[RunView], places: Places, more: Sequence[Column], spec: Any) -> tuple[Any, ...]:
    """What every run has at a path, or under a value of the spec that is among the known columns."""
    if isinstance(spec, str):
        return _values(views, spec)
    known = next((column for column in (*places.columns, *more) if column.spec == spec), None)
    if known is not None:
        return known.values
    get = getter_of(spec)
    values = []
    for view in views:
        scope = Scope()
        scope.run, scope.document, scope.key, scope.position = view.run, view.document, view.key, view.position
        scope.file = view.file
        values.append(get(scope))
    return tuple(values)


def _hinted(
    views: Sequence[RunView],
    places: Places,
    more: Sequence[Column],
    hints: Mapping[str, str],
    ask: Asker,
    choices: list[Choice],
    notes: list[str],
) -> OutcomeCandidate | None:
    path, success = hints["outcome"], hints.get("success")
    of: Any = as_spec(path, "outcome")
    values = _read(views, places, more, of)
    if any(isinstance(value, list) for value in values):
        of = {"text": path}
        values = tuple(
            canonical(value[0])
            if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], str)
            else value[0]
            if isinstance(value, list) and len(value) == 1
            else MISSING
            if isinstance(value, list)
            else value
            for value in values
        )
    forms = judge_values(values, path if isinstance(of, str) else "", success=success, named=True)
    if not forms:
        notes.append(f"The hint outcome={path} was not followed: {_why_not(values, success)}")
        return None
    taken = 0
    if forms[0].assumed:
        options = tuple(
            Option(f"{path} ({form.success!r} is success)", form.spec(of), form.confidence, form.why) for form in forms
        )
        taken = _asked(ask, Choice("outcome", options, 0, "the first by the alphabet"), choices)
        notes.append(
            f"Which value of {path} means success is a guess: {forms[taken].success!r} is taken. Say it with --hint "
            "success=VALUE."
        )
    form = forms[taken]
    sides = tuple(form.side(value) for value in values)
    skip = tuple(closing_events(views, places, path))
    confidence = 0.6 if form.assumed else 1.0
    return OutcomeCandidate(
        form.spec(of), sides, confidence, f"named by a hint; {form.why}", path, skip=skip, assumed=form.assumed
    )


def _why_not(values: Sequence[Any], success: str | None) -> str:
    seen = sorted({str(value) for value in values if value is not None and value is not MISSING})
    if not seen:
        return "no run has a value there."
    shown = ", ".join(repr(one[:40]) for one in seen[:5]) + (", ..." if len(seen) > 5 else "")
    if success is not None:
        return f"no run has {success!r} there; its values are {shown}."
    return (
        f"its values ({shown}) are neither two, nor numbers from 0 to 1, nor words of success and failure. Say which "
        f"of them means success: --hint success=VALUE; or bring outcomes with --labels."
    )


def _id(places: Places, hints: Mapping[str, str], outcome: OutcomeCandidate | None) -> Any:
    if "id" in hints:
        return as_spec(hints["id"], "id")
    if outcome is not None:
        needed = dict(outcome.needs).get("id")
        if needed is not None:
            return needed
    return find_id(places)


def _remarks(
    outcome: OutcomeCandidate | None,
    ranked: Sequence[OutcomeCandidate],
    views: Sequence[RunView],
    hints: Mapping[str, str],
) -> list[str]:
    notes = []
    if outcome is None and "labels" in hints:
        notes.append("The outcomes are those of the labels that were given; the adapter reads none from the runs.")
        return notes
    if outcome is None and "outcome" in hints:
        return notes  # why the hint was not followed is said already
    if outcome is None:
        notes.append(NOTHING_TELLS)
        if ranked:
            best = ranked[0]
            notes.append(f"Nearest to an outcome: {best.label} ({best.why}); too unsure to be taken.")
        return notes
    won, lost = sum(1 for s in outcome.sides if s > 0), sum(1 for s in outcome.sides if s < 0)
    notes.append(
        f"Outcome from {outcome.label}: {won} successes, {lost} failures, {len(views) - won - lost} unknown "
        f"(confidence {outcome.confidence:.2f}: {outcome.why})."
    )
    if not (won and lost):
        notes.append("All samples with an outcome ended alike: check which value means success.")
    if outcome.assumed and "outcome" not in hints:
        notes.append("One side of the outcome is a guess. Check it, or say it with --hint success=VALUE.")
    elif outcome.confidence < SURE:
        notes.append("The outcome is a guess. Check it, or name the place with --hint outcome=PATH.")
    return notes


def _shown(spec: Any) -> str:
    return spec if isinstance(spec, str) else canonical(spec)


__all__ = ["RunFields", "RunView", "infer_run_fields"]
