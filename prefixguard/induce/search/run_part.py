"""What a spec says of whole runs: id, task, groups, preamble, outcome, labels, what is hidden. Each by candidates,
evidence and a probability (`run_fields`); what two readings share alike is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.proposal import Asker, Choice, LeftOut, Mapped, Option
from prefixguard.induce.search.beside import columns_beside
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.run_fields import NEAR, SURE, TAKEN, Keys, Weighed, is_prose, outcomes_of, tasks_of
from prefixguard.induce.search.seen_runs import (
    HEAD,
    JSON,
    Place,
    Seen,
    SeenRun,
    Values,
    columns_of,
    event_places,
    heard_columns,
    heard_first,
    read_value,
    see_runs,
    spelled,
)  # fmt: skip
from prefixguard.induce.search.told_text import text_columns
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING, Adapter, canonical

#: Hidden places of one spec.
MOST_HIDDEN = 200


@dataclass(frozen=True, slots=True)
class RunPart:
    """Fragments for the spec: run, hidden, waived; rules that go before the others (events that tell the outcome or
    come after the end are skipped); and what a person should know. extra: other parts of the spec that take the place
    of those it has, such as events of text with what tells the outcome cut out."""

    run: Mapping[str, Any]
    hidden: tuple[Any, ...] = ()
    waived: tuple[Mapping[str, str], ...] = ()
    rules_before: tuple[Mapping[str, Any], ...] = ()
    mapped: tuple[Mapped, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    choices: tuple[Choice, ...] = ()
    notes: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _Part:
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


def run_part(candidate: Candidate, evidence: Evidence, *, hints: Mapping[str, str], ask: Asker) -> RunPart:
    """The run part for the runs that the candidate's container finds.

    hints: "run.PART" or PART for the parts of `run` (a path, or a value of the spec as JSON), "success", "labels".
    ask: told what the samples do not decide.
    """
    spec = candidate.spec
    seen = see_runs(spec, evidence.samples)
    if not seen.runs:
        return RunPart({}, notes=("No run was found, so nothing is known of outcomes or tasks.",))
    columns = columns_of(seen.runs, spec)
    columns += [*text_columns(seen.runs), *columns_beside(seen.runs, evidence.samples, columns)]
    part = _Part(
        spec, seen, columns, known_of(hints), hints.get("success"), "labels" in hints, evidence.names, ask
    )  # fmt: skip
    part.heard = heard_first(seen.runs, spec)
    part.columns += heard_columns(seen.runs, part.heard)
    task = _task(part)
    outcome = _outcome(part, task)
    if task is not None and outcome is not None and task.column is outcome.column and "task" not in part.known:
        task = _task(part, [outcome.column.spec])
    if task is not None:
        part.run["task"] = task.spec
        share = sum(key is not None for key in task.says) / len(part.runs)
        part.mapped.append(Mapped(_shown(task.spec), "task", share, round(task.confidence, 3), task.why))
    elif "task" not in part.known:
        part.notes.append(
            "No task id was found: runs are split as if each had a task of its own. Use --hint task=PATH."
        )
    _names(part, task)
    _preamble(part, outcome)
    _labels(part)
    part.run.update(part.known)
    rules, waived = _closing(part, outcome)
    hidden = _hidden(part, spec)
    _strangers(part)
    return RunPart(
        {key: part.run[key] for key in _ORDER if key in part.run},
        tuple(hidden), waived, rules, tuple(part.mapped),
        tuple(LeftOut(path, "read by no record; not known to be there while a run goes on") for path in hidden),
        tuple(part.choices), tuple(part.notes), _cut(spec, outcome),
    )  # fmt: skip


_ORDER = ("id", "task", "groups", "preamble", "outcome", "labels")


def known_of(hints: Mapping[str, str]) -> dict[str, Any]:
    """Parts of `run` that a person gave: as values of the spec. An outcome that is only a place is under "of"."""
    known: dict[str, Any] = {}
    for name, text in hints.items():
        key = name.removeprefix("run.")
        if key in _ORDER and isinstance(text, str):
            value = json.loads(text) if text.lstrip().startswith(("{", "[")) else text
            known[key] = value
    return known


def _shown(spec: Any) -> str:
    return spec if isinstance(spec, str) else canonical(spec)


def _decide(
    part: _Part, name: str, found: Sequence[Weighed], options: Sequence[Option], none: str | None
) -> int | None:
    """Which of the readings is taken; None: none of them. Asked where the best is not sure."""
    if not found:
        return None
    best = found[0]
    near = [i for i, one in enumerate(found[:5]) if i == 0 or one.confidence >= max(NEAR, 0.15 * best.confidence)]
    if best.confidence >= SURE and not best.assumed:
        return 0
    if best.confidence < NEAR or (len(near) == 1 and none is None and not best.assumed):
        return 0 if none is None else None
    shown = [options[i] for i in near]
    taken = 0
    if none is not None:
        nothing = max(0.0, 1.0 - sum(one.confidence for one in found))
        shown.append(Option("none of these", None, round(nothing, 3), none))
        taken = 0 if best.confidence >= TAKEN else len(near)
    rule = f"the likeliest, from a probability of {TAKEN:g} on; the evidence stands beside each"
    choice = Choice(name, tuple(shown), taken, rule)
    answer = part.ask(choice)
    answer = answer if 0 <= answer < len(shown) else taken
    part.choices.append(replace(choice, taken=answer))
    return None if answer == len(near) else near[answer]


# --- task, id, groups


def _task(part: _Part, refused: Sequence[Any] = ()) -> Weighed | None:
    if "task" in part.known:
        values = _given(part, part.known["task"])
        return Weighed(part.known["task"], values.texts, 9.0, "as a person said", values, 1.0)
    found = [
        one
        for one in tasks_of(part.columns, part.runs, part.heard, names=part.names, refused=refused)
        if one.odds > -0.5
    ]
    options = [Option(one.label, one.spec, round(one.confidence, 3), one.why, one.column.example()) for one in found]
    alone = any(len(set(one.says)) == len(one.says) for one in found)
    taken = _decide(part, "task", found, options, None if alone else "every run is then a task of its own")
    return None if taken is None else found[taken]


def _given(part: _Part, spec: Any) -> Values:
    """A column for a value that a person named."""
    known = next((column for column in part.columns if column.spec == spec), None)
    if known is not None:
        return known
    try:
        values = read_value(spec, part.runs)
    except AdapterError:
        values = (MISSING,) * len(part.runs)
    return Values(spec, spec if isinstance(spec, str) else "", values, "run")


def _names(part: _Part, task: Weighed | None) -> None:
    """The id of a run, where a field names it; groups: domain, model, agent, where several runs share one."""
    best: tuple[float, Values] | None = None
    for column in part.columns:
        if (
            column.near not in ("run", "every", "first")
            or len(column.place) > 3
            or column.coverage < 1
            or is_prose(column)
        ):
            continue
        if column.distinct == len(part.runs) > 1 and column.length <= 120 and isinstance(column.spec, str):
            named = affinity(column.name, Meaning.RUN_ID) - 0.05 * len(column.place) if part.names else 0.0
            if any(isinstance(value, int) for value in column.values) or column.spec == "$key":
                continue
            if named >= 0.4 and (best is None or named > best[0]):
                best = named, column
        for meaning, least in ((Meaning.GROUP, 0.9), (Meaning.MODEL, 0.9), (Meaning.AGENT, 0.9)):
            few = 1 < column.distinct <= max(2, 0.3 * len(part.runs)) and column.length <= 60
            late = affinity(column.name, Meaning.OUTCOME) >= 0.5
            if part.names and few and not late and affinity(column.name, meaning) >= least and len(column.place) <= 3:
                if task is None or column.spec != task.spec:
                    part.run.setdefault("groups", {}).setdefault(meaning.value.replace(" ", "_"), column.spec)
                break
    if best is not None:
        part.run["id"] = best[1].spec
        part.mapped.append(Mapped(_shown(best[1].spec), "id", 1.0, round(min(1.0, best[0]), 3), "one value a run"))


# --- outcome


def _outcome(part: _Part, task: Weighed | None) -> Weighed | None:
    given = part.known.get("outcome")
    if isinstance(given, Mapping) and "success" in given:
        return None  # said whole
    keys: Keys | None = task.says if task is not None else None
    if given is not None:
        of = given.get("of", given) if isinstance(given, Mapping) else given
        columns = [replace(_given(part, of), near="run")]
        found = outcomes_of(columns, part.runs, None, names=part.names, success=part.success)
        del part.known["outcome"]
        if not found:
            part.notes.append(f"The hint outcome={_shown(of)} was not followed: {_why_not(columns[0], part.success)}")
            return None
        found = [
            replace(one, confidence=1.0 if len(found) == 1 and not one.assumed else one.confidence) for one in found
        ]
    else:
        found = outcomes_of(part.columns, part.runs, keys, names=part.names, success=part.success)
        found = [one for one in found if _compiles(part, one)][:20]
    none = None if given is not None else "every run is then of unknown outcome, until labels are brought"
    options = [
        Option(
            f"{one.label} ({canonical(one.spec['success'])} is success)",
            one.spec,
            round(one.confidence, 3),
            one.why,
            one.column.example(),
        )
        for one in found
    ]
    if part.has_labels and found and (found[0].confidence < SURE or found[0].assumed):
        part.notes.append("The outcomes are those of the labels that were given; the adapter reads none from the runs.")
        return None
    taken = _decide(part, "outcome", found, options, none)
    if taken is None:
        part.notes.append(
            "No outcome was found in the runs, their events or the files beside them, so every run is of unknown "
            "outcome. Bring outcomes with --labels, or name the place with --hint outcome=PATH."
        )
        if found:
            part.notes.append(f"Nearest to an outcome: {found[0].label} ({found[0].why}); too unsure to be taken.")
        return None
    one = found[taken]
    part.run["outcome"] = one.spec
    won, lost = one.says.count(1), one.says.count(-1)
    told = f"{won} successes, {lost} failures, {len(one.says) - won - lost} unknown"
    part.mapped.append(
        Mapped(one.label, "outcome", (won + lost) / len(one.says), round(one.confidence, 3), one.why)
    )  # fmt: skip
    part.notes.append(f"Outcome from {one.label}: {told} (confidence {one.confidence:.2f}: {one.why}).")
    if not (won and lost):
        part.notes.append("All samples with an outcome ended alike: check which value means success.")
    if one.assumed:
        part.notes.append("Which value means success is a guess. Check it, or say it with --hint success=VALUE.")
    return one


def _why_not(column: Values, success: str | None) -> str:
    seen = sorted({str(value) for value in column.values if value is not None and value is not MISSING})
    if not seen:
        return "no run has a value there."
    shown = ", ".join(repr(one[:40]) for one in seen[:5]) + (", ..." if len(seen) > 5 else "")
    if success is not None:
        return f"no run has {success!r} there; its values are {shown}."
    return (
        f"its values ({shown}) are neither two, nor numbers from 0 to 1, nor words of success and failure. Say which "
        "of them means success: --hint success=VALUE; or bring outcomes with --labels."
    )


def _compiles(part: _Part, one: Weighed) -> bool:
    """Does the interpreter take it beside the records of the candidate: does no record read what tells the outcome?"""
    return _taken(part, one, (), ()) or _taken(part, one, *_closing(part, one))


def _taken(part: _Part, one: Weighed, rules: Sequence[Any], waived: Sequence[Any]) -> bool:
    spec = {**part.spec, **_cut(part.spec, one), "run": {"outcome": one.spec}}
    spec["rules"] = [*rules, *part.spec.get("rules", ())]
    try:
        Adapter({**spec, "waived": [*part.spec.get("waived", ()), *waived]} | HEAD)
    except AdapterError:
        return False
    return True


def _cut(spec: Mapping[str, Any], outcome: Weighed | None) -> dict[str, Any]:
    """The events of text without the line that tells the outcome."""
    events = spec["events"]
    if outcome is None or outcome.column.near != "text" or not (isinstance(events, dict) and "split" in events):
        return {}
    before = events["split"].get("cut", [])
    of = outcome.column.spec
    cuts = [*(before if isinstance(before, list) else [before]), of.get("json", of)["re"]]
    return {"events": {**events, "split": {**events["split"], "cut": cuts}}}


def _closing(part: _Part, outcome: Weighed | None) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, str], ...]]:
    """Rules that skip the events which tell the outcome, and why records may read a field of that name in others: where
    they end the run, or where a record would read it."""
    column = None if outcome is None else outcome.column
    if (
        column is None
        or column.near not in ("last", "once", "first")
        or any(isinstance(s, tuple) for s in column.place)
    ):
        return (), ()
    if column.near != "last" and outcome is not None and _taken(part, outcome, (), ()):
        return (), ()
    path = column.spec if isinstance(column.spec, str) else column.spec["text"]
    rule = {"when": {spelled("@", column.place): {"present": True}}, "emit": "skip", "comment": "tells the outcome"}
    return (rule,), (
        {"path": path, "reason": "the events that the outcome is read from are skipped by the first rule"},
    )


# --- preamble, labels, hidden


def _preamble(part: _Part, outcome: Weighed | None) -> None:
    """The text of the task, where it stands beside the events and no event says it. Only what is called so: a wrong
    one would show the future to the first record."""
    late = (Meaning.AFTER_END, Meaning.HARNESS, Meaning.OUTCOME, Meaning.MISTAKE)
    best: tuple[float, Values] | None = None
    for column in part.columns:
        if column.near != "run" or column.coverage < 0.8 or not is_prose(column) or not part.names:
            continue
        named = affinity(column.name, Meaning.TASK_TEXT) - 0.05 * len(column.place)
        if named < 0.45 or max(affinity(column.name, meaning) for meaning in late) >= 0.6 or _said(part.runs, column):
            continue
        if best is None or named > best[0]:
            best = named, column
    if best is not None:
        spec = best[1].spec
        part.run["preamble"] = spec
        part.mapped.append(Mapped(_shown(spec), "preamble", best[1].coverage, round(min(1.0, 0.5 + best[0] / 2), 3),
                                  "the task's text; no event says it"))  # fmt: skip


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


def _labels(part: _Part) -> None:
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


def _hidden(part: _Part, spec: Mapping[str, Any]) -> list[str]:
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


def _strangers(part: _Part) -> None:
    """Files among the samples that hold no run of this format."""
    found = part.seen.strangers
    if found:
        files = len({run.file for run in part.runs}) + len(found)
        shown = "; ".join(f"{path} ({why.rpartition(': ')[2][:80]})" for path, why in found[:3])
        part.notes.append(f"{len(found)} of {files} files hold no run of this format and are left out: {shown}")
