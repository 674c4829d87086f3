"""What a spec says of whole runs: id, task, groups, preamble, outcome, labels, what is hidden. Each by candidates,
evidence and a probability (`run_fields`); what two readings share alike is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from prefixguard.errors import AdapterError
from prefixguard.induce.proposal import Asker, Choice, LeftOut, Mapped, Option
from prefixguard.induce.search.beside import columns_beside
from prefixguard.induce.search.evidence import Candidate, Evidence
from prefixguard.induce.search.raw_places import JSON, spelled
from prefixguard.induce.search.run_columns import columns_of, heard_columns, heard_first
from prefixguard.induce.search.run_fields import NEAR, SURE, TAKEN, Weighed, shown
from prefixguard.induce.search.run_outcomes import outcomes_of
from prefixguard.induce.search.run_rest import RunPart, hidden_of, labels_of, names_of, preamble_of
from prefixguard.induce.search.run_tasks import tasks_of
from prefixguard.induce.search.seen_runs import HEAD, Values, read_value, see_runs
from prefixguard.induce.search.told_text import text_columns, text_keys
from prefixguard.stepview import MISSING, Adapter, canonical

#: Probability that samples in which no outcome is found have none.
NO_OUTCOME = 0.4
_ORDER = ("id", "task", "groups", "preamble", "outcome", "labels")


def run_part(candidate: Candidate, evidence: Evidence, *, hints: Mapping[str, str], ask: Asker) -> RunPart:
    """The run part for the runs that the candidate's container finds.

    hints: "run.PART" or PART for the parts of `run` (a path, or a value of the spec as JSON), "success", "labels".
    ask: told what the samples do not decide.
    """
    spec = candidate.spec
    runs, strangers = see_runs(spec, evidence.samples)
    part = RunPart(spec, runs, ask)
    if not runs:
        part.notes.append("No run was found, so nothing is known of outcomes or tasks.")
        return part
    part.columns = columns_of(runs, spec)
    part.columns += [*text_columns(runs), *text_keys(runs)]
    part.columns += columns_beside(runs, evidence.samples, part.columns)
    part.columns = [column for column in part.columns if column.near != "end"]  # of use as a key alone
    part.heard = heard_first(runs, spec)
    part.columns += heard_columns(runs, part.heard)
    known = {key: value for name, value in hints.items() if (key := name.removeprefix("run.")) in _ORDER}
    known = {key: json.loads(said) if said.lstrip().startswith(("{", "[")) else said for key, said in known.items()}
    task = _task(part, known.get("task"))
    outcome = _outcome(part, task, known.pop("outcome", None), hints)
    if task is None and outcome is not None and outcome.column.near == "list":
        listed = _given(part, outcome.column.spec["of"])
        task = Weighed(listed.spec, listed.texts, 0.0, "the outcomes are listed by it", listed, TAKEN)
    if task is None:
        told = "No task id was found: runs are split as if each had a task of its own. Use --hint task=PATH."
        part.notes.append(told)
    else:
        part.run["task"] = task.spec
        share = sum(said is not None for said in task.says) / len(runs)
        part.mapped.append(Mapped(shown(task.spec), "task", share, round(task.confidence, 3), task.why))
    names_of(part, task)
    preamble_of(part)
    labels_of(part)
    part.run |= known
    part.run = {key: part.run[key] for key in _ORDER if key in part.run}
    part.hidden = hidden_of(part)
    told = "read by no record; not known to be there while a run goes on"
    part.left_out = [LeftOut(path, told) for path in part.hidden]
    if strangers:
        files = len({run.file for run in runs}) + len(strangers)
        first = "; ".join(f"{path} ({why.rpartition(': ')[2][:80]})" for path, why in strangers[:3])
        part.notes.append(f"{len(strangers)} of {files} files hold no run of this format and are left out: {first}")
    return part


def _decide(
    part: RunPart, name: str, found: Sequence[Weighed], none: str | None, most: float = 1.0
) -> Weighed | None:
    """Which of the readings is taken; None: none of them. Asked where the best is not sure. none: what follows where
    none is taken; None where one must be. most: probability that none is right, at most."""
    if not found or (found[0].confidence >= SURE and not found[0].assumed):
        return found[0] if found else None
    best = found[0]
    near = [one for one in found[:5] if one is best or one.confidence >= max(NEAR, 0.15 * best.confidence)]
    if best.confidence < NEAR or (len(near) == 1 and none is None and not best.assumed):
        return best if none is None else None
    options = []
    for one in near:
        side = f" ({canonical(one.spec['success'])} is success)" if name == "outcome" else ""
        options.append(Option(one.label + side, one.spec, round(one.confidence, 3), one.why, one.column.example()))
    taken = 0
    if none is not None:
        nothing = min(most, max(0.0, 1.0 - sum(one.confidence for one in found)))
        options.append(Option("none of these", None, round(nothing, 3), none))
        taken = 0 if best.confidence >= TAKEN else len(near)
    rule = f"the likeliest, from a probability of {TAKEN:g} on; the evidence stands beside each"
    choice = Choice(name, tuple(options), taken, rule)
    answer = part.ask(choice)
    answer = answer if 0 <= answer < len(options) else taken
    part.choices.append(replace(choice, taken=answer))
    return near[answer] if answer < len(near) else None


def _given(part: RunPart, spec: Any) -> Values:
    """A column for a value that a person named."""
    known = next((column for column in part.columns if column.spec == spec), None)
    if known is not None:
        return known
    try:
        values = read_value(spec, part.runs)
    except AdapterError:
        values = (MISSING,) * len(part.runs)
    return Values(spec, spec if isinstance(spec, str) else "", values, "run")


def _task(part: RunPart, given: Any) -> Weighed | None:
    if given is not None:
        values = _given(part, given)
        return Weighed(given, values.texts, 9.0, "as a person said", values, 1.0)
    found = [one for one in tasks_of(part.columns, part.runs, part.heard) if one.odds > -0.5]
    alone = any(len(set(one.says)) == len(one.says) for one in found)
    return _decide(part, "task", found, None if alone else "every run is then a task of its own")


def _outcome(part: RunPart, task: Weighed | None, given: Any, hints: Mapping[str, str]) -> Weighed | None:
    success = hints.get("success")
    if isinstance(given, Mapping) and "success" in given:
        part.run["outcome"] = given
        return None
    none = None
    if given is not None:
        of = given.get("of", given) if isinstance(given, Mapping) else given
        column = replace(_given(part, of), near="run")
        found = outcomes_of([column], part.runs, None, success)
        if not found:
            part.notes.append(f"The hint outcome={shown(of)} was not followed: {_why_not(column, success)}")
            return None
        if len(found) == 1 and not found[0].assumed:
            found = [replace(found[0], confidence=1.0)]
    else:
        none = "every run is then of unknown outcome, until labels are brought"
        rated = outcomes_of(part.columns, part.runs, task.says if task is not None else None, success)
        found = list(islice((one for one in rated if _fit(part, one) is not None), 20))
    if "labels" in hints and found and (found[0].confidence < SURE or found[0].assumed):
        part.notes.append("The outcomes are those of the labels that were given; the adapter reads none from the runs.")
        return None
    one = _decide(part, "outcome", found, none, NO_OUTCOME)
    if one is None:
        part.notes.append(
            "No outcome was found in the runs, their events or the files beside them, so every run is of unknown "
            "outcome. Bring outcomes with --labels, or name the place with --hint outcome=PATH."
        )
        if found:
            part.notes.append(f"Nearest to an outcome: {found[0].label} ({found[0].why}); too unsure to be taken.")
        if not any(choice.field == "outcome" for choice in part.choices):
            nothing = Option("none of these", None, NO_OUTCOME, "no place of the samples reads like an outcome")
            part.choices.append(Choice("outcome", (nothing,), 0, "most samples tell somewhere how runs ended"))
        return None
    part.run["outcome"] = one.spec
    part.rules_before, part.waived, part.extra = _fit(part, one) or ([], [], {})
    won, lost = one.says.count(1), one.says.count(-1)
    told = f"{won} successes, {lost} failures, {len(one.says) - won - lost} unknown"
    part.mapped.append(Mapped(one.label, "outcome", (won + lost) / len(one.says), round(one.confidence, 3), one.why))
    part.notes.append(f"Outcome from {one.label}: {told} (confidence {one.confidence:.2f}: {one.why}).")
    if not (won and lost):
        part.notes.append("All samples with an outcome ended alike: check which value means success.")
    if one.assumed:
        part.notes.append("Which value means success is a guess. Check it, or say it with --hint success=VALUE.")
    return one


def _why_not(column: Values, success: str | None) -> str:
    seen = sorted({str(value) for value in column.there})
    if not seen:
        return "no run has a value there."
    values = ", ".join(repr(one[:40]) for one in seen[:5]) + (", ..." if len(seen) > 5 else "")
    if success is not None:
        return f"no run has {success!r} there; its values are {values}."
    return (
        f"its values ({values}) are neither two, nor numbers from 0 to 1, nor words of success and failure. Say which "
        "of them means success: --hint success=VALUE; or bring outcomes with --labels."
    )


Fit = tuple[list[Mapping[str, Any]], list[Mapping[str, str]], dict[str, Any]]


def _fit(part: RunPart, one: Weighed) -> Fit | None:
    """What else the spec needs so that no record reads what tells the outcome: rules that skip such events, the reason
    why records may read a field of that name in others, and events of text with the line cut out. None where the
    interpreter does not take it."""
    column, events = one.column, part.spec["events"]
    extra = {}
    lines = [one["re"] for one in _of_text(one.spec)]
    if lines and isinstance(events, dict) and "split" in events:
        before = events["split"].get("cut", [])
        cuts = [*(before if isinstance(before, list) else [before]), *lines]
        extra = {"events": {**events, "split": {**events["split"], "cut": cuts}}}
    fits: list[Fit] = [([], [], extra)]
    path = column.spec.get("text", column.spec.get("json")) if isinstance(column.spec, dict) else column.spec
    in_one = column.near in ("last", "once", "first") and not (isinstance(events, dict) and "flatten" in events)
    in_one = in_one and not any(isinstance(step, tuple) for step in column.place)
    is_open = isinstance(events, dict) and "decode" in events  # then a place inside JSON is one of the event
    if in_one and isinstance(path, str) and (is_open or JSON not in column.place):
        when = {spelled("@", tuple(step for step in column.place if step != JSON)): {"present": True}}
        why = "the events that the outcome is read from are skipped by the first rule"
        skip = {"when": when, "emit": "skip", "comment": "tells the outcome"}
        fits.insert(0 if column.near == "last" else 1, ([skip], [{"path": path, "reason": why}], extra))
    for rules, waived, cut in fits:
        spec = {**part.spec, **cut, **HEAD, "run": {"outcome": one.spec}, "rules": [*rules, *part.spec["rules"]]}
        try:
            Adapter({**spec, "waived": [*part.spec.get("waived", ()), *waived]})
        except AdapterError:
            continue
        return rules, waived, cut
    return None


def _of_text(value: Any) -> Iterator[Mapping[str, Any]]:
    """The parts of a value that read a line of the run's text: a verdict, or the id of a row beside it."""
    if isinstance(value, Mapping):
        if value.get("of") == "$.text" and "re" in value:
            yield value
        value = list(value.values())
    for inner in value if isinstance(value, list) else ():
        yield from _of_text(inner)
