"""What a spec says of whole runs: id, task, groups, preamble, outcome, labels, what is hidden. Each by candidates,
evidence and a probability (`run_fields`); what two readings share alike is asked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.proposal import Asker, Choice, LeftOut, Mapped, Option
from prefixguard.induce.search.beside import columns_beside
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.raw_places import JSON, spelled
from prefixguard.induce.search.run_columns import columns_of, heard_columns, heard_first
from prefixguard.induce.search.run_fields import NEAR, SURE, TAKEN, Keys, Weighed, is_prose
from prefixguard.induce.search.run_outcomes import outcomes_of
from prefixguard.induce.search.run_rest import OpenPart, hidden_of, labels_of, preamble_of, shown, strangers_of
from prefixguard.induce.search.run_tasks import tasks_of
from prefixguard.induce.search.seen_runs import HEAD, Values, read_value, see_runs
from prefixguard.induce.search.told_text import text_columns
from prefixguard.lexicon import Meaning, affinity
from prefixguard.stepview import MISSING, Adapter, canonical


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
    columns = [column for column in columns if column.near != "end"]  # of use as a key alone
    part = OpenPart(
        spec, seen, columns, known_of(hints), hints.get("success"), "labels" in hints, evidence.names, ask
    )  # fmt: skip
    part.heard = heard_first(seen.runs, spec)
    part.columns += heard_columns(seen.runs, part.heard)
    task = _task(part)
    outcome = _outcome(part, task)
    if task is not None and outcome is not None and task.column is outcome.column and "task" not in part.known:
        task = _task(part, [outcome.column.spec])
    if task is None and outcome is not None and outcome.column.near == "list" and "task" not in part.known:
        key = _given(part, outcome.column.spec["of"])
        task = Weighed(key.spec, key.texts, 0.0, "the outcomes are listed by it", key, TAKEN)
    if task is not None:
        part.run["task"] = task.spec
        share = sum(key is not None for key in task.says) / len(part.runs)
        part.mapped.append(Mapped(shown(task.spec), "task", share, round(task.confidence, 3), task.why))
    elif "task" not in part.known:
        part.notes.append(
            "No task id was found: runs are split as if each had a task of its own. Use --hint task=PATH."
        )
    _names(part, task)
    preamble_of(part, outcome)
    labels_of(part)
    part.run.update(part.known)
    rules, waived = _closing(part, outcome)
    hidden = hidden_of(part, spec)
    strangers_of(part)
    return RunPart(
        {key: part.run[key] for key in _ORDER if key in part.run},
        tuple(hidden), waived, rules, tuple(part.mapped),
        tuple(LeftOut(path, "read by no record; not known to be there while a run goes on") for path in hidden),
        tuple(part.choices), tuple(part.notes), _cut(spec, outcome),
    )  # fmt: skip


#: Probability that samples in which no outcome is found have none.
NO_OUTCOME = 0.4
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


def _decide(
    part: OpenPart, name: str, found: Sequence[Weighed], options: Sequence[Option], none: str | None, most: float = 1.0
) -> int | None:
    """Which of the readings is taken; None: none of them. Asked where the best is not sure. most: probability that
    none of them is right, at most."""
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
        nothing = min(most, max(0.0, 1.0 - sum(one.confidence for one in found)))
        shown.append(Option("none of these", None, round(nothing, 3), none))
        taken = 0 if best.confidence >= TAKEN else len(near)
    rule = f"the likeliest, from a probability of {TAKEN:g} on; the evidence stands beside each"
    choice = Choice(name, tuple(shown), taken, rule)
    answer = part.ask(choice)
    answer = answer if 0 <= answer < len(shown) else taken
    part.choices.append(replace(choice, taken=answer))
    return None if answer == len(near) else near[answer]


# --- task, id, groups


def _task(part: OpenPart, refused: Sequence[Any] = ()) -> Weighed | None:
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


def _given(part: OpenPart, spec: Any) -> Values:
    """A column for a value that a person named."""
    known = next((column for column in part.columns if column.spec == spec), None)
    if known is not None:
        return known
    try:
        values = read_value(spec, part.runs)
    except AdapterError:
        values = (MISSING,) * len(part.runs)
    return Values(spec, spec if isinstance(spec, str) else "", values, "run")


def _names(part: OpenPart, task: Weighed | None) -> None:
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
            if named < 0.4 and part.names and len(column.place) == 1 and re.search("(?i)id$", column.name):
                named = 0.4  # uid, sid, trialId: one value a run
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
        part.mapped.append(Mapped(shown(best[1].spec), "id", 1.0, round(min(1.0, best[0]), 3), "one value a run"))


# --- outcome


def _outcome(part: OpenPart, task: Weighed | None) -> Weighed | None:
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
            part.notes.append(f"The hint outcome={shown(of)} was not followed: {_why_not(columns[0], part.success)}")
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
    taken = _decide(part, "outcome", found, options, none, NO_OUTCOME)
    if taken is None:
        part.notes.append(
            "No outcome was found in the runs, their events or the files beside them, so every run is of unknown "
            "outcome. Bring outcomes with --labels, or name the place with --hint outcome=PATH."
        )
        if not any(choice.field == "outcome" for choice in part.choices):
            nothing = Option("none of these", None, NO_OUTCOME, "no place of the samples reads like an outcome")
            part.choices.append(Choice("outcome", (nothing,), 0, "most samples tell somewhere how runs ended"))
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


def _compiles(part: OpenPart, one: Weighed) -> bool:
    """Does the interpreter take it beside the records of the candidate: does no record read what tells the outcome?"""
    return _taken(part, one, (), ()) or _taken(part, one, *_closing(part, one))


def _taken(part: OpenPart, one: Weighed, rules: Sequence[Any], waived: Sequence[Any]) -> bool:
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
    of = of["first"][0] if "first" in of else of
    cuts = [*(before if isinstance(before, list) else [before]), of.get("json", of)["re"]]
    return {"events": {**events, "split": {**events["split"], "cut": cuts}}}


def _closing(part: OpenPart, outcome: Weighed | None) -> tuple[tuple[dict[str, Any], ...], tuple[dict[str, str], ...]]:
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
    path = column.spec if isinstance(column.spec, str) else column.spec.get("text", column.spec.get("json"))
    events = part.spec["events"]
    is_open = isinstance(events, dict) and "decode" in events  # then a place inside JSON is one of the event
    if not isinstance(path, str) or (JSON in column.place and not is_open):
        return (), ()
    place = tuple(step for step in column.place if step != JSON)
    rule = {"when": {spelled("@", place): {"present": True}}, "emit": "skip", "comment": "tells the outcome"}
    return (rule,), (
        {"path": path, "reason": "the events that the outcome is read from are skipped by the first rule"},
    )
